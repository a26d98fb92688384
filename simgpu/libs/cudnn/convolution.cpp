#include "simgpu/libs/cudnn/convolution.h"

#include <algorithm>

#include "simgpu/libs/cudnn/moving_kernels.h"

namespace simlibs {
namespace {

constexpr ConvKernel kKernels[] = {
#define GT_CONV_KERNEL(name, generation, direction, math, m, n, threads, shared) \
  {#name, generation, Direction::direction, Math::math, m, n, threads, shared},
#include "simgpu/libs/cudnn/kernels.def"
};

long long spatial(const Dims& dims) {
  long long product = 1;
  for (size_t i = 2; i < dims.size(); ++i) product *= dims[i];
  return product;
}

bool multiplies(int type, Math math) {
  switch (type) {
    case CUDNN_DATA_FLOAT:
      return math == Math::F32 || math == Math::Tf32;
    case CUDNN_DATA_DOUBLE:
      return math == Math::F64;
    case CUDNN_DATA_HALF:
      return math == Math::F16;
    case CUDNN_DATA_BFLOAT16:
      return math == Math::Bf16;
    default:
      return false;
  }
}

long long blocks_of(const ConvKernel& kernel, const ImplicitProduct& product) {
  return 1ll * tiles(product.m, kernel.tile_m) * tiles(product.n, kernel.tile_n) * product.groups;
}

bool is_attention(Direction direction) {
  return direction == Direction::AttentionForward || direction == Direction::AttentionBackward;
}

LaunchShape shape_of(const ImplicitProduct& product, const ConvKernel& kernel) {
  constexpr long long kMostInZ = 65535;
  const unsigned rows = tiles(product.m, kernel.tile_m);
  const auto groups = static_cast<unsigned>(std::min(product.groups, kMostInZ));
  // Attention: queries against all keys, twice, and five times on the way back.
  const double passes = product.direction == Direction::AttentionForward    ? 4.0
                        : product.direction == Direction::AttentionBackward ? 10.0
                                                                            : 2.0;
  LaunchShape shape;
  shape.grid =
      is_attention(product.direction) ? Size{rows, groups, 1} : Size{rows, tiles(product.n, kernel.tile_n), groups};
  shape.block = {kernel.threads, 1, 1};
  shape.dynamic_shared_bytes = kernel.dynamic_shared_bytes;
  shape.least_ns = time_of(kernel.math, passes * static_cast<double>(product.m) * static_cast<double>(product.n) *
                                            static_cast<double>(product.k) * static_cast<double>(product.groups));
  return shape;
}

}  // namespace

bool implicit_product(Direction direction, const Dims& input, const Dims& filter, const Dims& output,
                      ImplicitProduct& product) {
  if (input.size() < 3 || filter.size() != input.size() || output.size() != input.size()) return false;
  if (filter[1] < 1 || input[1] % filter[1] || input[0] != output[0] || output[1] != filter[0]) return false;
  const long long groups = input[1] / filter[1], channels = filter[1], filters = filter[0] / std::max(1ll, groups);
  product.direction = direction;
  product.groups = groups;
  switch (direction) {
    case Direction::Data:
      product.m = input[0] * spatial(input);
      product.n = channels;
      product.k = filters * spatial(filter);
      return true;
    case Direction::Filter:
      product.m = filters;
      product.n = channels * spatial(filter);
      product.k = output[0] * spatial(output);
      return true;
    default:
      product.m = output[0] * spatial(output);
      product.n = filters;
      product.k = channels * spatial(filter);
      return true;
  }
}

std::vector<const ConvKernel*> kernels_for(const ImplicitProduct& product) {
  const int device = capability(), generation = device == 90 ? 90 : 80;
  const unsigned most_shared = device_facts().largest_shared_bytes;
  std::vector<const ConvKernel*> found;
  for (const ConvKernel& kernel : kKernels) {
    if (kernel.direction != product.direction || !multiplies(product.type, kernel.math)) continue;
    if (kernel.generation != 80 && kernel.generation != generation) continue;
    if ((device < 80 && kernel.tensor_cores()) || kernel.dynamic_shared_bytes > most_shared) continue;
    found.push_back(&kernel);
  }
  const long long sms = std::max(1, multiprocessors());
  const auto cost = [&](const ConvKernel* kernel) {
    return (blocks_of(*kernel, product) + sms - 1) / sms * (kernel->tile_m * kernel->tile_n + 1024);
  };
  std::stable_sort(found.begin(), found.end(), [&](const ConvKernel* a, const ConvKernel* b) {
    if (a->tensor_cores() != b->tensor_cores()) return a->tensor_cores();
    if (a->generation != b->generation) return a->generation > b->generation;
    return cost(a) < cost(b);
  });
  return found;
}

cudnnStatus_t launch_product(cudnnHandle_t handle, const ImplicitProduct& product, const ConvKernel& kernel) {
  if (!handle) return status(CUDNN_STATUS_NOT_INITIALIZED);
  const OnDevice on_device(handle->device);
  const KernelArguments arguments{nullptr, nullptr, nullptr, product.m, product.n, product.k};
  const LaunchShape shape = shape_of(product, kernel);
  if (is_attention(product.direction)) {
    const bool backward = product.direction == Direction::AttentionBackward;
    const LaunchShape companion{{tiles(product.m, 128), static_cast<unsigned>(product.groups), 1}, {128, 1, 1}};
    CUresult result = backward ? launch(kDotDoO, stream_of(handle), companion, arguments) : CUDA_SUCCESS;
    if (result == CUDA_SUCCESS) result = launch(kernel.name, stream_of(handle), shape, arguments);
    if (result == CUDA_SUCCESS && backward) result = launch(kConvertDq, stream_of(handle), companion, arguments);
    return status_of(result);
  }
  if (!product.channels_last && kernel.tensor_cores()) {
    const cudnnStatus_t moved = launch_over(handle, kNchwToNhwc, product.m * product.k);
    if (moved != CUDNN_STATUS_SUCCESS) return moved;
  }
  return status_of(launch(kernel.name, stream_of(handle), shape, arguments));
}

}  // namespace simlibs
