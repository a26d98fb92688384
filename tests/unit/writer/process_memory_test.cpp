// Memory of a process as looks read it: by pages, which are kept until the next look.
#include "writer/sample/process_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

namespace gputrace {
namespace {

constexpr u64 kPageBytes = 4096;

// Pages of our own, one after the other; the first word of each is its number.
class Pages {
 public:
  explicit Pages(std::size_t count)
      : count_(count),
        at_(static_cast<u8*>(
            ::mmap(nullptr, count * kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    for (std::size_t i = 0; i < count; ++i) word(i) = i;
  }
  ~Pages() { ::munmap(at_, count_ * kPageBytes); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  u64& word(std::size_t page) { return *reinterpret_cast<u64*>(at_ + page * kPageBytes); }
  u64 address(std::size_t page) const { return reinterpret_cast<u64>(at_) + page * kPageBytes; }
  void take_away(std::size_t page) { ::munmap(at_ + page * kPageBytes, kPageBytes); }
  std::vector<u64> addresses(std::size_t count) const {
    std::vector<u64> all;
    for (std::size_t i = 0; i < count; ++i) all.push_back(address(i) + 8);
    return all;
  }

 private:
  std::size_t count_;
  u8* at_;
};

u64 once(ProcessMemory& memory, u64 address) {
  u64 word = ~u64{0};
  EXPECT_TRUE(memory.read_once(address, &word, sizeof word));
  return word;
}

TEST(ProcessMemory, TakesWhatIsExpectedAtOnce) {
  constexpr std::size_t kCount = 100;
  Pages pages(kCount);
  ProcessMemory memory(::getpid());
  memory.look_anew(1);
  memory.expect(pages.addresses(kCount));
  for (std::size_t i = 0; i < kCount; ++i) pages.word(i) = 1000 + i;
  for (std::size_t i = 0; i < kCount; ++i) EXPECT_EQ(once(memory, pages.address(i)), i);
  memory.look_anew(1);
  for (std::size_t i = 0; i < kCount; ++i) EXPECT_EQ(once(memory, pages.address(i)), 1000 + i);
}

// What is no longer there, and what there is no room for, takes nothing from the rest.
TEST(ProcessMemory, ReadsOneByOneWhatCouldNotBeTaken) {
  constexpr std::size_t kCount = 300, kGone = 7;
  Pages pages(kCount);
  pages.take_away(kGone);
  ProcessMemory memory(::getpid());
  memory.look_anew(1);
  memory.expect(pages.addresses(kCount));
  for (std::size_t i = 0; i < kCount; ++i) {
    if (i == kGone) continue;
    EXPECT_EQ(once(memory, pages.address(i)), i);
  }
  u64 word = 0;
  EXPECT_FALSE(memory.read_once(pages.address(kGone), &word, sizeof word));
}

// At the next look of that thread are taken ahead what read() took, and none of what was read once.
TEST(ProcessMemory, TakesAheadWhatIsLikelyToBeReadAgain) {
  Pages pages(4);
  ProcessMemory memory(::getpid());
  memory.look_anew(1);
  u64 word = 0;
  ASSERT_TRUE(memory.read(pages.address(0), &word, sizeof word));
  ASSERT_TRUE(memory.read(pages.address(1), &word, sizeof word));
  EXPECT_EQ(once(memory, pages.address(2)), 2u);
  memory.expect({pages.address(3)});
  memory.look_anew(1);
  for (std::size_t i = 0; i < 4; ++i) pages.word(i) = 1000 + i;
  EXPECT_EQ(once(memory, pages.address(0)), 0u);
  EXPECT_EQ(once(memory, pages.address(1)), 1u);
  EXPECT_EQ(once(memory, pages.address(2)), 1002u);
  EXPECT_EQ(once(memory, pages.address(3)), 1003u);
}

}  // namespace
}  // namespace gputrace
