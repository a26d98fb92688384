// cublasLtMatmul and cublasLtMatrixTransform.
#include "simgpu/libs/cublasLt/algorithm.h"

using namespace simlibs;

namespace {

cublasStatus_t status_of(CUresult result) {
  return result == CUDA_SUCCESS ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

constexpr const char* kTransformKernel = "_ZN8cublasLt15transformKernelIfEEvPKvl";

}  // namespace

GT_EXPORT cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t description, const void* alpha,
                                        const void* a, cublasLtMatrixLayout_t layout_a, const void* b,
                                        cublasLtMatrixLayout_t layout_b, const void* beta, const void*,
                                        cublasLtMatrixLayout_t layout_c, void* d, cublasLtMatrixLayout_t layout_d,
                                        const cublasLtMatmulAlgo_t* chosen, void* workspace, size_t workspace_bytes,
                                        cudaStream_t stream) {
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  const OnDevice on_device(handle->device);
  if (!description || !layout_a || !layout_b || !layout_c || !layout_d || !alpha || !beta ||
      (!workspace && workspace_bytes))
    return CUBLAS_STATUS_INVALID_VALUE;
  Gemm gemm;
  const cublasStatus_t status = gemm_of({in<LtMatmulDesc>(description), in<LtLayout>(layout_a), in<LtLayout>(layout_b),
                                         in<LtLayout>(layout_c), in<LtLayout>(layout_d)},
                                        gemm);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  if (chosen) {
    const LtAlgorithm& algorithm = in<LtAlgorithm>(chosen);
    if (algorithm.known != LtAlgorithm::kKnown) return CUBLAS_STATUS_INVALID_VALUE;
    gemm.algorithm = algorithm.index;
  }
  gemm.a = a;
  gemm.b = b;
  gemm.c = d;
  return status_of(launch_gemm(gemm, reinterpret_cast<CUstream>(stream)));
}

GT_EXPORT cublasStatus_t cublasLtMatrixTransform(cublasLtHandle_t handle, cublasLtMatrixTransformDesc_t description,
                                                 const void* alpha, const void* a, cublasLtMatrixLayout_t layout_a,
                                                 const void*, const void* b, cublasLtMatrixLayout_t, void* c,
                                                 cublasLtMatrixLayout_t layout_c, cudaStream_t stream) {
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  const OnDevice on_device(handle->device);
  if (!description || !alpha || !a || !layout_a || !c || !layout_c) return CUBLAS_STATUS_INVALID_VALUE;
  const LtLayout& shape = in<LtLayout>(layout_c);
  const auto rows = static_cast<long long>(shape.rows), columns = static_cast<long long>(shape.columns);
  return status_of(launch(kTransformKernel, reinterpret_cast<CUstream>(stream),
                          {{tiles(rows, 32), tiles(columns, 32), 1}, {256, 1, 1}}, {a, b, c, rows, columns, 1}));
}
