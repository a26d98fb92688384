#include "interpose/session/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
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

// Descriptors first … last, if there are any.
void close_range(int first, int last) {
  if (first > last || raw_syscall(kCloseRange, first, last, 0) == 0) return;
  constexpr int kLastWithoutTheCall = 65535;
  for (int fd = first; fd <= last && fd <= kLastWithoutTheCall; ++fd) raw_syscall(SYS_close, fd);
}
constexpr int kLast = 0x7fffffff;

// The table of descriptors is the child's own copy. All go but the two (-1: none): the host may have none left to open.
void close_all_but(int one, int other) {
  const int low = one < other ? one : other, high = one < other ? other : one;
  close_range(0, low - 1);
  close_range(low + 1, high - 1);
  close_range(high + 1, kLast);
}

int arrange_descriptors(const SidecarLaunch& launch) {
  close_all_but(launch.segment_fd, launch.process_fd);
  const long null = raw_syscall(SYS_openat, AT_FDCWD, raw_pointer("/dev/null"), O_RDWR);
  if (null < 0) return static_cast<int>(-null);
  // Out of the way first: either may sit on the other's place, or on that of a standard stream.
  const long segment = launch.segment_fd < 0 ? -1 : raw_syscall(SYS_fcntl, launch.segment_fd, F_DUPFD, kProcessFd + 1);
  const long process = launch.process_fd < 0 ? -1 : raw_syscall(SYS_fcntl, launch.process_fd, F_DUPFD, kProcessFd + 1);
  // EINVAL: the limit is no higher than the number asked for.
  if (launch.segment_fd >= 0 && segment < 0) return segment == -EINVAL ? EMFILE : static_cast<int>(-segment);
  for (int fd = 0; fd <= 2; ++fd) {
    if (null != fd) raw_syscall(SYS_dup3, null, fd, 0);
  }
  if (segment >= 0) raw_syscall(SYS_dup3, segment, kSegmentFd, 0);
  if (process >= 0) raw_syscall(SYS_dup3, process, kProcessFd, 0);
  close_range(process >= 0 ? kProcessFd + 1 : segment >= 0 ? kSegmentFd + 1 : kSegmentFd, kLast);
  return 0;
}

// The limit on descriptors is this process's own, the program keeps its. Only where it must be: a filter may forbid the call.
bool allow_more_descriptors() {
  rlimit limit{};
  if (raw_syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, raw_pointer(&limit)) != 0) return false;
  constexpr rlim_t kEnough = 64;
  if (limit.rlim_cur >= kEnough) return false;
  const rlim_t hard = limit.rlim_max;
  limit = {kEnough, hard > kEnough ? hard : kEnough};
  if (raw_syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, raw_pointer(&limit), 0) == 0) return true;
  limit = {hard, hard};
  return raw_syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, raw_pointer(&limit), 0) == 0;
}

int become_sidecar(void* data) {
  Plan& plan = *static_cast<Plan*>(data);
  raw_syscall(SYS_setsid);
  int error = arrange_descriptors(*plan.launch);
  if (error == EMFILE && allow_more_descriptors()) error = arrange_descriptors(*plan.launch);
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
