// Handles and descriptors.
#include <cstring>

#include "simgpu/libs/common/launch.h"
#include "simgpu/libs/common/version.h"
#include "simgpu/libs/cusparse/entry.h"
#include "simgpu/libs/cusparse/matrix.h"

namespace {

using simlibs::lives;

template <typename Object>
cusparseStatus_t give(Object** out, const Object& made) {
  if (!out) return CUSPARSE_STATUS_INVALID_VALUE;
  *out = new Object(made);
  return CUSPARSE_STATUS_SUCCESS;
}
template <typename Object>
cusparseStatus_t drop(const Object* object) {
  delete object;
  return CUSPARSE_STATUS_SUCCESS;
}
template <typename Object, typename Member, typename Value>
cusparseStatus_t set(Object* object, Member member, Value value) {
  if (!object) return CUSPARSE_STATUS_INVALID_VALUE;
  object->*member = value;
  return CUSPARSE_STATUS_SUCCESS;
}

}  // namespace

CUSPARSE_ENTRY(cusparseCreate, (cusparseHandle_t * out)) {
  return simlibs::enter_context() == CUDA_SUCCESS ? give(out, cusparseContext{}) : CUSPARSE_STATUS_NOT_INITIALIZED;
}
CUSPARSE_ENTRY(cusparseDestroy, (cusparseHandle_t handle)) {
  if (!lives(handle)) return CUSPARSE_STATUS_NOT_INITIALIZED;
  handle->lives = 0;
  return drop(handle);
}
CUSPARSE_ENTRY(cusparseGetVersion, (cusparseHandle_t, int* version)) {
  if (!version) return CUSPARSE_STATUS_INVALID_VALUE;
  *version = 12600;
  return CUSPARSE_STATUS_SUCCESS;
}
CUSPARSE_ENTRY(cusparseGetProperty, (libraryPropertyType type, int* value)) {
  if (!value) return CUSPARSE_STATUS_INVALID_VALUE;
  *value = type == MAJOR_VERSION ? 12 : type == MINOR_VERSION ? 6 : 0;
  return CUSPARSE_STATUS_SUCCESS;
}
extern "C" __attribute__((visibility("default"))) const char* cusparseGetErrorName(cusparseStatus_t status) {
  return status == CUSPARSE_STATUS_SUCCESS         ? "CUSPARSE_STATUS_SUCCESS"
         : status == CUSPARSE_STATUS_NOT_SUPPORTED ? "CUSPARSE_STATUS_NOT_SUPPORTED"
                                                   : "CUSPARSE_STATUS_ERROR";
}
extern "C" __attribute__((visibility("default"))) const char* cusparseGetErrorString(cusparseStatus_t status) {
  return status == CUSPARSE_STATUS_SUCCESS         ? "success"
         : status == CUSPARSE_STATUS_NOT_SUPPORTED ? "operation not supported"
                                                   : "error";
}
CUSPARSE_ENTRY(cusparseSetStream, (cusparseHandle_t handle, cudaStream_t stream)) {
  return lives(handle) ? set(handle, &cusparseContext::stream, reinterpret_cast<CUstream>(stream))
                       : CUSPARSE_STATUS_NOT_INITIALIZED;
}
CUSPARSE_ENTRY(cusparseGetStream, (cusparseHandle_t handle, cudaStream_t* stream)) {
  if (!lives(handle)) return CUSPARSE_STATUS_NOT_INITIALIZED;
  if (!stream) return CUSPARSE_STATUS_INVALID_VALUE;
  *stream = reinterpret_cast<cudaStream_t>(handle->stream);
  return CUSPARSE_STATUS_SUCCESS;
}
CUSPARSE_ENTRY(cusparseSetPointerMode, (cusparseHandle_t handle, cusparsePointerMode_t mode)) {
  return lives(handle) ? set(handle, &cusparseContext::pointer_mode, mode) : CUSPARSE_STATUS_NOT_INITIALIZED;
}
CUSPARSE_ENTRY(cusparseGetPointerMode, (cusparseHandle_t handle, cusparsePointerMode_t* mode)) {
  if (!lives(handle)) return CUSPARSE_STATUS_NOT_INITIALIZED;
  if (!mode) return CUSPARSE_STATUS_INVALID_VALUE;
  *mode = handle->pointer_mode;
  return CUSPARSE_STATUS_SUCCESS;
}

CUSPARSE_ENTRY(cusparseCreateMatDescr, (cusparseMatDescr_t * out)) { return give(out, cusparseMatDescr{}); }
CUSPARSE_ENTRY(cusparseDestroyMatDescr, (cusparseMatDescr_t matrix)) { return drop(matrix); }
CUSPARSE_ENTRY(cusparseSetMatType, (cusparseMatDescr_t matrix, cusparseMatrixType_t type)) {
  return set(matrix, &cusparseMatDescr::type, type);
}
CUSPARSE_ENTRY(cusparseSetMatFillMode, (cusparseMatDescr_t matrix, cusparseFillMode_t fill)) {
  return set(matrix, &cusparseMatDescr::fill, fill);
}
CUSPARSE_ENTRY(cusparseSetMatDiagType, (cusparseMatDescr_t matrix, cusparseDiagType_t type)) {
  return set(matrix, &cusparseMatDescr::diagonal, type);
}
CUSPARSE_ENTRY(cusparseSetMatIndexBase, (cusparseMatDescr_t matrix, cusparseIndexBase_t base)) {
  return set(matrix, &cusparseMatDescr::base, base);
}

CUSPARSE_ENTRY(cusparseCreateCsr, (cusparseSpMatDescr_t * out, int64_t rows, int64_t columns, int64_t nonzeros,
                                   void* offsets, void* indices, void* values, cusparseIndexType_t, cusparseIndexType_t,
                                   cusparseIndexBase_t, cudaDataType type)) {
  return give(out, {rows, columns, nonzeros, offsets, indices, values, type});
}
CUSPARSE_ENTRY(cusparseCreateConstCsr,
               (cusparseConstSpMatDescr_t * out, int64_t rows, int64_t columns, int64_t nonzeros, const void* offsets,
                const void* indices, const void* values, cusparseIndexType_t, cusparseIndexType_t, cusparseIndexBase_t,
                cudaDataType type)) {
  return give(const_cast<cusparseSpMatDescr_t*>(out),
              {rows, columns, nonzeros, offsets, indices, const_cast<void*>(values), type});
}
CUSPARSE_ENTRY(cusparseCreateCsc, (cusparseSpMatDescr_t * out, int64_t rows, int64_t columns, int64_t nonzeros,
                                   void* offsets, void* indices, void* values, cusparseIndexType_t, cusparseIndexType_t,
                                   cusparseIndexBase_t, cudaDataType type)) {
  return give(out, {rows, columns, nonzeros, offsets, indices, values, type});
}
CUSPARSE_ENTRY(cusparseCreateCoo,
               (cusparseSpMatDescr_t * out, int64_t rows, int64_t columns, int64_t nonzeros, void* row_indices,
                void* indices, void* values, cusparseIndexType_t, cusparseIndexBase_t, cudaDataType type)) {
  return give(out, {rows, columns, nonzeros, row_indices, indices, values, type});
}
CUSPARSE_ENTRY(cusparseDestroySpMat, (cusparseConstSpMatDescr_t matrix)) { return drop(matrix); }
CUSPARSE_ENTRY(cusparseCsrSetPointers, (cusparseSpMatDescr_t matrix, void* offsets, void* indices, void* values)) {
  if (!matrix) return CUSPARSE_STATUS_INVALID_VALUE;
  matrix->offsets = offsets;
  matrix->indices = indices;
  matrix->values = values;
  return CUSPARSE_STATUS_SUCCESS;
}
CUSPARSE_ENTRY(cusparseSpMatGetSize,
               (cusparseConstSpMatDescr_t matrix, int64_t* rows, int64_t* columns, int64_t* nonzeros)) {
  if (!matrix || !rows || !columns || !nonzeros) return CUSPARSE_STATUS_INVALID_VALUE;
  *rows = matrix->rows;
  *columns = matrix->columns;
  *nonzeros = matrix->nonzeros;
  return CUSPARSE_STATUS_SUCCESS;
}
CUSPARSE_ENTRY(cusparseSpMatGetValues, (cusparseSpMatDescr_t matrix, void** values)) {
  if (!matrix || !values) return CUSPARSE_STATUS_INVALID_VALUE;
  *values = matrix->values;
  return CUSPARSE_STATUS_SUCCESS;
}
CUSPARSE_ENTRY(cusparseSpMatSetValues, (cusparseSpMatDescr_t matrix, void* values)) {
  return set(matrix, &cusparseSpMatDescr::values, values);
}
CUSPARSE_ENTRY(cusparseSpMatSetAttribute,
               (cusparseSpMatDescr_t matrix, cusparseSpMatAttribute_t attribute, void* data, size_t bytes)) {
  if (!matrix || !data || bytes != sizeof(int)) return CUSPARSE_STATUS_INVALID_VALUE;
  if (attribute == CUSPARSE_SPMAT_FILL_MODE) std::memcpy(&matrix->fill, data, bytes);
  if (attribute == CUSPARSE_SPMAT_DIAG_TYPE) std::memcpy(&matrix->diagonal, data, bytes);
  return CUSPARSE_STATUS_SUCCESS;
}
CUSPARSE_ENTRY(cusparseCsrSetStridedBatch, (cusparseSpMatDescr_t matrix, int batch, int64_t, int64_t)) {
  return set(matrix, &cusparseSpMatDescr::batch, batch);
}
CUSPARSE_ENTRY(cusparseCooSetStridedBatch, (cusparseSpMatDescr_t matrix, int batch, int64_t)) {
  return set(matrix, &cusparseSpMatDescr::batch, batch);
}

CUSPARSE_ENTRY(cusparseCreateDnMat, (cusparseDnMatDescr_t * out, int64_t rows, int64_t columns, int64_t ld,
                                     void* values, cudaDataType type, cusparseOrder_t order)) {
  return give(out, {rows, columns, ld, values, type, order});
}
CUSPARSE_ENTRY(cusparseCreateConstDnMat, (cusparseConstDnMatDescr_t * out, int64_t rows, int64_t columns, int64_t ld,
                                          const void* values, cudaDataType type, cusparseOrder_t order)) {
  return give(const_cast<cusparseDnMatDescr_t*>(out), {rows, columns, ld, const_cast<void*>(values), type, order});
}
CUSPARSE_ENTRY(cusparseDestroyDnMat, (cusparseConstDnMatDescr_t matrix)) { return drop(matrix); }
CUSPARSE_ENTRY(cusparseDnMatGet, (cusparseDnMatDescr_t matrix, int64_t* rows, int64_t* columns, int64_t* ld,
                                  void** values, cudaDataType* type, cusparseOrder_t* order)) {
  if (!matrix || !rows || !columns || !ld || !values || !type || !order) return CUSPARSE_STATUS_INVALID_VALUE;
  *rows = matrix->rows;
  *columns = matrix->columns;
  *ld = matrix->ld;
  *values = matrix->values;
  *type = matrix->type;
  *order = matrix->order;
  return CUSPARSE_STATUS_SUCCESS;
}
CUSPARSE_ENTRY(cusparseDnMatSetValues, (cusparseDnMatDescr_t matrix, void* values)) {
  return set(matrix, &cusparseDnMatDescr::values, values);
}
CUSPARSE_ENTRY(cusparseDnMatSetStridedBatch, (cusparseDnMatDescr_t matrix, int batch, int64_t)) {
  return set(matrix, &cusparseDnMatDescr::batch, batch);
}
CUSPARSE_ENTRY(cusparseCreateDnVec, (cusparseDnVecDescr_t * out, int64_t size, void* values, cudaDataType type)) {
  return give(out, {size, values, type});
}
CUSPARSE_ENTRY(cusparseCreateConstDnVec,
               (cusparseConstDnVecDescr_t * out, int64_t size, const void* values, cudaDataType type)) {
  return give(const_cast<cusparseDnVecDescr_t*>(out), {size, const_cast<void*>(values), type});
}
CUSPARSE_ENTRY(cusparseDestroyDnVec, (cusparseConstDnVecDescr_t vector)) { return drop(vector); }
CUSPARSE_ENTRY(cusparseDnVecGet, (cusparseDnVecDescr_t vector, int64_t* size, void** values, cudaDataType* type)) {
  if (!vector || !size || !values || !type) return CUSPARSE_STATUS_INVALID_VALUE;
  *size = vector->size;
  *values = vector->values;
  *type = vector->type;
  return CUSPARSE_STATUS_SUCCESS;
}
CUSPARSE_ENTRY(cusparseDnVecSetValues, (cusparseDnVecDescr_t vector, void* values)) {
  return set(vector, &cusparseDnVecDescr::values, values);
}

// What is kept between the phases of a solution or a product: nothing.
#define GT_PHASES(name)                                                             \
  CUSPARSE_ENTRY(cusparse##name##_createDescr, (cusparse##name##Descr_t * out)) {   \
    if (!out) return CUSPARSE_STATUS_INVALID_VALUE;                                 \
    *out = reinterpret_cast<cusparse##name##Descr_t>(new char);                     \
    return CUSPARSE_STATUS_SUCCESS;                                                 \
  }                                                                                 \
  CUSPARSE_ENTRY(cusparse##name##_destroyDescr, (cusparse##name##Descr_t phases)) { \
    delete reinterpret_cast<char*>(phases);                                         \
    return CUSPARSE_STATUS_SUCCESS;                                                 \
  }
GT_PHASES(SpSV)
GT_PHASES(SpSM)
GT_PHASES(SpGEMM)
#undef GT_PHASES
