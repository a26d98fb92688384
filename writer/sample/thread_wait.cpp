#include "writer/sample/thread_wait.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "writer/host.h"

namespace gputrace {
namespace {

// A call of the kernel, and its first two arguments.
struct KernelCall {
  long number;
  u64 first, second;
};

WaitFor wait_of_descriptor(i32 process, u64 descriptor) {
  char target[64];
  const std::string path = "/proc/" + std::to_string(process) + "/fd/" + std::to_string(static_cast<u32>(descriptor));
  const ssize_t length = ::readlink(path.c_str(), target, sizeof target);
  const std::string_view name(target, length > 0 ? static_cast<std::size_t>(length) : 0);
  if (name.starts_with("pipe:")) return WaitFor::Pipe;
  if (name.starts_with("socket:")) return WaitFor::Socket;
  if (name.starts_with("anon_inode:")) return WaitFor::Descriptors;  // of events, timers, signals
  if (name.starts_with("/dev/")) return WaitFor::Terminal;
  return name.starts_with("/") ? WaitFor::File : WaitFor::Kernel;
}

WaitFor wait_of(i32 process, const KernelCall& call, const InterpreterMemory& interpreter) {
  switch (call.number) {
    case -1:
      return WaitFor::Page;
    case SYS_futex:
      return call.first - interpreter.address < interpreter.bytes ? WaitFor::InterpreterLock : WaitFor::Lock;
    case SYS_nanosleep:
    case SYS_clock_nanosleep:
      return WaitFor::Sleep;
#ifdef SYS_poll
    case SYS_poll:
#endif
    case SYS_ppoll:  // of no descriptors
      return call.second == 0 ? WaitFor::Sleep : WaitFor::Descriptors;
#ifdef SYS_select
    case SYS_select:
#endif
    case SYS_pselect6:
      return call.first == 0 ? WaitFor::Sleep : WaitFor::Descriptors;
#ifdef SYS_epoll_wait
    case SYS_epoll_wait:
#endif
    case SYS_epoll_pwait:
#ifdef SYS_epoll_pwait2
    case SYS_epoll_pwait2:
#endif
#ifdef SYS_io_uring_enter
    case SYS_io_uring_enter:
#endif
    case SYS_io_getevents:
      return WaitFor::Descriptors;
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_recvmmsg:
    case SYS_sendto:
    case SYS_sendmsg:
    case SYS_sendmmsg:
    case SYS_accept:
    case SYS_accept4:
    case SYS_connect:
      return WaitFor::Socket;
    case SYS_wait4:
    case SYS_waitid:
      return WaitFor::Process;
    case SYS_read:
    case SYS_write:
    case SYS_readv:
    case SYS_writev:
    case SYS_pread64:
    case SYS_pwrite64:
    case SYS_preadv:
    case SYS_pwritev:
      return wait_of_descriptor(process, call.first);
#ifdef SYS_open
    case SYS_open:
    case SYS_stat:
    case SYS_lstat:
#endif
    case SYS_openat:
    case SYS_fstat:
    case SYS_newfstatat:
    case SYS_statx:
    case SYS_getdents64:
    case SYS_fsync:
    case SYS_fdatasync:
    case SYS_msync:
    case SYS_ftruncate:
    case SYS_fallocate:
    case SYS_sendfile:
    case SYS_copy_file_range:
    case SYS_close:
      return WaitFor::File;
    default:
      return WaitFor::Kernel;
  }
}

}  // namespace

std::optional<ThreadWait> wait_of_thread(i32 process, i32 tid, const InterpreterMemory& interpreter) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/task/%d/syscall", process, tid);
  const std::string told = read_small_file(path, 256);
  if (told.empty()) return {};
  if (told.starts_with("running")) return ThreadWait{};
  KernelCall call{};
  char* at = nullptr;
  call.number = std::strtol(told.c_str(), &at, 10);
  if (at == told.c_str()) return {};
  if (call.number >= 0) {
    call.first = std::strtoull(at, &at, 16);
    call.second = std::strtoull(at, &at, 16);
  }
  return ThreadWait{wait_of(process, call, interpreter)};
}

}  // namespace gputrace
