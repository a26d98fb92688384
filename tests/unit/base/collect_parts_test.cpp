// What a list of parts means, asked for and in effect.
#include "base/collect_parts.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace gputrace::collect {
namespace {

u32 in_effect(const std::string& list) { return parts_in_effect(list.data(), list.size()); }

TEST(CollectParts, AListNamesWhatIsAskedFor) {
  EXPECT_EQ(parts_of(nullptr), u32{kDefault});
  EXPECT_EQ(parts_of(""), u32{kDefault});
  EXPECT_EQ(parts_of("api"), u32{kApi});
  EXPECT_EQ(parts_of("api,device,"), kApi | kDevice);
  EXPECT_EQ(parts_of("all"), u32{kAll});
  EXPECT_EQ(parts_of("all,-libs"), kAll & ~kLibraries);
  EXPECT_EQ(parts_of("-nvtx"), kDefault & ~kNvtx);
  EXPECT_EQ(parts_of("+stacks"), kDefault | kStacks);
  EXPECT_EQ(parts_of("+stacks,-code"), (kDefault | kStacks) & ~kCode);
  EXPECT_EQ(parts_of("api,+stacks"), kApi | kStacks);
  EXPECT_EQ(parts_of("+"), u32{kDefault});
  EXPECT_EQ(parts_of("code,-code"), 0u);
}

TEST(CollectParts, WordsThatAreNoPartAreNamed) {
  std::vector<std::string> unknown;
  EXPECT_EQ(parts_of("api,apis,-,,-libz,ap", [&](const char* name, u64 length) { unknown.emplace_back(name, length); }),
            u32{kApi});
  EXPECT_EQ(unknown, (std::vector<std::string>{"apis", "libz", "ap"}));
}

TEST(CollectParts, AListInEffectNamesItsPartsAlone) {
  EXPECT_EQ(in_effect(""), 0u);
  EXPECT_EQ(in_effect("api,code"), kApi | kCode);
  EXPECT_EQ(in_effect("of a later version"), 0u) << "not the default";
  EXPECT_EQ(in_effect("apis,codes,libs"), u32{kLibraries});
  EXPECT_EQ(parts_in_effect("api,code", 5), u32{kApi}) << "no farther than its length";
}

TEST(CollectParts, EveryPartHasItsNameAndBit) {
  u32 all = 0;
  for (const Part& part : kParts) {
    EXPECT_EQ(part_of(part.name, std::strlen(part.name)), part.bit);
    EXPECT_EQ(all & part.bit, 0u) << part.name;
    all |= part.bit;
  }
  EXPECT_EQ(all, u32{kAll});
}

}  // namespace
}  // namespace gputrace::collect
