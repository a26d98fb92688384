#include "simgpu/libs/cublasLt/algorithm.h"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace simlibs {
namespace {

bool is_fp8(uint32_t type) { return type == 28 || type == 29; }
bool is_fp4(uint32_t type) { return type == 33; }

constexpr LtField kConfig[] = {
#define GT_FIELD(attribute, member) \
  { attribute, offsetof(LtAlgorithm, member), sizeof(LtAlgorithm::member) }
    GT_FIELD(CUBLASLT_ALGO_CONFIG_ID, index),
    GT_FIELD(CUBLASLT_ALGO_CONFIG_TILE_ID, tile),
    GT_FIELD(CUBLASLT_ALGO_CONFIG_SPLITK_NUM, slices),
    GT_FIELD(CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, reduction),
    GT_FIELD(CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, swizzling),
    GT_FIELD(CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, custom),
    GT_FIELD(CUBLASLT_ALGO_CONFIG_STAGES_ID, stages),
    GT_FIELD(CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID, inner),
    GT_FIELD(CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, cluster),
#undef GT_FIELD
};

LtAlgorithm algorithm(int index, Math math) {
  LtAlgorithm value{};
  value.known = LtAlgorithm::kKnown;
  value.index = index;
  value.slices = 1;
  value.math = static_cast<int32_t>(math);
  return value;
}

// What a heuristic may hand out, best first.
cublasStatus_t offer(const Gemm& gemm, int wanted, cublasLtMatmulHeuristicResult_t* results, int* found) {
  const int count = std::min(wanted, kernels_for(gemm.math));
  for (int i = 0; i < count; ++i) {
    std::memset(&results[i], 0, sizeof results[i]);
    in<LtAlgorithm>(&results[i].algo) = algorithm(i, gemm.math);
    results[i].state = CUBLAS_STATUS_SUCCESS;
    results[i].wavesCount = 1;
  }
  *found = count;
  return count > 0 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

}  // namespace

cublasStatus_t gemm_of(const LtProduct& product, Gemm& gemm) {
  const LtMatmulDesc& description = product.description;
  gemm.op_a = description.op_a;
  gemm.op_b = description.op_b;
  const auto rows = [](const LtLayout& layout, int op) {
    return static_cast<long long>(op == CUBLAS_OP_N ? layout.rows : layout.columns);
  };
  const auto columns = [](const LtLayout& layout, int op) {
    return static_cast<long long>(op == CUBLAS_OP_N ? layout.columns : layout.rows);
  };
  gemm.m = rows(product.a, gemm.op_a);
  gemm.k = columns(product.a, gemm.op_a);
  gemm.n = columns(product.b, gemm.op_b);
  gemm.batch = product.d.batch;
  if (rows(product.b, gemm.op_b) != gemm.k || rows(product.d, CUBLAS_OP_N) != gemm.m ||
      columns(product.d, CUBLAS_OP_N) != gemm.n)
    return CUBLAS_STATUS_INVALID_VALUE;
  const bool narrow = is_fp8(product.a.type) && is_fp8(product.b.type);
  if (product.a.type != product.b.type && !narrow) return CUBLAS_STATUS_NOT_SUPPORTED;
  // fp8: from 8.9 on, A transposed, sizes that are multiples of 16 bytes, as the manual has it.
  if (narrow &&
      (capability() < 90 || gemm.op_a == CUBLAS_OP_N || gemm.op_b != CUBLAS_OP_N || gemm.m % 16 || gemm.k % 16))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  if (is_fp4(product.a.type)) return CUBLAS_STATUS_NOT_SUPPORTED;
  return math_of(static_cast<int>(product.a.type), description.compute, false, gemm.math) ? CUBLAS_STATUS_SUCCESS
                                                                                          : CUBLAS_STATUS_NOT_SUPPORTED;
}

}  // namespace simlibs

using namespace simlibs;

GT_EXPORT cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t description,
                                                        cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                                        cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                                        cublasLtMatmulPreference_t preference, int wanted,
                                                        cublasLtMatmulHeuristicResult_t* results, int* found) {
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  const OnDevice on_device(handle->device);
  if (!description || !a || !b || !c || !d || !preference || !results || !found || wanted < 1)
    return CUBLAS_STATUS_INVALID_VALUE;
  Gemm gemm;
  *found = 0;
  const cublasStatus_t status = gemm_of(
      {in<LtMatmulDesc>(description), in<LtLayout>(a), in<LtLayout>(b), in<LtLayout>(c), in<LtLayout>(d)}, gemm);
  return status == CUBLAS_STATUS_SUCCESS ? offer(gemm, wanted, results, found) : status;
}
GT_EXPORT cublasStatus_t cublasLtMatmulAlgoGetIds(cublasLtHandle_t handle, cublasComputeType_t compute, cudaDataType_t,
                                                  cudaDataType_t a, cudaDataType_t, cudaDataType_t, cudaDataType_t,
                                                  int wanted, int ids[], int* found) {
  Math math{};
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  const OnDevice on_device(handle->device);
  if (!found || wanted < 1 || !ids) return CUBLAS_STATUS_INVALID_VALUE;
  if (!math_of(a, compute, false, math)) return CUBLAS_STATUS_NOT_SUPPORTED;
  *found = std::min(wanted, kernels_for(math));
  for (int i = 0; i < *found; ++i) ids[i] = i;
  return CUBLAS_STATUS_SUCCESS;
}
GT_EXPORT cublasStatus_t cublasLtMatmulAlgoInit(cublasLtHandle_t handle, cublasComputeType_t compute, cudaDataType_t,
                                                cudaDataType_t a, cudaDataType_t, cudaDataType_t, cudaDataType_t,
                                                int id, cublasLtMatmulAlgo_t* made) {
  Math math{};
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  const OnDevice on_device(handle->device);
  if (!made || id < 0) return CUBLAS_STATUS_INVALID_VALUE;
  if (!math_of(a, compute, false, math) || id >= kernels_for(math)) return CUBLAS_STATUS_NOT_SUPPORTED;
  std::memset(made, 0, sizeof *made);
  in<LtAlgorithm>(made) = algorithm(id, math);
  return CUBLAS_STATUS_SUCCESS;
}
GT_EXPORT cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t handle, cublasLtMatmulDesc_t description,
                                                 cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                                 cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                                 const cublasLtMatmulAlgo_t* chosen,
                                                 cublasLtMatmulHeuristicResult_t* result) {
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  const OnDevice on_device(handle->device);
  if (!description || !a || !b || !c || !d || !chosen || !result) return CUBLAS_STATUS_INVALID_VALUE;
  Gemm gemm;
  const cublasStatus_t status = gemm_of(
      {in<LtMatmulDesc>(description), in<LtLayout>(a), in<LtLayout>(b), in<LtLayout>(c), in<LtLayout>(d)}, gemm);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  if (in<LtAlgorithm>(chosen).known != LtAlgorithm::kKnown) return CUBLAS_STATUS_INVALID_VALUE;
  std::memset(result, 0, sizeof *result);
  result->algo = *chosen;
  result->state = CUBLAS_STATUS_SUCCESS;
  result->wavesCount = 1;
  return CUBLAS_STATUS_SUCCESS;
}
GT_EXPORT cublasStatus_t cublasLtMatmulAlgoConfigSetAttribute(cublasLtMatmulAlgo_t* chosen,
                                                              cublasLtMatmulAlgoConfigAttributes_t attribute,
                                                              const void* value, size_t bytes) {
  return set_attribute(kConfig, std::size(kConfig), chosen, attribute, value, bytes);
}
GT_EXPORT cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t* chosen,
                                                              cublasLtMatmulAlgoConfigAttributes_t attribute,
                                                              void* value, size_t bytes, size_t* written) {
  return get_attribute(kConfig, std::size(kConfig), chosen, attribute, value, bytes, written);
}
