#include "base/own_stack.h"

#include <sys/mman.h>

#include "base/mapped_memory.h"
#include "base/raw_syscall.h"

// own_stack_x86_64.S
extern "C" __attribute__((visibility("hidden"))) void gputrace_call_on_stack(void (*function)(void*), void* data,
                                                                             void* top);

namespace gputrace {

bool call_on_own_stack(void (*function)(void* data), void* data, long size) {
  constexpr long kGuard = 4096;
  char* const stack = map_memory<char>(static_cast<u64>(size));
  if (!stack) return false;
  raw_syscall(SYS_mprotect, raw_pointer(stack), kGuard, PROT_NONE);
  gputrace_call_on_stack(function, data, stack + size);
  unmap_memory(stack, static_cast<u64>(size));
  return true;
}

}  // namespace gputrace
