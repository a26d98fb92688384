#include "tests/standins/standin.h"

namespace standin {

struct Matrix {
  long long rows, columns, nonzeros, ld;
  void* values;
  int type, order;
};
struct SparseProduct {
  void* handle;
  int op_a, op_b;
  const void *a, *c;
  bool vector;
  int compute = 0;  // not every row gives it
};
static void sparse_product(const Did&, const SparseProduct& product) {
  const auto& a = *static_cast<const Matrix*>(product.a);
  launch(product.vector ? "_ZN8cusparse15csrmv_v3_kernelIfEEvv" : "_ZN8cusparse14csrmm_alg2_rowIfEEvv",
         static_cast<Handle*>(product.handle)->stream, tiles(a.rows, 128), 128);
}

}  // namespace standin

#define GT_BODY_cublas(name, signature, record)
#define GT_BODY_cublasLt(name, signature, record)
#define GT_BODY_cudnn(name, signature, record)
#define GT_BODY_cusparse(name, signature, record) GT_STANDIN_BODY(name, signature, record)
#define GT_BODY_cufft(name, signature, record)
#define GT_BODY_nccl(name, signature, record)
#define GT_LIBRARY(name, library, signature, forwarded, record) GT_BODY_##library(name, signature, record)
#include "interpose/library.def"

using standin::Handle;
using standin::Matrix;
namespace {
const Matrix& of(const void* matrix) { return *static_cast<const Matrix*>(matrix); }
}  // namespace
GT_EXPORT int cusparseSetStream(void* handle, void* stream) {
  static_cast<Handle*>(handle)->stream = stream;
  return 0;
}
GT_EXPORT int cusparseGetStream(void* handle, void** stream) {
  *stream = static_cast<Handle*>(handle)->stream;
  return 0;
}
GT_EXPORT int cusparseCreateCsr(void** made, long long rows, long long columns, long long nonzeros, void*, void*,
                                void* values, int, int, int, int type) {
  *made = new Matrix{rows, columns, nonzeros, 0, values, type, 0};
  return 0;
}
GT_EXPORT int cusparseCreateDnMat(void** made, long long rows, long long columns, long long ld, void* values, int type,
                                  int order) {
  *made = new Matrix{rows, columns, 0, ld, values, type, order};
  return 0;
}
GT_EXPORT int cusparseCreateDnVec(void** made, long long size, void* values, int type) {
  *made = new Matrix{size, 1, 0, 0, values, type, 0};
  return 0;
}
GT_EXPORT int cusparseSpMatGetSize(const void* m, long long* rows, long long* columns, long long* nonzeros) {
  *rows = of(m).rows;
  *columns = of(m).columns;
  *nonzeros = of(m).nonzeros;
  return 0;
}
GT_EXPORT int cusparseDnMatGet(const void* m, long long* rows, long long* columns, long long* ld, void** values,
                               int* type, int* order) {
  *rows = of(m).rows;
  *columns = of(m).columns;
  *ld = of(m).ld;
  *values = of(m).values;
  *type = of(m).type;
  *order = of(m).order;
  return 0;
}
GT_EXPORT int cusparseDnVecGet(const void* m, long long* size, void** values, int* type) {
  *size = of(m).rows;
  *values = of(m).values;
  *type = of(m).type;
  return 0;
}
