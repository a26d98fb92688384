// Recurrent networks, with the interface of version 8.
#include "simgpu/libs/cudnn/rnn.h"

#include "simgpu/libs/cudnn/moving_kernels.h"

namespace simlibs {
namespace {

// Layer by layer, the gates of the input, those of the recurrence, the projection; then all biases, in the same order.
long long matrix_elements(const cudnnRNNStruct& rnn, int pseudo_layer) {
  const long long hidden = rnn.hidden,
                  projection = rnn.projection > 0 && rnn.projection < rnn.hidden ? rnn.projection : 0;
  return rnn.gates() * hidden * (rnn.inputs(pseudo_layer) + rnn.output()) + projection * hidden;
}
long long matrices_before(const cudnnRNNStruct& rnn, int pseudo_layer) {
  long long sum = 0;
  for (int i = 0; i < pseudo_layer; ++i) sum += matrix_elements(rnn, i);
  return sum;
}

cudnnStatus_t launch_product_of(cudnnHandle_t handle, Direction direction, const cudnnRNNStruct& rnn, long long m,
                                long long n, long long k) {
  ImplicitProduct product;
  product.direction = direction;
  product.type = rnn.type;
  product.m = m;
  product.n = n;
  product.k = k;
  auto kernels = kernels_for(product);
  if (rnn.type == CUDNN_DATA_FLOAT && (rnn.math == CUDNN_FMA_MATH || rnn.math == CUDNN_DEFAULT_MATH))
    std::erase_if(kernels, [](const ConvKernel* kernel) { return kernel->tensor_cores(); });
  return kernels.empty() ? not_supported() : launch_product(handle, product, *kernels.front());
}

const char* cell_kernel(const cudnnRNNStruct& rnn, bool forward) {
  if (rnn.cell == 3) return forward ? kGruForward : kGruBackward;
  return forward ? kLstmForward : kLstmBackward;
}

}  // namespace

long long weight_elements(const cudnnRNNStruct& rnn) {
  return matrices_before(rnn, rnn.pseudo_layers()) +
         static_cast<long long>(rnn.pseudo_layers()) * rnn.biases() * rnn.gates() * rnn.hidden;
}

WeightPart weight_matrix(const cudnnRNNStruct& rnn, int pseudo_layer, int id) {
  const long long hidden = rnn.hidden, inputs = rnn.inputs(pseudo_layer), recurrent = rnn.output();
  const int gates = rnn.gates();
  WeightPart part{matrices_before(rnn, pseudo_layer), hidden, inputs};
  if (id < gates) {
    part.offset += id * hidden * inputs;
  } else if (id < 2 * gates) {
    part.offset += gates * hidden * inputs + (id - gates) * hidden * recurrent;
    part.columns = recurrent;
  } else if (id == 2 * gates && rnn.projection > 0 && rnn.projection < rnn.hidden) {
    part = {part.offset + gates * hidden * (inputs + recurrent), recurrent, hidden};
  } else {
    part.rows = 0;
  }
  return part;
}

WeightPart weight_bias(const cudnnRNNStruct& rnn, int pseudo_layer, int id) {
  const int gates = rnn.gates();
  const bool recurrent = id >= gates;
  if (id >= 2 * gates || rnn.bias == 0 || (rnn.bias == 1 && recurrent) || (rnn.bias == 3 && !recurrent)) return {};
  const int before = pseudo_layer * rnn.biases() * gates + (rnn.bias == 3 ? id - gates : id);
  return {matrices_before(rnn, rnn.pseudo_layers()) + static_cast<long long>(before) * rnn.hidden, rnn.hidden, 1};
}

void* address_of(const WeightPart& part, int type, const void* weights) {
  if (part.rows <= 0) return nullptr;
  return const_cast<char*>(static_cast<const char*>(weights)) + static_cast<size_t>(part.offset) * element_bytes(type);
}

cudnnStatus_t run_layers(cudnnHandle_t handle, const cudnnRNNStruct& rnn, long long positions, long long batch,
                         bool forward) {
  if (!handle) return status(CUDNN_STATUS_NOT_INITIALIZED);
  const OnDevice on_device(handle->device);
  const long long gates = static_cast<long long>(rnn.gates()) * rnn.hidden;
  for (int layer = 0; layer < rnn.pseudo_layers(); ++layer) {
    cudnnStatus_t done = launch_product_of(handle, Direction::Input, rnn, positions, gates, rnn.inputs(layer));
    if (done == CUDNN_STATUS_SUCCESS)
      done = launch_product_of(handle, Direction::Recurrence, rnn, batch, gates, rnn.output());
    if (done == CUDNN_STATUS_SUCCESS) done = launch_over(handle, cell_kernel(rnn, forward), positions * rnn.hidden);
    if (done != CUDNN_STATUS_SUCCESS) return done;
  }
  return success();
}

cudnnStatus_t run_weight_gradients(cudnnHandle_t handle, const cudnnRNNStruct& rnn, long long positions) {
  if (!handle) return status(CUDNN_STATUS_NOT_INITIALIZED);
  const OnDevice on_device(handle->device);
  const long long gates = static_cast<long long>(rnn.gates()) * rnn.hidden;
  for (int layer = 0; layer < rnn.pseudo_layers(); ++layer) {
    cudnnStatus_t done =
        launch_product_of(handle, Direction::Input, rnn, gates, rnn.inputs(layer) + rnn.output(), positions);
    if (done != CUDNN_STATUS_SUCCESS) return done;
  }
  return success();
}

}  // namespace simlibs

using namespace simlibs;

namespace {

void describe(const WeightPart& part, int type, const void* weights, cudnnTensorDescriptor_t tensor, void** address) {
  if (tensor && part.rows > 0) {
    tensor->type = type;
    tensor->dims = {1, static_cast<int>(part.rows), static_cast<int>(part.columns)};
    tensor->strides = {static_cast<int>(part.rows * part.columns), static_cast<int>(part.columns), 1};
  }
  if (address) *address = address_of(part, type, weights);
}

cudnnStatus_t run(cudnnHandle_t handle, const cudnnRNNStruct* rnn, const cudnnRNNDataStruct* x, bool forward) {
  if (!rnn || !x || x->width != rnn->input) return bad_param();
  return run_layers(handle, *rnn, x->positions(), x->batch, forward);
}

}  // namespace

GT_EXPORT cudnnStatus_t cudnnCreateRNNDescriptor(cudnnRNNDescriptor_t* made) { return create(made); }
GT_EXPORT cudnnStatus_t cudnnDestroyRNNDescriptor(cudnnRNNDescriptor_t made) { return destroy(made); }
GT_EXPORT cudnnStatus_t cudnnCreateRNNDataDescriptor(cudnnRNNDataDescriptor_t* made) { return create(made); }
GT_EXPORT cudnnStatus_t cudnnDestroyRNNDataDescriptor(cudnnRNNDataDescriptor_t made) { return destroy(made); }

GT_EXPORT cudnnStatus_t cudnnSetRNNDescriptor_v8(cudnnRNNDescriptor_t rnn, cudnnRNNAlgo_t algorithm,
                                                 cudnnRNNMode_t cell, cudnnRNNBiasMode_t biases,
                                                 cudnnDirectionMode_t direction, cudnnRNNInputMode_t input_mode,
                                                 cudnnDataType_t type, cudnnDataType_t precision, cudnnMathType_t math,
                                                 int32_t input, int32_t hidden, int32_t projection, int32_t layers,
                                                 cudnnDropoutDescriptor_t dropout, uint32_t flags) {
  if (!rnn || input < 1 || hidden < 1 || projection < 0 || projection > hidden || layers < 1) return bad_param();
  *rnn = {static_cast<int>(algorithm),
          static_cast<int>(cell),
          static_cast<int>(biases),
          static_cast<int>(direction),
          static_cast<int>(input_mode),
          static_cast<int>(type),
          static_cast<int>(precision),
          static_cast<int>(math),
          input,
          hidden,
          projection,
          layers,
          dropout,
          flags};
  return success();
}
GT_EXPORT cudnnStatus_t cudnnSetRNNDataDescriptor(cudnnRNNDataDescriptor_t data, cudnnDataType_t type,
                                                  cudnnRNNDataLayout_t layout, int steps, int batch, int width,
                                                  const int lengths[], void*) {
  if (!data || !lengths || steps < 1 || batch < 1 || width < 1) return bad_param();
  *data = {static_cast<int>(type), static_cast<int>(layout), steps, batch, width, {lengths, lengths + batch}};
  return success();
}
GT_EXPORT cudnnStatus_t cudnnGetRNNWeightSpaceSize(cudnnHandle_t, cudnnRNNDescriptor_t rnn, size_t* bytes) {
  if (!rnn || !bytes) return bad_param();
  *bytes = static_cast<size_t>(weight_elements(*rnn)) * element_bytes(rnn->type);
  return success();
}
GT_EXPORT cudnnStatus_t cudnnGetRNNWeightParams(cudnnHandle_t, cudnnRNNDescriptor_t rnn, int32_t pseudo_layer,
                                                size_t bytes, const void* weights, int32_t id,
                                                cudnnTensorDescriptor_t matrix_tensor, void** matrix_address,
                                                cudnnTensorDescriptor_t bias_tensor, void** bias_address) {
  if (!rnn || pseudo_layer < 0 || pseudo_layer >= rnn->pseudo_layers() || id < 0 ||
      bytes < static_cast<size_t>(weight_elements(*rnn)) * element_bytes(rnn->type))
    return bad_param();
  describe(weight_matrix(*rnn, pseudo_layer, id), rnn->type, weights, matrix_tensor, matrix_address);
  describe(weight_bias(*rnn, pseudo_layer, id), rnn->type, weights, bias_tensor, bias_address);
  return success();
}
GT_EXPORT cudnnStatus_t cudnnGetRNNTempSpaceSizes(cudnnHandle_t, cudnnRNNDescriptor_t rnn, cudnnForwardMode_t mode,
                                                  cudnnRNNDataDescriptor_t x, size_t* workspace, size_t* reserve) {
  if (!rnn || !x) return bad_param();
  const size_t layer = static_cast<size_t>(x->steps) * static_cast<size_t>(x->batch) *
                       static_cast<size_t>(rnn->gates() * rnn->hidden) * element_bytes(rnn->type);
  put(workspace, layer);
  put(reserve, mode == 0 ? 0 : layer * static_cast<size_t>(rnn->pseudo_layers()));  // 0: inference
  return success();
}
GT_EXPORT cudnnStatus_t cudnnRNNForward(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, cudnnForwardMode_t,
                                        const int32_t[], cudnnRNNDataDescriptor_t x, const void*,
                                        cudnnRNNDataDescriptor_t, void*, cudnnTensorDescriptor_t, const void*, void*,
                                        cudnnTensorDescriptor_t, const void*, void*, size_t, const void*, size_t, void*,
                                        size_t, void*) {
  return run(handle, rnn, x, true);
}
GT_EXPORT cudnnStatus_t cudnnRNNBackwardData_v8(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, const int32_t[],
                                                cudnnRNNDataDescriptor_t, const void*, const void*,
                                                cudnnRNNDataDescriptor_t x, void*, cudnnTensorDescriptor_t, const void*,
                                                const void*, void*, cudnnTensorDescriptor_t, const void*, const void*,
                                                void*, size_t, const void*, size_t, void*, size_t, void*) {
  return run(handle, rnn, x, false);
}
GT_EXPORT cudnnStatus_t cudnnRNNBackwardWeights_v8(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, cudnnWgradMode_t,
                                                   const int32_t[], cudnnRNNDataDescriptor_t x, const void*,
                                                   cudnnTensorDescriptor_t, const void*, cudnnRNNDataDescriptor_t,
                                                   const void*, size_t, void*, size_t, void*, size_t, void*) {
  return rnn && x ? run_weight_gradients(handle, *rnn, x->positions()) : bad_param();
}
