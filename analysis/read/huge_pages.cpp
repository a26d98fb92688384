#include "analysis/read/huge_pages.h"

#include <malloc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <mutex>

namespace gputrace {
namespace {

#ifdef __GLIBC__
constexpr int kHeap = 1 << 30, kPage = 4096;
constexpr int kKept = kHeap + (256 << 20);  // free on the heap's top before it is given back
constexpr int kUsualPad = 128 << 10;        // DEFAULT_TOP_PAD of glibc
constexpr std::size_t kMoves =
    31 << 20;  // the heap has to grow for it, and it is not so much that it is mapped for itself

bool limited(__rlimit_resource_t what) {
  rlimit limit;
  return ::getrlimit(what, &limit) != 0 || limit.rlim_cur != RLIM_INFINITY;
}

// The heap is one stretch that grows at its end: what it grows by next is made as long as all that is going to come, and advised as one.
void grow_heap() {
  ::malloc_trim(0);  // what is free on its top would be taken first
  ::mallopt(M_TOP_PAD, kHeap);
  void* const moved = std::malloc(kMoves);
  ::mallopt(M_TOP_PAD, kUsualPad);
  if (!moved) return;
  const auto begin = (reinterpret_cast<std::uintptr_t>(moved) + kPage - 1) & ~std::uintptr_t{kPage - 1};
  const auto end = reinterpret_cast<std::uintptr_t>(::sbrk(0));
  // Elsewhere: the heap could not grow, and what was asked for was mapped for itself.
  if (end > begin && end - begin <= std::uintptr_t{2} * kHeap) {
    ::mallopt(M_TRIM_THRESHOLD, kKept);
    ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
  }
  std::free(moved);
}
#endif

}  // namespace

void ask_for_huge_pages([[maybe_unused]] u64 trace_bytes) {
#ifdef __GLIBC__
  static std::once_flag once;
  if (trace_bytes >= kFewBytes && !limited(RLIMIT_AS) && !limited(RLIMIT_DATA)) std::call_once(once, grow_heap);
#endif
}

}  // namespace gputrace
