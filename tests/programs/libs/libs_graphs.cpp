// Graphs of cuDNN's backend interface, built as front ends build them: through heuristics or by the number of an engine, with every
// descriptor but the plan's destroyed before it is executed, and addresses used again.
#include <cudaProfiler.h>
#include <cudnn.h>

#include <thread>
#include <vector>

#include "tests/programs/libs/libs_check.h"

namespace {

class Node {
 public:
  explicit Node(cudnnBackendDescriptorType_t type) { MUST(cudnnBackendCreateDescriptor(type, &descriptor_)); }
  ~Node() { cudnnBackendDestroyDescriptor(descriptor_); }
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  template <typename T>
  Node& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const std::vector<T>& values) {
    MUST(cudnnBackendSetAttribute(descriptor_, name, type, static_cast<int64_t>(values.size()), values.data()));
    return *this;
  }
  Node& set(cudnnBackendAttributeName_t name, const Node& other) {
    return set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, std::vector<cudnnBackendDescriptor_t>{other.descriptor_});
  }
  Node& done() {
    MUST(cudnnBackendFinalize(descriptor_));
    return *this;
  }
  cudnnBackendDescriptor_t get() const { return descriptor_; }

 private:
  cudnnBackendDescriptor_t descriptor_ = nullptr;
};

class Tensor : public Node {
 public:
  Tensor(cudnnDataType_t type, const std::vector<int64_t>& dims, bool channels_last = false)
      : Node(CUDNN_BACKEND_TENSOR_DESCRIPTOR) {
    static int64_t id = 0;
    std::vector<int64_t> strides(dims.size(), 1);
    for (size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
    if (channels_last) strides = {dims[1] * dims[2] * dims[3], 1, dims[1] * dims[3], dims[1]};
    set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, std::vector<cudnnDataType_t>{type});
    set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, dims);
    set(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, strides);
    set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, std::vector<int64_t>{++id});
    set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, std::vector<int64_t>{16});
    done();
  }
};

class Convolution : public Node {
 public:
  Convolution() : Node(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR) {
    set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, std::vector<cudnnDataType_t>{CUDNN_DATA_FLOAT});
    set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE,
        std::vector<cudnnConvolutionMode_t>{CUDNN_CROSS_CORRELATION});
    set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, std::vector<int64_t>{2});
    set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, std::vector<int64_t>{2, 2});
    set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, std::vector<int64_t>{1, 1});
    set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, std::vector<int64_t>{1, 1});
    set(CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, std::vector<int64_t>{1, 1});
    done();
  }
};

struct Relu {
  Node mode{CUDNN_BACKEND_POINTWISE_DESCRIPTOR}, operation{CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR};
  Relu(const Node& x, const Node& y) {
    mode.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE,
             std::vector<cudnnPointwiseMode_t>{CUDNN_POINTWISE_RELU_FWD});
    mode.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, std::vector<cudnnDataType_t>{CUDNN_DATA_FLOAT})
        .done();
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, mode).set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y).done();
  }
};
struct Product {
  Node math{CUDNN_BACKEND_MATMUL_DESCRIPTOR}, operation{CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR};
  Product(const Node& a, const Node& b, const Node& c) {
    math.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, std::vector<cudnnDataType_t>{CUDNN_DATA_FLOAT}).done();
    operation.set(CUDNN_ATTR_OPERATION_MATMUL_DESC, math).set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, a);
    operation.set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, b).set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, c).done();
  }
};

enum class Way { Heuristics, EngineNumber };

// The plan outlives all that it was made of.
cudnnBackendDescriptor_t plan_of(cudnnHandle_t handle, const std::vector<const Node*>& operations, Way way) {
  Node graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  std::vector<cudnnBackendDescriptor_t> listed;
  listed.reserve(operations.size());
  for (const Node* operation : operations) listed.push_back(operation->get());
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, std::vector<cudnnHandle_t>{handle});
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, listed).done();
  Node configuration(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR), engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  if (way == Way::Heuristics) {
    Node heuristic(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    heuristic.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
    heuristic
        .set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, std::vector<cudnnBackendHeurMode_t>{CUDNN_HEUR_MODE_A})
        .done();
    int64_t count = 0;
    cudnnBackendDescriptor_t results[] = {configuration.get()};
    MUST(cudnnBackendGetAttribute(heuristic.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0,
                                  &count, nullptr));
    MUST(count < 1);
    MUST(cudnnBackendGetAttribute(heuristic.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                                  &count, results));
    MUST(count != 1);
  } else {
    engine.set(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph);
    engine.set(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, std::vector<int64_t>{0}).done();
    configuration.set(CUDNN_ATTR_ENGINECFG_ENGINE, engine).done();
  }
  cudnnBackendDescriptor_t plan = nullptr, chosen = configuration.get();
  MUST(cudnnBackendCreateDescriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, &plan));
  MUST(cudnnBackendSetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle));
  MUST(cudnnBackendSetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                                &chosen));
  MUST(cudnnBackendFinalize(plan));
  return plan;
}

const std::vector<int64_t> kImages = {8, 64, 56, 56}, kFilters = {128, 32, 3, 3},
                           kOut = {8, 128, 28, 28};  // two groups

cudnnBackendDescriptor_t forward_and_relu(cudnnHandle_t handle) {
  const Tensor x(CUDNN_DATA_HALF, kImages, true), w(CUDNN_DATA_HALF, kFilters, true), y(CUDNN_DATA_HALF, kOut, true),
      z(CUDNN_DATA_HALF, kOut, true);
  const Convolution convolution;
  Node operation(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, x).set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, w);
  operation.set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, y)
      .set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, convolution)
      .done();
  const Relu relu(y, z);
  return plan_of(handle, {&operation, &relu.operation}, Way::Heuristics);
}
cudnnBackendDescriptor_t backward_data(cudnnHandle_t handle) {
  const Tensor dx(CUDNN_DATA_FLOAT, kImages), w(CUDNN_DATA_FLOAT, kFilters), dy(CUDNN_DATA_FLOAT, kOut);
  const Convolution convolution;
  Node operation(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, dx).set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, w);
  operation.set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, dy)
      .set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, convolution)
      .done();
  return plan_of(handle, {&operation}, Way::EngineNumber);
}
cudnnBackendDescriptor_t backward_filter(cudnnHandle_t handle) {
  const Tensor x(CUDNN_DATA_BFLOAT16, kImages, true), dw(CUDNN_DATA_BFLOAT16, kFilters, true),
      dy(CUDNN_DATA_BFLOAT16, kOut, true);
  const Convolution convolution;
  Node operation(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, x)
      .set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, dw);
  operation.set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, dy)
      .set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, convolution)
      .done();
  return plan_of(handle, {&operation}, Way::Heuristics);
}
cudnnBackendDescriptor_t attention(cudnnHandle_t handle) {
  const Tensor q(CUDNN_DATA_HALF, {2, 8, 256, 64}), k(CUDNN_DATA_HALF, {2, 8, 64, 128}),
      scores(CUDNN_DATA_FLOAT, {2, 8, 256, 128}), shares(CUDNN_DATA_HALF, {2, 8, 256, 128}),
      v(CUDNN_DATA_HALF, {2, 8, 128, 32}), o(CUDNN_DATA_HALF, {2, 8, 256, 32});
  const Product first(q, k, scores), second(shares, v, o);
  const Relu relu(scores, shares);
  return plan_of(handle, {&first.operation, &relu.operation, &second.operation}, Way::Heuristics);
}
cudnnBackendDescriptor_t attention_in_one(cudnnHandle_t handle) {
  const Tensor q(CUDNN_DATA_BFLOAT16, {2, 8, 256, 64}), k(CUDNN_DATA_BFLOAT16, {2, 8, 128, 64}),
      v(CUDNN_DATA_BFLOAT16, {2, 8, 128, 32}), o(CUDNN_DATA_BFLOAT16, {2, 8, 256, 32});
  Node operation(CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC, q).set(CUDNN_ATTR_OPERATION_SDPA_FWD_KDESC, k);
  operation.set(CUDNN_ATTR_OPERATION_SDPA_FWD_VDESC, v).set(CUDNN_ATTR_OPERATION_SDPA_FWD_ODESC, o).done();
  return plan_of(handle, {&operation}, Way::Heuristics);
}
cudnnBackendDescriptor_t relu_alone(cudnnHandle_t handle) {
  const Tensor x(CUDNN_DATA_FLOAT, kOut), y(CUDNN_DATA_FLOAT, kOut);
  const Relu relu(x, y);
  return plan_of(handle, {&relu.operation}, Way::Heuristics);
}

}  // namespace

int main() {
  const CUstream stream = begin_program();
  cudnnHandle_t handle = nullptr;
  MUST(cudnnCreate(&handle));
  MUST(cudnnSetStream(handle, reinterpret_cast<cudaStream_t>(stream)));
  std::vector<cudnnBackendDescriptor_t> plans;
  // On a thread without a context, as PyTorch's DataParallel makes them.
  std::thread([&] {
    for (const auto make : {forward_and_relu, backward_data, backward_filter, attention, attention_in_one, relu_alone})
      plans.push_back(make(handle));
  }).join();
  MUST(cuProfilerStart());
  for (int round = 0; round < 2; ++round) {
    for (const cudnnBackendDescriptor_t plan : plans) {
      Node pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
      MUST(cudnnBackendExecute(handle, plan, pack.done().get()));
    }
  }
  for (const cudnnBackendDescriptor_t plan : plans) MUST(cudnnBackendDestroyDescriptor(plan));
  // Addresses used again: this one must not be taken for a plan that went.
  std::thread([&] {
    MUST(cudnnBackendExecute(handle, relu_alone(handle), Node(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR).done().get()));
  }).join();
  MUST(cudnnDestroy(handle));
  return end_program(stream);
}
