#include "interpose/settings/memory_room.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstring>

#include "base/c_text.h"
#include "base/raw_syscall.h"
#include "interpose/settings/process_facts.h"

namespace gputrace {
namespace {

constexpr u64 kPage = 4096;
constexpr Bytes kLeastRoom = 1u << 20;  // below it there is no tracing
constexpr Bytes kLeastRing = 512u << 10;
constexpr Bytes kMostInCgroup = 64u << 20;  // of the ring: it is all touched before it is used
// Beside ring and buffers, measured on the simulated GPU: tables of functions, images and ranges, of which little is touched; CUPTI's
// buffers take twice the ring; stacks and operations take 12 KiB for each thread that has a slot, at least 64, then one for each 16 KiB of ring.
constexpr Bytes kTables = 2432u << 10, kTouchedTables = 640u << 10, kDeviceTables = 1u << 20;
constexpr Bytes kStackTables = 5760u << 10,
                kTouchedStackTables = 704u << 10;  // of lines and of operations, as mapped and as touched
// The vendor's CUPTI maps tens of MiB of its own when it is loaded: not ours to bound, so not begun where that is much.
constexpr Bytes kRoomForCupti = 64u << 20;

struct Path {
  char text[1024] = "";
  u64 size = 0;
  bool fits = true;
  void append(const char* piece, u64 length) {
    if (size + length >= sizeof text) {
      fits = false;
      return;
    }
    std::memcpy(text + size, piece, length);
    size += length;
    text[size] = 0;
  }
  void append(const char* piece) { append(piece, std::strlen(piece)); }
};

bool read_number(const char* folder, const char* name, u64& value) {
  Path path;
  path.append(folder);
  path.append("/");
  path.append(name);
  char text[64];
  const u64 size = path.fits ? read_small_file(path.text, text, sizeof text - 1) : 0;
  if (!size || text[0] < '0' || text[0] > '9') return false;  // "max" is no limit
  text[size] = 0;
  value = leading_decimal(text);
  return true;
}

// File cache that the kernel can give back: it counts as free.
u64 reclaimable(const char* folder, const char* key) {
  Path path;
  path.append(folder);
  path.append("/memory.stat");
  char text[4096];
  const u64 size = path.fits ? read_small_file(path.text, text, sizeof text - 1) : 0;
  text[size] = 0;
  const char* at = std::strstr(text, key);
  return at ? leading_decimal(at + std::strlen(key)) : 0;
}

Bytes room_below(u64 limit, u64 used, u64 cache) {
  if (limit >= (1ull << 60)) return ~0ull;
  used = used > cache ? used - cache : 0;
  const u64 free = limit > used ? limit - used : 0;
  return limit / 100 < free / 10 ? limit / 100 : free / 10;
}

Bytes room_of_folder(const char* folder, bool v2) {
  u64 limit, used = 0;
  if (!read_number(folder, v2 ? "memory.max" : "memory.limit_in_bytes", limit)) return ~0ull;
  read_number(folder, v2 ? "memory.current" : "memory.usage_in_bytes", used);
  return room_below(limit, used, reclaimable(folder, v2 ? "\ninactive_file " : "\ntotal_inactive_file "));
}

// Every ancestor limits too. In a container the path of the host is often not visible: the mount's root then is the
// container's own.
Bytes room_of_group(const char* mount, const char* group, u64 group_length, bool v2) {
  Bytes room = ~0ull;
  Path path;
  path.append(mount);
  const u64 root = path.size;
  path.append(group, group_length);
  for (;;) {
    const Bytes here = path.fits ? room_of_folder(path.text, v2) : ~0ull;
    if (here < room) room = here;
    while (path.size > root && path.text[path.size - 1] != '/') --path.size;
    if (path.size <= root) break;
    path.text[--path.size] = 0;
  }
  return room;
}

Bytes room_in_cgroup() {
  char text[4096];
  const u64 size = read_small_file("/proc/self/cgroup", text, sizeof text - 1);
  text[size] = 0;
  Bytes room = ~0ull;
  for (const char* line = text; *line;) {
    const char* end = std::strchr(line, '\n');
    if (!end) end = line + std::strlen(line);
    const char* controllers = static_cast<const char*>(std::memchr(line, ':', static_cast<u64>(end - line)));
    const char* group =
        controllers
            ? static_cast<const char*>(std::memchr(controllers + 1, ':', static_cast<u64>(end - controllers - 1)))
            : nullptr;
    if (group) {
      const u64 names = static_cast<u64>(group - controllers - 1);
      const bool v2 = names == 0;
      const bool v1 = names == 6 && std::memcmp(controllers + 1, "memory", 6) == 0;
      const u64 length = static_cast<u64>(end - group - 1);
      const Bytes here = v2   ? room_of_group("/sys/fs/cgroup", group + 1, length, true)
                         : v1 ? room_of_group("/sys/fs/cgroup/memory", group + 1, length, false)
                              : ~0ull;
      if (here < room) room = here;
    }
    line = *end ? end + 1 : end;
  }
  return room;
}

// Of /proc/self/statm, in bytes: field 0 all that is mapped, field 5 data and stack.
u64 mapped_now(u32 field) {
  char text[256];
  const u64 size = read_small_file("/proc/self/statm", text, sizeof text - 1);
  text[size] = 0;
  const char* at = text;
  for (u32 i = 0; at && i < field; ++i) {
    at = std::strchr(at, ' ');
    if (at) ++at;
  }
  return at ? leading_decimal(at) * kPage : 0;
}

Bytes room_below_limit(int resource, u32 field) {
  rlimit limit{};
  if (raw_syscall(SYS_prlimit64, 0, resource, 0, raw_pointer(&limit)) < 0 || limit.rlim_cur == RLIM_INFINITY)
    return ~0ull;
  return room_below(limit.rlim_cur, mapped_now(field), 0);
}

// A line of /proc/self/status, as a number of that base; 0: it is not there.
u64 status_line(const char* text, const char* key, unsigned base) {
  const char* at = std::strstr(text, key);
  if (!at) return 0;
  for (at += std::strlen(key); *at == ' ' || *at == '\t'; ++at) {
  }
  u64 value = 0;
  for (;; ++at) {
    const unsigned digit = *at >= '0' && *at <= '9'                ? static_cast<unsigned>(*at - '0')
                           : *at >= 'a' && *at <= 'f' && base > 10 ? static_cast<unsigned>(*at - 'a' + 10)
                                                                   : base;
    if (digit >= base) return value;
    value = value * base + digit;
  }
}

u64 locked_now(bool& may_lock_all) {
  constexpr u32 kIpcLock = 14;
  char text[4096];
  const u64 size = read_small_file("/proc/self/status", text, sizeof text - 1);
  text[size] = 0;
  may_lock_all = status_line(text, "\nCapEff:", 16) >> kIpcLock & 1;
  return status_line(text, "\nVmLck:", 10) * 1024;
}

// A program that has locked all that it will ever map (mlockall with MCL_FUTURE) may map no more than it may lock. Nobody says whether
// it has: a page is mapped to see.
Bytes room_of_locked_memory() {
  rlimit limit{};
  if (raw_syscall(SYS_prlimit64, 0, RLIMIT_MEMLOCK, 0, raw_pointer(&limit)) < 0 || limit.rlim_cur == RLIM_INFINITY)
    return ~0ull;
  bool may_lock_all = false;
  const long page = raw_syscall(SYS_mmap, 0, kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page < 0) return page == -EAGAIN ? 0 : ~0ull;
  const u64 with_page = locked_now(may_lock_all);
  raw_syscall(SYS_munmap, page, kPage);
  if (with_page == 0 || may_lock_all) return ~0ull;
  const u64 without = locked_now(may_lock_all);
  return with_page > without ? room_below(limit.rlim_cur, without, 0) : ~0ull;
}

}  // namespace

MemoryRoom memory_room() {
  MemoryRoom room;
  const auto consider = [&](Bytes bytes, const char* limit, bool of_addresses) {
    if (bytes < room.bytes) room = {bytes, limit, of_addresses};
  };
  consider(room_in_cgroup(), "the memory limit of the container (cgroup)", false);
  consider(room_below_limit(RLIMIT_AS, 0), "the limit on mapped memory (RLIMIT_AS, ulimit -v)", true);
  consider(room_below_limit(RLIMIT_DATA, 5), "the limit on data (RLIMIT_DATA, ulimit -d)", true);
  consider(room_of_locked_memory(), "the limit on locked memory (RLIMIT_MEMLOCK, ulimit -l)", true);
  return room;
}

MemoryPlan plan_memory(const MemoryRoom& room, Bytes wanted_ring, bool device, bool stacks) {
  if (room.bytes == ~0ull) return {wanted_ring, device, stacks};
  if (room.of_addresses && room.bytes < kRoomForCupti) device = false;
  for (;; stacks ? stacks = false : device = false) {
    const Bytes stack_tables = room.of_addresses ? kStackTables : kTouchedStackTables;
    const Bytes fixed =
        (room.of_addresses ? kTables : kTouchedTables) + (device ? kDeviceTables : 0) + (stacks ? stack_tables : 0);
    // In hundredths of the ring.
    const u64 share = 100 + (device ? 200 : 0) + (stacks ? 65 : 0);
    Bytes ring = room.bytes > fixed ? (room.bytes - fixed) / share * 100 : 0;
    if (ring > wanted_ring) ring = wanted_ring;
    if (!room.of_addresses && ring > kMostInCgroup) ring = kMostInCgroup;
    if (room.bytes >= kLeastRoom && ring >= kLeastRing) return {ring & ~(kPage - 1), device, stacks};
    if (!device && !stacks) return {};
  }
}

}  // namespace gputrace
