// Convolutions and attention as implicit products: which kernels of kernels.def may do them, and their launch.
#pragma once

#include <vector>

#include "simgpu/libs/common/arithmetic.h"
#include "simgpu/libs/cudnn/handle.h"

namespace simlibs {

// Input and Recurrence: the products of a recurrent layer.
enum class Direction { Forward, Data, Filter, AttentionForward, AttentionBackward, Input, Recurrence };

// Each group computes m × n out of k; attention: m queries against n keys, k the size of a head.
struct ImplicitProduct {
  Direction direction = Direction::Forward;
  int type = CUDNN_DATA_FLOAT;  // cudnnDataType_t of what is multiplied
  long long m = 0, n = 0, k = 0;
  long long groups = 1;  // of the convolution; heads of the whole batch
  bool channels_last = true;
};

// Dimensions as the tensors have them: batch, channels, then one to three spatial ones.
using Dims = std::vector<long long>;
// Takes the input's (or its gradient's), the filter's and the output's; false: they do not fit together.
bool implicit_product(Direction direction, const Dims& input, const Dims& filter, const Dims& output,
                      ImplicitProduct& product);

struct ConvKernel {
  const char* name;
  int generation;
  Direction direction;
  Math math;
  int tile_m, tile_n;
  unsigned threads, dynamic_shared_bytes;
  bool tensor_cores() const { return math != Math::F32 && math != Math::F64; }
};

// All that could do it on the current device, the best first. With fp32 those that round to TF32 come before those that do not. Empty:
// none.
std::vector<const ConvKernel*> kernels_for(const ImplicitProduct& product);

// One kernel, after one that changes the layout where the tensor cores want channels last and the data have them first; attention's
// backward pass has its two small companions.
cudnnStatus_t launch_product(cudnnHandle_t handle, const ImplicitProduct& product, const ConvKernel& kernel);

}  // namespace simlibs
