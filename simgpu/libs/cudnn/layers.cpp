// cuDNN's layers outside of the graph interface that do not multiply: each launches one kernel over its tensor.
#include "simgpu/libs/cudnn/descriptors.h"
#include "simgpu/libs/cudnn/moving_kernels.h"

using namespace simlibs;

namespace {

cudnnStatus_t over(cudnnHandle_t handle, const char* kernel, cudnnTensorDescriptor_t tensor) {
  return tensor ? launch_over(handle, kernel, tensor->elements()) : bad_param();
}
// One block a channel.
cudnnStatus_t normalize(cudnnHandle_t handle, const char* kernel, cudnnTensorDescriptor_t tensor) {
  if (!handle) return status(CUDNN_STATUS_NOT_INITIALIZED);
  const OnDevice on_device(handle->device);
  if (!tensor || tensor->dims.size() < 2) return bad_param();
  constexpr unsigned kThreads = 512;
  return status_of(launch(kernel, stream_of(handle), {{static_cast<unsigned>(tensor->dims[1]), 1, 1}, {kThreads, 1, 1}},
                          {nullptr, nullptr, nullptr, 0, tensor->elements(), 1}));
}
cudnnStatus_t bytes(size_t* out, size_t value) {
  if (!out) return bad_param();
  *out = value;
  return success();
}

}  // namespace

// ------------------------------------------------------------------ batch normalization
GT_EXPORT cudnnStatus_t cudnnDeriveBNTensorDescriptor(cudnnTensorDescriptor_t derived, cudnnTensorDescriptor_t x,
                                                      cudnnBatchNormMode_t mode) {
  if (!derived || !x || x->dims.size() < 2) return bad_param();
  derived->type = x->type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
  derived->dims = x->dims;
  derived->dims[0] = 1;
  for (size_t i = 2; mode != 0 && i < derived->dims.size(); ++i)
    derived->dims[i] = 1;  // 0: a value for each activation
  derived->strides.assign(derived->dims.size(), 1);
  for (size_t i = derived->dims.size(); i-- > 1;) derived->strides[i - 1] = derived->strides[i] * derived->dims[i];
  return success();
}
GT_EXPORT cudnnStatus_t cudnnBatchNormalizationForwardInference(cudnnHandle_t handle, cudnnBatchNormMode_t, const void*,
                                                                const void*, cudnnTensorDescriptor_t x, const void*,
                                                                cudnnTensorDescriptor_t, void*, cudnnTensorDescriptor_t,
                                                                const void*, const void*, const void*, const void*,
                                                                double) {
  return normalize(handle, kBatchNormInference, x);
}
GT_EXPORT cudnnStatus_t cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
    cudnnHandle_t, cudnnBatchNormMode_t, cudnnBatchNormOps_t, cudnnTensorDescriptor_t, cudnnTensorDescriptor_t,
    cudnnTensorDescriptor_t, cudnnTensorDescriptor_t, cudnnActivationDescriptor_t, size_t* size) {
  return bytes(size, 0);
}
GT_EXPORT cudnnStatus_t cudnnGetBatchNormalizationBackwardExWorkspaceSize(
    cudnnHandle_t, cudnnBatchNormMode_t, cudnnBatchNormOps_t, cudnnTensorDescriptor_t, cudnnTensorDescriptor_t,
    cudnnTensorDescriptor_t, cudnnTensorDescriptor_t, cudnnTensorDescriptor_t, cudnnTensorDescriptor_t,
    cudnnActivationDescriptor_t, size_t* size) {
  return bytes(size, 0);
}
GT_EXPORT cudnnStatus_t cudnnGetBatchNormalizationTrainingExReserveSpaceSize(cudnnHandle_t, cudnnBatchNormMode_t,
                                                                             cudnnBatchNormOps_t,
                                                                             cudnnActivationDescriptor_t,
                                                                             cudnnTensorDescriptor_t, size_t* size) {
  return bytes(size, 0);
}
GT_EXPORT cudnnStatus_t cudnnBatchNormalizationForwardTraining(cudnnHandle_t handle, cudnnBatchNormMode_t, const void*,
                                                               const void*, cudnnTensorDescriptor_t x, const void*,
                                                               cudnnTensorDescriptor_t, void*, cudnnTensorDescriptor_t,
                                                               const void*, const void*, double, void*, void*, double,
                                                               void*, void*) {
  return normalize(handle, kBatchNormForward, x);
}
GT_EXPORT cudnnStatus_t cudnnBatchNormalizationForwardTrainingEx(
    cudnnHandle_t handle, cudnnBatchNormMode_t, cudnnBatchNormOps_t, const void*, const void*,
    cudnnTensorDescriptor_t x, const void*, cudnnTensorDescriptor_t, const void*, cudnnTensorDescriptor_t, void*,
    cudnnTensorDescriptor_t, const void*, const void*, double, void*, void*, double, void*, void*,
    cudnnActivationDescriptor_t, void*, size_t, void*, size_t) {
  return normalize(handle, kBatchNormForward, x);
}
GT_EXPORT cudnnStatus_t cudnnBatchNormalizationBackward(cudnnHandle_t handle, cudnnBatchNormMode_t, const void*,
                                                        const void*, const void*, const void*,
                                                        cudnnTensorDescriptor_t x, const void*, cudnnTensorDescriptor_t,
                                                        const void*, cudnnTensorDescriptor_t, void*,
                                                        cudnnTensorDescriptor_t, const void*, void*, void*, double,
                                                        const void*, const void*) {
  return normalize(handle, kBatchNormBackward, x);
}
GT_EXPORT cudnnStatus_t cudnnBatchNormalizationBackwardEx(
    cudnnHandle_t handle, cudnnBatchNormMode_t, cudnnBatchNormOps_t, const void*, const void*, const void*, const void*,
    cudnnTensorDescriptor_t x, const void*, cudnnTensorDescriptor_t, const void*, cudnnTensorDescriptor_t, const void*,
    cudnnTensorDescriptor_t, void*, cudnnTensorDescriptor_t, void*, cudnnTensorDescriptor_t, const void*, const void*,
    void*, void*, double, const void*, const void*, cudnnActivationDescriptor_t, void*, size_t, void*, size_t) {
  return normalize(handle, kBatchNormBackward, x);
}

// ------------------------------------------------------------------ element by element
GT_EXPORT cudnnStatus_t cudnnTransformTensor(cudnnHandle_t handle, const void*, cudnnTensorDescriptor_t x, const void*,
                                             const void*, cudnnTensorDescriptor_t y, void*) {
  return over(handle, x && x->channels_last() ? kNhwcToNchw : kNchwToNhwc, y);
}
GT_EXPORT cudnnStatus_t cudnnAddTensor(cudnnHandle_t handle, const void*, cudnnTensorDescriptor_t, const void*,
                                       const void*, cudnnTensorDescriptor_t c, void*) {
  return over(handle, kOp, c);
}
GT_EXPORT cudnnStatus_t cudnnOpTensor(cudnnHandle_t handle, cudnnOpTensorDescriptor_t, const void*,
                                      cudnnTensorDescriptor_t, const void*, const void*, cudnnTensorDescriptor_t,
                                      const void*, const void*, cudnnTensorDescriptor_t c, void*) {
  return over(handle, kOp, c);
}
GT_EXPORT cudnnStatus_t cudnnSetTensor(cudnnHandle_t handle, cudnnTensorDescriptor_t y, void*, const void*) {
  return over(handle, kOp, y);
}
GT_EXPORT cudnnStatus_t cudnnScaleTensor(cudnnHandle_t handle, cudnnTensorDescriptor_t y, void*, const void*) {
  return over(handle, kOp, y);
}
GT_EXPORT cudnnStatus_t cudnnGetReductionIndicesSize(cudnnHandle_t, cudnnReduceTensorDescriptor_t,
                                                     cudnnTensorDescriptor_t, cudnnTensorDescriptor_t c, size_t* size) {
  return c ? bytes(size, static_cast<size_t>(c->elements()) * 4) : bad_param();
}
GT_EXPORT cudnnStatus_t cudnnGetReductionWorkspaceSize(cudnnHandle_t, cudnnReduceTensorDescriptor_t,
                                                       cudnnTensorDescriptor_t, cudnnTensorDescriptor_t, size_t* size) {
  return bytes(size, 0);
}
GT_EXPORT cudnnStatus_t cudnnReduceTensor(cudnnHandle_t handle, cudnnReduceTensorDescriptor_t, void*, size_t, void*,
                                          size_t, const void*, cudnnTensorDescriptor_t a, const void*, const void*,
                                          cudnnTensorDescriptor_t, void*) {
  return over(handle, kReduce, a);
}
GT_EXPORT cudnnStatus_t cudnnActivationForward(cudnnHandle_t handle, cudnnActivationDescriptor_t, const void*,
                                               cudnnTensorDescriptor_t x, const void*, const void*,
                                               cudnnTensorDescriptor_t, void*) {
  return over(handle, kActivationForward, x);
}
GT_EXPORT cudnnStatus_t cudnnActivationBackward(cudnnHandle_t handle, cudnnActivationDescriptor_t, const void*,
                                                cudnnTensorDescriptor_t, const void*, cudnnTensorDescriptor_t,
                                                const void*, cudnnTensorDescriptor_t x, const void*, const void*,
                                                cudnnTensorDescriptor_t, void*) {
  return over(handle, kActivationBackward, x);
}
GT_EXPORT cudnnStatus_t cudnnSoftmaxForward(cudnnHandle_t handle, cudnnSoftmaxAlgorithm_t, cudnnSoftmaxMode_t,
                                            const void*, cudnnTensorDescriptor_t x, const void*, const void*,
                                            cudnnTensorDescriptor_t, void*) {
  return over(handle, kSoftmaxForward, x);
}
GT_EXPORT cudnnStatus_t cudnnSoftmaxBackward(cudnnHandle_t handle, cudnnSoftmaxAlgorithm_t, cudnnSoftmaxMode_t,
                                             const void*, cudnnTensorDescriptor_t y, const void*,
                                             cudnnTensorDescriptor_t, const void*, const void*, cudnnTensorDescriptor_t,
                                             void*) {
  return over(handle, kSoftmaxBackward, y);
}
GT_EXPORT cudnnStatus_t cudnnPoolingForward(cudnnHandle_t handle, cudnnPoolingDescriptor_t, const void*,
                                            cudnnTensorDescriptor_t, const void*, const void*,
                                            cudnnTensorDescriptor_t y, void*) {
  return over(handle, kPoolingForward, y);
}
GT_EXPORT cudnnStatus_t cudnnPoolingBackward(cudnnHandle_t handle, cudnnPoolingDescriptor_t, const void*,
                                             cudnnTensorDescriptor_t, const void*, cudnnTensorDescriptor_t, const void*,
                                             cudnnTensorDescriptor_t x, const void*, const void*,
                                             cudnnTensorDescriptor_t, void*) {
  return over(handle, kPoolingBackward, x);
}
GT_EXPORT cudnnStatus_t cudnnLRNCrossChannelForward(cudnnHandle_t handle, cudnnLRNDescriptor_t, cudnnLRNMode_t,
                                                    const void*, cudnnTensorDescriptor_t x, const void*, const void*,
                                                    cudnnTensorDescriptor_t, void*) {
  return over(handle, kNormalization, x);
}
GT_EXPORT cudnnStatus_t cudnnLRNCrossChannelBackward(cudnnHandle_t handle, cudnnLRNDescriptor_t, cudnnLRNMode_t,
                                                     const void*, cudnnTensorDescriptor_t, const void*,
                                                     cudnnTensorDescriptor_t, const void*, cudnnTensorDescriptor_t x,
                                                     const void*, const void*, cudnnTensorDescriptor_t, void*) {
  return over(handle, kNormalization, x);
}

// ------------------------------------------------------------------ dropout
GT_EXPORT cudnnStatus_t cudnnDropoutGetStatesSize(cudnnHandle_t, size_t* size) {
  return bytes(size, size_t{2048} * 48 * 24);
}
GT_EXPORT cudnnStatus_t cudnnDropoutGetReserveSpaceSize(cudnnTensorDescriptor_t x, size_t* size) {
  return x ? bytes(size, (static_cast<size_t>(x->elements()) + 7) / 8) : bad_param();
}
GT_EXPORT cudnnStatus_t cudnnSetDropoutDescriptor(cudnnDropoutDescriptor_t dropout, cudnnHandle_t handle, float rate,
                                                  void* states, size_t size, unsigned long long seed) {
  if (!dropout || rate < 0 || rate > 1) return bad_param();
  *dropout = {rate, states, seed};
  // The generators are seeded on the device; without states there is nothing to seed.
  return states ? launch_over(handle, kDropoutInit, static_cast<long long>(size / 48)) : success();
}
GT_EXPORT cudnnStatus_t cudnnRestoreDropoutDescriptor(cudnnDropoutDescriptor_t dropout, cudnnHandle_t, float rate,
                                                      void* states, size_t, unsigned long long seed) {
  if (!dropout || rate < 0 || rate > 1) return bad_param();
  *dropout = {rate, states, seed};
  return success();
}
GT_EXPORT cudnnStatus_t cudnnDropoutForward(cudnnHandle_t handle, cudnnDropoutDescriptor_t, cudnnTensorDescriptor_t x,
                                            const void*, cudnnTensorDescriptor_t, void*, void*, size_t) {
  return over(handle, kDropoutForward, x);
}
GT_EXPORT cudnnStatus_t cudnnDropoutBackward(cudnnHandle_t handle, cudnnDropoutDescriptor_t, cudnnTensorDescriptor_t dy,
                                             const void*, cudnnTensorDescriptor_t, void*, void*, size_t) {
  return over(handle, kDropoutBackward, dy);
}

// ------------------------------------------------------------------ spatial transformers
namespace {
long long elements(cudnnSpatialTransformerDescriptor_t transformer) {
  long long product = 1;
  for (const int dim : transformer->dims) product *= dim;
  return product;
}
}  // namespace
GT_EXPORT cudnnStatus_t cudnnSpatialTfGridGeneratorForward(cudnnHandle_t handle,
                                                           cudnnSpatialTransformerDescriptor_t transformer, const void*,
                                                           void*) {
  return transformer ? launch_over(handle, kGrid, elements(transformer)) : bad_param();
}
GT_EXPORT cudnnStatus_t cudnnSpatialTfGridGeneratorBackward(cudnnHandle_t handle,
                                                            cudnnSpatialTransformerDescriptor_t transformer,
                                                            const void*, void*) {
  return transformer ? launch_over(handle, kGrid, elements(transformer)) : bad_param();
}
GT_EXPORT cudnnStatus_t cudnnSpatialTfSamplerForward(cudnnHandle_t handle, cudnnSpatialTransformerDescriptor_t,
                                                     const void*, cudnnTensorDescriptor_t, const void*, const void*,
                                                     const void*, cudnnTensorDescriptor_t y, void*) {
  return over(handle, kTransformer, y);
}
GT_EXPORT cudnnStatus_t cudnnSpatialTfSamplerBackward(cudnnHandle_t handle, cudnnSpatialTransformerDescriptor_t,
                                                      const void*, cudnnTensorDescriptor_t x, const void*, const void*,
                                                      cudnnTensorDescriptor_t, void*, const void*,
                                                      cudnnTensorDescriptor_t, const void*, const void*, const void*,
                                                      void*) {
  return over(handle, kTransformer, x);
}
