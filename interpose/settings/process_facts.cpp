#include "interpose/settings/process_facts.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <cstring>

#include "base/c_text.h"
#include "base/raw_syscall.h"
#include "interpose/lookup/elf_lookup.h"

namespace gputrace {
namespace {

u64 parse_hex(const char*& text) {
  u64 value = 0;
  for (;; ++text) {
    const char c = *text;
    if (c >= '0' && c <= '9')
      value = value * 16 + static_cast<u64>(c - '0');
    else if (c >= 'a' && c <= 'f')
      value = value * 16 + static_cast<u64>(c - 'a' + 10);
    else
      return value;
  }
}

// Field 22 of /proc/self/stat; the name in field 2 may hold anything, so count from its last parenthesis.
u64 own_start_time() {
  char text[1024];
  const u64 size = read_small_file("/proc/self/stat", text, sizeof text - 1);
  text[size] = 0;
  const char* at = std::strrchr(text, ')');
  for (int field = 2; at && field < 22; ++field) {
    at = std::strchr(at, ' ');
    if (at) ++at;
  }
  return at ? leading_decimal(at) : 0;
}

u64 own_pid_namespace() {
  char text[64];
  const long size =
      raw_syscall(SYS_readlinkat, AT_FDCWD, raw_pointer("/proc/self/ns/pid"), raw_pointer(text), sizeof text - 1);
  if (size <= 0) return 0;
  text[size] = 0;
  const char* bracket = std::strchr(text, '[');
  return bracket ? leading_decimal(bracket + 1) : 0;
}

}  // namespace

u64 read_small_file(const char* path, char* out, u64 capacity) {
  const long fd = raw_syscall(SYS_openat, AT_FDCWD, raw_pointer(path), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  u64 size = 0;
  while (size < capacity) {
    const long got = raw_syscall(SYS_read, fd, raw_pointer(out + size), static_cast<long>(capacity - size));
    if (got == -EINTR) continue;
    if (got <= 0) break;
    size += static_cast<u64>(got);
  }
  raw_syscall(SYS_close, fd);
  return size;
}

Identity own_identity() {
  Identity identity;
  identity.pid = static_cast<i32>(raw_syscall(SYS_getpid));
  identity.start_time = own_start_time();
  identity.pid_namespace = own_pid_namespace();
  if (raw_syscall(SYS_getrandom, raw_pointer(&identity.random_id), sizeof identity.random_id, 1) !=
      sizeof identity.random_id) {
    // No entropy yet: what tells two processes of one host apart still does.
    identity.random_id = (identity.start_time << 32) ^ (static_cast<u64>(identity.pid) * 0x9e3779b97f4a7c15ull);
  }
  return identity;
}

u64 file_of_address(const void* address, char* out, u64 capacity) {
  const long fd = raw_syscall(SYS_openat, AT_FDCWD, raw_pointer("/proc/self/maps"), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  char line[1024];
  u64 used = 0, found = 0;
  bool oversized = false;
  char buffer[2048];
  for (long got; !found && (got = raw_syscall(SYS_read, fd, raw_pointer(buffer), sizeof buffer)) > 0;) {
    for (long i = 0; i < got && !found; ++i) {
      if (buffer[i] != '\n') {
        if (used + 1 < sizeof line)
          line[used++] = buffer[i];
        else
          oversized = true;
        continue;
      }
      line[used] = 0;
      const char* at = line;
      const u64 begin = parse_hex(at);
      const u64 end = *at == '-' ? parse_hex(++at) : 0;
      const u64 wanted = reinterpret_cast<u64>(address);
      const char* path = std::strchr(line, '/');
      if (!oversized && path && wanted >= begin && wanted < end && std::strlen(path) < capacity) {
        found = std::strlen(path);
        std::memcpy(out, path, found + 1);
      }
      used = 0;
      oversized = false;
    }
  }
  raw_syscall(SYS_close, fd);
  return found;
}

u64 own_folder(char* out, u64 capacity) {
  const void* const own = reinterpret_cast<const void*>(&own_folder);
  u64 length = file_of_address(own, out, capacity);
  // Without /proc: by the name that it was loaded by.
  if (LoadedObject object; !length && find_object(own, object) && object.path[0] == '/') {
    length = strnlen(object.path, capacity - 1);
    std::memcpy(out, object.path, length);
  }
  while (length && out[length - 1] != '/') --length;
  out[length] = 0;
  return length;
}

u64 own_executable(char* out, u64 capacity) {
  const long length = raw_syscall(SYS_readlinkat, AT_FDCWD, raw_pointer("/proc/self/exe"), raw_pointer(out),
                                  static_cast<long>(capacity - 1));
  u64 size = length > 0 ? static_cast<u64>(length) : 0;
  const char* started = size ? nullptr : reinterpret_cast<const char*>(getauxval(AT_EXECFN));
  if (started) {
    size = strnlen(started, capacity - 1);
    std::memcpy(out, started, size);
  }
  out[size] = 0;
  return size;
}

bool is_privileged() {
  return getauxval(AT_SECURE) != 0 || raw_syscall(SYS_geteuid) != raw_syscall(SYS_getuid) ||
         raw_syscall(SYS_getegid) != raw_syscall(SYS_getgid);
}

}  // namespace gputrace
