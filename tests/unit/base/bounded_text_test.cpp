// Text in a bounded place: never past its end, and what was left out is known.
#include "base/bounded_text.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "base/sentence.h"
#include "interpose/settings/info_text.h"

namespace gputrace {
namespace {

TEST(BoundedText, PutsPiecesTogether) {
  char memory[64];
  BoundedText text(memory, sizeof memory);
  text << "a " << u64{0} << " " << ~u64{0} << " ";
  text.put("b\0c", 3).put_hex(0xbeef, 2);
  EXPECT_TRUE(text.fits());
  EXPECT_EQ(std::string(text.data(), text.size()), std::string("a 0 18446744073709551615 b\0cef", 30));
}

TEST(BoundedText, CountsWhatDoesNotFitAndStaysWithin) {
  char memory[8];
  std::memset(memory, 'x', sizeof memory);
  BoundedText text(memory, 5);
  text << "abc";
  EXPECT_EQ(memory[3], 0) << "terminated while there is room";
  text << "defg";
  EXPECT_FALSE(text.fits());
  EXPECT_EQ(text.size(), 7u);
  EXPECT_EQ(std::string(memory, sizeof memory), "abcdexxx");
  text.cut_back(2);
  EXPECT_TRUE(text.fits());
  text << "z";
  EXPECT_STREQ(memory, "abz");
}

TEST(Sentence, IsAlwaysTerminated) {
  Sentence sentence;
  EXPECT_STREQ(sentence.text(), "");
  for (int i = 0; i < 100; ++i) sentence << "0123456789";
  EXPECT_EQ(std::strlen(sentence.text()), 599u);
  sentence.clear();
  EXPECT_STREQ(sentence.text(), "");
  sentence << "short";
  EXPECT_STREQ(sentence.text(), "short");
}

TEST(InfoText, EscapesValuesAndCutsAtLineBorders) {
  char memory[48];
  InfoText info(memory, sizeof memory);
  info.add("key", "a\tb\nc\\d");
  info.add_hex("id", 0x1f);
  info.add("too", "long for what is left of it");
  info.add("n", u64{7});
  EXPECT_EQ(std::string(info.data(), info.size()), "key\ta\\tb\\nc\\\\d\nid\t000000000000001f\nn\t7\n");
}

}  // namespace
}  // namespace gputrace
