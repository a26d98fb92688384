// Memory of large arrays: what is kept of it for the next ones, and what they may find there; the heap of who reads large traces.
#include "analysis/read/paged_array.h"

#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "analysis/read/huge_pages.h"
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

// Bytes of the heap that are advised to lie in huge pages; -1: the kernel does not tell.
long advised_heap() {
  std::ifstream maps("/proc/self/smaps");
  long sum = 0, size = 0;
  bool heap = false, told = false;
  for (std::string line; std::getline(maps, line);) {
    if (line.find('-') < line.find(' ')) heap = line.ends_with("[heap]");
    if (line.starts_with("Size:")) size = std::atol(line.c_str() + 5) * 1024;
    if (!line.starts_with("VmFlags:")) continue;
    told = true;
    if (heap && line.find(" hg") != std::string::npos) sum += size;
  }
  return told ? sum : -1;
}

// In a process of its own, whose heap is new, and stays so. The exit code: 0 none is advised, 1 about a gigabyte, 2 something else.
int heap_after(u64 trace_bytes, rlim_t most_addresses = RLIM_INFINITY) {
  ::mallopt(M_MMAP_THRESHOLD, 32 << 20);  // as gputrace has it: large blocks come from the heap
  const rlimit limit{most_addresses, RLIM_INFINITY};
  if (::setrlimit(RLIMIT_AS, &limit) != 0) return 3;
  ask_for_huge_pages(trace_bytes);
  ask_for_huge_pages(trace_bytes);  // once is enough
  const long advised = advised_heap();
  if (advised == 0) return 0;
  // A block of it is the heap's, and can be written.
  std::string block(20 << 20, 'x');
  const bool usable = block.data() < static_cast<char*>(::sbrk(0)) && block.back() == 'x';
  return usable && advised >= 1 << 30 && advised < (1l << 30) + (256 << 20) ? 1 : 2;
}

TEST(HugePages, AreForLargeTracesWhereAddressesAreNotCounted) {
  if (advised_heap() < 0 || ::access("/sys/kernel/mm/transparent_hugepage/enabled", F_OK) != 0)
    GTEST_SKIP() << "this kernel has no huge pages, or does not tell";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "another malloc";
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
  GTEST_SKIP() << "another malloc";
#endif
#endif
  EXPECT_EXIT(std::_Exit(heap_after(kFewBytes)), testing::ExitedWithCode(1), "");
  EXPECT_EXIT(std::_Exit(heap_after(kFewBytes - 1)), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(std::_Exit(heap_after(kFewBytes, rlim_t{4} << 30)), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace gputrace
