#include "analysis/kernels/peaks.h"

namespace gputrace {
namespace {

struct Rates {
  u32 major, minor;
  u32 fp64, fp32, tf32, fp16, bf16, fp8, fp6, fp4, int8, int4;
};

// Devices of one capability that differ (GeForce and professional boards) stand here with the full rate.
constexpr Rates kRates[] = {
    {7, 0, 64, 128, 0, 1024, 0, 0, 0, 0, 512, 0},
    {7, 2, 4, 128, 0, 1024, 0, 0, 0, 0, 2048, 0},
    {7, 5, 4, 128, 0, 1024, 0, 0, 0, 0, 2048, 4096},
    {8, 0, 128, 128, 1024, 2048, 2048, 0, 0, 0, 4096, 8192},
    {8, 6, 4, 256, 512, 1024, 1024, 0, 0, 0, 2048, 4096},
    {8, 7, 4, 256, 1024, 2048, 2048, 0, 0, 0, 4096, 0},
    {8, 9, 4, 256, 512, 1024, 1024, 2048, 0, 0, 2048, 4096},
    {9, 0, 256, 256, 2048, 4096, 4096, 8192, 0, 0, 8192, 0},
    {10, 0, 128, 256, 4096, 8192, 8192, 16384, 16384, 32768, 16384, 0},
    {12, 0, 4, 256, 512, 1024, 1024, 2048, 2048, 4096, 2048, 0},
};

}  // namespace

u32 peak_per_cycle(u32 major, u32 minor, std::string_view precision) {
  for (const Rates& rates : kRates) {
    if (rates.major != major || rates.minor != minor) continue;
    const struct {
      std::string_view name;
      u32 rate;
    } words[] = {{"fp64", rates.fp64}, {"fp32", rates.fp32}, {"tf32", rates.tf32}, {"fp16", rates.fp16},
                 {"bf16", rates.bf16}, {"fp8", rates.fp8},   {"fp6", rates.fp6},   {"fp4", rates.fp4},
                 {"int8", rates.int8}, {"int4", rates.int4}};
    for (const auto& word : words) {
      if (word.name == precision) return word.rate;
    }
  }
  return 0;
}

double peak_flops(const Device& device, std::string_view precision) {
  const double rate = peak_per_cycle(device.capability_major, device.capability_minor, precision);
  return rate * device.sms * (static_cast<double>(device.clock_khz) * 1e3);
}

}  // namespace gputrace
