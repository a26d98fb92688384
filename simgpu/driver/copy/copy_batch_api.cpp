// cuMemcpyBatchAsync and cuMemcpy3DBatchAsync: each member is a copy of its own.
#include <algorithm>

#include "simgpu/driver/copy/copy_submit.h"

using namespace simgpu;

namespace {

constexpr size_t kNoMember = ~size_t{0};  // what failIdx says when no single member is to blame

// The default streams' legacy one is not taken.
bool is_legacy_stream(const Call& call, CUstream stream) {
  return stream == CU_STREAM_LEGACY || (stream == nullptr && call.default_stream() == DefaultStream::legacy);
}

struct LinearBatch {
  const CUdeviceptr* dsts;
  const CUdeviceptr* srcs;
  const size_t* sizes;
  size_t count;
  const CUmemcpyAttributes* attributes;
  const size_t* attribute_starts;
  size_t attribute_count;
};

CUresult check(const LinearBatch& batch) {
  if (batch.count == 0 || batch.dsts == nullptr || batch.srcs == nullptr || batch.sizes == nullptr) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (batch.attribute_count == 0 || batch.attribute_count > batch.count) return CUDA_ERROR_INVALID_VALUE;
  if (batch.attributes == nullptr || batch.attribute_starts == nullptr || batch.attribute_starts[0] != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  for (size_t i = 0; i < batch.attribute_count; ++i) {
    const CUmemcpySrcAccessOrder order = batch.attributes[i].srcAccessOrder;
    if (order <= CU_MEMCPY_SRC_ACCESS_ORDER_INVALID || order > CU_MEMCPY_SRC_ACCESS_ORDER_ANY)
      return CUDA_ERROR_INVALID_VALUE;
    if (i > 0 && batch.attribute_starts[i] <= batch.attribute_starts[i - 1]) return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CUresult submit_batch(Call& call, const LinearBatch& batch, size_t* failed, CUstream stream) {
  if (failed != nullptr) *failed = kNoMember;
  if (is_legacy_stream(call, stream)) return CUDA_ERROR_INVALID_VALUE;
  if (CUresult result = check(batch); result != CUDA_SUCCESS) return result;
  for (size_t i = 0; i < batch.count; ++i) {
    const CUDA_MEMCPY3D_PEER one =
        linear_description(CU_MEMORYTYPE_UNIFIED, batch.dsts[i], CU_MEMORYTYPE_UNIFIED, batch.srcs[i], batch.sizes[i]);
    const CUresult result = batch.sizes[i] == 0 ? CUDA_ERROR_INVALID_VALUE : submit_copy(call, stream, true, one);
    if (result == CUDA_SUCCESS) continue;
    if (failed != nullptr) *failed = i;
    return result;
  }
  return CUDA_SUCCESS;
}

// Elements are bytes, unless an array says otherwise.
size_t element_bytes(const CUDA_MEMCPY3D_BATCH_OP& op) {
  for (const CUmemcpy3DOperand* side : {&op.src, &op.dst}) {
    if (side->type != CU_MEMCPY_OPERAND_TYPE_ARRAY) continue;
    if (const auto* array = live<Array>(side->op.array.array)) return array->element_bytes;
  }
  return 1;
}

CUresult describe(const CUDA_MEMCPY3D_BATCH_OP& op, CUDA_MEMCPY3D_PEER* d) {
  if (op.extent.width == 0 || op.extent.height == 0 || op.extent.depth == 0) return CUDA_ERROR_INVALID_VALUE;
  const size_t element = element_bytes(op);
  *d = CUDA_MEMCPY3D_PEER{};
  d->WidthInBytes = op.extent.width * element;
  d->Height = op.extent.height;
  d->Depth = op.extent.depth;
  if (op.dst.type == CU_MEMCPY_OPERAND_TYPE_POINTER) {
    d->dstMemoryType = CU_MEMORYTYPE_UNIFIED;
    d->dstDevice = op.dst.op.ptr.ptr;
    d->dstPitch = op.dst.op.ptr.rowLength * element;
    d->dstHeight = op.dst.op.ptr.layerHeight;
  } else if (op.dst.type == CU_MEMCPY_OPERAND_TYPE_ARRAY) {
    d->dstMemoryType = CU_MEMORYTYPE_ARRAY;
    d->dstArray = op.dst.op.array.array;
    d->dstXInBytes = op.dst.op.array.offset.x * element;
    d->dstY = op.dst.op.array.offset.y;
    d->dstZ = op.dst.op.array.offset.z;
  } else {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (op.src.type == CU_MEMCPY_OPERAND_TYPE_POINTER) {
    d->srcMemoryType = CU_MEMORYTYPE_UNIFIED;
    d->srcDevice = op.src.op.ptr.ptr;
    d->srcPitch = op.src.op.ptr.rowLength * element;
    d->srcHeight = op.src.op.ptr.layerHeight;
  } else if (op.src.type == CU_MEMCPY_OPERAND_TYPE_ARRAY) {
    d->srcMemoryType = CU_MEMORYTYPE_ARRAY;
    d->srcArray = op.src.op.array.array;
    d->srcXInBytes = op.src.op.array.offset.x * element;
    d->srcY = op.src.op.array.offset.y;
    d->srcZ = op.src.op.array.offset.z;
  } else {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CUresult submit_batch_3d(Call& call, size_t count, const CUDA_MEMCPY3D_BATCH_OP* ops, size_t* failed,
                         unsigned long long flags, CUstream stream) {
  if (failed != nullptr) *failed = kNoMember;
  if (count == 0 || ops == nullptr || flags != 0 || is_legacy_stream(call, stream)) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    CUDA_MEMCPY3D_PEER one;
    CUresult result = describe(ops[i], &one);
    if (result == CUDA_SUCCESS) result = submit_copy(call, stream, true, one);
    if (result == CUDA_SUCCESS) continue;
    if (failed != nullptr) *failed = i;
    return result;
  }
  return CUDA_SUCCESS;
}

}  // namespace

SIM_API_PTSZ(cuMemcpyBatchAsync, "cuMemcpyBatchAsync",
             (CUdeviceptr * dsts, CUdeviceptr* srcs, size_t* sizes, size_t count, CUmemcpyAttributes* attributes,
              size_t* starts, size_t attribute_count, size_t* failed, CUstream stream),
             (dsts, srcs, sizes, count, attributes, starts, attribute_count, failed, stream)) {
  return submit_batch(call, {dsts, srcs, sizes, count, attributes, starts, attribute_count}, failed, stream);
}

SIM_API_PTSZ(cuMemcpyBatchAsync_v2, "cuMemcpyBatchAsync",
             (CUdeviceptr * dsts, CUdeviceptr* srcs, size_t* sizes, size_t count, CUmemcpyAttributes* attributes,
              size_t* starts, size_t attribute_count, CUstream stream),
             (dsts, srcs, sizes, count, attributes, starts, attribute_count, stream)) {
  return submit_batch(call, {dsts, srcs, sizes, count, attributes, starts, attribute_count}, nullptr, stream);
}

SIM_API_PTSZ(cuMemcpy3DBatchAsync, "cuMemcpy3DBatchAsync",
             (size_t count, CUDA_MEMCPY3D_BATCH_OP* ops, size_t* failed, unsigned long long flags, CUstream stream),
             (count, ops, failed, flags, stream)) {
  return submit_batch_3d(call, count, ops, failed, flags, stream);
}

SIM_API_PTSZ(cuMemcpy3DBatchAsync_v2, "cuMemcpy3DBatchAsync",
             (size_t count, CUDA_MEMCPY3D_BATCH_OP* ops, unsigned long long flags, CUstream stream),
             (count, ops, flags, stream)) {
  return submit_batch_3d(call, count, ops, nullptr, flags, stream);
}
