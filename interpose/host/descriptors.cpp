#include "interpose/host/descriptors.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <atomic>

#include "base/bounded_text.h"
#include "base/raw_syscall.h"
#include "interpose/host/host_sums.h"

namespace gputrace::host {
namespace {

// By descriptor: 44 bits of which file it was, 20 of path_number(). 0: not known.
constexpr u32 kKept = 1024, kPathBits = 20;
constinit std::atomic<u64> kept[kKept]{};

u64 identity_of(const struct stat& file) {
  const u64 mixed =
      (static_cast<u64>(file.st_ino) * 0x9e3779b97f4a7c15ull) ^ (static_cast<u64>(file.st_dev) * 0xd6e8feb86659fd93ull);
  return mixed >> kPathBits | 1;
}

bool read_status(int descriptor, struct stat& file) {
  return raw_syscall(SYS_fstat, descriptor, raw_pointer(&file)) == 0;
}

DescriptorKind kind_of(const struct stat& file) {
  if (S_ISREG(file.st_mode) || S_ISBLK(file.st_mode) || S_ISDIR(file.st_mode)) return DescriptorKind::File;
  if (S_ISFIFO(file.st_mode)) return DescriptorKind::Pipe;
  if (S_ISSOCK(file.st_mode)) return DescriptorKind::Socket;
  return S_ISCHR(file.st_mode) ? DescriptorKind::Terminal : DescriptorKind::Other;
}

u32 read_path(int descriptor) {
  char link[32], path[1024];
  BoundedText(link, sizeof link) << "/proc/self/fd/" << static_cast<u64>(descriptor);
  const long length = raw_syscall(SYS_readlinkat, AT_FDCWD, raw_pointer(link), raw_pointer(path), sizeof path);
  return length > 0 ? path_number(path, static_cast<u64>(length)) : 0;
}

}  // namespace

DescriptorKind kind_of(int descriptor) {
  struct stat file {};
  return descriptor >= 0 && read_status(descriptor, file) ? kind_of(file) : DescriptorKind::Other;
}

Descriptor describe(int descriptor) {
  struct stat file {};
  if (descriptor < 0 || !read_status(descriptor, file)) return {};
  Descriptor found{kind_of(file), 0};
  if (found.kind == DescriptorKind::Pipe) found.path = path_number("(pipe)", 6);
  if (found.kind == DescriptorKind::Socket) found.path = path_number("(socket)", 8);
  if (found.kind == DescriptorKind::Other) found.path = path_number("(other)", 7);
  if (found.path != 0) return found;
  const u64 identity = identity_of(file);
  std::atomic<u64>* const place = static_cast<u32>(descriptor) < kKept ? &kept[descriptor] : nullptr;
  const u64 known = place ? place->load(std::memory_order_relaxed) : 0;
  if (known >> kPathBits == identity) return {found.kind, static_cast<u32>(known & ((1u << kPathBits) - 1))};
  found.path = read_path(descriptor);
  if (place && found.path < 1u << kPathBits)
    place->store(identity << kPathBits | found.path, std::memory_order_relaxed);
  return found;
}

void forget(int descriptor) {
  if (descriptor >= 0 && static_cast<u32>(descriptor) < kKept) kept[descriptor].store(0, std::memory_order_relaxed);
}

}  // namespace gputrace::host
