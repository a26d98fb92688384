#include "interpose/session/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "base/mapped_memory.h"
#include "base/raw_syscall.h"
#include "interpose/lookup/elf_lookup.h"
#include "interpose/session/children.h"

namespace gputrace {
namespace {

constexpr int kSegmentFd = 3, kProcessFd = 4;  // as the sidecar sees them
constexpr u64 kStackSize = 64u << 10;          // for each of the two
constexpr long kCloseRange = 436;
// A debugger or strace follows the program's children, not ours.
constexpr int kClone = CLONE_VM | CLONE_VFORK | CLONE_UNTRACED;

// libc's own: a sanitizer's would take the children for its host's.
using Clone = int (*)(int (*)(void*), void*, int, void*, ...);

struct Plan {
  const SidecarLaunch* launch;
  Clone clone;
  char* second_stack_top;
  volatile int error;  // written by the children: they share this memory
  volatile int sidecar;
};

// The children run on the host's memory while the calling thread sleeps: raw system calls only, nothing that would
// touch errno or a lock.
[[noreturn]] void leave(int status) {
  for (;;) raw_syscall(SYS_exit, status);
}

void close_from(int first) {
  if (raw_syscall(kCloseRange, first, ~0u, 0) == 0) return;
  for (int fd = first; fd < 65536; ++fd) raw_syscall(SYS_close, fd);
}

int arrange_descriptors(const SidecarLaunch& launch) {
  const long null = raw_syscall(SYS_openat, AT_FDCWD, raw_pointer("/dev/null"), O_RDWR);
  if (null < 0) return static_cast<int>(-null);
  for (int fd = 0; fd <= 2; ++fd) {
    if (null != fd) raw_syscall(SYS_dup3, null, fd, 0);
  }
  // Out of the way first: either may sit on the other's place.
  if (launch.segment_fd < 0) {
    close_from(kSegmentFd);
    return 0;
  }
  const long segment = raw_syscall(SYS_fcntl, launch.segment_fd, F_DUPFD, kProcessFd + 1);
  if (segment < 0) return static_cast<int>(-segment);
  const long process = launch.process_fd < 0 ? -1 : raw_syscall(SYS_fcntl, launch.process_fd, F_DUPFD, kProcessFd + 1);
  raw_syscall(SYS_dup3, segment, kSegmentFd, 0);
  if (process >= 0) raw_syscall(SYS_dup3, process, kProcessFd, 0);
  close_from(process >= 0 ? kProcessFd + 1 : kSegmentFd + 1);
  return 0;
}

int become_sidecar(void* data) {
  Plan& plan = *static_cast<Plan*>(data);
  raw_syscall(SYS_setsid);
  int error = arrange_descriptors(*plan.launch);
  if (!error) {
    error = static_cast<int>(-raw_syscall(SYS_execve, raw_pointer(plan.launch->path),
                                          raw_pointer(plan.launch->arguments), raw_pointer(plan.launch->environment)));
  }
  plan.error = error;
  leave(127);
}

int run_middle(void* data) {
  Plan& plan = *static_cast<Plan*>(data);
  plan.sidecar = plan.clone(become_sidecar, plan.second_stack_top, kClone, data);
  if (plan.sidecar < 0) plan.error = EAGAIN;
  leave(0);
}

}  // namespace

int start_sidecar(const SidecarLaunch& launch) {
  const auto clone = reinterpret_cast<Clone>(find_libc_function("clone"));
  if (!clone) return ENOSYS;
  char* const base = map_memory<char>(2 * kStackSize);
  if (!base) return ENOMEM;
  Plan plan{&launch, clone, base + 2 * kStackSize, 0, 0};
  const u64 all = ~0ull;
  u64 before = 0;
  raw_syscall(SYS_rt_sigprocmask, SIG_SETMASK, raw_pointer(&all), raw_pointer(&before), sizeof all);
  const int middle = clone(run_middle, base + kStackSize, kClone, &plan);
  if (middle < 0) {
    plan.error = errno;
  } else {
    while (raw_syscall(SYS_wait4, middle, 0, __WALL, 0) == -EINTR) {
    }
  }
  raw_syscall(SYS_rt_sigprocmask, SIG_SETMASK, raw_pointer(&before), 0, sizeof before);
  unmap_memory(base, 2 * kStackSize);
  if (!plan.error && adopts_orphans()) hide_child(plan.sidecar);
  return plan.error;
}

}  // namespace gputrace
