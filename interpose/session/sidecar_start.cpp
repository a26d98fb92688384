#include "interpose/session/sidecar_start.h"

#include <errno.h>
#include <fcntl.h>
#include <cstring>

#include "base/bounded_text.h"
#include "base/c_text.h"
#include "base/raw_syscall.h"
#include "interpose/lookup/elf_lookup.h"
#include "interpose/session/spawn.h"
#include "interpose/settings/environment.h"
#include "interpose/settings/process_facts.h"
#include "ringbuf/segment_create.h"

namespace gputrace {
namespace {

constexpr long kPidfdOpen = 434;

bool is_executable(const char* path) { return raw_syscall(SYS_faccessat, AT_FDCWD, raw_pointer(path), X_OK) == 0; }

// Beside the library: installed tree, same folder, build tree.
bool find_sidecar(char* out, u64 capacity) {
  static constexpr const char* kPlaces[] = {"/../libexec/gputrace/gputrace-sidecar", "/gputrace-sidecar",
                                            "/../writer/gputrace-sidecar"};
  char folder[1024];
  const u64 length = own_folder(folder, sizeof folder);
  if (!length) return false;
  for (const char* place : kPlaces) {
    if (length + std::strlen(place) >= capacity) continue;
    std::memcpy(out, folder, length - 1);
    std::strcpy(out + length - 1, place);
    if (is_executable(out)) return true;
  }
  return false;
}

// It complains of a system call that it does not know; the sidecar opens a descriptor of its own where it is given none.
bool is_below_valgrind() { return find_function(ObjectRole::Other, "_vgnU_freeres") != nullptr; }

// The host's environment without what would load things into the sidecar, and with our own variables as they were when
// the program began, whatever other threads do to them now.
char** sidecar_environment(char* scratch, u32 capacity) {
  constexpr u32 kOwn = 256 * sizeof(char*);
  char** const out = reinterpret_cast<char**>(scratch);
  char** const now = read_environment(scratch + kOwn, capacity - kOwn);
  u32 count = 0;
  for (const char* own = next_copied(nullptr); own && count < 255; own = next_copied(own))
    out[count++] = const_cast<char*>(own);
  // The list of the others is read ahead of where it is written: ours stand before it.
  for (char** entry = now; entry && *entry; ++entry) {
    if (starts_with(*entry, "LD_PRELOAD=") || starts_with(*entry, "LD_AUDIT=") || starts_with(*entry, "GPUTRACE"))
      continue;
    out[count++] = *entry;
  }
  out[count] = nullptr;
  return out;
}

}  // namespace

int launch_sidecar(const char* path, int segment_fd, char* scratch, u32 capacity) {
  char found[1200];
  if (!path) {
    if (!find_sidecar(found, sizeof found)) return ENOENT;
    path = found;
  }
  const long pidfd = is_below_valgrind() ? -1 : raw_syscall(kPidfdOpen, raw_syscall(SYS_getpid), 0);
  const int process_fd = pidfd < 0 ? -1 : move_descriptor_high(static_cast<int>(pidfd));
  const char* arguments[] = {
      "gputrace-sidecar", "--segment-fd", "3", process_fd < 0 ? nullptr : "--process-fd", "4", nullptr};
  const int error = start_sidecar({path, arguments, segment_fd, process_fd, sidecar_environment(scratch, capacity)});
  if (process_fd >= 0) raw_syscall(SYS_close, process_fd);
  return error;
}

void launch_untraced(const char* path, const char* why, const char* fix, char* scratch, u32 capacity) {
  char found[1200], executable[1024], pid[24];
  if (!path) {
    if (!find_sidecar(found, sizeof found)) return;
    path = found;
  }
  own_executable(executable, sizeof executable);
  BoundedText(pid, sizeof pid) << static_cast<u64>(raw_syscall(SYS_getpid));
  const char* arguments[] = {"gputrace-sidecar", "--untraced", pid, executable, why, fix, nullptr};
  start_sidecar({path, arguments, -1, -1, sidecar_environment(scratch, capacity)});
}

}  // namespace gputrace
