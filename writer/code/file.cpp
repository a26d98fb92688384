#include "writer/code/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/fd.h"
#include "trace/build_id.h"
#include "trace/code_check.h"

namespace gputrace {
namespace {

bool read_exactly(int file, void* out, std::size_t bytes, u64 offset) {
  return ::pread(file, out, bytes, static_cast<off_t>(offset)) == static_cast<ssize_t>(bytes);
}

// What makes the file the one that was loaded, as far as one can know without reading it.
bool same_file(const CodeImageRequest& image, int file, const struct stat& about) {
  const u64 size = static_cast<u64>(about.st_size);
  if (image.offset > size || image.bytes > size - image.offset || !image.bytes) return false;
  if (image.kind == static_cast<u32>(ImageKind::File)) return !image.check || code_file_check(about) == image.check;
  if (!image.build_id.empty() && build_id_of(file) != image.build_id) return false;
  u8 head[64];
  const std::size_t bytes = static_cast<std::size_t>(std::min<u64>(sizeof head, image.bytes));
  return read_exactly(file, head, bytes, image.offset) && code_head_check(head, bytes) == image.check;
}

}  // namespace

CodeScanState map_image(const CodeImageRequest& image, std::span<const std::byte>& bytes) {
  // The path is the traced process's word: nothing but a regular file is touched, and nothing waits for a writer.
  const Fd file(::open(image.path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  struct stat about {};
  if (!file || ::fstat(file.get(), &about) != 0 || !S_ISREG(about.st_mode)) return CodeScanState::Missing;
  if (!same_file(image, file.get(), about)) return CodeScanState::Changed;
  const u64 page = static_cast<u64>(::sysconf(_SC_PAGESIZE));
  const u64 begin = image.offset / page * page, before = image.offset - begin;
  const std::size_t length = static_cast<std::size_t>(before + image.bytes);
  void* mapped = ::mmap(nullptr, length, PROT_READ, MAP_PRIVATE, file.get(), static_cast<off_t>(begin));
  if (mapped == MAP_FAILED) return CodeScanState::Missing;
  bytes = {static_cast<const std::byte*>(mapped) + before, static_cast<std::size_t>(image.bytes)};
  return CodeScanState::Scanned;
}

std::string build_id_of(int file) {
  const auto read = [file](u64 offset, void* out, u64 bytes) { return read_exactly(file, out, bytes, offset); };
  BuildId hex;
  return find_build_id(read, hex) ? hex : "";
}

}  // namespace gputrace
