// Memory of large arrays: what is kept of it for the next ones, and what they may find there.
#include "analysis/read/paged_array.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/types.h"

namespace gputrace {
namespace {

constexpr std::size_t kMany = 100'000;

bool is_zero(const PagedArray<u64>& array) {
  return std::all_of(&array[0], &array[0] + array.size(), [](u64 value) { return value == 0; });
}

PagedArray<u64> written(Fresh fresh = Fresh::Anything) {
  PagedArray<u64> made(kMany, fresh);
  std::fill_n(made.data(), kMany, 7);
  return made;
}

TEST(PagedArray, TakesTheMemoryOfOneThatIsGone) {
  const KeptPages pages;
  const void* const first = written().data();
  PagedArray<u64> again(kMany);
  EXPECT_EQ(again.data(), first);
  EXPECT_EQ(again[kMany - 1], 7u);  // anything may stand there: here what stood there before
  const PagedArray<u64> other(kMany), larger(kMany + 1);
  EXPECT_NE(static_cast<const void*>(&other[0]), first);
  EXPECT_TRUE(is_zero(other));  // the kernel's
}

TEST(PagedArray, IsZeroWhereThatIsAskedFor) {
  const KeptPages pages;
  written();
  EXPECT_TRUE(is_zero(PagedArray<u64>(kMany, Fresh::Zeroed)));
}

TEST(PagedArray, KeepsNothingWhereNobodyAsksForIt) {
  written();
  { const KeptPages before; }
  EXPECT_TRUE(is_zero(PagedArray<u64>(kMany)));
  {
    const KeptPages outer;
    { const KeptPages inner; }
    written();  // kept: the outer one is still there
    EXPECT_EQ(PagedArray<u64>(kMany)[0], 7u);
  }
  EXPECT_TRUE(is_zero(PagedArray<u64>(kMany)));
}

}  // namespace
}  // namespace gputrace
