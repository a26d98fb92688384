// cuBLASLt's descriptors: what they keep lies in the caller's opaque structure itself, since callers may copy it.
#pragma once

#include "simgpu/libs/common/launch.h"
#include "simgpu/libs/cublasLt/types.h"

struct cublasLtContext {
  simlibs::DeviceFacts device;
};

namespace simlibs {

struct LtLayout {
  uint32_t type;
  int32_t order;
  uint64_t rows, columns;
  int64_t ld;
  int32_t batch;
  uint32_t batch_mode;
  int64_t stride;
  uint64_t plane;
};
struct LtMatmulDesc {
  int32_t compute, scale_type, pointer_mode, op_a, op_b, op_c, fill_mode;
  uint32_t epilogue;
  void *bias, *aux;
  int64_t bias_stride, aux_ld, aux_stride, alpha_stride;
  void *scale_a, *scale_b, *scale_c, *scale_d, *amax_d, *aux_scale, *aux_amax;
  int32_t sm_target, aux_type, bias_type;
  int32_t scale_mode_a, scale_mode_b, scale_mode_c, scale_mode_d, aux_scale_mode;
  int8_t fast_accumulation;
};
struct LtPreference {
  uint32_t search_mode, reduction_mask;
  uint64_t workspace_bytes;
  uint32_t alignment_a, alignment_b, alignment_c, alignment_d;
  float waves;
  uint64_t numerics;
};
struct LtTransform {
  int32_t scale_type, pointer_mode, op_a, op_b;
};
struct LtAlgorithm {
  static constexpr uint32_t kKnown = 0x73616c67;
  uint32_t known;
  int32_t index, tile, slices;
  uint32_t reduction, swizzling, custom, stages;
  uint16_t inner, cluster;
  int32_t math;  // simlibs::Math
};
static_assert(sizeof(LtLayout) <= 64 && sizeof(LtMatmulDesc) <= sizeof(cublasLtMatmulDescOpaque_t) &&
              sizeof(LtPreference) <= sizeof(cublasLtMatmulPreferenceOpaque_t) &&
              sizeof(LtTransform) <= sizeof(cublasLtMatrixTransformDescOpaque_t) &&
              sizeof(LtAlgorithm) <= sizeof(cublasLtMatmulAlgo_t));

template <typename Ours, typename Theirs>
Ours& in(Theirs* opaque) {
  return *reinterpret_cast<Ours*>(opaque);
}
template <typename Ours, typename Theirs>
const Ours& in(const Theirs* opaque) {
  return *reinterpret_cast<const Ours*>(opaque);
}

// Where an attribute lies.
struct LtField {
  int attribute;
  size_t offset, bytes;
};
// The getters and setters of all of them: `written` may be null; with no room and no buffer they tell the size.
cublasStatus_t set_attribute(const LtField* fields, size_t count, void* object, int attribute, const void* value,
                             size_t bytes);
cublasStatus_t get_attribute(const LtField* fields, size_t count, const void* object, int attribute, void* value,
                             size_t bytes, size_t* written);

}  // namespace simlibs
