// Products, solutions and conversions: one kernel each, with a thread for each row or nonzero.
#include <algorithm>
#include <string>

#include "simgpu/libs/common/launch.h"
#include "simgpu/libs/cusparse/entry.h"
#include "simgpu/libs/cusparse/matrix.h"

namespace {

using namespace simlibs;

constexpr size_t kWorkspace = 1024;

// Half precision is added up in single.
const char* mangled(cudaDataType type) {
  return type == CUDA_R_64F ? "d" : type == CUDA_C_32F ? "6float2" : type == CUDA_C_64F ? "7double2" : "f";
}

cusparseStatus_t run(cusparseHandle_t handle, const char* kernel, cudaDataType type, int64_t threads, int batch = 1) {
  if (!lives(handle)) return CUSPARSE_STATUS_NOT_INITIALIZED;
  if (threads <= 0) return CUSPARSE_STATUS_SUCCESS;
  const std::string name = std::string(kernel) + "_kernel";
  const std::string symbol =
      "_ZN8cusparse" + std::to_string(name.size()) + name + "I" + mangled(type) + "EEvN7simlibs15KernelArgumentsE";
  LaunchShape shape;
  shape.grid.x = tiles(threads, 128);
  shape.grid.y = static_cast<unsigned>(std::max(batch, 1));
  shape.block.x = 128;
  return launch(symbol.c_str(), handle->stream, shape) == CUDA_SUCCESS ? CUSPARSE_STATUS_SUCCESS
                                                                       : CUSPARSE_STATUS_EXECUTION_FAILED;
}

cusparseStatus_t tell_size(cusparseHandle_t handle, size_t* bytes) {
  if (!lives(handle)) return CUSPARSE_STATUS_NOT_INITIALIZED;
  if (!bytes) return CUSPARSE_STATUS_INVALID_VALUE;
  *bytes = kWorkspace;
  return CUSPARSE_STATUS_SUCCESS;
}

}  // namespace

#define H cusparseHandle_t h
#define OP cusparseOperation_t
#define SPARSE cusparseConstSpMatDescr_t
#define DENSE cusparseConstDnMatDescr_t
#define SCALAR const void*
// A null descriptor is refused before it is looked into.
#define GT_RUN(given, ...) \
  { return !(given) ? CUSPARSE_STATUS_INVALID_VALUE : run(h, __VA_ARGS__); }
#define GT_SIZED \
  { return tell_size(h, bytes); }
#define GT_READY \
  { return lives(h) ? CUSPARSE_STATUS_SUCCESS : CUSPARSE_STATUS_NOT_INITIALIZED; }

CUSPARSE_ENTRY(cusparseSpMV_bufferSize, (H, OP, SCALAR, SPARSE, cusparseConstDnVecDescr_t, SCALAR, cusparseDnVecDescr_t,
                                         cudaDataType, cusparseSpMVAlg_t, size_t* bytes))
GT_SIZED
CUSPARSE_ENTRY(cusparseSpMV_preprocess, (H, OP, SCALAR, SPARSE, cusparseConstDnVecDescr_t, SCALAR, cusparseDnVecDescr_t,
                                         cudaDataType, cusparseSpMVAlg_t, void*))
GT_READY CUSPARSE_ENTRY(cusparseSpMV, (H, OP, SCALAR, SPARSE a, cusparseConstDnVecDescr_t, SCALAR, cusparseDnVecDescr_t,
                                       cudaDataType type, cusparseSpMVAlg_t, void*))
    GT_RUN(a, "csrmv_v3", type, a->rows, a->batch)

        CUSPARSE_ENTRY(cusparseSpMM_bufferSize, (H, OP, OP, SCALAR, SPARSE, DENSE, SCALAR, cusparseDnMatDescr_t,
                                                 cudaDataType, cusparseSpMMAlg_t, size_t* bytes)) GT_SIZED
    CUSPARSE_ENTRY(cusparseSpMM_preprocess, (H, OP, OP, SCALAR, SPARSE, DENSE, SCALAR, cusparseDnMatDescr_t,
                                             cudaDataType, cusparseSpMMAlg_t, void*)) GT_READY
    CUSPARSE_ENTRY(cusparseSpMM, (H, OP, OP, SCALAR, SPARSE a, DENSE, SCALAR, cusparseDnMatDescr_t, cudaDataType type,
                                  cusparseSpMMAlg_t, void*)) GT_RUN(a, "csrmm_alg2", type, a->rows, a->batch)

        CUSPARSE_ENTRY(cusparseSDDMM_bufferSize, (H, OP, OP, SCALAR, DENSE, DENSE, SCALAR, cusparseSpMatDescr_t,
                                                  cudaDataType, cusparseSDDMMAlg_t, size_t* bytes)) GT_SIZED
    CUSPARSE_ENTRY(cusparseSDDMM_preprocess, (H, OP, OP, SCALAR, DENSE, DENSE, SCALAR, cusparseSpMatDescr_t,
                                              cudaDataType, cusparseSDDMMAlg_t, void*)) GT_READY
    CUSPARSE_ENTRY(cusparseSDDMM, (H, OP, OP, SCALAR, DENSE, DENSE, SCALAR, cusparseSpMatDescr_t c, cudaDataType type,
                                   cusparseSDDMMAlg_t, void*)) GT_RUN(c, "sddmm_csr", type, c->nonzeros, c->batch)

    // The product has as many nonzeros as its left factor: what it really has, nobody calculates.
    CUSPARSE_ENTRY(cusparseSpGEMM_workEstimation,
                   (H, OP, OP, SCALAR, SPARSE, SPARSE, SCALAR, cusparseSpMatDescr_t, cudaDataType, cusparseSpGEMMAlg_t,
                    cusparseSpGEMMDescr_t, size_t* bytes, void* buffer)) {
  return buffer ? CUSPARSE_STATUS_SUCCESS : tell_size(h, bytes);
}
CUSPARSE_ENTRY(cusparseSpGEMM_compute,
               (H, OP, OP, SCALAR, SPARSE a, SPARSE, SCALAR, cusparseSpMatDescr_t c, cudaDataType type,
                cusparseSpGEMMAlg_t, cusparseSpGEMMDescr_t, size_t* bytes, void* buffer)) {
  if (!a || !c) return CUSPARSE_STATUS_INVALID_VALUE;
  if (!buffer) return tell_size(h, bytes);
  c->nonzeros = a->nonzeros;
  return run(h, "spgemm", type, a->nonzeros);
}
CUSPARSE_ENTRY(cusparseSpGEMM_copy, (H, OP, OP, SCALAR, SPARSE, SPARSE, SCALAR, cusparseSpMatDescr_t c,
                                     cudaDataType type, cusparseSpGEMMAlg_t, cusparseSpGEMMDescr_t))
GT_RUN(c, "spgemm_copy", type, c->nonzeros)

CUSPARSE_ENTRY(cusparseSpSV_bufferSize, (H, OP, SCALAR, SPARSE, cusparseConstDnVecDescr_t, cusparseDnVecDescr_t,
                                         cudaDataType, cusparseSpSVAlg_t, cusparseSpSVDescr_t, size_t* bytes))
GT_SIZED CUSPARSE_ENTRY(cusparseSpSV_analysis,
                        (H, OP, SCALAR, SPARSE a, cusparseConstDnVecDescr_t, cusparseDnVecDescr_t, cudaDataType type,
                         cusparseSpSVAlg_t, cusparseSpSVDescr_t, void*)) GT_RUN(a, "spsv_analysis", type, a->rows)
    CUSPARSE_ENTRY(cusparseSpSV_solve,
                   (H, OP, SCALAR, SPARSE a, cusparseConstDnVecDescr_t, cusparseDnVecDescr_t, cudaDataType type,
                    cusparseSpSVAlg_t, cusparseSpSVDescr_t)) GT_RUN(a, "spsv_solve", type, a->rows)
        CUSPARSE_ENTRY(cusparseSpSM_bufferSize, (H, OP, OP, SCALAR, SPARSE, DENSE, cusparseDnMatDescr_t, cudaDataType,
                                                 cusparseSpSMAlg_t, cusparseSpSMDescr_t, size_t* bytes)) GT_SIZED
    CUSPARSE_ENTRY(cusparseSpSM_analysis, (H, OP, OP, SCALAR, SPARSE a, DENSE, cusparseDnMatDescr_t, cudaDataType type,
                                           cusparseSpSMAlg_t, cusparseSpSMDescr_t, void*)) GT_RUN(a, "spsm_analysis",
                                                                                                  type, a->rows)
        CUSPARSE_ENTRY(cusparseSpSM_solve, (H, OP, OP, SCALAR, SPARSE a, DENSE, cusparseDnMatDescr_t, cudaDataType type,
                                            cusparseSpSMAlg_t, cusparseSpSMDescr_t))
            GT_RUN(a, "spsm_solve", type, a->rows)

                CUSPARSE_ENTRY(cusparseSparseToDense_bufferSize,
                               (H, SPARSE, cusparseDnMatDescr_t, cusparseSparseToDenseAlg_t, size_t* bytes)) GT_SIZED
    CUSPARSE_ENTRY(cusparseSparseToDense, (H, SPARSE a, cusparseDnMatDescr_t, cusparseSparseToDenseAlg_t, void*))
        GT_RUN(a, "sparse_to_dense", a->type, a->nonzeros)
            CUSPARSE_ENTRY(cusparseXcoo2csr, (H, const int*, int nonzeros, int, int*, cusparseIndexBase_t))
                GT_RUN(true, "coo2csr", CUDA_R_32F, nonzeros)
                    CUSPARSE_ENTRY(cusparseXcsr2coo, (H, const int*, int nonzeros, int, int*, cusparseIndexBase_t))
                        GT_RUN(true, "csr2coo", CUDA_R_32F, nonzeros)
#undef H
#undef OP
#undef SPARSE
#undef DENSE
#undef SCALAR
#undef GT_RUN
#undef GT_SIZED
#undef GT_READY
