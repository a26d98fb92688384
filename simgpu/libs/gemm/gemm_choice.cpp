#include "simgpu/libs/gemm/gemm_choice.h"

#include <algorithm>
#include <string>
#include <vector>

namespace simlibs {
namespace {

struct GemmKernel {
  const char *before, *after;
  int generation;
  Math math;
  int tile_m, tile_n;
  unsigned threads, dynamic_shared_bytes, cluster_x, cluster_y;
  bool persistent() const { return generation == 100 || (generation == 90 && math != Math::Tf32); }
};

constexpr GemmKernel kKernels[] = {
#define GT_GEMM_KERNEL(before, after, generation, math, m, n, threads, shared, cluster_x, cluster_y) \
  {#before, #after, generation, Math::math, m, n, threads, shared, cluster_x, cluster_y},
#include "simgpu/libs/gemm/gemm_kernels.def"
};

constexpr const char* kSplitSum = "_ZN8cublasLt19splitKreduce_kernelILi32ELi16EiffffLb1ELb0ELb0EEEvPKvPv";
// Products deeper than this, of fewer tiles than half the device, are split.
constexpr long long kDeep = 4096;
constexpr long long kMostInZ = 65535;

int generation_of(int capability) {
  if (capability == 90) return 90;
  return capability == 100 ? 100 : 80;
}

std::vector<const GemmKernel*> fitting(Math math) {
  const int generation = generation_of(capability());
  const unsigned most_shared = device_facts().largest_shared_bytes;
  std::vector<const GemmKernel*> own, general;
  for (const GemmKernel& kernel : kKernels) {
    if (kernel.math != math || kernel.dynamic_shared_bytes > most_shared) continue;
    if (kernel.generation == generation) own.push_back(&kernel);
    if (kernel.generation == 80) general.push_back(&kernel);
  }
  return own.empty() ? general : own;
}

// The time that its waves of tiles take, in a unit that only compares.
long long cost(const GemmKernel& kernel, const Gemm& gemm, long long sms) {
  const long long count =
      static_cast<long long>(tiles(gemm.m, kernel.tile_m)) * tiles(gemm.n, kernel.tile_n) * gemm.batch;
  return (count + sms - 1) / sms * (kernel.tile_m * kernel.tile_n + 1024);
}

std::string name_of(const GemmKernel& kernel, const Gemm& gemm) {
  const bool capitals = kernel.persistent();
  const auto letter = [&](int operation) { return "nNtT"[(operation == 0 ? 0 : 2) + (capitals ? 1 : 0)]; };
  return std::string(kernel.before) + letter(gemm.op_a) + letter(gemm.op_b) + kernel.after;
}

LaunchShape shape_of(const GemmKernel& kernel, const Gemm& gemm, unsigned slices, unsigned sms) {
  LaunchShape shape;
  shape.block.x = kernel.threads;
  shape.dynamic_shared_bytes = kernel.dynamic_shared_bytes;
  shape.cluster = {kernel.cluster_x, kernel.cluster_y, 1};
  const unsigned rows = tiles(gemm.m, kernel.tile_m), columns = tiles(gemm.n, kernel.tile_n);
  const auto layers = static_cast<unsigned>(std::min(gemm.batch * slices, kMostInZ));
  shape.grid = {rows, columns, layers};
  if (kernel.persistent()) {  // as many blocks as run at once, which take the tiles in turn
    const unsigned long long all = 1ull * rows * columns * layers;
    shape.grid = {kernel.cluster_x,
                  std::max(1u, static_cast<unsigned>(std::min<unsigned long long>(all, sms) / kernel.cluster_x)), 1};
  }
  return shape;
}

double flops_of(const Gemm& gemm) {
  if (gemm.flops > 0) return gemm.flops;
  const bool complex = gemm.math == Math::C32 || gemm.math == Math::C64;
  return (complex ? 8.0 : 2.0) * static_cast<double>(gemm.m) * static_cast<double>(gemm.n) *
         static_cast<double>(gemm.k) * static_cast<double>(gemm.batch);
}

}  // namespace

bool math_of(int type, int compute, bool tf32, Math& math) {
  constexpr int kPedantic32 = 69, kFastTf32 = 77, kFast16 = 74, kFast16Bf = 75;  // cublasComputeType_t
  switch (type) {                                                                // cudaDataType
    case 0:
      tf32 = (tf32 && compute != kPedantic32) || compute == kFastTf32 || compute == kFast16 || compute == kFast16Bf;
      math = tf32 && capability() >= 80 ? Math::Tf32 : Math::F32;
      return true;
    case 1:
      math = Math::F64;
      return true;
    case 2:
      math = compute == kPedantic32 ? Math::F32 : Math::F16;
      return true;
    case 14:
      math = compute == kPedantic32 ? Math::F32 : Math::Bf16;
      return true;
    case 3:
      math = Math::S8;
      return true;
    case 4:
      math = Math::C32;
      return true;
    case 5:
      math = Math::C64;
      return true;
    case 28:
    case 29:
      math = Math::F8;
      return true;
    default:
      return false;
  }
}

int kernels_for(Math math) { return static_cast<int>(fitting(math).size()); }

CUresult launch_gemm(const Gemm& asked, CUstream stream) {
  Gemm gemm = asked;
  // Rows of TF32 that are no multiples of 16 bytes: not on tensor cores.
  if (gemm.math == Math::Tf32 && (gemm.m % 4 || gemm.n % 4 || gemm.k % 4)) gemm.math = Math::F32;
  if (gemm.m <= 0 || gemm.n <= 0 || gemm.batch <= 0) return CUDA_SUCCESS;
  std::vector<const GemmKernel*> kernels = fitting(gemm.math);
  if (kernels.empty()) return CUDA_ERROR_NOT_SUPPORTED;
  const unsigned sms = static_cast<unsigned>(std::max(1, multiprocessors()));
  std::stable_sort(kernels.begin(), kernels.end(),
                   [&](const GemmKernel* a, const GemmKernel* b) { return cost(*a, gemm, sms) < cost(*b, gemm, sms); });
  const GemmKernel& kernel = *kernels[static_cast<std::size_t>(gemm.algorithm) % kernels.size()];
  const unsigned long long count = 1ull * tiles(gemm.m, kernel.tile_m) * tiles(gemm.n, kernel.tile_n);
  const bool split = gemm.k >= kDeep && gemm.batch == 1 && count * 2 <= sms;
  const unsigned slices =
      split ? static_cast<unsigned>(std::min<long long>(sms / static_cast<long long>(count), gemm.k / 1024)) : 1;
  const KernelArguments arguments{gemm.a, gemm.b, gemm.c, gemm.m, gemm.n, gemm.k};
  LaunchShape shape = shape_of(kernel, gemm, slices, sms);
  shape.least_ns = time_of(gemm.math, flops_of(gemm));
  const CUresult result = launch(name_of(kernel, gemm).c_str(), stream, shape, arguments);
  if (result != CUDA_SUCCESS || slices < 2) return result;
  return launch(kSplitSum, stream, {.grid = {tiles(gemm.m, 32), tiles(gemm.n, 16), 1}, .block = {512, 1, 1}},
                arguments);
}

}  // namespace simlibs
