#include "simgpu/libs/cudnn/descriptors.h"

using namespace simlibs;

namespace simlibs {

size_t element_bytes(int type) {
  switch (type) {
    case CUDNN_DATA_DOUBLE:
    case CUDNN_DATA_INT64:
      return 8;
    case CUDNN_DATA_HALF:
    case CUDNN_DATA_BFLOAT16:
      return 2;
    case CUDNN_DATA_INT8:
    case CUDNN_DATA_UINT8:
    case CUDNN_DATA_BOOLEAN:
    case CUDNN_DATA_FP8_E4M3:
    case CUDNN_DATA_FP8_E5M2:
      return 1;
    default:
      return 4;
  }
}

}  // namespace simlibs

namespace {

bool are_positive(int count, const int* values) {
  for (int i = 0; i < count; ++i) {
    if (values[i] < 1) return false;
  }
  return true;
}

std::vector<int> packed(int format, const std::vector<int>& dims) {
  std::vector<int> strides(dims.size(), 1);
  const size_t count = dims.size();
  if (format == CUDNN_TENSOR_NHWC && count > 2) {
    int step = dims[1];
    for (size_t i = count; i-- > 2;) strides[i] = step, step *= dims[i];
    strides[0] = step;
  } else {
    for (size_t i = count; i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  }
  return strides;
}

cudnnStatus_t set_tensor(cudnnTensorDescriptor_t tensor, int type, const std::vector<int>& dims,
                         const std::vector<int>& strides) {
  if (!tensor || dims.empty() || dims.size() > CUDNN_DIM_MAX ||
      !are_positive(static_cast<int>(dims.size()), dims.data()))
    return bad_param();
  tensor->type = type;
  tensor->dims = dims;
  tensor->strides = strides;
  return success();
}
int at(const std::vector<int>& values, size_t i) { return i < values.size() ? values[i] : 1; }

}  // namespace

#define GT_LIFE(name, handle)                                                      \
  GT_EXPORT cudnnStatus_t cudnnCreate##name(handle* made) { return create(made); } \
  GT_EXPORT cudnnStatus_t cudnnDestroy##name(handle made) { return destroy(made); }
GT_LIFE(TensorDescriptor, cudnnTensorDescriptor_t)
GT_LIFE(FilterDescriptor, cudnnFilterDescriptor_t)
GT_LIFE(ConvolutionDescriptor, cudnnConvolutionDescriptor_t)
GT_LIFE(PoolingDescriptor, cudnnPoolingDescriptor_t)
GT_LIFE(ActivationDescriptor, cudnnActivationDescriptor_t)
GT_LIFE(DropoutDescriptor, cudnnDropoutDescriptor_t)
GT_LIFE(OpTensorDescriptor, cudnnOpTensorDescriptor_t)
GT_LIFE(ReduceTensorDescriptor, cudnnReduceTensorDescriptor_t)
GT_LIFE(LRNDescriptor, cudnnLRNDescriptor_t)
GT_LIFE(SpatialTransformerDescriptor, cudnnSpatialTransformerDescriptor_t)

// ------------------------------------------------------------------ tensors
GT_EXPORT cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t tensor, cudnnDataType_t type, int count,
                                                   const int dims[], const int strides[]) {
  if (!dims || !strides || count < 1 || count > CUDNN_DIM_MAX) return bad_param();
  return set_tensor(tensor, type, {dims, dims + count}, {strides, strides + count});
}
GT_EXPORT cudnnStatus_t cudnnSetTensorNdDescriptorEx(cudnnTensorDescriptor_t tensor, cudnnTensorFormat_t format,
                                                     cudnnDataType_t type, int count, const int dims[]) {
  if (!dims || count < 1 || count > CUDNN_DIM_MAX) return bad_param();
  return set_tensor(tensor, type, {dims, dims + count}, packed(format, {dims, dims + count}));
}
GT_EXPORT cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t tensor, cudnnTensorFormat_t format,
                                                   cudnnDataType_t type, int n, int c, int h, int w) {
  return set_tensor(tensor, type, {n, c, h, w}, packed(format, {n, c, h, w}));
}
GT_EXPORT cudnnStatus_t cudnnSetTensor4dDescriptorEx(cudnnTensorDescriptor_t tensor, cudnnDataType_t type, int n, int c,
                                                     int h, int w, int n_stride, int c_stride, int h_stride,
                                                     int w_stride) {
  return set_tensor(tensor, type, {n, c, h, w}, {n_stride, c_stride, h_stride, w_stride});
}
GT_EXPORT cudnnStatus_t cudnnGetTensorNdDescriptor(cudnnTensorDescriptor_t tensor, int room, cudnnDataType_t* type,
                                                   int* count, int dims[], int strides[]) {
  if (!tensor) return bad_param();
  put(type, tensor->type);
  put(count, tensor->dims.size());
  put_array(tensor->dims, room, dims);
  put_array(tensor->strides, room, strides);
  return success();
}
GT_EXPORT cudnnStatus_t cudnnGetTensor4dDescriptor(cudnnTensorDescriptor_t tensor, cudnnDataType_t* type, int* n,
                                                   int* c, int* h, int* w, int* n_stride, int* c_stride, int* h_stride,
                                                   int* w_stride) {
  if (!tensor) return bad_param();
  put(type, tensor->type);
  int* const dims[] = {n, c, h, w};
  int* const strides[] = {n_stride, c_stride, h_stride, w_stride};
  for (size_t i = 0; i < 4; ++i) {
    put(dims[i], at(tensor->dims, i));
    put(strides[i], at(tensor->strides, i));
  }
  return success();
}
GT_EXPORT cudnnStatus_t cudnnGetTensorSizeInBytes(cudnnTensorDescriptor_t tensor, size_t* bytes) {
  if (!tensor || !bytes) return bad_param();
  long long last = 0;
  for (size_t i = 0; i < tensor->dims.size(); ++i)
    last += static_cast<long long>(tensor->dims[i] - 1) * tensor->strides[i];
  *bytes = static_cast<size_t>(last + 1) * element_bytes(tensor->type);
  return success();
}

// ------------------------------------------------------------------ filters
GT_EXPORT cudnnStatus_t cudnnSetFilterNdDescriptor(cudnnFilterDescriptor_t filter, cudnnDataType_t type,
                                                   cudnnTensorFormat_t format, int count, const int dims[]) {
  if (!filter || !dims || count < 3 || count > CUDNN_DIM_MAX || !are_positive(count, dims)) return bad_param();
  filter->type = type;
  filter->format = format;
  filter->dims.assign(dims, dims + count);
  return success();
}
GT_EXPORT cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t filter, cudnnDataType_t type,
                                                   cudnnTensorFormat_t format, int k, int c, int h, int w) {
  const int dims[] = {k, c, h, w};
  return cudnnSetFilterNdDescriptor(filter, type, format, 4, dims);
}
GT_EXPORT cudnnStatus_t cudnnGetFilterNdDescriptor(cudnnFilterDescriptor_t filter, int room, cudnnDataType_t* type,
                                                   cudnnTensorFormat_t* format, int* count, int dims[]) {
  if (!filter) return bad_param();
  put(type, filter->type);
  put(format, filter->format);
  put(count, filter->dims.size());
  put_array(filter->dims, room, dims);
  return success();
}
GT_EXPORT cudnnStatus_t cudnnGetFilter4dDescriptor(cudnnFilterDescriptor_t filter, cudnnDataType_t* type,
                                                   cudnnTensorFormat_t* format, int* k, int* c, int* h, int* w) {
  if (!filter) return bad_param();
  put(type, filter->type);
  put(format, filter->format);
  int* const dims[] = {k, c, h, w};
  for (size_t i = 0; i < 4; ++i) put(dims[i], at(filter->dims, i));
  return success();
}
GT_EXPORT cudnnStatus_t cudnnGetFilterSizeInBytes(cudnnFilterDescriptor_t filter, size_t* bytes) {
  if (!filter || !bytes) return bad_param();
  *bytes = element_bytes(filter->type);
  for (const int dim : filter->dims) *bytes *= static_cast<size_t>(dim);
  return success();
}

// ------------------------------------------------------------------ pooling, activation, dropout and the like
GT_EXPORT cudnnStatus_t cudnnSetPoolingNdDescriptor(cudnnPoolingDescriptor_t pooling, cudnnPoolingMode_t mode,
                                                    cudnnNanPropagation_t nans, int count, const int window[],
                                                    const int pad[], const int stride[]) {
  if (!pooling || !window || !pad || !stride || count < 1 || count > CUDNN_DIM_MAX) return bad_param();
  pooling->mode = mode;
  pooling->nans = nans;
  pooling->window.assign(window, window + count);
  pooling->pad.assign(pad, pad + count);
  pooling->stride.assign(stride, stride + count);
  return success();
}
GT_EXPORT cudnnStatus_t cudnnSetPooling2dDescriptor(cudnnPoolingDescriptor_t pooling, cudnnPoolingMode_t mode,
                                                    cudnnNanPropagation_t nans, int height, int width, int pad_h,
                                                    int pad_w, int stride_h, int stride_w) {
  const int window[] = {height, width}, pad[] = {pad_h, pad_w}, stride[] = {stride_h, stride_w};
  return cudnnSetPoolingNdDescriptor(pooling, mode, nans, 2, window, pad, stride);
}
GT_EXPORT cudnnStatus_t cudnnGetPoolingNdDescriptor(cudnnPoolingDescriptor_t pooling, int room,
                                                    cudnnPoolingMode_t* mode, cudnnNanPropagation_t* nans, int* count,
                                                    int window[], int pad[], int stride[]) {
  if (!pooling) return bad_param();
  put(mode, pooling->mode);
  put(nans, pooling->nans);
  put(count, pooling->window.size());
  put_array(pooling->window, room, window);
  put_array(pooling->pad, room, pad);
  put_array(pooling->stride, room, stride);
  return success();
}
GT_EXPORT cudnnStatus_t cudnnGetPoolingNdForwardOutputDim(cudnnPoolingDescriptor_t pooling,
                                                          cudnnTensorDescriptor_t input, int count, int out[]) {
  if (!pooling || !input || !out || count != static_cast<int>(input->dims.size())) return bad_param();
  for (size_t i = 0; i < input->dims.size(); ++i) {
    const size_t spatial = i - 2;
    out[i] =
        i < 2 || spatial >= pooling->window.size()
            ? input->dims[i]
            : 1 + (input->dims[i] + 2 * pooling->pad[spatial] - pooling->window[spatial]) / pooling->stride[spatial];
  }
  return success();
}
GT_EXPORT cudnnStatus_t cudnnSetActivationDescriptor(cudnnActivationDescriptor_t activation, cudnnActivationMode_t mode,
                                                     cudnnNanPropagation_t nans, double coefficient) {
  if (!activation) return bad_param();
  activation->mode = mode;
  activation->nans = nans;
  activation->coefficient = coefficient;
  return success();
}
GT_EXPORT cudnnStatus_t cudnnGetActivationDescriptor(cudnnActivationDescriptor_t activation,
                                                     cudnnActivationMode_t* mode, cudnnNanPropagation_t* nans,
                                                     double* coefficient) {
  if (!activation) return bad_param();
  put(mode, activation->mode);
  put(nans, activation->nans);
  put(coefficient, activation->coefficient);
  return success();
}
GT_EXPORT cudnnStatus_t cudnnSetOpTensorDescriptor(cudnnOpTensorDescriptor_t op, cudnnOpTensorOp_t operation,
                                                   cudnnDataType_t compute, cudnnNanPropagation_t nans) {
  if (!op) return bad_param();
  *op = {static_cast<int>(operation), static_cast<int>(compute), static_cast<int>(nans)};
  return success();
}
GT_EXPORT cudnnStatus_t cudnnSetReduceTensorDescriptor(cudnnReduceTensorDescriptor_t reduce,
                                                       cudnnReduceTensorOp_t operation, cudnnDataType_t compute,
                                                       cudnnNanPropagation_t nans, cudnnReduceTensorIndices_t indices,
                                                       cudnnIndicesType_t type) {
  if (!reduce) return bad_param();
  *reduce = {static_cast<int>(operation), static_cast<int>(compute), static_cast<int>(nans), static_cast<int>(indices),
             static_cast<int>(type)};
  return success();
}
GT_EXPORT cudnnStatus_t cudnnSetLRNDescriptor(cudnnLRNDescriptor_t norm, unsigned n, double alpha, double beta,
                                              double k) {
  if (!norm || n < 1 || n > 16) return bad_param();
  *norm = {n, alpha, beta, k};
  return success();
}
GT_EXPORT cudnnStatus_t cudnnSetSpatialTransformerNdDescriptor(cudnnSpatialTransformerDescriptor_t transformer,
                                                               cudnnSamplerType_t, cudnnDataType_t, const int count,
                                                               const int dims[]) {
  if (!transformer || !dims || count < 1 || count > CUDNN_DIM_MAX) return bad_param();
  transformer->dims.assign(dims, dims + count);
  return success();
}
GT_EXPORT cudnnStatus_t cudnnGetDropoutDescriptor(cudnnDropoutDescriptor_t dropout, cudnnHandle_t, float* rate,
                                                  void** states, unsigned long long* seed) {
  if (!dropout) return bad_param();
  put(rate, dropout->rate);
  put(states, dropout->states);
  put(seed, dropout->seed);
  return success();
}
