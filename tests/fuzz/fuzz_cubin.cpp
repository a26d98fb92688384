// Code images are whatever a program hands to the driver: any bytes must give facts or nothing, never a crash.
#include <cstring>
#include <string>
#include <vector>

#include "cubin/code_image.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace gputrace;
  const ByteSpan bytes(reinterpret_cast<const std::byte*>(data), size);
  std::string why;
  LoadFailure failure;
  (void)identify_image(bytes);
  if (auto entries = read_fatbin(bytes, &why)) {
    (void)pick_entry(*entries, 90);
    for (const FatbinEntry& entry : *entries) {
      if (entry.raw_bytes <= (64u << 20)) (void)unpack(entry, &why);
    }
  }
  if (auto module = read_cubin(bytes, &why)) {
    for (const ImageKernel& kernel : module->kernels) {
      // A span that leaves the image is found by the sanitizer only if somebody reads it.
      volatile unsigned sum = 0;
      for (std::byte b : kernel.code) sum = sum + static_cast<unsigned>(b);
    }
  }
  (void)read_ptx(std::string_view(reinterpret_cast<const char*>(data), size), &why);
  (void)load_image(bytes, 90, &failure);
  return 0;
}
