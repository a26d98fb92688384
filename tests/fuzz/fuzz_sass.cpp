// Machine code and PTX of any shape: the scan must give facts or nothing, in time, and read nothing outside.
#include <string_view>

#include "cubin/sass.h"
#include "cubin/sass_code.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace gputrace;
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  static constexpr std::uint32_t kChips[] = {70, 75, 80, 89, 90, 100, 120};
  for (const std::uint32_t sm : kChips) {
    const CodeFacts facts = scan_code(bytes, sm);
    if (facts.mma_instructions > facts.instructions) __builtin_trap();
    if ((facts.mma == 0) != (facts.mma_instructions == 0)) __builtin_trap();
  }
  (void)scan_ptx(std::string_view(reinterpret_cast<const char*>(data), size));
  (void)for_each_kernel_code(bytes, {}, [](const KernelScan& scan) {
    if (scan.symbol.empty() && scan.symbol.data() == nullptr) __builtin_trap();
  });
  const std::uint32_t devices[] = {90, 120};
  (void)for_each_kernel_code(bytes, devices, [](const KernelScan&) {});
  return 0;
}
