// Reading the memory of a traced process where the kernel lets only an ancestor of it do so (Yama's ptrace_scope 1): the sidecar,
// which is none, lays down what it wants to know at a desk, and `gputrace run` reads it for it. The desks lie in memory of `run`'s
// own, which the sidecars of its run open as /proc/PID/fd/N (GPUTRACE_RUN_MEMORY).
//   · A desk is one sidecar's, from its first question on until it ends. At most one question lies there at a time.
//   · `run` believes nothing of what lies there: it reads only processes that come from it, and answers into the desk alone.
#pragma once

#include <linux/futex.h>
#include <time.h>

#include <atomic>

#include "base/raw_syscall.h"
#include "base/types.h"

namespace gputrace {

enum class DeskState : u32 { Idle, Asked, Answered };

struct MemoryDesk {
  static constexpr u32 kMostPieces = 1024;  // UIO_MAXIOV
  static constexpr u64 kMostBytes = 512u << 10;

  struct Piece {
    u64 address, size;
  };

  std::atomic<u32> owner;  // pid of the sidecar; 0: free
  std::atomic<u32> state;  // DeskState; a futex
  i32 process;             // whose memory
  u32 pieces;
  i64 result;            // as process_vm_readv has it: bytes; -errno
  std::atomic<u64> cpu;  // ns of processor time that answers took, in sum
};

// What lies on a desk. Apart from its words, which `run` looks through with each question: those of all are one page.
struct DeskPaper {
  MemoryDesk::Piece piece[MemoryDesk::kMostPieces];
  u8 bytes[MemoryDesk::kMostBytes];  // the pieces, one after the other
};

struct MemoryDesks {
  static constexpr u32 kCount = 64;
  static constexpr u32 kVersion = 1;

  u32 version;
  std::atomic<u32> bell;  // moves with each question; a futex
  MemoryDesk desk[kCount];
  DeskPaper paper[kCount];  // of the desk of the same place
};

// Until the word is another than `value`, at most `timeout` (nullptr: for ever); it may return earlier. Between processes.
inline void futex_wait(std::atomic<u32>& word, u32 value, const timespec* timeout) {
  raw_syscall(SYS_futex, raw_pointer(&word), FUTEX_WAIT, static_cast<long>(value), raw_pointer(timeout));
}
inline void futex_wake(std::atomic<u32>& word) { raw_syscall(SYS_futex, raw_pointer(&word), FUTEX_WAKE, 1); }

}  // namespace gputrace
