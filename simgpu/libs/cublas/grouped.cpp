// cuBLAS's grouped products: several sizes in one call.
#include <cstddef>
#include <vector>

#include "simgpu/libs/cublas/product.h"
#include "simgpu/libs/cublas/widths.h"

using simlibs::kTypeOf;
using simlibs::Product;

namespace {

template <typename I>
struct Groups {
  const cublasOperation_t *op_a, *op_b;
  const I *m, *n, *k, *lda, *ldb, *ldc;
  const void *alpha, *beta;
  int type_a, type_b, type_c, compute;
  I count;
  const I* sizes;
};

template <typename I>
cublasStatus_t multiply_all(cublasHandle_t handle, const Groups<I>& g) {
  if (g.count < 0 ||
      (g.count > 0 && (!g.op_a || !g.op_b || !g.m || !g.n || !g.k || !g.lda || !g.ldb || !g.ldc || !g.sizes)))
    return CUBLAS_STATUS_INVALID_VALUE;
  std::vector<Product> products;
  products.reserve(static_cast<size_t>(g.count));
  for (I i = 0; i < g.count; ++i) {
    products.push_back({g.op_a[i], g.op_b[i], g.m[i], g.n[i], g.k[i], g.alpha, nullptr, g.type_a, g.lda[i], nullptr,
                        g.type_b, g.ldb[i], g.beta, nullptr, g.type_c, g.ldc[i], g.compute, g.sizes[i]});
  }
  return simlibs::multiply_groups(handle, products.data(), static_cast<long long>(products.size()));
}

}  // namespace

#define GT_GROUPED(name, I, T)                                                                                         \
  GT_EXPORT cublasStatus_t name(cublasHandle_t handle, const cublasOperation_t op_a[], const cublasOperation_t op_b[], \
                                const I m[], const I n[], const I k[], const T alpha[], const T* const[],              \
                                const I lda[], const T* const[], const I ldb[], const T beta[], T* const[],            \
                                const I ldc[], I count, const I sizes[]) {                                             \
    return multiply_all<I>(handle, {op_a, op_b, m, n, k, lda, ldb, ldc, alpha, beta, kTypeOf<T>, kTypeOf<T>,           \
                                    kTypeOf<T>, -1, count, sizes});                                                    \
  }
#define GT_GROUPED_EX(name, I)                                                                                         \
  GT_EXPORT cublasStatus_t name(cublasHandle_t handle, const cublasOperation_t op_a[], const cublasOperation_t op_b[], \
                                const I m[], const I n[], const I k[], const void* alpha, const void* const[],         \
                                cudaDataType_t type_a, const I lda[], const void* const[], cudaDataType_t type_b,      \
                                const I ldb[], const void* beta, void* const[], cudaDataType_t type_c, const I ldc[],  \
                                I count, const I sizes[], cublasComputeType_t compute) {                               \
    return multiply_all<I>(                                                                                            \
        handle, {op_a, op_b, m, n, k, lda, ldb, ldc, alpha, beta, type_a, type_b, type_c, compute, count, sizes});     \
  }
GT_WIDTHS(GT_GROUPED, cublasSgemmGroupedBatched, float)
GT_WIDTHS(GT_GROUPED, cublasDgemmGroupedBatched, double)
GT_WIDTHS(GT_GROUPED_EX, cublasGemmGroupedBatchedEx)
