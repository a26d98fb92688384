#include <vector>

#include "tests/standins/standin.h"

namespace standin {

// A tensor, a filter or a convolution.
struct Description {
  int type = 0, format = 0;
  std::vector<int> dims, strides, pad, dilation;
  int mode = 0, compute = 0, groups = 1, math = 0;
};

struct ConvolutionCall {
  ConvolutionKind what;
  void *handle, *input, *filter, *output, *convolution;
};
static void convolution(const Did&, const ConvolutionCall& c) {
  static const char* const names[] = {
      "", "sm80_xmma_fprop_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nchw_tilesize128x128x32",
      "sm80_xmma_dgrad_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc_tilesize128x64x32",
      "sm80_xmma_wgrad_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc_tilesize64x64x32"};
  const auto& handle = *static_cast<const Handle*>(c.handle);
  const auto& input = *static_cast<const Description*>(c.input);
  if (input.format == 0) launch("cudnn_nchwToNhwcKernel", handle.stream, 64, 256);
  launch(names[static_cast<int>(c.what)], handle.stream, 128, 128);
}
static void backend_execute(const Did&, void* handle) {
  launch("cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7", static_cast<Handle*>(handle)->stream,
         256, 384);
}

}  // namespace standin

#define GT_BODY_cublas(name, signature, record)
#define GT_BODY_cublasLt(name, signature, record)
#define GT_BODY_cudnn(name, signature, record) GT_STANDIN_BODY(name, signature, record)
#define GT_BODY_cusparse(name, signature, record)
#define GT_BODY_cufft(name, signature, record)
#define GT_BODY_nccl(name, signature, record)
#define GT_LIBRARY(name, library, signature, forwarded, record) GT_BODY_##library(name, signature, record)
#include "interpose/library.def"

using standin::Description;
using standin::Handle;
namespace {
Description& of(void* description) { return *static_cast<Description*>(description); }
int made(void** out) {
  *out = new Description;
  return 0;
}
int copy(const std::vector<int>& from, int room, int* to) {
  for (int i = 0; i < room && i < static_cast<int>(from.size()); ++i) to[i] = from[static_cast<std::size_t>(i)];
  return 0;
}
}  // namespace

GT_EXPORT int cudnnSetStream(void* handle, void* stream) {
  static_cast<Handle*>(handle)->stream = stream;
  return 0;
}
GT_EXPORT int cudnnGetStream(void* handle, void** stream) {
  *stream = static_cast<Handle*>(handle)->stream;
  return 0;
}
GT_EXPORT int cudnnCreateTensorDescriptor(void** out) { return made(out); }
GT_EXPORT int cudnnCreateFilterDescriptor(void** out) { return made(out); }
GT_EXPORT int cudnnCreateConvolutionDescriptor(void** out) { return made(out); }
GT_EXPORT int cudnnDestroyTensorDescriptor(void* d) { return delete &of(d), 0; }
GT_EXPORT int cudnnDestroyFilterDescriptor(void* d) { return delete &of(d), 0; }
GT_EXPORT int cudnnDestroyConvolutionDescriptor(void* d) { return delete &of(d), 0; }
GT_EXPORT int cudnnSetTensorNdDescriptor(void* d, int type, int count, const int* dims, const int* strides) {
  of(d).type = type;
  of(d).dims.assign(dims, dims + count);
  of(d).strides.assign(strides, strides + count);
  return 0;
}
GT_EXPORT int cudnnSetTensor4dDescriptor(void* d, int format, int type, int n, int c, int h, int w) {
  of(d).format = format;
  const int dims[] = {n, c, h, w}, strides[] = {c * h * w, h * w, w, 1};
  return cudnnSetTensorNdDescriptor(d, type, 4, dims, strides);
}
GT_EXPORT int cudnnGetTensorNdDescriptor(void* d, int room, int* type, int* count, int* dims, int* strides) {
  *type = of(d).type;
  *count = static_cast<int>(of(d).dims.size());
  copy(of(d).strides, room, strides);
  return copy(of(d).dims, room, dims);
}
GT_EXPORT int cudnnSetFilterNdDescriptor(void* d, int type, int format, int count, const int* dims) {
  of(d).type = type;
  of(d).format = format;
  of(d).dims.assign(dims, dims + count);
  return 0;
}
GT_EXPORT int cudnnSetFilter4dDescriptor(void* d, int type, int format, int k, int c, int h, int w) {
  const int dims[] = {k, c, h, w};
  return cudnnSetFilterNdDescriptor(d, type, format, 4, dims);
}
GT_EXPORT int cudnnGetFilterNdDescriptor(void* d, int room, int* type, int* format, int* count, int* dims) {
  *type = of(d).type;
  *format = of(d).format;
  *count = static_cast<int>(of(d).dims.size());
  return copy(of(d).dims, room, dims);
}
GT_EXPORT int cudnnSetConvolutionNdDescriptor(void* d, int count, const int* pad, const int* stride,
                                              const int* dilation, int mode, int compute) {
  of(d).pad.assign(pad, pad + count);
  of(d).strides.assign(stride, stride + count);
  of(d).dilation.assign(dilation, dilation + count);
  of(d).mode = mode;
  of(d).compute = compute;
  return 0;
}
GT_EXPORT int cudnnGetConvolutionNdDescriptor(void* d, int room, int* count, int* pad, int* stride, int* dilation,
                                              int* mode, int* compute) {
  if (room > 6) return 2000;  // CUDNN_STATUS_BAD_PARAM, as the real one refuses more than it could have
  *count = static_cast<int>(of(d).pad.size());
  *mode = of(d).mode;
  *compute = of(d).compute;
  copy(of(d).pad, room, pad);
  copy(of(d).strides, room, stride);
  return copy(of(d).dilation, room, dilation);
}
GT_EXPORT int cudnnSetConvolutionGroupCount(void* d, int groups) { return of(d).groups = groups, 0; }
GT_EXPORT int cudnnGetConvolutionGroupCount(void* d, int* groups) { return *groups = of(d).groups, 0; }
GT_EXPORT int cudnnSetConvolutionMathType(void* d, int math) { return of(d).math = math, 0; }
GT_EXPORT int cudnnGetConvolutionMathType(void* d, int* math) { return *math = of(d).math, 0; }
