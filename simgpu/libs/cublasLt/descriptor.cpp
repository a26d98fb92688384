#include "simgpu/libs/cublasLt/descriptor.h"

#include <cstring>
#include <iterator>

namespace simlibs {
namespace {

const LtField* find(const LtField* fields, size_t count, int attribute) {
  for (size_t i = 0; i < count; ++i) {
    if (fields[i].attribute == attribute) return &fields[i];
  }
  return nullptr;
}

#define GT_FIELD(attribute, structure, member) \
  { attribute, offsetof(structure, member), sizeof(structure::member) }
constexpr LtField kLayout[] = {
    GT_FIELD(CUBLASLT_MATRIX_LAYOUT_TYPE, LtLayout, type),
    GT_FIELD(CUBLASLT_MATRIX_LAYOUT_ORDER, LtLayout, order),
    GT_FIELD(CUBLASLT_MATRIX_LAYOUT_ROWS, LtLayout, rows),
    GT_FIELD(CUBLASLT_MATRIX_LAYOUT_COLS, LtLayout, columns),
    GT_FIELD(CUBLASLT_MATRIX_LAYOUT_LD, LtLayout, ld),
    GT_FIELD(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, LtLayout, batch),
    GT_FIELD(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, LtLayout, stride),
    GT_FIELD(CUBLASLT_MATRIX_LAYOUT_PLANE_OFFSET, LtLayout, plane),
    GT_FIELD(CUBLASLT_MATRIX_LAYOUT_BATCH_MODE, LtLayout, batch_mode),
};
constexpr LtField kMatmul[] = {
    GT_FIELD(CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, LtMatmulDesc, compute),
    GT_FIELD(CUBLASLT_MATMUL_DESC_SCALE_TYPE, LtMatmulDesc, scale_type),
    GT_FIELD(CUBLASLT_MATMUL_DESC_POINTER_MODE, LtMatmulDesc, pointer_mode),
    GT_FIELD(CUBLASLT_MATMUL_DESC_TRANSA, LtMatmulDesc, op_a),
    GT_FIELD(CUBLASLT_MATMUL_DESC_TRANSB, LtMatmulDesc, op_b),
    GT_FIELD(CUBLASLT_MATMUL_DESC_TRANSC, LtMatmulDesc, op_c),
    GT_FIELD(CUBLASLT_MATMUL_DESC_FILL_MODE, LtMatmulDesc, fill_mode),
    GT_FIELD(CUBLASLT_MATMUL_DESC_EPILOGUE, LtMatmulDesc, epilogue),
    GT_FIELD(CUBLASLT_MATMUL_DESC_BIAS_POINTER, LtMatmulDesc, bias),
    GT_FIELD(CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, LtMatmulDesc, bias_stride),
    GT_FIELD(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, LtMatmulDesc, aux),
    GT_FIELD(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, LtMatmulDesc, aux_ld),
    GT_FIELD(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, LtMatmulDesc, aux_stride),
    GT_FIELD(CUBLASLT_MATMUL_DESC_ALPHA_VECTOR_BATCH_STRIDE, LtMatmulDesc, alpha_stride),
    GT_FIELD(CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, LtMatmulDesc, sm_target),
    GT_FIELD(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, LtMatmulDesc, scale_a),
    GT_FIELD(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, LtMatmulDesc, scale_b),
    GT_FIELD(CUBLASLT_MATMUL_DESC_C_SCALE_POINTER, LtMatmulDesc, scale_c),
    GT_FIELD(CUBLASLT_MATMUL_DESC_D_SCALE_POINTER, LtMatmulDesc, scale_d),
    GT_FIELD(CUBLASLT_MATMUL_DESC_AMAX_D_POINTER, LtMatmulDesc, amax_d),
    GT_FIELD(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, LtMatmulDesc, aux_type),
    GT_FIELD(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_SCALE_POINTER, LtMatmulDesc, aux_scale),
    GT_FIELD(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_AMAX_POINTER, LtMatmulDesc, aux_amax),
    GT_FIELD(CUBLASLT_MATMUL_DESC_FAST_ACCUM, LtMatmulDesc, fast_accumulation),
    GT_FIELD(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, LtMatmulDesc, bias_type),
    GT_FIELD(CUBLASLT_MATMUL_DESC_A_SCALE_MODE, LtMatmulDesc, scale_mode_a),
    GT_FIELD(CUBLASLT_MATMUL_DESC_B_SCALE_MODE, LtMatmulDesc, scale_mode_b),
    GT_FIELD(CUBLASLT_MATMUL_DESC_C_SCALE_MODE, LtMatmulDesc, scale_mode_c),
    GT_FIELD(CUBLASLT_MATMUL_DESC_D_SCALE_MODE, LtMatmulDesc, scale_mode_d),
    GT_FIELD(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_SCALE_MODE, LtMatmulDesc, aux_scale_mode),
};
constexpr LtField kPreference[] = {
    GT_FIELD(CUBLASLT_MATMUL_PREF_SEARCH_MODE, LtPreference, search_mode),
    GT_FIELD(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, LtPreference, workspace_bytes),
    GT_FIELD(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, LtPreference, reduction_mask),
    GT_FIELD(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, LtPreference, alignment_a),
    GT_FIELD(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, LtPreference, alignment_b),
    GT_FIELD(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, LtPreference, alignment_c),
    GT_FIELD(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, LtPreference, alignment_d),
    GT_FIELD(CUBLASLT_MATMUL_PREF_MAX_WAVES_COUNT, LtPreference, waves),
    GT_FIELD(CUBLASLT_MATMUL_PREF_IMPL_MASK, LtPreference, numerics),
};
constexpr LtField kTransform[] = {
    GT_FIELD(CUBLASLT_MATRIX_TRANSFORM_DESC_SCALE_TYPE, LtTransform, scale_type),
    GT_FIELD(CUBLASLT_MATRIX_TRANSFORM_DESC_POINTER_MODE, LtTransform, pointer_mode),
    GT_FIELD(CUBLASLT_MATRIX_TRANSFORM_DESC_TRANSA, LtTransform, op_a),
    GT_FIELD(CUBLASLT_MATRIX_TRANSFORM_DESC_TRANSB, LtTransform, op_b),
};
#undef GT_FIELD

template <typename Ours, typename Opaque>
cublasStatus_t init(Opaque* opaque, size_t bytes, const Ours& value) {
  if (!opaque || bytes < sizeof(Ours)) return CUBLAS_STATUS_INVALID_VALUE;
  std::memset(opaque, 0, bytes < sizeof(Opaque) ? bytes : sizeof(Opaque));
  std::memcpy(opaque, &value, sizeof value);
  return CUBLAS_STATUS_SUCCESS;
}
template <typename Ours, typename Opaque>
cublasStatus_t create(Opaque** made, const Ours& value) {
  if (!made) return CUBLAS_STATUS_INVALID_VALUE;
  *made = new Opaque;
  return init(*made, sizeof(Opaque), value);
}
template <typename Opaque>
cublasStatus_t destroy(Opaque* opaque) {
  delete opaque;
  return CUBLAS_STATUS_SUCCESS;
}

LtLayout layout(cudaDataType type, uint64_t rows, uint64_t columns, int64_t ld) {
  LtLayout value{};
  value.type = static_cast<uint32_t>(type);
  value.rows = rows;
  value.columns = columns;
  value.ld = ld;
  value.batch = 1;
  return value;
}
LtMatmulDesc matmul(cublasComputeType_t compute, cudaDataType scale) {
  LtMatmulDesc value{};
  value.compute = compute;
  value.scale_type = scale;
  value.fill_mode = CUBLAS_FILL_MODE_FULL;
  value.epilogue = 1;  // the default: none
  value.aux_type = value.bias_type = -1;
  return value;
}
LtPreference preference() {
  LtPreference value{};
  value.reduction_mask = ~0u;
  value.alignment_a = value.alignment_b = value.alignment_c = value.alignment_d = 256;
  value.numerics = ~0ull;
  return value;
}
LtTransform transform(cudaDataType scale) {
  LtTransform value{};
  value.scale_type = scale;
  return value;
}

}  // namespace

cublasStatus_t set_attribute(const LtField* fields, size_t count, void* object, int attribute, const void* value,
                             size_t bytes) {
  const LtField* field = find(fields, count, attribute);
  if (!object || !field || !value || bytes != field->bytes) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(static_cast<char*>(object) + field->offset, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t get_attribute(const LtField* fields, size_t count, const void* object, int attribute, void* value,
                             size_t bytes, size_t* written) {
  const LtField* field = find(fields, count, attribute);
  if (!object || !field) return CUBLAS_STATUS_INVALID_VALUE;
  if (written) *written = field->bytes;
  if (bytes == 0 && !value && written) return CUBLAS_STATUS_SUCCESS;
  if (!value || bytes < field->bytes) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(value, static_cast<const char*>(object) + field->offset, field->bytes);
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace simlibs

using namespace simlibs;

#define GT_DESCRIPTOR(name, handle, opaque, attributes, fields)                                                       \
  GT_EXPORT cublasStatus_t name##Destroy(handle object) { return destroy(object); }                                   \
  GT_EXPORT cublasStatus_t name##SetAttribute(handle object, attributes attribute, const void* value, size_t bytes) { \
    return set_attribute(fields, std::size(fields), object, attribute, value, bytes);                                 \
  }                                                                                                                   \
  GT_EXPORT cublasStatus_t name##GetAttribute(handle object, attributes attribute, void* value, size_t bytes,         \
                                              size_t* written) {                                                      \
    return get_attribute(fields, std::size(fields), object, attribute, value, bytes, written);                        \
  }
GT_DESCRIPTOR(cublasLtMatrixLayout, cublasLtMatrixLayout_t, cublasLtMatrixLayoutOpaque_t,
              cublasLtMatrixLayoutAttribute_t, kLayout)
GT_DESCRIPTOR(cublasLtMatmulDesc, cublasLtMatmulDesc_t, cublasLtMatmulDescOpaque_t, cublasLtMatmulDescAttributes_t,
              kMatmul)
GT_DESCRIPTOR(cublasLtMatmulPreference, cublasLtMatmulPreference_t, cublasLtMatmulPreferenceOpaque_t,
              cublasLtMatmulPreferenceAttributes_t, kPreference)
GT_DESCRIPTOR(cublasLtMatrixTransformDesc, cublasLtMatrixTransformDesc_t, cublasLtMatrixTransformDescOpaque_t,
              cublasLtMatrixTransformDescAttributes_t, kTransform)

GT_EXPORT cublasStatus_t cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t object, size_t bytes,
                                                           cudaDataType type, uint64_t rows, uint64_t columns,
                                                           int64_t ld) {
  return init(object, bytes, layout(type, rows, columns, ld));
}
GT_EXPORT cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* made, cudaDataType type, uint64_t rows,
                                                    uint64_t columns, int64_t ld) {
  return create(made, layout(type, rows, columns, ld));
}
GT_EXPORT cublasStatus_t cublasLtMatmulDescInit_internal(cublasLtMatmulDesc_t object, size_t bytes,
                                                         cublasComputeType_t compute, cudaDataType_t scale) {
  return init(object, bytes, matmul(compute, scale));
}
GT_EXPORT cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* made, cublasComputeType_t compute,
                                                  cudaDataType_t scale) {
  return create(made, matmul(compute, scale));
}
GT_EXPORT cublasStatus_t cublasLtMatmulPreferenceInit_internal(cublasLtMatmulPreference_t object, size_t bytes) {
  return init(object, bytes, preference());
}
GT_EXPORT cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* made) {
  return create(made, preference());
}
GT_EXPORT cublasStatus_t cublasLtMatrixTransformDescInit_internal(cublasLtMatrixTransformDesc_t object, size_t bytes,
                                                                  cudaDataType scale) {
  return init(object, bytes, transform(scale));
}
GT_EXPORT cublasStatus_t cublasLtMatrixTransformDescCreate(cublasLtMatrixTransformDesc_t* made, cudaDataType scale) {
  return create(made, transform(scale));
}
