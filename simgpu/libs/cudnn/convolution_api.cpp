// Convolutions outside of the graph interface: descriptors, algorithms, the three directions.
#include <algorithm>

#include "simgpu/libs/cudnn/descriptors.h"
#include "simgpu/libs/cudnn/moving_kernels.h"

using namespace simlibs;

namespace {

Dims dims_of(const std::vector<int>& dims) { return {dims.begin(), dims.end()}; }

struct Operands {
  Direction direction;
  cudnnTensorDescriptor_t input;
  cudnnFilterDescriptor_t filter;
  cudnnConvolutionDescriptor_t convolution;
  cudnnTensorDescriptor_t output;
};

// What the descriptors say, with the kernels that fit.
cudnnStatus_t product_of(const Operands& operands, ImplicitProduct& product, std::vector<const ConvKernel*>& kernels) {
  if (!operands.input || !operands.filter || !operands.convolution || !operands.output) return bad_param();
  if (!implicit_product(operands.direction, dims_of(operands.input->dims), dims_of(operands.filter->dims),
                        dims_of(operands.output->dims), product))
    return bad_param();
  product.type = operands.input->type;
  product.channels_last = operands.input->channels_last();
  kernels = kernels_for(product);
  // With the math type FMA nothing is rounded to TF32.
  if (operands.convolution->math == CUDNN_FMA_MATH && operands.input->type == CUDNN_DATA_FLOAT)
    std::erase_if(kernels, [](const ConvKernel* kernel) { return kernel->tensor_cores(); });
  return kernels.empty() ? not_supported() : success();
}

cudnnStatus_t convolve(cudnnHandle_t handle, const Operands& operands, int algorithm) {
  if (!handle) return status(CUDNN_STATUS_NOT_INITIALIZED);
  const OnDevice on_device(handle->device);
  ImplicitProduct product;
  std::vector<const ConvKernel*> kernels;
  cudnnStatus_t found = product_of(operands, product, kernels);
  if (found != CUDNN_STATUS_SUCCESS) return found;
  if (algorithm < 0) return bad_param();
  return launch_product(handle, product, *kernels[static_cast<size_t>(algorithm) % kernels.size()]);
}

template <typename Perf>
cudnnStatus_t list_algorithms(cudnnHandle_t handle, const Operands& operands, int wanted, int* count, Perf* results) {
  if (!handle) return status(CUDNN_STATUS_NOT_INITIALIZED);
  const OnDevice on_device(handle->device);
  ImplicitProduct product;
  std::vector<const ConvKernel*> kernels;
  if (!count || !results || wanted < 1) return bad_param();
  cudnnStatus_t found = product_of(operands, product, kernels);
  if (found != CUDNN_STATUS_SUCCESS) return found;
  *count = std::min(wanted, static_cast<int>(kernels.size()));
  for (int i = 0; i < *count; ++i) {
    results[i] = Perf{};
    results[i].algo = static_cast<decltype(results[i].algo)>(i);
    results[i].status = success();
    results[i].time = static_cast<float>(i + 1);
    results[i].mathType = static_cast<cudnnMathType_t>(
        kernels[static_cast<size_t>(i)]->tensor_cores() ? CUDNN_TENSOR_OP_MATH : CUDNN_FMA_MATH);
  }
  return success();
}

cudnnStatus_t no_workspace(size_t* bytes) {
  if (!bytes) return bad_param();
  *bytes = 0;
  return success();
}
cudnnStatus_t algorithm_count(int* count) {
  if (!count) return bad_param();
  *count = 8;
  return success();
}

}  // namespace

// ------------------------------------------------------------------ the descriptor
GT_EXPORT cudnnStatus_t cudnnSetConvolutionNdDescriptor(cudnnConvolutionDescriptor_t convolution, int count,
                                                        const int pad[], const int stride[], const int dilation[],
                                                        cudnnConvolutionMode_t mode, cudnnDataType_t compute) {
  if (!convolution || !pad || !stride || !dilation || count < 1 || count > CUDNN_DIM_MAX - 2) return bad_param();
  convolution->pad.assign(pad, pad + count);
  convolution->stride.assign(stride, stride + count);
  convolution->dilation.assign(dilation, dilation + count);
  convolution->mode = mode;
  convolution->compute = compute;
  return success();
}
GT_EXPORT cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t convolution, int pad_h, int pad_w,
                                                        int u, int v, int dilation_h, int dilation_w,
                                                        cudnnConvolutionMode_t mode, cudnnDataType_t compute) {
  const int pad[] = {pad_h, pad_w}, stride[] = {u, v}, dilation[] = {dilation_h, dilation_w};
  return cudnnSetConvolutionNdDescriptor(convolution, 2, pad, stride, dilation, mode, compute);
}
GT_EXPORT cudnnStatus_t cudnnGetConvolutionNdDescriptor(cudnnConvolutionDescriptor_t convolution, int room, int* count,
                                                        int pad[], int stride[], int dilation[],
                                                        cudnnConvolutionMode_t* mode, cudnnDataType_t* compute) {
  if (!convolution || room > CUDNN_DIM_MAX - 2) return bad_param();
  put(count, convolution->pad.size());
  put(mode, convolution->mode);
  put(compute, convolution->compute);
  put_array(convolution->pad, room, pad);
  put_array(convolution->stride, room, stride);
  put_array(convolution->dilation, room, dilation);
  return success();
}
#define GT_PROPERTY(name, type, member)                                                                      \
  GT_EXPORT cudnnStatus_t cudnnSetConvolution##name(cudnnConvolutionDescriptor_t convolution, type value) {  \
    if (!convolution) return bad_param();                                                                    \
    convolution->member = value;                                                                             \
    return success();                                                                                        \
  }                                                                                                          \
  GT_EXPORT cudnnStatus_t cudnnGetConvolution##name(cudnnConvolutionDescriptor_t convolution, type* value) { \
    if (!convolution || !value) return bad_param();                                                          \
    *value = static_cast<type>(convolution->member);                                                         \
    return success();                                                                                        \
  }
GT_PROPERTY(MathType, cudnnMathType_t, math)
GT_PROPERTY(GroupCount, int, groups)
GT_PROPERTY(ReorderType, cudnnReorderType_t, reorder)
GT_EXPORT cudnnStatus_t cudnnGetConvolutionNdForwardOutputDim(cudnnConvolutionDescriptor_t convolution,
                                                              cudnnTensorDescriptor_t input,
                                                              cudnnFilterDescriptor_t filter, int count, int out[]) {
  if (!convolution || !input || !filter || !out || count != static_cast<int>(input->dims.size()) ||
      filter->dims.size() != input->dims.size())
    return bad_param();
  out[0] = input->dims[0];
  out[1] = filter->dims[0];
  for (size_t i = 2; i < input->dims.size(); ++i) {
    const size_t spatial = i - 2;
    if (spatial >= convolution->pad.size()) return bad_param();
    out[i] = 1 + (input->dims[i] + 2 * convolution->pad[spatial] -
                  ((filter->dims[i] - 1) * convolution->dilation[spatial] + 1)) /
                     convolution->stride[spatial];
  }
  return success();
}
GT_EXPORT cudnnStatus_t cudnnGetConvolution2dForwardOutputDim(cudnnConvolutionDescriptor_t convolution,
                                                              cudnnTensorDescriptor_t input,
                                                              cudnnFilterDescriptor_t filter, int* n, int* c, int* h,
                                                              int* w) {
  int out[4] = {};
  cudnnStatus_t result = cudnnGetConvolutionNdForwardOutputDim(convolution, input, filter, 4, out);
  int* const dims[] = {n, c, h, w};
  for (size_t i = 0; i < 4; ++i) put(dims[i], out[i]);
  return result;
}

// ------------------------------------------------------------------ forward
GT_EXPORT cudnnStatus_t cudnnGetConvolutionForwardAlgorithmMaxCount(cudnnHandle_t, int* count) {
  return algorithm_count(count);
}
GT_EXPORT cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(cudnnHandle_t handle, cudnnTensorDescriptor_t x,
                                                               cudnnFilterDescriptor_t w,
                                                               cudnnConvolutionDescriptor_t convolution,
                                                               cudnnTensorDescriptor_t y, const int wanted, int* count,
                                                               cudnnConvolutionFwdAlgoPerf_t* results) {
  return list_algorithms(handle, {Direction::Forward, x, w, convolution, y}, wanted, count, results);
}
GT_EXPORT cudnnStatus_t cudnnFindConvolutionForwardAlgorithm(cudnnHandle_t handle, cudnnTensorDescriptor_t x,
                                                             cudnnFilterDescriptor_t w,
                                                             cudnnConvolutionDescriptor_t convolution,
                                                             cudnnTensorDescriptor_t y, const int wanted, int* count,
                                                             cudnnConvolutionFwdAlgoPerf_t* results) {
  return list_algorithms(handle, {Direction::Forward, x, w, convolution, y}, wanted, count, results);
}
GT_EXPORT cudnnStatus_t cudnnFindConvolutionForwardAlgorithmEx(cudnnHandle_t handle, cudnnTensorDescriptor_t x,
                                                               const void*, cudnnFilterDescriptor_t w, const void*,
                                                               cudnnConvolutionDescriptor_t convolution,
                                                               cudnnTensorDescriptor_t y, void*, const int wanted,
                                                               int* count, cudnnConvolutionFwdAlgoPerf_t* results,
                                                               void*, size_t) {
  return list_algorithms(handle, {Direction::Forward, x, w, convolution, y}, wanted, count, results);
}
GT_EXPORT cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(cudnnHandle_t, cudnnTensorDescriptor_t,
                                                                cudnnFilterDescriptor_t, cudnnConvolutionDescriptor_t,
                                                                cudnnTensorDescriptor_t, cudnnConvolutionFwdAlgo_t,
                                                                size_t* bytes) {
  return no_workspace(bytes);
}
GT_EXPORT cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void*, cudnnTensorDescriptor_t x,
                                                const void*, cudnnFilterDescriptor_t w, const void*,
                                                cudnnConvolutionDescriptor_t convolution,
                                                cudnnConvolutionFwdAlgo_t algorithm, void*, size_t, const void*,
                                                cudnnTensorDescriptor_t y, void*) {
  return convolve(handle, {Direction::Forward, x, w, convolution, y}, algorithm);
}
GT_EXPORT cudnnStatus_t cudnnConvolutionBiasActivationForward(
    cudnnHandle_t handle, const void*, cudnnTensorDescriptor_t x, const void*, cudnnFilterDescriptor_t w, const void*,
    cudnnConvolutionDescriptor_t convolution, cudnnConvolutionFwdAlgo_t algorithm, void*, size_t, const void*,
    cudnnTensorDescriptor_t, const void*, cudnnTensorDescriptor_t, const void*, cudnnActivationDescriptor_t,
    cudnnTensorDescriptor_t y, void*) {
  return convolve(handle, {Direction::Forward, x, w, convolution, y}, algorithm);
}

// ------------------------------------------------------------------ the data's gradient
GT_EXPORT cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithmMaxCount(cudnnHandle_t, int* count) {
  return algorithm_count(count);
}
GT_EXPORT cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(cudnnHandle_t handle, cudnnFilterDescriptor_t w,
                                                                    cudnnTensorDescriptor_t dy,
                                                                    cudnnConvolutionDescriptor_t convolution,
                                                                    cudnnTensorDescriptor_t dx, const int wanted,
                                                                    int* count,
                                                                    cudnnConvolutionBwdDataAlgoPerf_t* results) {
  return list_algorithms(handle, {Direction::Data, dx, w, convolution, dy}, wanted, count, results);
}
GT_EXPORT cudnnStatus_t cudnnFindConvolutionBackwardDataAlgorithm(cudnnHandle_t handle, cudnnFilterDescriptor_t w,
                                                                  cudnnTensorDescriptor_t dy,
                                                                  cudnnConvolutionDescriptor_t convolution,
                                                                  cudnnTensorDescriptor_t dx, const int wanted,
                                                                  int* count,
                                                                  cudnnConvolutionBwdDataAlgoPerf_t* results) {
  return list_algorithms(handle, {Direction::Data, dx, w, convolution, dy}, wanted, count, results);
}
GT_EXPORT cudnnStatus_t cudnnFindConvolutionBackwardDataAlgorithmEx(
    cudnnHandle_t handle, cudnnFilterDescriptor_t w, const void*, cudnnTensorDescriptor_t dy, const void*,
    cudnnConvolutionDescriptor_t convolution, cudnnTensorDescriptor_t dx, void*, const int wanted, int* count,
    cudnnConvolutionBwdDataAlgoPerf_t* results, void*, size_t) {
  return list_algorithms(handle, {Direction::Data, dx, w, convolution, dy}, wanted, count, results);
}
GT_EXPORT cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(cudnnHandle_t, cudnnFilterDescriptor_t,
                                                                     cudnnTensorDescriptor_t,
                                                                     cudnnConvolutionDescriptor_t,
                                                                     cudnnTensorDescriptor_t,
                                                                     cudnnConvolutionBwdDataAlgo_t, size_t* bytes) {
  return no_workspace(bytes);
}
GT_EXPORT cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void*, cudnnFilterDescriptor_t w,
                                                     const void*, cudnnTensorDescriptor_t dy, const void*,
                                                     cudnnConvolutionDescriptor_t convolution,
                                                     cudnnConvolutionBwdDataAlgo_t algorithm, void*, size_t,
                                                     const void*, cudnnTensorDescriptor_t dx, void*) {
  return convolve(handle, {Direction::Data, dx, w, convolution, dy}, algorithm);
}

// ------------------------------------------------------------------ the filter's gradient
GT_EXPORT cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithmMaxCount(cudnnHandle_t, int* count) {
  return algorithm_count(count);
}
GT_EXPORT cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(cudnnHandle_t handle, cudnnTensorDescriptor_t x,
                                                                      cudnnTensorDescriptor_t dy,
                                                                      cudnnConvolutionDescriptor_t convolution,
                                                                      cudnnFilterDescriptor_t dw, const int wanted,
                                                                      int* count,
                                                                      cudnnConvolutionBwdFilterAlgoPerf_t* results) {
  return list_algorithms(handle, {Direction::Filter, x, dw, convolution, dy}, wanted, count, results);
}
GT_EXPORT cudnnStatus_t cudnnFindConvolutionBackwardFilterAlgorithm(cudnnHandle_t handle, cudnnTensorDescriptor_t x,
                                                                    cudnnTensorDescriptor_t dy,
                                                                    cudnnConvolutionDescriptor_t convolution,
                                                                    cudnnFilterDescriptor_t dw, const int wanted,
                                                                    int* count,
                                                                    cudnnConvolutionBwdFilterAlgoPerf_t* results) {
  return list_algorithms(handle, {Direction::Filter, x, dw, convolution, dy}, wanted, count, results);
}
GT_EXPORT cudnnStatus_t cudnnFindConvolutionBackwardFilterAlgorithmEx(
    cudnnHandle_t handle, cudnnTensorDescriptor_t x, const void*, cudnnTensorDescriptor_t dy, const void*,
    cudnnConvolutionDescriptor_t convolution, cudnnFilterDescriptor_t dw, void*, const int wanted, int* count,
    cudnnConvolutionBwdFilterAlgoPerf_t* results, void*, size_t) {
  return list_algorithms(handle, {Direction::Filter, x, dw, convolution, dy}, wanted, count, results);
}
GT_EXPORT cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(cudnnHandle_t, cudnnTensorDescriptor_t,
                                                                       cudnnTensorDescriptor_t,
                                                                       cudnnConvolutionDescriptor_t,
                                                                       cudnnFilterDescriptor_t,
                                                                       cudnnConvolutionBwdFilterAlgo_t, size_t* bytes) {
  return no_workspace(bytes);
}
GT_EXPORT cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void*, cudnnTensorDescriptor_t x,
                                                       const void*, cudnnTensorDescriptor_t dy, const void*,
                                                       cudnnConvolutionDescriptor_t convolution,
                                                       cudnnConvolutionBwdFilterAlgo_t algorithm, void*, size_t,
                                                       const void*, cudnnFilterDescriptor_t dw, void*) {
  return convolve(handle, {Direction::Filter, x, dw, convolution, dy}, algorithm);
}
GT_EXPORT cudnnStatus_t cudnnConvolutionBackwardBias(cudnnHandle_t handle, const void*, cudnnTensorDescriptor_t dy,
                                                     const void*, const void*, cudnnTensorDescriptor_t, void*) {
  return dy ? launch_over(handle, kBiasGradient, dy->elements()) : bad_param();
}
