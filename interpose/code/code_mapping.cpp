#include "interpose/code/code_mapping.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/uio.h>

#include <cstring>

#include "base/raw_syscall.h"

namespace gputrace {
namespace {

constexpr u64 kPage = 4096;

// linux/fs.h of Linux 6.11.
struct ProcmapQuery {
  u64 size, flags, address;
  u64 vma_begin, vma_end, vma_flags, vma_page_size, vma_offset;
  u64 inode;
  u32 device_major, device_minor;
  u32 name_size, build_id_size;
  u64 name, build_id;
};
static_assert(sizeof(ProcmapQuery) == 104);
constexpr long kProcmapQuery = _IOWR('f', 17, ProcmapQuery);
constexpr u64 kVmaReadable = 1, kVmaWritable = 2;

bool names_a_file(const char* path) {
  if (path[0] != '/' || std::strncmp(path, "/dev/", 5) == 0 || std::strncmp(path, "/memfd:", 7) == 0) return false;
  const u64 length = std::strlen(path);
  constexpr char kDeleted[] = " (deleted)";
  constexpr u64 kDeletedLength = sizeof kDeleted - 1;
  return length < kDeletedLength || std::strcmp(path + length - kDeletedLength, kDeleted) != 0;
}

// One line of /proc/PID/maps: begin-end perms offset major:minor inode path
struct MapsLine {
  u64 begin = 0, end = 0, offset = 0;
  bool readable = false, writable = false;
  const char* path = "";
};

u64 parse_hex(const char*& at) {
  u64 value = 0;
  for (;; ++at) {
    const char c = *at;
    if (c >= '0' && c <= '9')
      value = value << 4 | static_cast<u64>(c - '0');
    else if (c >= 'a' && c <= 'f')
      value = value << 4 | static_cast<u64>(c - 'a' + 10);
    else
      return value;
  }
}

bool parse_line(const char* at, MapsLine& line) {
  line.begin = parse_hex(at);
  if (*at++ != '-') return false;
  line.end = parse_hex(at);
  if (*at++ != ' ' || std::strlen(at) < 6) return false;
  line.readable = at[0] == 'r';
  line.writable = at[1] == 'w';
  at += 5;
  line.offset = parse_hex(at);
  const char* path = std::strchr(at, '/');
  line.path = path ? path : "";
  return line.end > line.begin;
}

// Reads a file line by line; a line that is longer than the buffer is left out.
class LineReader {
 public:
  explicit LineReader(const char* path)
      : fd_(raw_syscall(SYS_openat, AT_FDCWD, raw_pointer(path), O_RDONLY | O_CLOEXEC)) {}
  ~LineReader() {
    if (fd_ >= 0) raw_syscall(SYS_close, fd_);
  }
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  // nullptr: no more. The line is good until the next call.
  const char* next() {
    for (;;) {
      if (char* end = static_cast<char*>(std::memchr(buffer_ + at_, '\n', filled_ - at_))) {
        const char* line = buffer_ + at_;
        *end = 0;
        at_ = static_cast<u64>(end - buffer_) + 1;
        if (!skipping_) return line;
        skipping_ = false;
        continue;
      }
      if (at_ == 0 && filled_ == sizeof buffer_) {
        skipping_ = true;
        filled_ = 0;
      }
      std::memmove(buffer_, buffer_ + at_, filled_ - at_);
      filled_ -= at_;
      at_ = 0;
      const long got = fd_ < 0 ? 0
                               : raw_syscall(SYS_read, fd_, raw_pointer(buffer_ + filled_),
                                             static_cast<long>(sizeof buffer_ - filled_));
      if (got == -4 /* EINTR */) continue;
      if (got <= 0) return nullptr;
      filled_ += static_cast<u64>(got);
    }
  }

 private:
  long fd_;
  u64 at_ = 0, filled_ = 0;
  bool skipping_ = false;
  char buffer_[4096];
};

// Whether a line continues the file that the mapping shows, without a gap in either.
bool continues(const Mapping& mapping, const MapsLine& line) {
  return line.begin == mapping.end && line.offset == mapping.offset + (mapping.end - mapping.begin) &&
         std::strcmp(line.path, mapping.path) == 0;
}

}  // namespace

bool query_mapping(u64 address, Mapping& mapping) {
  const long fd = raw_syscall(SYS_openat, AT_FDCWD, raw_pointer("/proc/self/maps"), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  u8 build_id[32];
  ProcmapQuery query{};
  query.size = sizeof query;
  query.address = address;
  query.name = reinterpret_cast<u64>(mapping.path);
  query.name_size = sizeof mapping.path;
  query.build_id = reinterpret_cast<u64>(build_id);
  query.build_id_size = sizeof build_id;
  const long result = raw_syscall(SYS_ioctl, fd, kProcmapQuery, raw_pointer(&query));
  raw_syscall(SYS_close, fd);
  if (result != 0) return false;
  if (!query.name_size) mapping.path[0] = 0;
  mapping.begin = query.vma_begin;
  mapping.end = query.vma_end;
  mapping.offset = query.vma_offset;
  mapping.elf_base = 0;
  mapping.readable = query.vma_flags & kVmaReadable;
  mapping.in_file = mapping.readable && !(query.vma_flags & kVmaWritable) && names_a_file(mapping.path);
  mapping.build_id[0] = 0;
  if (query.build_id_size && query.build_id_size <= sizeof build_id)
    put_build_id(build_id, query.build_id_size, mapping.build_id);
  return true;
}

bool read_mapping(u64 address, Mapping& mapping, const char* maps) {
  mapping = {};
  LineReader lines(maps);
  u64 base = 0, base_path = 0;  // the newest mapping of the beginning of a file, and a hash of its path
  bool found = false;
  while (const char* text = lines.next()) {
    MapsLine line;
    if (!parse_line(text, line)) continue;
    if (found) {
      if (!mapping.in_file || !line.readable || line.writable || !continues(mapping, line)) break;
      mapping.end = line.end;
      continue;
    }
    u64 path = 14695981039346656037ull;
    for (const char* c = line.path; *c; ++c) path = (path ^ static_cast<u8>(*c)) * 1099511628211ull;
    if (line.path[0] && line.offset == 0 && line.readable && path != base_path) {
      base = line.begin;
      base_path = path;
    }
    if (address < line.begin || address >= line.end) continue;
    const u64 length = std::strlen(line.path);
    if (length >= sizeof mapping.path) return false;
    found = true;
    mapping.begin = line.begin;
    mapping.end = line.end;
    mapping.offset = line.offset;
    std::memcpy(mapping.path, line.path, length + 1);
    mapping.readable = line.readable;
    mapping.in_file = line.readable && !line.writable && names_a_file(mapping.path);
    if (mapping.in_file && path == base_path) mapping.elf_base = base;
  }
  return found;
}

bool read_build_id(u64 base, BuildId& hex) {
  // By offset, not by address: the first mapping shows the file from its beginning. That far and no farther: notes lie there.
  constexpr u64 kFar = 1u << 20;
  const auto read = [base](u64 offset, void* out, u64 bytes) {
    return offset <= kFar && read_memory(base + offset, out, bytes) == bytes;
  };
  return find_build_id(read, hex);
}

u64 read_memory(u64 address, void* out, u64 bytes) {
  const iovec to{out, bytes}, from{reinterpret_cast<void*>(address), bytes};
  const long self = raw_syscall(SYS_getpid);
  long got = raw_syscall(SYS_process_vm_readv, self, raw_pointer(&to), 1, raw_pointer(&from), 1, 0);
  if (got >= 0) return static_cast<u64>(got);
  if (got == -14 /* EFAULT */) {  // nothing at all, or less than a page of it
    const u64 first = kPage - address % kPage;
    if (first >= bytes) return 0;
    const iovec part{reinterpret_cast<void*>(address), first};
    got = raw_syscall(SYS_process_vm_readv, self, raw_pointer(&to), 1, raw_pointer(&part), 1, 0);
    return got < 0 ? 0 : static_cast<u64>(got);
  }
  // A filter of system calls forbids it: the table of mappings has to do.
  const u64 readable = readable_bytes(address, bytes);
  std::memcpy(out, reinterpret_cast<const void*>(address), readable);
  return readable;
}

u64 readable_bytes(u64 address, u64 bytes) {
  constexpr u64 kProbes = 256;
  const long self = raw_syscall(SYS_getpid);
  const u64 end = address + bytes < address ? ~0ull : address + bytes;
  u64 at = address;
  while (at < end) {
    iovec probes[kProbes];
    u8 byte[kProbes];
    u64 count = 0;
    for (u64 next = at; count < kProbes && next < end; next = (next / kPage + 1) * kPage)
      probes[count++] = {reinterpret_cast<void*>(next), 1};
    const iovec to{byte, count};
    const long got =
        raw_syscall(SYS_process_vm_readv, self, raw_pointer(&to), 1, raw_pointer(probes), static_cast<long>(count), 0);
    if (got < 0 && got != -14) break;  // not allowed to us
    const u64 good = got < 0 ? 0 : static_cast<u64>(got);
    if (good < count) {
      const u64 stop = good == 0 ? at : reinterpret_cast<u64>(probes[good].iov_base);
      return stop - address;
    }
    at = (reinterpret_cast<u64>(probes[count - 1].iov_base) / kPage + 1) * kPage;
  }
  if (at >= end) return bytes;
  Mapping mapping;
  while (at < end && (read_mapping(at, mapping))) {
    if (mapping.begin == 0 || !mapping.readable) break;
    at = mapping.end;
  }
  return (at < end ? at : end) - address;
}

}  // namespace gputrace
