// Calls of cuDNN: convolutions, and graphs of operations.
#include "interpose/hot/session.h"
#include "interpose/library/cudnn_graphs.h"
#include "interpose/library/library_ask.h"
#include "interpose/library/library_records.h"

namespace gputrace {
namespace {

constexpr int kMaxDims = 8;  // CUDNN_DIM_MAX

struct Shape {
  int count = 0;
  int dims[kMaxDims]{};
  int type = -1;
  int dim(int i) const { return i < count && dims[i] > 0 ? dims[i] : 1; }
  // Product of the spatial dimensions.
  u64 spatial() const {
    u64 product = 1;
    for (int i = 2; i < count; ++i) product *= static_cast<u64>(dim(i));
    return product;
  }
};

Shape tensor_shape(const LibraryCall& did, void* descriptor) {
  static constinit LibraryGetter get{"cudnnGetTensorNdDescriptor"};
  Shape shape;
  int strides[kMaxDims]{};
  const bool known =
      descriptor && ask(get, did, descriptor, kMaxDims, &shape.type, &shape.count, &shape.dims[0], &strides[0]);
  return known && shape.count <= kMaxDims ? shape : Shape{};
}

Shape filter_shape(const LibraryCall& did, void* descriptor) {
  static constinit LibraryGetter get{"cudnnGetFilterNdDescriptor"};
  Shape shape;
  int format = 0;
  const bool known =
      descriptor && ask(get, did, descriptor, kMaxDims, &shape.type, &format, &shape.count, &shape.dims[0]);
  return known && shape.count <= kMaxDims ? shape : Shape{};
}

void stream_of_cudnn(const LibraryCall& did, void* handle, u64& stream) {
  static constinit LibraryGetter get{"cudnnGetStream"};
  void* value = nullptr;
  if (did.call.ok() && ask(get, did, handle, &value)) stream = bits(value);
}

// Spatial dimensions from the last: w, h, d.
void spatial(const Shape& shape, u32& d, u32& h, u32& w) {
  w = static_cast<u32>(shape.count > 2 ? shape.dim(shape.count - 1) : 1);
  h = static_cast<u32>(shape.count > 3 ? shape.dim(shape.count - 2) : 1);
  d = static_cast<u32>(shape.count > 4 ? shape.dim(shape.count - 3) : 1);
}

void fill_shape(const Shape& input, const Shape& filter, Convolution& record) {
  record.input_n = static_cast<u32>(input.dim(0));
  record.input_c = static_cast<u32>(input.dim(1));
  spatial(input, record.input_d, record.input_h, record.input_w);
  record.output_c = static_cast<u32>(filter.dim(0));
  spatial(filter, record.filter_d, record.filter_h, record.filter_w);
}

}  // namespace

void convolution(const LibraryCall& did, const ConvolutionCall& c) {
  static constinit LibraryGetter get_groups{"cudnnGetConvolutionGroupCount"};
  static constinit LibraryGetter get_math_type{"cudnnGetConvolutionMathType"};
  static constinit LibraryGetter get_convolution{"cudnnGetConvolutionNdDescriptor"};
  ErrnoGuard guard;
  Convolution record{};
  record.handle = bits(c.handle);
  record.what = static_cast<u32>(c.what);
  record.type = record.compute = record.math_mode = -1;
  stream_of_cudnn(did, c.handle, record.stream);
  if (did.call.ok()) {
    const Shape input = tensor_shape(did, c.input), output = tensor_shape(did, c.output),
                filter = filter_shape(did, c.filter);
    int groups = 1, math = -1, count = 0, mode = 0, compute = -1;
    int pad[kMaxDims]{}, stride[kMaxDims]{}, dilation[kMaxDims]{};
    if (!ask(get_groups, did, c.convolution, &groups) || groups < 1) groups = 1;
    if (ask(get_math_type, did, c.convolution, &math)) record.math_mode = math;
    // As many spatial dimensions as a convolution has: the library refuses to be asked for more.
    if (ask(get_convolution, did, c.convolution, 3, &count, &pad[0], &stride[0], &dilation[0], &mode, &compute))
      record.compute = compute;
    if (input.count >= 3 && filter.count >= 3 && output.count >= 3) {
      record.type = input.type;
      record.groups = static_cast<u32>(groups);
      fill_shape(input, filter, record);
      // filter.dim(1): channels of one group.
      record.flops = 2 * static_cast<u64>(output.dim(0)) * static_cast<u64>(output.dim(1)) * output.spatial() *
                     static_cast<u64>(filter.dim(1)) * filter.spatial();
    }
  }
  emit(did.call, record);
}

void backend_made(const LibraryCall& did, void* descriptor, int type) {
  if (did.call.ok()) graph_descriptor_made(descriptor, type);
}
// Whatever the library answered: the address may be another descriptor's next.
void backend_gone(const LibraryCall&, void* descriptor) { graph_descriptor_gone(descriptor); }
void backend_set(const LibraryCall& did, void* descriptor, int attribute, long long count, const void* values) {
  if (did.call.ok()) graph_attribute_set(descriptor, attribute, count, values);
}
void backend_got(const LibraryCall& did, void* descriptor, int attribute, long long wanted, const long long* count,
                 const void* values) {
  const long long had = count ? *count : wanted;
  if (did.call.ok()) graph_attribute_got(descriptor, attribute, had < wanted ? had : wanted, values);
}

namespace {

Shape shape_of(const GraphTensor& tensor) {
  Shape shape;
  shape.type = tensor.type;
  shape.count = tensor.count;
  for (int i = 0; i < kMaxDims; ++i) shape.dims[i] = static_cast<int>(tensor.dims[i]);
  return shape;
}

}  // namespace

void backend_execute(const LibraryCall& did, void* handle, void* plan) {
  ErrnoGuard guard;
  Convolution record{};
  record.handle = bits(handle);
  record.what = static_cast<u32>(ConvolutionKind::Graph);
  record.type = record.compute = record.math_mode = -1;
  stream_of_cudnn(did, handle, record.stream);
  GraphWork work;
  if (did.call.ok() && find_graph_work(plan, work)) {
    record.type = work.type;
    record.compute = work.compute;
    record.flops = work.flops;
    if (work.convolutions == 1 && work.products == 0 && work.flops != 0) {
      record.what = work.what;
      fill_shape(shape_of(work.input), shape_of(work.filter), record);
      record.groups = record.input_c / (work.filter.dims[1] ? work.filter.dims[1] : 1);
    }
  }
  emit(did.call, record);
}

}  // namespace gputrace
