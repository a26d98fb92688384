#include "interpose/session/children.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <atomic>
#include <cstring>

#include "base/raw_syscall.h"
#include "interpose/lookup/elf_lookup.h"

namespace gputrace {
namespace {

constexpr u32 kMost = 4;
constinit std::atomic<i32> hidden[kMost]{};
constinit std::atomic<i32> parent{0};  // whose children they are; 0: there are none

bool any_hidden() {
  const i32 owner = parent.load(std::memory_order_acquire);
  return owner && owner == static_cast<i32>(raw_syscall(SYS_getpid));
}

bool is_hidden(i32 pid) {
  for (const std::atomic<i32>& child : hidden) {
    if (child.load(std::memory_order_relaxed) == pid) return true;
  }
  return false;
}

// It has ended: its number may be another child's next.
void reap(i32 pid) {
  if (raw_syscall(SYS_wait4, pid, 0, WNOHANG | __WALL, 0) != pid) return;
  for (std::atomic<i32>& child : hidden) child.compare_exchange_strong(pid, 0, std::memory_order_relaxed);
}

// Reads numbers between blanks. True: one of them is no hidden child.
class ChildList {
 public:
  bool sees_other(const char* text, u64 size) {
    for (u64 i = 0; i < size; ++i) {
      if (text[i] >= '0' && text[i] <= '9') {
        number_ = number_ * 10 + (text[i] - '0');
      } else {
        if (number_ && !is_hidden(number_)) return true;
        number_ = 0;
      }
    }
    return false;
  }

 private:
  i32 number_ = 0;
};

bool thread_has_others(const char* thread) {
  char text[512] = "/proc/self/task/";
  const u64 length = std::strlen(text), more = std::strlen(thread);
  if (more > 20) return true;
  std::memcpy(text + length, thread, more);
  std::memcpy(text + length + more, "/children", sizeof "/children");
  const long file = raw_syscall(SYS_openat, AT_FDCWD, raw_pointer(text), O_RDONLY | O_CLOEXEC);
  if (file < 0) return file != -ENOENT && file != -ESRCH;  // the thread has ended; else: not known
  ChildList list;
  bool found = false;
  for (long got; !found && (got = raw_syscall(SYS_read, file, raw_pointer(text), sizeof text)) > 0;)
    found = list.sees_other(text, static_cast<u64>(got));
  raw_syscall(SYS_close, file);
  return found;
}

// Whether the host has children of its own. Where /proc does not say it, it has.
bool has_others() {
  struct Entry {
    u64 inode, offset;
    u16 size;
    u8 type;
    char name[1];
  };
  const long folder =
      raw_syscall(SYS_openat, AT_FDCWD, raw_pointer("/proc/self/task"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return true;
  alignas(8) char entries[2048];
  bool found = false;
  for (long got; !found && (got = raw_syscall(SYS_getdents64, folder, raw_pointer(entries), sizeof entries)) > 0;) {
    for (long at = 0; at < got && !found;) {
      const auto& entry = *reinterpret_cast<const Entry*>(entries + at);
      at += entry.size;
      if (entry.name[0] >= '0' && entry.name[0] <= '9') found = thread_has_others(entry.name);
    }
  }
  raw_syscall(SYS_close, folder);
  return found;
}

// The function of this name behind us, asked for once.
#define GT_REAL(name)                                       \
  ([]() -> decltype(&::name) {                              \
    static constinit std::atomic<void*> known{nullptr};     \
    void* function = known.load(std::memory_order_relaxed); \
    if (!function) {                                        \
      function = gputrace::find_function_after_us(#name);   \
      known.store(function, std::memory_order_relaxed);     \
    }                                                       \
    return reinterpret_cast<decltype(&::name)>(function);   \
  }())

// Looks for the host's next child whose state has changed as `options` (waitid's) want it, without taking the change away. 1:
// there is one, or the host is to see the call's own answer; 0: none yet (WNOHANG); -1: errno is set.
int next_child(siginfo_t& info, int options) {
  for (;;) {
    info.si_pid = 0;
    if (!has_others()) options |= WNOHANG;  // only what has ended already may come: ours
    if (GT_REAL(waitid)(P_ALL, 0, &info, options | WNOWAIT) != 0) return -1;
    if (!info.si_pid) {
      if (has_others()) return 0;
      errno = ECHILD;
      return -1;
    }
    if (!is_hidden(info.si_pid)) return 1;
    reap(info.si_pid);
  }
}

pid_t wait_for_any(int* status, int options, rusage* usage) {
  const int changes = WEXITED | (options & (WUNTRACED | WCONTINUED | WNOHANG | __WALL | __WCLONE | __WNOTHREAD));
  for (;;) {
    siginfo_t info;
    const int found = next_child(info, changes);
    if (found <= 0) return found;
    const pid_t child = GT_REAL(wait4)(info.si_pid, status, options | WNOHANG, usage);
    if (child > 0 || (child < 0 && errno != ECHILD)) return child;  // else another thread was faster
  }
}

}  // namespace

bool adopts_orphans() {
  if (raw_syscall(SYS_getpid) == 1) return true;
  int subreaper = 0;
  return raw_syscall(SYS_prctl, PR_GET_CHILD_SUBREAPER, raw_pointer(&subreaper)) == 0 && subreaper;
}

void hide_child(i32 pid) {
  const i32 self = static_cast<i32>(raw_syscall(SYS_getpid));
  if (parent.load(std::memory_order_relaxed) != self) {  // another process's, from before a fork
    for (std::atomic<i32>& child : hidden) child.store(0, std::memory_order_relaxed);
  }
  for (std::atomic<i32>& child : hidden) {
    i32 nobody = 0;
    if (child.compare_exchange_strong(nobody, pid, std::memory_order_relaxed)) break;
  }
  parent.store(self, std::memory_order_release);
}

}  // namespace gputrace

// ------------------------------------------------------------------ the exported functions
// waitpid(0) and a group's number do not mean the sidecar: it has a session, and so a group, of its own.
#define GT_EXPORT extern "C" __attribute__((visibility("default")))

GT_EXPORT pid_t wait(int* status) {
  if (gputrace::any_hidden()) return gputrace::wait_for_any(status, 0, nullptr);
  return GT_REAL(wait)(status);
}

GT_EXPORT pid_t waitpid(pid_t pid, int* status, int options) {
  if (pid == -1 && gputrace::any_hidden()) return gputrace::wait_for_any(status, options, nullptr);
  return GT_REAL(waitpid)(pid, status, options);
}

GT_EXPORT pid_t wait3(int* status, int options, rusage* usage) noexcept(noexcept(::wait3(status, options, usage))) {
  if (gputrace::any_hidden()) return gputrace::wait_for_any(status, options, usage);
  return GT_REAL(wait3)(status, options, usage);
}

GT_EXPORT pid_t wait4(pid_t pid, int* status, int options,
                      rusage* usage) noexcept(noexcept(::wait4(pid, status, options, usage))) {
  if (pid == -1 && gputrace::any_hidden()) return gputrace::wait_for_any(status, options, usage);
  return GT_REAL(wait4)(pid, status, options, usage);
}

GT_EXPORT int waitid(idtype_t type, id_t id, siginfo_t* info, int options) {
  if (type != P_ALL || !gputrace::any_hidden()) return GT_REAL(waitid)(type, id, info, options);
  for (;;) {
    siginfo_t found{};
    const int changed = gputrace::next_child(found, options & ~WNOWAIT);
    if (changed < 0) return -1;
    if (changed == 0) {
      if (info) info->si_pid = 0, info->si_signo = 0;
      return 0;
    }
    siginfo_t taken{};
    if (GT_REAL(waitid)(P_PID, static_cast<id_t>(found.si_pid), &taken, options | WNOHANG) != 0) {
      if (errno == ECHILD) continue;  // another thread was faster
      return -1;
    }
    if (!taken.si_pid) continue;
    if (info) *info = taken;
    return 0;
  }
}
