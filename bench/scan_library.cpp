// Reads all machine code that a shared library carries (fatbins, and zstd frames outside of them that hold an image)
// and prints, as JSON, per chip: kernels, those with matrix instructions, and what a list of name fragments would say
// of them; with the time that the scan took. `scan_library FILE...`
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include <cstdio>
#include <cstring>
#include <ctime>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cubin/code_image.h"
#include "cubin/sass.h"

namespace gputrace {
namespace {

constexpr std::size_t kMaxFrameBytes = std::size_t{1} << 30;

// The fragments that XProf takes for a sign of tensor cores (kernel_stats_utils.cc).
constexpr const char* kFragments[] = {"16816",
                                      "c1688",
                                      "conv1x1",
                                      "conv2d_c1_k1",
                                      "dgrad_1x1_stride_2x2",
                                      "direct_group",
                                      "first_layer_wgrad_kernel",
                                      "h1688",
                                      "h884",
                                      "hmma",
                                      "i16832",
                                      "i8816",
                                      "s884",
                                      "s1688",
                                      "xmma_gemm",
                                      "xmma_implicit_gemm",
                                      "xmma_sparse_conv",
                                      "xmma_sparse_gemm",
                                      "xmma_warp_specialized_implicit_gemm"};

bool listed(std::string_view name) {
  for (const char* fragment : kFragments) {
    if (name.find(fragment) != std::string_view::npos) return true;
  }
  return false;
}

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

struct Chip {
  std::size_t kernels = 0, matrix = 0, missed = 0, accused = 0, unknown_types = 0, incomplete = 0;
};

struct Library {
  std::map<std::string, Chip> chips;
  ScanTotals totals;
  std::size_t fatbins = 0, frames = 0, frame_images = 0, ptx_kernels = 0, failures = 0;
  double scan_seconds = 0, ptx_seconds = 0;

  void add(const KernelScan& scan) {
    if ((scan.flags & kCodeScanned) == 0) {
      ++ptx_kernels;
      return;
    }
    Chip& chip = chips[std::to_string(scan.architecture)];
    const bool matrix = scan.mma != 0;
    const bool says = listed(scan.symbol);
    ++chip.kernels;
    chip.matrix += matrix ? 1 : 0;
    chip.missed += matrix && !says ? 1 : 0;
    chip.accused += !matrix && says ? 1 : 0;
    chip.unknown_types += (scan.flags & kCodePrecisionPart) != 0 ? 1 : 0;
    chip.incomplete += (scan.flags & kCodeIncomplete) != 0 ? 1 : 0;
  }

  void scan(ByteSpan image) {
    std::vector<std::pair<std::string, KernelScan>> found;  // judged outside of the time that is taken
    const double begin = cpu_seconds();
    for_each_kernel_code(
        image, {}, [&found](const KernelScan& scan) { found.emplace_back(scan.symbol, scan); }, &totals);
    (identify_image(image) == ContainerKind::kPtx ? ptx_seconds : scan_seconds) += cpu_seconds() - begin;
    for (auto& [name, scan] : found) {
      scan.symbol = name;
      add(scan);
    }
  }
};

void scan_fatbin(ByteSpan extent, Library& library) {
  std::string why;
  const auto entries = read_fatbin(extent, &why);
  if (!entries || !why.empty()) ++library.failures;
  if (!entries) return;
  ++library.fatbins;
  for (const FatbinEntry& entry : *entries) {
    if (entry.kind == ContainerKind::kUnknown) continue;
    if (const auto raw = unpack(entry)) {
      library.scan(*raw);
    } else {
      ++library.failures;
    }
  }
}

// A zstd frame that is no entry of a fatbin: its size, or 1 if it is none.
std::size_t scan_frame(ByteSpan rest, Library& library) {
  const std::size_t packed = ZSTD_findFrameCompressedSize(rest.data(), rest.size());
  const auto raw = ZSTD_getFrameContentSize(rest.data(), rest.size());
  if (ZSTD_isError(packed) || raw == ZSTD_CONTENTSIZE_ERROR || raw == ZSTD_CONTENTSIZE_UNKNOWN || raw == 0 ||
      raw > kMaxFrameBytes) {
    return 1;
  }
  std::vector<std::byte> bytes(static_cast<std::size_t>(raw));
  if (ZSTD_decompress(bytes.data(), bytes.size(), rest.data(), packed) != raw) return 1;
  ++library.frames;
  if (identify_image(bytes) != ContainerKind::kUnknown) {
    ++library.frame_images;
    library.scan(bytes);
  }
  return packed;
}

void scan_bytes(ByteSpan file, Library& library) {
  constexpr std::uint32_t kZstdMagic = 0xFD2FB528;
  for (std::size_t at = 0; at + 16 <= file.size();) {
    std::uint32_t magic;
    std::memcpy(&magic, file.data() + at, sizeof magic);
    if (magic == 0xBA55ED50 && at % 8 == 0) {
      const ByteSpan extent = image_at(file.data() + at);
      if (extent.size() > 16 && extent.size() <= file.size() - at) {  // else the magic as a constant in code
        scan_fatbin(extent, library);
        at += extent.size();
        continue;
      }
    }
    at += magic == kZstdMagic ? scan_frame(file.subspan(at), library) : 1;
  }
}

void print(const char* path, const Library& library) {
  std::printf(
      "{\"file\": \"%s\", \"fatbins\": %zu, \"frames\": %zu, \"frame_images\": %zu, \"images\": %zu, \"kernels\": %zu, "
      "\"ptx_kernels\": %zu, \"code_bytes\": %llu, \"failures\": %zu, \"first_failure\": \"%s\", \"scan_s\": %.6f, "
      "\"chips\": {",
      path, library.fatbins, library.frames, library.frame_images, library.totals.images, library.totals.kernels,
      library.ptx_kernels, static_cast<unsigned long long>(library.totals.code_bytes),
      library.failures + library.totals.failures, library.totals.first_failure.c_str(), library.scan_seconds);
  const char* comma = "";
  for (const auto& [name, chip] : library.chips) {
    std::printf(
        "%s\"%s\": {\"kernels\": %zu, \"matrix\": %zu, \"missed\": %zu, \"accused\": %zu, \"unknown_types\": %zu, "
        "\"incomplete\": %zu}",
        comma, name.c_str(), chip.kernels, chip.matrix, chip.missed, chip.accused, chip.unknown_types, chip.incomplete);
    comma = ", ";
  }
  std::printf("}}\n");
}

bool scan_file(const char* path) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  struct stat status {};
  if (fd < 0 || fstat(fd, &status) != 0) return false;
  const auto size = static_cast<std::size_t>(status.st_size);
  void* mapped = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  close(fd);
  if (mapped == MAP_FAILED) return false;
  Library library;
  scan_bytes({static_cast<const std::byte*>(mapped), size}, library);
  munmap(mapped, size);
  print(path, library);
  return library.failures + library.totals.failures == 0;
}

}  // namespace
}  // namespace gputrace

int main(int argc, char** argv) {
  bool good = argc > 1;
  for (int i = 1; i < argc; ++i) good = gputrace::scan_file(argv[i]) && good;
  return good ? 0 : 1;
}
