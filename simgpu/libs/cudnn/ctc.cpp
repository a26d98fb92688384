// The CTC loss: two kernels, one pass in each direction.
#include "simgpu/libs/cudnn/descriptors.h"
#include "simgpu/libs/cudnn/moving_kernels.h"

struct cudnnCTCLossStruct {
  int compute = CUDNN_DATA_FLOAT, normalization = 0, gradient = 0, longest_label = 0;
};

using namespace simlibs;

namespace {
cudnnStatus_t run(cudnnHandle_t handle, cudnnTensorDescriptor_t probabilities, const void* gradients) {
  if (!handle) return status(CUDNN_STATUS_NOT_INITIALIZED);
  if (!probabilities) return bad_param();
  cudnnStatus_t forward = launch_over(handle, kCtcAlphas, probabilities->elements());
  return forward == CUDNN_STATUS_SUCCESS && gradients ? launch_over(handle, kCtcBetas, probabilities->elements())
                                                      : forward;
}
cudnnStatus_t workspace(cudnnTensorDescriptor_t probabilities, size_t* bytes) {
  if (!probabilities || !bytes) return bad_param();
  *bytes = static_cast<size_t>(probabilities->elements()) * 2 * sizeof(float);
  return success();
}
cudnnStatus_t set(cudnnCTCLossDescriptor_t loss, int compute, int normalization, int gradient, int longest) {
  if (!loss) return bad_param();
  *loss = {compute, normalization, gradient, longest};
  return success();
}
}  // namespace

GT_EXPORT cudnnStatus_t cudnnCreateCTCLossDescriptor(cudnnCTCLossDescriptor_t* made) { return create(made); }
GT_EXPORT cudnnStatus_t cudnnDestroyCTCLossDescriptor(cudnnCTCLossDescriptor_t made) { return destroy(made); }
GT_EXPORT cudnnStatus_t cudnnSetCTCLossDescriptor(cudnnCTCLossDescriptor_t loss, cudnnDataType_t compute) {
  return set(loss, compute, 0, 0, 0);
}
GT_EXPORT cudnnStatus_t cudnnSetCTCLossDescriptorEx(cudnnCTCLossDescriptor_t loss, cudnnDataType_t compute,
                                                    cudnnLossNormalizationMode_t mode, cudnnNanPropagation_t gradient) {
  return set(loss, compute, mode, gradient, 0);
}
GT_EXPORT cudnnStatus_t cudnnSetCTCLossDescriptor_v8(cudnnCTCLossDescriptor_t loss, cudnnDataType_t compute,
                                                     cudnnLossNormalizationMode_t mode, cudnnNanPropagation_t gradient,
                                                     int longest) {
  return set(loss, compute, mode, gradient, longest);
}
GT_EXPORT cudnnStatus_t cudnnSetCTCLossDescriptor_v9(cudnnCTCLossDescriptor_t loss, cudnnDataType_t compute,
                                                     cudnnLossNormalizationMode_t mode, cudnnCTCGradMode_t gradient,
                                                     int longest) {
  return set(loss, compute, mode, gradient, longest);
}
GT_EXPORT cudnnStatus_t cudnnGetCTCLossWorkspaceSize(cudnnHandle_t, cudnnTensorDescriptor_t probabilities,
                                                     cudnnTensorDescriptor_t, const int*, const int*, const int*,
                                                     cudnnCTCLossAlgo_t, cudnnCTCLossDescriptor_t, size_t* bytes) {
  return workspace(probabilities, bytes);
}
GT_EXPORT cudnnStatus_t cudnnGetCTCLossWorkspaceSize_v8(cudnnHandle_t, cudnnCTCLossAlgo_t, cudnnCTCLossDescriptor_t,
                                                        cudnnTensorDescriptor_t probabilities, cudnnTensorDescriptor_t,
                                                        size_t* bytes) {
  return workspace(probabilities, bytes);
}
GT_EXPORT cudnnStatus_t cudnnCTCLoss(cudnnHandle_t handle, cudnnTensorDescriptor_t probabilities, const void*,
                                     const int[], const int[], const int[], void*, cudnnTensorDescriptor_t,
                                     void* gradients, cudnnCTCLossAlgo_t, cudnnCTCLossDescriptor_t, void*, size_t) {
  return run(handle, probabilities, gradients);
}
GT_EXPORT cudnnStatus_t cudnnCTCLoss_v8(cudnnHandle_t handle, cudnnCTCLossAlgo_t, cudnnCTCLossDescriptor_t,
                                        cudnnTensorDescriptor_t probabilities, const void*, const int[], const int[],
                                        const int[], void*, cudnnTensorDescriptor_t, void* gradients, size_t, void*) {
  return run(handle, probabilities, gradients);
}
