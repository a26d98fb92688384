// Reads every image of every fatbin in the given files and prints one line of totals per file; exit 1 if any image
// that is PTX or a cubin cannot be read or scanned, or a cubin's kernel has no register count.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <map>

#include "cubin/code_image.h"
#include "cubin/sass.h"

namespace gputrace {
namespace {

struct Totals {
  std::map<std::string, std::size_t> images;  // "cubin sm_90a zstd" → count
  std::size_t cubins = 0, ptx = 0, kernels = 0, globals = 0, failures = 0, without_registers = 0, abi7 = 0;
};

void scan_entry(const FatbinEntry& entry, Totals& totals) {
  if (entry.kind == ContainerKind::kUnknown) return;
  std::string why;
  const auto bytes = unpack(entry, &why);
  std::optional<CodeModule> module;
  if (bytes && entry.kind == ContainerKind::kCubin) module = read_cubin(*bytes, &why);
  if (bytes && entry.kind == ContainerKind::kPtx) {
    module = read_ptx({reinterpret_cast<const char*>(bytes->data()), bytes->size()}, &why);
  }
  if (!module || module->sm.number != entry.sm.number) {
    ++totals.failures;
    std::printf("  failed: sm_%u: %s\n", entry.sm.number, module ? "another sm inside" : why.c_str());
    return;
  }
  const bool cubin = entry.kind == ContainerKind::kCubin;
  std::size_t scanned = 0;
  const bool readable = for_each_kernel_code(*bytes, {}, [&scanned](const KernelScan& scan) {
    scanned += (scan.flags & (kCodeScanned | kCodePtxOnly)) != 0 ? 1 : 0;
  });
  if (!readable || scanned != module->kernels.size()) {
    ++totals.failures;
    std::printf("  failed: sm_%u: %zu of %zu kernels scanned\n", entry.sm.number, scanned, module->kernels.size());
  }
  ++(cubin ? totals.cubins : totals.ptx);
  if (cubin && std::to_integer<int>((*bytes)[8]) < 8) ++totals.abi7;
  totals.kernels += module->kernels.size();
  totals.globals += module->globals.size();
  for (const ImageKernel& kernel : module->kernels) totals.without_registers += cubin && !kernel.registers ? 1 : 0;
  static const char* kPacked[] = {"raw", "lz4", "zstd"};
  static const char* kVariant[] = {"", "a", "f"};
  ++totals.images[std::string(cubin ? "cubin" : "ptx") + " sm_" + std::to_string(entry.sm.number) +
                  kVariant[static_cast<int>(entry.sm.variant)] + " " + kPacked[static_cast<int>(entry.compression)]];
}

bool scan_file(const char* path) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  struct stat status {};
  if (fd < 0 || fstat(fd, &status) != 0) return false;
  const auto size = static_cast<std::size_t>(status.st_size);
  void* mapped = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  close(fd);
  if (mapped == MAP_FAILED) return false;
  const ByteSpan file(static_cast<const std::byte*>(mapped), size);
  Totals totals;
  for (std::size_t at = 0; at + 16 <= size; at += 8) {  // fatbins are aligned to 8
    if (identify_image(file.subspan(at, 16)) != ContainerKind::kFatbin) continue;
    const ByteSpan extent = image_at(file.data() + at);
    if (extent.size() <= 16 || extent.size() > size - at) continue;  // the magic as a constant in code
    std::string why;
    const auto entries = read_fatbin(extent, &why);
    if (!entries || !why.empty()) {
      ++totals.failures;
      std::printf("  failed: fatbin at %zu: %s\n", at, why.c_str());
      continue;
    }
    for (const FatbinEntry& entry : *entries) scan_entry(entry, totals);
    at += extent.size() / 8 * 8 - 8;
  }
  munmap(mapped, size);
  std::printf(
      "%s: %zu cubins (%zu before ABI 8), %zu ptx, %zu kernels (%zu without registers), %zu globals, %zu failed\n",
      path, totals.cubins, totals.abi7, totals.ptx, totals.kernels, totals.without_registers, totals.globals,
      totals.failures);
  for (const auto& [what, count] : totals.images) std::printf("  %s: %zu\n", what.c_str(), count);
  return totals.failures == 0 && totals.without_registers == 0 && totals.cubins + totals.ptx > 0;
}

}  // namespace
}  // namespace gputrace

int main(int argc, char** argv) {
  bool good = argc > 1;
  for (int i = 1; i < argc; ++i) good = gputrace::scan_file(argv[i]) && good;
  return good ? 0 : 1;
}
