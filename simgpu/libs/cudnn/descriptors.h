// cuDNN's descriptors outside of the graph interface: what their setters were given.
#pragma once

#include <vector>

#include "simgpu/libs/cudnn/convolution.h"

struct cudnnTensorStruct {
  int type = CUDNN_DATA_FLOAT;
  std::vector<int> dims, strides;
  long long elements() const {
    long long product = 1;
    for (const int dim : dims) product *= dim;
    return product;
  }
  bool channels_last() const { return strides.size() > 1 && strides[1] == 1; }
};
struct cudnnFilterStruct {
  int type = CUDNN_DATA_FLOAT, format = CUDNN_TENSOR_NCHW;
  std::vector<int> dims;
};
struct cudnnConvolutionStruct {
  std::vector<int> pad, stride, dilation;
  int mode = 0, compute = CUDNN_DATA_FLOAT, groups = 1, math = CUDNN_DEFAULT_MATH, reorder = 0;
};
struct cudnnPoolingStruct {
  int mode = 0, nans = 0;
  std::vector<int> window, pad, stride;
};
struct cudnnActivationStruct {
  int mode = 0, nans = 0;
  double coefficient = 0, swish_beta = 1;
};
struct cudnnDropoutStruct {
  float rate = 0;
  void* states = nullptr;
  unsigned long long seed = 0;
};
struct cudnnOpTensorStruct {
  int operation = 0, compute = 0, nans = 0;
};
struct cudnnReduceTensorStruct {
  int operation = 0, compute = 0, nans = 0, indices = 0, index_type = 0;
};
struct cudnnLRNStruct {
  unsigned n = 5;
  double alpha = 1e-4, beta = 0.75, k = 2;
};
struct cudnnSpatialTransformerStruct {
  std::vector<int> dims;
};

namespace simlibs {

size_t element_bytes(int type);

template <typename T>
cudnnStatus_t create(T** made) {
  if (!made) return bad_param();
  *made = new T;
  return success();
}
template <typename T>
cudnnStatus_t destroy(T* made) {
  delete made;
  return success();
}
template <typename T, typename V>
void put(T* out, V value) {
  if (out) *out = static_cast<T>(value);
}
inline void put_array(const std::vector<int>& from, int room, int* to) {
  for (int i = 0; to && i < room && i < static_cast<int>(from.size()); ++i) to[i] = from[static_cast<size_t>(i)];
}

}  // namespace simlibs
