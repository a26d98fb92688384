// cuMemcpy*: linear, 2D, 3D, arrays, peers.
//   · Data moves when the call is made, unless a host function or a wait is queued before it in its stream.
//   · A copy with pageable host memory that is asked for as asynchronous returns when the host's buffer may be used
//     again.
#include "simgpu/driver/copy/copy_submit.h"

#include "simgpu/driver/graph/capture.h"
#include "simgpu/driver/time/timeline.h"

namespace simgpu {

namespace {

constexpr uint64_t kStagingBytes = 64 * 1024;  // what a pageable copy to the device leaves in a staging buffer

bool waits(const Copy& copy, bool async) {
  if (!async) return copy.kind != CopyKind::DtoD && copy.kind != CopyKind::PtoP;
  if (!copy.host_pageable()) return false;
  return copy.kind == CopyKind::DtoH || copy.kind == CopyKind::HtoH || copy.bytes() > kStagingBytes;
}

}  // namespace

CUresult submit_copy(Call& call, CUstream handle, bool async, const CUDA_MEMCPY3D_PEER& description) {
  Context* context = call.context();
  Stream* stream = call.stream(handle);
  if (stream == nullptr) return call.stream_error(handle);
  if (context == nullptr) context = stream->context;
  Copy copy;
  if (CUresult result = describe_copy(description, context, &copy); result != CUDA_SUCCESS) return result;
  copy.async = async;
  if (capturing(*stream)) return capture_copy(call, *stream, copy, without_peer(description));
  if (CUresult refused = capture_refuses_legacy(call, *stream); refused != CUDA_SUCCESS) return refused;
  if (!async) {
    if (CUresult refused = capture_refuses_unsafe(call); refused != CUDA_SUCCESS) return refused;
  }
  if (copy.bytes() == 0) return CUDA_SUCCESS;
  const auto run = [copy, origin = Origin::of(call, *stream, async)](Nanos ready) {
    origin.stream->last_kernel_start = 0;
    return perform(copy, origin, ready).end;
  };
  if (deferring(*stream)) {
    in_order(call, *stream, run);
    if (!async || copy.host_pageable()) stream_wait_host(*stream);
    return CUDA_SUCCESS;
  }
  const Nanos end = at_once(*stream, call.begin() + knobs().launch_latency, run);
  if (waits(copy, async)) wait_until(end);
  return CUDA_SUCCESS;
}

namespace {

CUresult linear(Call& call, CUstream stream, bool async, CUmemorytype dst_type, uint64_t dst, CUmemorytype src_type,
                uint64_t src, size_t bytes) {
  return submit_copy(call, stream, async, linear_description(dst_type, dst, src_type, src, bytes));
}

uint64_t address(const void* p) { return reinterpret_cast<uint64_t>(p); }

// From or to `offset` in a 1D array (the first row of any).
CUDA_MEMCPY3D_PEER array_description(size_t bytes) {
  CUDA_MEMCPY3D_PEER d{};
  d.WidthInBytes = bytes;
  d.Height = d.Depth = 1;
  return d;
}

void to_array(CUDA_MEMCPY3D_PEER& d, CUarray array, size_t offset) {
  d.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  d.dstArray = array;
  d.dstXInBytes = offset;
}

void from_array(CUDA_MEMCPY3D_PEER& d, CUarray array, size_t offset) {
  d.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  d.srcArray = array;
  d.srcXInBytes = offset;
}

void to_host(CUDA_MEMCPY3D_PEER& d, void* p) {
  d.dstMemoryType = CU_MEMORYTYPE_HOST;
  d.dstHost = p;
}

void from_host(CUDA_MEMCPY3D_PEER& d, const void* p) {
  d.srcMemoryType = CU_MEMORYTYPE_HOST;
  d.srcHost = p;
}

CUDA_MEMCPY3D_PEER rows_description(const CUDA_MEMCPY2D& from) {
  CUDA_MEMCPY3D_PEER d{};
  d.srcXInBytes = from.srcXInBytes;
  d.srcY = from.srcY;
  d.srcMemoryType = from.srcMemoryType;
  d.srcHost = from.srcHost;
  d.srcDevice = from.srcDevice;
  d.srcArray = from.srcArray;
  d.srcPitch = from.srcPitch;
  d.dstXInBytes = from.dstXInBytes;
  d.dstY = from.dstY;
  d.dstMemoryType = from.dstMemoryType;
  d.dstHost = from.dstHost;
  d.dstDevice = from.dstDevice;
  d.dstArray = from.dstArray;
  d.dstPitch = from.dstPitch;
  d.WidthInBytes = from.WidthInBytes;
  d.Height = from.Height;
  d.Depth = 1;
  return d;
}

CUresult peer_copy(Call& call, CUstream stream, bool async, CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src,
                   CUcontext src_context, size_t bytes) {
  if (live<Context>(dst_context) == nullptr || live<Context>(src_context) == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  return linear(call, stream, async, CU_MEMORYTYPE_DEVICE, dst, CU_MEMORYTYPE_DEVICE, src, bytes);
}

}  // namespace

}  // namespace simgpu

using namespace simgpu;

SIM_API_PTDS(cuMemcpy, "cuMemcpy", (CUdeviceptr dst, CUdeviceptr src, size_t bytes), (dst, src, bytes)) {
  return linear(call, nullptr, false, CU_MEMORYTYPE_UNIFIED, dst, CU_MEMORYTYPE_UNIFIED, src, bytes);
}
SIM_API_PTSZ(cuMemcpyAsync, "cuMemcpyAsync", (CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream),
             (dst, src, bytes, stream)) {
  return linear(call, stream, true, CU_MEMORYTYPE_UNIFIED, dst, CU_MEMORYTYPE_UNIFIED, src, bytes);
}
SIM_API_PTDS(cuMemcpyHtoD_v2, "cuMemcpyHtoD", (CUdeviceptr dst, const void* src, size_t bytes), (dst, src, bytes)) {
  return linear(call, nullptr, false, CU_MEMORYTYPE_DEVICE, dst, CU_MEMORYTYPE_HOST, address(src), bytes);
}
SIM_API_PTSZ(cuMemcpyHtoDAsync_v2, "cuMemcpyHtoDAsync",
             (CUdeviceptr dst, const void* src, size_t bytes, CUstream stream), (dst, src, bytes, stream)) {
  return linear(call, stream, true, CU_MEMORYTYPE_DEVICE, dst, CU_MEMORYTYPE_HOST, address(src), bytes);
}
SIM_API_PTDS(cuMemcpyDtoH_v2, "cuMemcpyDtoH", (void* dst, CUdeviceptr src, size_t bytes), (dst, src, bytes)) {
  return linear(call, nullptr, false, CU_MEMORYTYPE_HOST, address(dst), CU_MEMORYTYPE_DEVICE, src, bytes);
}
SIM_API_PTSZ(cuMemcpyDtoHAsync_v2, "cuMemcpyDtoHAsync", (void* dst, CUdeviceptr src, size_t bytes, CUstream stream),
             (dst, src, bytes, stream)) {
  return linear(call, stream, true, CU_MEMORYTYPE_HOST, address(dst), CU_MEMORYTYPE_DEVICE, src, bytes);
}
SIM_API_PTDS(cuMemcpyDtoD_v2, "cuMemcpyDtoD", (CUdeviceptr dst, CUdeviceptr src, size_t bytes), (dst, src, bytes)) {
  return linear(call, nullptr, false, CU_MEMORYTYPE_DEVICE, dst, CU_MEMORYTYPE_DEVICE, src, bytes);
}
SIM_API_PTSZ(cuMemcpyDtoDAsync_v2, "cuMemcpyDtoDAsync",
             (CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream), (dst, src, bytes, stream)) {
  return linear(call, stream, true, CU_MEMORYTYPE_DEVICE, dst, CU_MEMORYTYPE_DEVICE, src, bytes);
}

SIM_API_PTDS(cuMemcpyDtoA_v2, "cuMemcpyDtoA", (CUarray dst, size_t offset, CUdeviceptr src, size_t bytes),
             (dst, offset, src, bytes)) {
  CUDA_MEMCPY3D_PEER d = array_description(bytes);
  to_array(d, dst, offset);
  d.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  d.srcDevice = src;
  return submit_copy(call, nullptr, false, d);
}
SIM_API_PTDS(cuMemcpyAtoD_v2, "cuMemcpyAtoD", (CUdeviceptr dst, CUarray src, size_t offset, size_t bytes),
             (dst, src, offset, bytes)) {
  CUDA_MEMCPY3D_PEER d = array_description(bytes);
  from_array(d, src, offset);
  d.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  d.dstDevice = dst;
  return submit_copy(call, nullptr, false, d);
}
SIM_API_PTDS(cuMemcpyHtoA_v2, "cuMemcpyHtoA", (CUarray dst, size_t offset, const void* src, size_t bytes),
             (dst, offset, src, bytes)) {
  CUDA_MEMCPY3D_PEER d = array_description(bytes);
  to_array(d, dst, offset);
  from_host(d, src);
  return submit_copy(call, nullptr, false, d);
}
SIM_API_PTSZ(cuMemcpyHtoAAsync_v2, "cuMemcpyHtoAAsync",
             (CUarray dst, size_t offset, const void* src, size_t bytes, CUstream stream),
             (dst, offset, src, bytes, stream)) {
  CUDA_MEMCPY3D_PEER d = array_description(bytes);
  to_array(d, dst, offset);
  from_host(d, src);
  return submit_copy(call, stream, true, d);
}
SIM_API_PTDS(cuMemcpyAtoH_v2, "cuMemcpyAtoH", (void* dst, CUarray src, size_t offset, size_t bytes),
             (dst, src, offset, bytes)) {
  CUDA_MEMCPY3D_PEER d = array_description(bytes);
  from_array(d, src, offset);
  to_host(d, dst);
  return submit_copy(call, nullptr, false, d);
}
SIM_API_PTSZ(cuMemcpyAtoHAsync_v2, "cuMemcpyAtoHAsync",
             (void* dst, CUarray src, size_t offset, size_t bytes, CUstream stream),
             (dst, src, offset, bytes, stream)) {
  CUDA_MEMCPY3D_PEER d = array_description(bytes);
  from_array(d, src, offset);
  to_host(d, dst);
  return submit_copy(call, stream, true, d);
}
SIM_API_PTDS(cuMemcpyAtoA_v2, "cuMemcpyAtoA",
             (CUarray dst, size_t dst_offset, CUarray src, size_t src_offset, size_t bytes),
             (dst, dst_offset, src, src_offset, bytes)) {
  CUDA_MEMCPY3D_PEER d = array_description(bytes);
  from_array(d, src, src_offset);
  to_array(d, dst, dst_offset);
  return submit_copy(call, nullptr, false, d);
}

SIM_API_PTDS(cuMemcpy2D_v2, "cuMemcpy2D", (const CUDA_MEMCPY2D* copy), (copy)) {
  return copy == nullptr ? CUDA_ERROR_INVALID_VALUE : submit_copy(call, nullptr, false, rows_description(*copy));
}
SIM_API_PTDS(cuMemcpy2DUnaligned_v2, "cuMemcpy2DUnaligned", (const CUDA_MEMCPY2D* copy), (copy)) {
  return copy == nullptr ? CUDA_ERROR_INVALID_VALUE : submit_copy(call, nullptr, false, rows_description(*copy));
}
SIM_API_PTSZ(cuMemcpy2DAsync_v2, "cuMemcpy2DAsync", (const CUDA_MEMCPY2D* copy, CUstream stream), (copy, stream)) {
  return copy == nullptr ? CUDA_ERROR_INVALID_VALUE : submit_copy(call, stream, true, rows_description(*copy));
}
SIM_API_PTDS(cuMemcpy3D_v2, "cuMemcpy3D", (const CUDA_MEMCPY3D* copy), (copy)) {
  return copy == nullptr ? CUDA_ERROR_INVALID_VALUE : submit_copy(call, nullptr, false, with_peer(*copy));
}
SIM_API_PTSZ(cuMemcpy3DAsync_v2, "cuMemcpy3DAsync", (const CUDA_MEMCPY3D* copy, CUstream stream), (copy, stream)) {
  return copy == nullptr ? CUDA_ERROR_INVALID_VALUE : submit_copy(call, stream, true, with_peer(*copy));
}
SIM_API_PTDS(cuMemcpy3DPeer, "cuMemcpy3DPeer", (const CUDA_MEMCPY3D_PEER* copy), (copy)) {
  return copy == nullptr ? CUDA_ERROR_INVALID_VALUE : submit_copy(call, nullptr, false, *copy);
}
SIM_API_PTSZ(cuMemcpy3DPeerAsync, "cuMemcpy3DPeerAsync", (const CUDA_MEMCPY3D_PEER* copy, CUstream stream),
             (copy, stream)) {
  return copy == nullptr ? CUDA_ERROR_INVALID_VALUE : submit_copy(call, stream, true, *copy);
}

SIM_API_PTDS(cuMemcpyPeer, "cuMemcpyPeer",
             (CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src, CUcontext src_context, size_t bytes),
             (dst, dst_context, src, src_context, bytes)) {
  return peer_copy(call, nullptr, false, dst, dst_context, src, src_context, bytes);
}
SIM_API_PTSZ(cuMemcpyPeerAsync, "cuMemcpyPeerAsync",
             (CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src, CUcontext src_context, size_t bytes,
              CUstream stream),
             (dst, dst_context, src, src_context, bytes, stream)) {
  return peer_copy(call, stream, true, dst, dst_context, src, src_context, bytes);
}
