#include "tests/standins/standin.h"

namespace standin {

struct Gemm {
  void* handle;
  int op_a, op_b;
  long long m, n, k;
  const void *a, *b, *c;
  long long lda, ldb, ldc;
  int type_a, type_b, type_c;
  int compute = -1;
  long long batch = 1;
  unsigned flags = 0;
};

// One kernel a product; a deep one is split along k and needs a second that adds up.
static void gemm(const Did&, const Gemm& g) {
  const Handle& handle = *static_cast<const Handle*>(g.handle);
  const bool tensor = g.type_a == kR16F || g.type_a == 14;  // fp16, bf16
  const std::string ops = std::string(g.op_a ? "t" : "n") + (g.op_b ? "t" : "n");
  std::string name = "ampere_sgemm_128x64_" + ops;
  if (tensor) name = "ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_32x5_" + ops;
  if (g.type_a == kR64F) name = "ampere_dgemm_64x64_" + ops;
  if (g.type_a == kC32F) name = "ampere_cgemm_64x64_" + ops;
  if (g.type_a == kC64F) name = "ampere_zgemm_64x64_" + ops;
  launch(name, handle.stream, tiles(g.m, 128) * tiles(g.n, 64) * static_cast<unsigned>(g.batch), 256);
  if (g.k >= 8192) launch("cublas_splitKreduce_kernel", handle.stream, tiles(g.m, 32), 512);
}

template <typename I>
struct GemmGroups {
  void* handle;
  const int *op_a, *op_b;
  const I *m, *n, *k;
  const void *a, *b, *c;
  const I *lda, *ldb, *ldc;
  int type_a, type_b, type_c, compute;
  I groups;
  const I* sizes;
};
template <typename I>
void gemm_groups(const Did&, const GemmGroups<I>& g) {
  launch("cublas_grouped_gemm_kernel", static_cast<const Handle*>(g.handle)->stream, static_cast<unsigned>(g.groups),
         256);
}

}  // namespace standin

#define GT_BODY_cublas(name, signature, record) GT_STANDIN_BODY(name, signature, record)
#define GT_BODY_cublasLt(name, signature, record)
#define GT_BODY_cudnn(name, signature, record)
#define GT_BODY_cusparse(name, signature, record)
#define GT_BODY_cufft(name, signature, record)
#define GT_BODY_nccl(name, signature, record)
#define GT_LIBRARY(name, library, signature, forwarded, record) GT_BODY_##library(name, signature, record)
#include "interpose/library.def"

using standin::Handle;
GT_EXPORT int cublasSetStream_v2(void* handle, void* stream) {
  static_cast<Handle*>(handle)->stream = stream;
  return 0;
}
GT_EXPORT int cublasGetStream_v2(void* handle, void** stream) {
  *stream = static_cast<Handle*>(handle)->stream;
  return 0;
}
GT_EXPORT int cublasSetMathMode(void* handle, int mode) {
  static_cast<Handle*>(handle)->math_mode = mode;
  return 0;
}
GT_EXPORT int cublasGetMathMode(void* handle, int* mode) {
  *mode = static_cast<Handle*>(handle)->math_mode;
  return 0;
}
