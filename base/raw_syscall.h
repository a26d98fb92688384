// System calls that neither touch errno nor pass through a symbol that somebody may have replaced.
// For code that runs inside other people's processes, and between a vfork-like clone and exec.
#pragma once

#include <sys/syscall.h>

#include "base/types.h"

namespace gputrace {

// Returns what the kernel returned: -errno on failure.
inline long raw_syscall(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0) {
#if defined(__x86_64__)
  long result;
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
#elif defined(__aarch64__)
  register long x8 asm("x8") = number;
  register long x0 asm("x0") = a;
  register long x1 asm("x1") = b;
  register long x2 asm("x2") = c;
  register long x3 asm("x3") = d;
  register long x4 asm("x4") = e;
  register long x5 asm("x5") = f;
  asm volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory", "cc");
  return x0;
#else
#error "raw_syscall: unknown architecture"
#endif
}

// Of what raw_syscall returned: a pointer from mmap may be "negative" too.
inline bool raw_failed(long result) { return result < 0 && result > -4096; }

inline u32 own_thread_id() { return static_cast<u32>(raw_syscall(SYS_gettid)); }

template <typename T>
long raw_pointer(T* pointer) {
  return reinterpret_cast<long>(pointer);
}

}  // namespace gputrace
