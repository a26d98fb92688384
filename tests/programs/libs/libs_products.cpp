// Matrix products through cuBLAS, cuBLASLt and cuSPARSE, each of its own shape, and one launch of its own in between.
#include <cublasLt.h>
#include <cublas_v2.h>
#include <cusparse.h>

#include <cerrno>

#include "tests/programs/libs/libs_check.h"

namespace {

void say(const char* call, long long m, long long n, long long k, long long batch, int kernels) {
  std::printf("{\"call\": \"%s\", \"m\": %lld, \"n\": %lld, \"k\": %lld, \"batch\": %lld, \"kernels\": %d}\n", call, m,
              n, k, batch, kernels);
}

void products(cublasHandle_t handle) {
  float* f = nullptr;
  double* d = nullptr;
  void* v = nullptr;
  const float one = 1;
  const double two = 2;
  const auto N = CUBLAS_OP_N, T = CUBLAS_OP_T;
  MUST(cublasSgemm(handle, N, T, 1024, 512, 256, &one, f, 1024, f, 512, &one, f, 1024));
  say("cublasSgemm", 1024, 512, 256, 1, 1);
  for (int i = 0; i < 3; ++i) MUST(cublasSgemm(handle, N, N, 130, 70, 8192, &one, f, 130, f, 8192, &one, f, 130));
  for (int i = 0; i < 3; ++i) say("cublasSgemm", 130, 70, 8192, 1, 2);
  MUST(cublasDgemm(handle, N, N, 64, 32, 16, &two, d, 64, d, 16, &two, d, 64));
  say("cublasDgemm", 64, 32, 16, 1, 1);
  MUST(cublasSgemm_64(handle, N, N, 96, 97, 98, &one, f, 96, f, 98, &one, f, 96));
  say("cublasSgemm", 96, 97, 98, 1, 1);
  const cuComplex complex{1, 0};
  cuComplex* c = nullptr;
  MUST(cublasCgemm(handle, N, CUBLAS_OP_C, 40, 41, 42, &complex, c, 40, c, 41, &complex, c, 40));
  say("cublasCgemm", 40, 41, 42, 1, 1);
  MUST(cublasGemmEx(handle, T, N, 4096, 2048, 1024, &one, v, CUDA_R_16F, 1024, v, CUDA_R_16F, 1024, &one, v, CUDA_R_16F,
                    4096, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
  say("cublasGemmEx", 4096, 2048, 1024, 1, 1);
  MUST(cublasSgemmStridedBatched(handle, N, N, 48, 24, 12, &one, f, 48, 576, f, 12, 288, &one, f, 48, 1152, 7));
  say("cublasSgemmStridedBatched", 48, 24, 12, 7, 1);
  MUST(cublasGemmStridedBatchedEx(handle, T, N, 128, 64, 64, &one, v, CUDA_R_16BF, 64, 8192, v, CUDA_R_16BF, 64, 4096,
                                  &one, v, CUDA_R_16BF, 128, 8192, 12, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
  say("cublasGemmStridedBatchedEx", 128, 64, 64, 12, 1);
  MUST(cublasSgemmBatched(handle, N, N, 16, 8, 4, &one, nullptr, 16, nullptr, 4, &one, nullptr, 16, 5));
  say("cublasSgemmBatched", 16, 8, 4, 5, 1);
}

void light_products(CUstream stream) {
  cublasLtHandle_t handle = nullptr;
  MUST(cublasLtCreate(&handle));
  cublasLtMatmulDesc_t description = nullptr;
  MUST(cublasLtMatmulDescCreate(&description, CUBLAS_COMPUTE_32F_FAST_TF32, CUDA_R_32F));
  const cublasOperation_t transposed = CUBLAS_OP_T;
  MUST(cublasLtMatmulDescSetAttribute(description, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed));
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, d = nullptr;
  MUST(cublasLtMatrixLayoutCreate(&a, CUDA_R_32F, 320, 640, 320));  // k x m: transposed
  MUST(cublasLtMatrixLayoutCreate(&b, CUDA_R_32F, 320, 160, 320));
  MUST(cublasLtMatrixLayoutCreate(&d, CUDA_R_32F, 640, 160, 640));
  const int batch = 2;
  for (cublasLtMatrixLayout_t layout : {a, b, d})
    MUST(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof batch));
  const float one = 1;
  MUST(cublasLtMatmul(handle, description, &one, nullptr, a, nullptr, b, &one, nullptr, d, nullptr, d, nullptr, nullptr,
                      0, reinterpret_cast<cudaStream_t>(stream)));
  say("cublasLtMatmul", 640, 160, 320, 2, 1);
  MUST(cublasLtDestroy(handle));
}

void sparse_products(CUstream stream) {
  cusparseHandle_t handle = nullptr;
  MUST(cusparseCreate(&handle));
  MUST(cusparseSetStream(handle, reinterpret_cast<cudaStream_t>(stream)));
  cusparseSpMatDescr_t a = nullptr;
  cusparseDnMatDescr_t b = nullptr, c = nullptr;
  cusparseDnVecDescr_t x = nullptr, y = nullptr;
  MUST(cusparseCreateCsr(&a, 1000, 500, 3000, nullptr, nullptr, nullptr, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I,
                         CUSPARSE_INDEX_BASE_ZERO, CUDA_R_32F));
  MUST(cusparseCreateDnMat(&b, 500, 16, 500, nullptr, CUDA_R_32F, CUSPARSE_ORDER_COL));
  MUST(cusparseCreateDnMat(&c, 1000, 16, 1000, nullptr, CUDA_R_32F, CUSPARSE_ORDER_COL));
  MUST(cusparseCreateDnVec(&x, 500, nullptr, CUDA_R_32F));
  MUST(cusparseCreateDnVec(&y, 1000, nullptr, CUDA_R_32F));
  const float one = 1;
  const auto N = CUSPARSE_OPERATION_NON_TRANSPOSE;
  MUST(cusparseSpMM(handle, N, N, &one, a, b, &one, c, CUDA_R_32F, CUSPARSE_SPMM_ALG_DEFAULT, nullptr));
  say("cusparseSpMM", 1000, 16, 500, 1, 1);
  MUST(cusparseSpMV(handle, N, &one, a, x, &one, y, CUDA_R_32F, CUSPARSE_SPMV_ALG_DEFAULT, nullptr));
  say("cusparseSpMV", 1000, 1, 500, 1, 1);
  MUST(cusparseDestroy(handle));
}

}  // namespace

int main() {
  const CUstream stream = begin_program();
  cublasHandle_t handle = nullptr;
  MUST(cublasCreate(&handle));
  MUST(cublasSetStream(handle, reinterpret_cast<cudaStream_t>(stream)));
  MUST(cublasSetMathMode(handle, CUBLAS_TF32_TENSOR_OP_MATH));
  errno = 77;
  products(handle);
  light_products(stream);
  sparse_products(stream);
  std::printf("errno %d\n", errno);
  MUST(cublasDestroy(handle));
  return end_program(stream);
}
