// What handles and descriptors keep.
#pragma once

#include <cuda.h>

#include "simgpu/libs/cusparse/types.h"

struct cusparseContext {
  static constexpr unsigned kLives = 0x73707273;
  unsigned lives = kLives;  // a handle that was destroyed is not taken
  CUstream stream = nullptr;
  cusparsePointerMode_t pointer_mode = CUSPARSE_POINTER_MODE_HOST;
};
struct cusparseMatDescr {
  cusparseMatrixType_t type = CUSPARSE_MATRIX_TYPE_GENERAL;
  cusparseFillMode_t fill = CUSPARSE_FILL_MODE_LOWER;
  cusparseDiagType_t diagonal = CUSPARSE_DIAG_TYPE_NON_UNIT;
  cusparseIndexBase_t base = CUSPARSE_INDEX_BASE_ZERO;
};
struct cusparseSpMatDescr {
  int64_t rows = 0, columns = 0, nonzeros = 0;
  const void *offsets = nullptr, *indices = nullptr;
  void* values = nullptr;
  cudaDataType type = CUDA_R_32F;
  cusparseFillMode_t fill = CUSPARSE_FILL_MODE_LOWER;
  cusparseDiagType_t diagonal = CUSPARSE_DIAG_TYPE_NON_UNIT;
  int batch = 1;
};
struct cusparseDnMatDescr {
  int64_t rows = 0, columns = 0, ld = 0;
  void* values = nullptr;
  cudaDataType type = CUDA_R_32F;
  cusparseOrder_t order = CUSPARSE_ORDER_COL;
  int batch = 1;
};
struct cusparseDnVecDescr {
  int64_t size = 0;
  void* values = nullptr;
  cudaDataType type = CUDA_R_32F;
};

namespace simlibs {

inline bool lives(cusparseHandle_t handle) { return handle && handle->lives == cusparseContext::kLives; }

}  // namespace simlibs
