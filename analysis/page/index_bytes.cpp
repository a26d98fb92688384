#include "analysis/page/index_bytes.h"

#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include <cerrno>
#include <memory>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace gputrace {

u64 checksum_of(const std::string& bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

std::string packed(const std::string& raw) {
  // Its tables are larger than a block, and are used again.
  struct Free {
    void operator()(ZSTD_CCtx* used) const { ZSTD_freeCCtx(used); }
  };
  thread_local const std::unique_ptr<ZSTD_CCtx, Free> context(ZSTD_createCCtx());
  if (!context) return "";
  std::string bytes(ZSTD_compressBound(raw.size()), '\0');
  const std::size_t size = ZSTD_compressCCtx(context.get(), bytes.data(), bytes.size(), raw.data(), raw.size(), 1);
  bytes.resize(ZSTD_isError(size) ? 0 : size);
  return bytes;
}

std::optional<std::string> unpacked(const std::string& packed, u64 raw_size) {
  // Before so much is asked for.
  if (ZSTD_getFrameContentSize(packed.data(), packed.size()) != raw_size) return {};
  std::string raw(raw_size, '\0');
  if (ZSTD_decompress(raw.data(), raw.size(), packed.data(), packed.size()) != raw_size) return {};
  return raw;
}

bool read_at(int file, std::string& bytes, u64 offset) {
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t got = ::pread(file, bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    done += static_cast<std::size_t>(got);
  }
  return true;
}

bool write_at(int file, const std::string& bytes, u64 offset) {
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t put = ::pwrite(file, bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    done += static_cast<std::size_t>(put);
  }
  return true;
}

std::optional<u64> size_of(int file) {
  struct stat status {};
  if (::fstat(file, &status) != 0) return {};
  return static_cast<u64>(status.st_size);
}

}  // namespace gputrace
