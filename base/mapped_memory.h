// Memory straight from the kernel: zeroed, private to this process, taken page by page as it is touched (no swap is set
// aside for it). For code in other people's processes, whose allocator is theirs. Any thread.
#pragma once

#include <sys/mman.h>

#include "base/raw_syscall.h"

namespace gputrace {

// nullptr: there is none. The caller gives it back with unmap_memory and the same size, or keeps it for good.
template <typename T = void>
T* map_memory(u64 bytes) {
  const long mapped = raw_syscall(SYS_mmap, 0, static_cast<long>(bytes), PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return raw_failed(mapped) ? nullptr : reinterpret_cast<T*>(mapped);
}

template <typename T>
void unmap_memory(T* memory, u64 bytes) {
  raw_syscall(SYS_munmap, raw_pointer(memory), static_cast<long>(bytes));
}

// It reads as zeros again, and takes no page until it is touched.
template <typename T>
void clear_memory(T* memory, u64 bytes) {
  raw_syscall(SYS_madvise, raw_pointer(memory), static_cast<long>(bytes), MADV_DONTNEED);
}

// Its pages are there before they are touched. False: not known to this kernel (before 5.14), or no memory is left.
template <typename T>
bool populate_memory(T* memory, u64 bytes) {
  constexpr long kPopulateWrite = 23;  // MADV_POPULATE_WRITE, which older headers lack
  return raw_syscall(SYS_madvise, raw_pointer(memory), static_cast<long>(bytes), kPopulateWrite) == 0;
}

}  // namespace gputrace
