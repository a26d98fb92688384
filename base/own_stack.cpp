#include "base/own_stack.h"

#include <sys/mman.h>

#include "base/raw_syscall.h"

// own_stack_x86_64.S
extern "C" __attribute__((visibility("hidden"))) void gputrace_call_on_stack(void (*function)(void*), void* data,
                                                                             void* top);

namespace gputrace {

bool call_on_own_stack(void (*function)(void* data), void* data, long size) {
  constexpr long kGuard = 4096;
  const long stack = raw_syscall(SYS_mmap, 0, size, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
  if (stack < 0 && stack > -4096) return false;
  raw_syscall(SYS_mprotect, stack, kGuard, PROT_NONE);
  gputrace_call_on_stack(function, data, reinterpret_cast<char*>(stack) + size);
  raw_syscall(SYS_munmap, stack, size);
  return true;
}

}  // namespace gputrace
