#include "simgpu/libs/cudnn/graph.h"

#include <algorithm>

#include "simgpu/libs/cudnn/moving_kernels.h"

namespace simlibs {
namespace {

Dims dims_of(const StatePointer& tensor, int attribute = CUDNN_ATTR_TENSOR_DIMENSIONS) {
  const State::Attribute* found = tensor ? tensor->find(attribute) : nullptr;
  Dims dims;
  if (!found) return dims;
  dims.resize(found->bytes.size() / sizeof(int64_t));
  for (size_t i = 0; i < dims.size(); ++i) {
    int64_t value = 0;
    std::memcpy(&value, found->bytes.data() + i * sizeof value, sizeof value);
    dims[i] = value;
  }
  return dims;
}

int type_of(const StatePointer& tensor) {
  return tensor ? tensor->value<int>(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_DATA_FLOAT) : -1;
}

long long elements_of(const StatePointer& tensor) {
  long long product = 1;
  for (const long long dim : dims_of(tensor)) product *= dim;
  return product;
}

struct ConvolutionAttributes {
  Direction direction;
  int input, filter, output;
};
const ConvolutionAttributes* convolution_of(int type) {
  static constexpr ConvolutionAttributes kForward = {Direction::Forward, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                                                     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                                                     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y};
  static constexpr ConvolutionAttributes kData = {Direction::Data, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                                                  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                                                  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY};
  static constexpr ConvolutionAttributes kFilter = {Direction::Filter, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                                                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                                                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY};
  switch (type) {
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
      return &kForward;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
      return &kData;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
      return &kFilter;
    default:
      return nullptr;
  }
}

bool add_convolution(const State& operation, const ConvolutionAttributes& attributes, Work& work) {
  const StatePointer input = operation.state(attributes.input);
  ImplicitProduct product;
  if (!implicit_product(attributes.direction, dims_of(input), dims_of(operation.state(attributes.filter)),
                        dims_of(operation.state(attributes.output)), product))
    return false;
  // A gradient's own type may be wider than what is multiplied: the other operand says it.
  product.type =
      type_of(operation.state(attributes.direction == Direction::Forward ? attributes.input : attributes.output));
  const Dims strides = dims_of(input, CUDNN_ATTR_TENSOR_STRIDES);
  product.channels_last = strides.size() > 1 && strides[1] == 1;
  work.products.push_back(product);
  return true;
}

// Batches of products: the last two dimensions are the matrix.
bool add_product(const State& operation, Work& work) {
  const StatePointer left = operation.state(CUDNN_ATTR_OPERATION_MATMUL_ADESC);
  const Dims a = dims_of(left), b = dims_of(operation.state(CUDNN_ATTR_OPERATION_MATMUL_BDESC)),
             c = dims_of(operation.state(CUDNN_ATTR_OPERATION_MATMUL_CDESC));
  if (a.size() < 2 || b.size() != a.size() || c.size() != a.size()) return false;
  ImplicitProduct product;
  product.type = type_of(left);
  product.m = c[c.size() - 2];
  product.n = c[c.size() - 1];
  product.k = a[a.size() - 1];
  for (size_t i = 0; i + 2 < c.size(); ++i) product.groups *= c[i];
  work.products.push_back(product);
  return true;
}

// Attention as one operation: batch, heads, length, size of a head.
bool add_attention(const State& operation, Work& work) {
  const bool forward = operation.type == CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR;
  const StatePointer queries =
      operation.state(forward ? CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC : CUDNN_ATTR_OPERATION_SDPA_BWD_QDESC);
  const Dims q = dims_of(queries), k = dims_of(operation.state(forward ? CUDNN_ATTR_OPERATION_SDPA_FWD_KDESC
                                                                       : CUDNN_ATTR_OPERATION_SDPA_BWD_KDESC));
  if (q.size() != 4 || k.size() != 4) return false;
  ImplicitProduct product;
  product.direction = forward ? Direction::AttentionForward : Direction::AttentionBackward;
  product.type = type_of(queries);
  product.m = q[2];
  product.n = k[2];
  product.k = q[3];
  product.groups = q[0] * q[1];
  work.products.push_back(product);
  return true;
}

// Two products with a softmax between them are attention, five its gradient; the first product is queries by keys.
void fuse_attention(Work& work) {
  if (work.products.size() != 2 && work.products.size() != 5) return;
  ImplicitProduct fused = work.products.front();
  fused.direction = work.products.size() == 2 ? Direction::AttentionForward : Direction::AttentionBackward;
  work.products = {fused};
}

// What a graph without products is mostly about: a tensor that says how large it is, and the kernel.
struct Fused {
  int operation, tensor;
  const char* kernel;
};
constexpr Fused kFused[] = {
    {CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR, CUDNN_ATTR_OPERATION_NORM_FWD_XDESC, kNorm},
    {CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR, CUDNN_ATTR_OPERATION_NORM_BWD_XDESC, kNorm},
    {CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_XDESC, kPoolingForward},
    {CUDNN_BACKEND_OPERATION_RESAMPLE_BWD_DESCRIPTOR, CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DXDESC, kPoolingBackward},
    {CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, kReduce},
    {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, kPointwise},
};

bool add_elements(const std::vector<StatePointer>& operations, Work& work) {
  for (const Fused& fused : kFused) {
    for (const StatePointer& operation : operations) {
      if (operation->type != fused.operation) continue;
      work.kernel = fused.kernel;
      work.elements = std::max(work.elements, elements_of(operation->state(fused.tensor)));
    }
    if (work.kernel) return true;
  }
  return false;
}

}  // namespace

std::shared_ptr<const Work> work_of(const State& graph) {
  const State::Attribute* operations = graph.find(CUDNN_ATTR_OPERATIONGRAPH_OPS);
  if (!operations) return nullptr;
  auto work = std::make_shared<Work>();
  size_t products = 0;
  for (const StatePointer& operation : operations->states) {
    const ConvolutionAttributes* convolution = convolution_of(operation->type);
    if (convolution && !add_convolution(*operation, *convolution, *work)) return nullptr;
    const bool attention = operation->type == CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR ||
                           operation->type == CUDNN_BACKEND_OPERATION_SDPA_BWD_DESCRIPTOR;
    if (attention && !add_attention(*operation, *work)) return nullptr;
    if (operation->type == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR) {
      if (!add_product(*operation, *work)) return nullptr;
      ++products;
    }
  }
  if (products > 0 && products == work->products.size()) fuse_attention(*work);
  if (work->products.empty() && !add_elements(operations->states, *work)) return nullptr;
  for (const ImplicitProduct& product : work->products) {
    if (kernels_for(product).empty()) return nullptr;
  }
  return work;
}

int engines_of(const Work& work) {
  return work.products.empty() ? 1 : static_cast<int>(kernels_for(work.products.front()).size());
}

bool uses_tensor_cores(const Work& work, int engine) {
  if (work.products.empty()) return false;
  const auto kernels = kernels_for(work.products.front());
  return kernels[static_cast<size_t>(engine) % kernels.size()]->tensor_cores();
}

cudnnStatus_t execute(cudnnHandle_t handle, const Work& work, int engine) {
  if (work.products.empty()) return launch_over(handle, work.kernel, work.elements);
  for (const ImplicitProduct& product : work.products) {
    const auto kernels = kernels_for(product);
    if (kernels.empty()) return not_supported();
    const cudnnStatus_t done = launch_product(handle, product, *kernels[static_cast<size_t>(engine) % kernels.size()]);
    if (done != CUDNN_STATUS_SUCCESS) return done;
  }
  return success();
}

}  // namespace simlibs
