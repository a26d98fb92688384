// Reads of one's own memory that cannot fault, by the kernel. For looking at what may not be what it is taken for.
#pragma once

#include <sys/uio.h>

#include "base/raw_syscall.h"

namespace gputrace {

// False: nothing lies there, or the kernel refuses.
inline bool read_safely(u64 address, void* out, u64 size) {
  iovec here{out, size}, there{reinterpret_cast<void*>(address), size};
  return raw_syscall(SYS_process_vm_readv, raw_syscall(SYS_getpid), raw_pointer(&here), 1, raw_pointer(&there), 1, 0) ==
         static_cast<long>(size);
}
template <typename T>
bool read_safely(u64 address, T& out) {
  return read_safely(address, &out, sizeof out);
}
// The first one where a function to read by is asked for.
inline constexpr auto read_own = [](u64 address, void* out, u64 size) { return read_safely(address, out, size); };

}  // namespace gputrace
