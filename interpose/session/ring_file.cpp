#include "interpose/session/ring_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <cstring>

#include "base/bounded_text.h"
#include "base/raw_syscall.h"
#include "base/sentence.h"
#include "ringbuf/segment_create.h"

namespace gputrace {
namespace {

constexpr u64 kFirstPidNamespace = 0xeffffffc;  // of the machine itself: PROC_PID_INIT_INO

// Whether whoever ends the program is likely to end the sidecar in the same instant.
bool dies_with_its_sidecar(const Identity& identity) {
  if (identity.pid == 1) return true;
  return raw_syscall(SYS_getppid) == 1 && identity.pid_namespace && identity.pid_namespace != kFirstPidNamespace;
}

// The output directory as far as it is known here: up to its first token.
void known_output(BoundedText& out) {
  const char* output = copied_variable("GPUTRACE_OUTPUT");
  if (!output || !*output) output = "gputrace-%j";
  const char* token = std::strchr(output, '%');
  if (!token) {
    out << output;
    return;
  }
  while (token > output && token[-1] != '/') --token;
  if (token == output)
    out << ".";
  else
    out.put(output, static_cast<u64>(token - output));
}

// DIR with every missing directory on the way. Returns 0 or an errno.
int make_directories(char* path) {
  for (char* at = path + 1;; ++at) {
    if (*at && *at != '/') continue;
    const char was = *at;
    *at = 0;
    const long made = raw_syscall(SYS_mkdirat, AT_FDCWD, raw_pointer(path), 0700);
    *at = was;
    if (made < 0 && made != -EEXIST) return static_cast<int>(-made);
    if (!was) return 0;
  }
}

bool may_be_mapped(int fd) {
  struct statfs about {};
  if (raw_syscall(SYS_fstatfs, fd, raw_pointer(&about)) < 0) return false;
  switch (static_cast<u64>(about.f_type)) {
    case TMPFS_MAGIC:
    case RAMFS_MAGIC:
    case EXT4_SUPER_MAGIC:
    case XFS_SUPER_MAGIC:
    case OVERLAYFS_SUPER_MAGIC:
      return true;
    default:
      return false;
  }
}

// Makes the file and reserves its blocks; `why`: what stands against it.
bool make_file(RingFile& file, u64 size, Sentence& why) {
  const long made = raw_syscall(SYS_openat, AT_FDCWD, raw_pointer(file.path),
                                O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY, 0600);
  if (made < 0) {
    why << (made == -EROFS    ? "it is read-only"
            : made == -EACCES ? "it may not be written to"
                              : "no file can be made there");
    return false;
  }
  file.fd = move_descriptor_high(static_cast<int>(made));
  raw_syscall(SYS_fchmod, file.fd, 0600);  // whatever the umask says
  if (!may_be_mapped(file.fd)) {
    why << "its file system may let the program wait (ext4, xfs, overlay and tmpfs do for this)";
    return false;
  }
  if (const int error = reserve_file(file.fd, size)) {
    why << (error == ENOSPC || error == EDQUOT ? "there is no room for the ring" : "the ring cannot be reserved there");
    return false;
  }
  return true;
}

}  // namespace

void make_ring_file(const Options& options, const Identity& identity, u64 size, RingFile& file, InfoText& info) {
  if (!options.shm_directory && !(options.shm_by_itself && dies_with_its_sidecar(identity))) return;
  BoundedText path(file.path, sizeof file.path - 1);
  const char* wanted = options.shm_directory;
  if (!wanted || *wanted != '/') {
    char here[512];
    if (raw_syscall(SYS_getcwd, raw_pointer(here), sizeof here) <= 0) return;
    char output[512] = "";
    BoundedText relative(output, sizeof output - 1);
    if (wanted)
      relative << wanted;
    else
      known_output(relative);
    if (output[0] != '/') path << here << "/";
    path << output;
  } else {
    path << wanted;
  }
  Sentence why;
  const u64 directory = path.size();
  if (!path.fits() || make_directories(file.path)) why << "it cannot be made";
  path << "/gputrace-" << static_cast<u64>(identity.pid) << "-";
  path.put_hex(identity.random_id, 8) << ".ring";
  if (!*why.text() && !path.fits()) why << "its path is too long";
  if (!*why.text() && make_file(file, size, why)) {
    info.add("ring_file", file.path);
    return;
  }
  remove_ring_file(file);
  Sentence text;
  text << "the ring is not in a file of ";
  text.put(file.path, directory < sizeof file.path ? directory : 0) << ": " << why.text() << "; it is in memory";
  info.add("option_warning", text.text());
}

void remove_ring_file(RingFile& file) {
  if (file.fd < 0) return;
  raw_syscall(SYS_close, file.fd);
  raw_syscall(SYS_unlinkat, AT_FDCWD, raw_pointer(file.path), 0);
  file.fd = -1;
}

}  // namespace gputrace
