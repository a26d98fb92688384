// Recurrent networks with the interface of version 6, which cuDNN 8 still had: a tensor for each time step, weights as a filter.
#include "simgpu/libs/cudnn/rnn.h"

using namespace simlibs;

namespace {

// What the tensors of the time steps say: the first is the widest.
struct Steps {
  long long positions = 0, batch = 0;
  bool valid = false;
  Steps(int count, const cudnnTensorDescriptor_t* tensors) {
    for (int i = 0; tensors && i < count; ++i) {
      if (!tensors[i] || tensors[i]->dims.size() < 2) return;
      positions += tensors[i]->dims[0];
      if (i == 0) batch = tensors[i]->dims[0];
    }
    valid = positions > 0;
  }
};

// The descriptor with what its tensors add to it.
cudnnRNNStruct with_input(cudnnRNNDescriptor_t rnn, cudnnTensorDescriptor_t x) {
  cudnnRNNStruct full = *rnn;
  full.input = x->dims[1];
  full.type = x->type;
  return full;
}
bool is_input(cudnnTensorDescriptor_t x) { return x && x->dims.size() >= 2; }

cudnnStatus_t space(cudnnRNNDescriptor_t rnn, int count, const cudnnTensorDescriptor_t* x, bool all_layers,
                    size_t* bytes) {
  const Steps steps(count, x);
  if (!rnn || !steps.valid || !bytes) return bad_param();
  *bytes = static_cast<size_t>(steps.batch * count * rnn->gates() * rnn->hidden) * element_bytes(x[0]->type) *
           static_cast<size_t>(all_layers ? rnn->pseudo_layers() : 1);
  return success();
}
void describe(const WeightPart& part, int type, const void* weights, cudnnFilterDescriptor_t filter, void** address) {
  if (filter && part.rows > 0) {
    filter->type = type;
    filter->dims = {1, static_cast<int>(part.rows), static_cast<int>(part.columns)};
  }
  put(address, address_of(part, type, weights));
}
cudnnStatus_t run(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, int count, const cudnnTensorDescriptor_t* x,
                  bool forward) {
  const Steps steps(count, x);
  if (!rnn || !steps.valid) return bad_param();
  return run_layers(handle, with_input(rnn, x[0]), steps.positions, steps.batch, forward);
}

}  // namespace

// Not declared by the headers of version 9.
extern "C" {
#define GT_V6 __attribute__((visibility("default"))) cudnnStatus_t
GT_V6 cudnnSetRNNDescriptor_v6(cudnnHandle_t, cudnnRNNDescriptor_t rnn, const int hidden, const int layers,
                               cudnnDropoutDescriptor_t dropout, int input_mode, int direction, int cell, int algorithm,
                               int precision) {
  if (!rnn || hidden < 1 || layers < 1) return bad_param();
  *rnn = {algorithm,          cell, 2,      direction, input_mode, precision, precision,
          CUDNN_DEFAULT_MATH, 0,    hidden, 0,         layers,     dropout,   0};
  return success();
}
GT_V6 cudnnSetRNNMatrixMathType(cudnnRNNDescriptor_t rnn, int math) {
  if (!rnn) return bad_param();
  rnn->math = math;
  return success();
}
GT_V6 cudnnSetRNNBiasMode(cudnnRNNDescriptor_t rnn, int mode) {
  if (!rnn || mode < 0 || mode > 3) return bad_param();
  rnn->bias = mode;
  return success();
}
GT_V6 cudnnSetRNNProjectionLayers(cudnnHandle_t, cudnnRNNDescriptor_t rnn, const int recurrent, const int output) {
  if (!rnn || recurrent < 0 || recurrent > rnn->hidden) return bad_param();
  if (output != 0) return not_supported();  // as the library: only the recurrent one was ever there
  rnn->projection = recurrent;
  return success();
}
GT_V6 cudnnSetRNNPaddingMode(cudnnRNNDescriptor_t rnn, unsigned mode) {
  if (!rnn) return bad_param();
  rnn->flags = mode;
  return success();
}
GT_V6 cudnnGetRNNWorkspaceSize(cudnnHandle_t, cudnnRNNDescriptor_t rnn, const int count,
                               const cudnnTensorDescriptor_t* x, size_t* bytes) {
  return space(rnn, count, x, false, bytes);
}
GT_V6 cudnnGetRNNTrainingReserveSize(cudnnHandle_t, cudnnRNNDescriptor_t rnn, const int count,
                                     const cudnnTensorDescriptor_t* x, size_t* bytes) {
  return space(rnn, count, x, true, bytes);
}
GT_V6 cudnnGetRNNParamsSize(cudnnHandle_t, cudnnRNNDescriptor_t rnn, cudnnTensorDescriptor_t x, size_t* bytes,
                            cudnnDataType_t type) {
  if (!rnn || !is_input(x) || !bytes) return bad_param();
  *bytes = static_cast<size_t>(weight_elements(with_input(rnn, x))) * element_bytes(type);
  return success();
}
GT_V6 cudnnGetRNNLinLayerMatrixParams(cudnnHandle_t, cudnnRNNDescriptor_t rnn, const int layer,
                                      cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t weights, const void* w,
                                      const int id, cudnnFilterDescriptor_t matrix, void** address) {
  if (!rnn || !is_input(x) || !weights || layer < 0 || layer >= rnn->pseudo_layers() || id < 0) return bad_param();
  describe(weight_matrix(with_input(rnn, x), layer, id), weights->type, w, matrix, address);
  return success();
}
GT_V6 cudnnGetRNNLinLayerBiasParams(cudnnHandle_t, cudnnRNNDescriptor_t rnn, const int layer, cudnnTensorDescriptor_t x,
                                    cudnnFilterDescriptor_t weights, const void* w, const int id,
                                    cudnnFilterDescriptor_t bias, void** address) {
  if (!rnn || !is_input(x) || !weights || layer < 0 || layer >= rnn->pseudo_layers() || id < 0) return bad_param();
  describe(weight_bias(with_input(rnn, x), layer, id), weights->type, w, bias, address);
  return success();
}
GT_V6 cudnnRNNForwardInference(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, const int count,
                               const cudnnTensorDescriptor_t* x, const void*, cudnnTensorDescriptor_t, const void*,
                               cudnnTensorDescriptor_t, const void*, cudnnFilterDescriptor_t, const void*,
                               const cudnnTensorDescriptor_t*, void*, cudnnTensorDescriptor_t, void*,
                               cudnnTensorDescriptor_t, void*, void*, size_t) {
  return run(handle, rnn, count, x, true);
}
GT_V6 cudnnRNNForwardTraining(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, const int count,
                              const cudnnTensorDescriptor_t* x, const void*, cudnnTensorDescriptor_t, const void*,
                              cudnnTensorDescriptor_t, const void*, cudnnFilterDescriptor_t, const void*,
                              const cudnnTensorDescriptor_t*, void*, cudnnTensorDescriptor_t, void*,
                              cudnnTensorDescriptor_t, void*, void*, size_t, void*, size_t) {
  return run(handle, rnn, count, x, true);
}
GT_V6 cudnnRNNBackwardData(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, const int count,
                           const cudnnTensorDescriptor_t*, const void*, const cudnnTensorDescriptor_t*, const void*,
                           cudnnTensorDescriptor_t, const void*, cudnnTensorDescriptor_t, const void*,
                           cudnnFilterDescriptor_t, const void*, cudnnTensorDescriptor_t, const void*,
                           cudnnTensorDescriptor_t, const void*, const cudnnTensorDescriptor_t* dx, void*,
                           cudnnTensorDescriptor_t, void*, cudnnTensorDescriptor_t, void*, void*, size_t, void*,
                           size_t) {
  return run(handle, rnn, count, dx, false);
}
GT_V6 cudnnRNNBackwardWeights(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, const int count,
                              const cudnnTensorDescriptor_t* x, const void*, cudnnTensorDescriptor_t, const void*,
                              const cudnnTensorDescriptor_t*, const void*, const void*, size_t, cudnnFilterDescriptor_t,
                              void*, const void*, size_t) {
  const Steps steps(count, x);
  return rnn && steps.valid ? run_weight_gradients(handle, with_input(rnn, x[0]), steps.positions) : bad_param();
}
#undef GT_V6
}
