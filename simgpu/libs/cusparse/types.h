// The types and numbers of cuSPARSE's documented interface that the stand-in uses. With SIMLIBS_VENDOR_HEADERS the vendor's
// header takes their place, and the compiler holds every function that we define against its declaration.
#pragma once

#if defined(SIMLIBS_VENDOR_HEADERS)
#include <cusparse.h>
#else
#include <cuComplex.h>
#include <driver_types.h>
#include <library_types.h>

#include <cstdint>

using cusparseHandle_t = struct cusparseContext*;
using cusparseMatDescr_t = struct cusparseMatDescr*;
using cusparseSpVecDescr_t = struct cusparseSpVecDescr*;
using cusparseDnVecDescr_t = struct cusparseDnVecDescr*;
using cusparseSpMatDescr_t = struct cusparseSpMatDescr*;
using cusparseDnMatDescr_t = struct cusparseDnMatDescr*;
using cusparseConstSpVecDescr_t = const cusparseSpVecDescr*;
using cusparseConstDnVecDescr_t = const cusparseDnVecDescr*;
using cusparseConstSpMatDescr_t = const cusparseSpMatDescr*;
using cusparseConstDnMatDescr_t = const cusparseDnMatDescr*;
using cusparseSpSVDescr_t = struct cusparseSpSVDescr*;
using cusparseSpSMDescr_t = struct cusparseSpSMDescr*;
using cusparseSpGEMMDescr_t = struct cusparseSpGEMMDescr*;

enum cusparseStatus_t : int {
  CUSPARSE_STATUS_SUCCESS = 0,
  CUSPARSE_STATUS_NOT_INITIALIZED = 1,
  CUSPARSE_STATUS_INVALID_VALUE = 3,
  CUSPARSE_STATUS_EXECUTION_FAILED = 6,
  CUSPARSE_STATUS_NOT_SUPPORTED = 10
};
enum cusparsePointerMode_t : int { CUSPARSE_POINTER_MODE_HOST = 0, CUSPARSE_POINTER_MODE_DEVICE = 1 };
enum cusparseMatrixType_t : int { CUSPARSE_MATRIX_TYPE_GENERAL = 0 };
enum cusparseFillMode_t : int { CUSPARSE_FILL_MODE_LOWER = 0, CUSPARSE_FILL_MODE_UPPER = 1 };
enum cusparseDiagType_t : int { CUSPARSE_DIAG_TYPE_NON_UNIT = 0, CUSPARSE_DIAG_TYPE_UNIT = 1 };
enum cusparseIndexBase_t : int { CUSPARSE_INDEX_BASE_ZERO = 0, CUSPARSE_INDEX_BASE_ONE = 1 };
enum cusparseOperation_t : int { CUSPARSE_OPERATION_NON_TRANSPOSE = 0, CUSPARSE_OPERATION_TRANSPOSE = 1 };
enum cusparseIndexType_t : int { CUSPARSE_INDEX_32I = 2, CUSPARSE_INDEX_64I = 3 };
enum cusparseOrder_t : int { CUSPARSE_ORDER_COL = 1, CUSPARSE_ORDER_ROW = 2 };
enum cusparseSpMatAttribute_t : int { CUSPARSE_SPMAT_FILL_MODE, CUSPARSE_SPMAT_DIAG_TYPE };
enum cusparseSpMVAlg_t : int { CUSPARSE_SPMV_ALG_DEFAULT = 0 };
enum cusparseSpMMAlg_t : int { CUSPARSE_SPMM_ALG_DEFAULT = 0 };
enum cusparseSpSVAlg_t : int { CUSPARSE_SPSV_ALG_DEFAULT = 0 };
enum cusparseSpSMAlg_t : int { CUSPARSE_SPSM_ALG_DEFAULT = 0 };
enum cusparseSpGEMMAlg_t : int { CUSPARSE_SPGEMM_DEFAULT = 0 };
enum cusparseSDDMMAlg_t : int { CUSPARSE_SDDMM_ALG_DEFAULT = 0 };
enum cusparseSparseToDenseAlg_t : int { CUSPARSE_SPARSETODENSE_ALG_DEFAULT = 0 };
enum cusparseDenseToSparseAlg_t : int { CUSPARSE_DENSETOSPARSE_ALG_DEFAULT = 0 };
#endif
