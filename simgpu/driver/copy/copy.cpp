// Copies: from any description to two addresses and an extent, then bytes and time.
#include <algorithm>
#include <cstring>

#include "simgpu/driver/launch/operation.h"
#include "simgpu/driver/life/knobs.h"
#include "simgpu/driver/time/timeline.h"

namespace simgpu {

namespace {

constexpr Nanos kCopyBase = 1'000;
constexpr double kDeviceBandwidthFactor = 40;  // memory of a device against a copy engine

bool on_device(MemoryKind kind) {
  return kind == MemoryKind::device || kind == MemoryKind::array || kind == MemoryKind::pool || kind == MemoryKind::vmm;
}

// One side of a description, source or destination.
struct SideDescription {
  CUmemorytype type;
  uint64_t host;
  CUdeviceptr device;
  CUarray array;
  size_t x, y, z;
  size_t pitch, height;
};

struct Extent {
  size_t width, height, depth;
};

CUresult array_side(const SideDescription& d, const Extent& extent, CopySide* side) {
  const auto* array = live<Array>(d.array);
  if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const size_t rows = std::max<size_t>(array->descriptor.Height, 1);
  const size_t layers = std::max<size_t>(array->descriptor.Depth, 1);
  const size_t width = array->descriptor.Width * array->element_bytes;
  const bool fits = d.x <= width && extent.width <= width - d.x && d.y <= rows && extent.height <= rows - d.y &&
                    d.z <= layers && extent.depth <= layers - d.z;
  if (!fits) return CUDA_ERROR_INVALID_VALUE;
  side->pitch = array->pitch;
  side->slice = array->slice;
  side->data = array->data + d.z * array->slice + d.y * array->pitch + d.x;
  side->memory = MemoryKind::array;
  side->device = array->context->device;
  return CUDA_SUCCESS;
}

// Bytes from the first to the last that the copy touches.
bool reach(const CopySide& side, const Extent& extent, size_t* bytes) {
  constexpr size_t kLimit = size_t{1} << 47;
  if (extent.width > kLimit || extent.height > kLimit || extent.depth > kLimit) return false;
  if (side.pitch != 0 && extent.height - 1 > kLimit / side.pitch) return false;
  if (side.slice != 0 && extent.depth - 1 > kLimit / side.slice) return false;
  *bytes = (extent.depth - 1) * side.slice + (extent.height - 1) * side.pitch + extent.width;
  return *bytes <= kLimit;
}

CUresult pointer_side(const SideDescription& d, const Extent& extent, CopySide* side) {
  const bool host_hint = d.type == CU_MEMORYTYPE_HOST;
  const uint64_t base = host_hint ? d.host : d.device;
  const size_t pitch = d.pitch != 0 ? d.pitch : d.x + extent.width;
  if (base == 0 || (extent.height > 1 && pitch < d.x + extent.width)) return CUDA_ERROR_INVALID_VALUE;
  side->pitch = pitch;
  side->slice = pitch * std::max(d.height, extent.depth > 1 ? d.y + extent.height : size_t{1});
  side->data = reinterpret_cast<char*>(base + d.z * side->slice + d.y * pitch + d.x);
  size_t bytes = 0;
  if (!reach(*side, extent, &bytes)) return CUDA_ERROR_INVALID_VALUE;
  const auto address = reinterpret_cast<uint64_t>(side->data);
  const std::optional<Allocation> owner = find_range(address, bytes);
  if (owner) {
    if (!owner->readable) return CUDA_ERROR_INVALID_VALUE;
    side->memory = owner->kind;
    side->device = on_device(owner->kind) || !host_hint ? owner->device : nullptr;
    if (owner->kind == MemoryKind::pinned) side->device = nullptr;
    return CUDA_SUCCESS;
  }
  // A range that begins inside an allocation and leaves it, or a device address that nobody gave out.
  if (find_allocation(address) && !host_hint) return CUDA_ERROR_INVALID_VALUE;
  if (d.type == CU_MEMORYTYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
  side->memory = MemoryKind::pageable;
  side->device = nullptr;
  return CUDA_SUCCESS;
}

CUresult resolve(const SideDescription& d, const Extent& extent, CopySide* side) {
  switch (d.type) {
    case CU_MEMORYTYPE_ARRAY:
      return array_side(d, extent, side);
    case CU_MEMORYTYPE_HOST:
    case CU_MEMORYTYPE_DEVICE:
    case CU_MEMORYTYPE_UNIFIED:
      return pointer_side(d, extent, side);
  }
  return CUDA_ERROR_INVALID_VALUE;
}

CopyKind kind_of(const CopySide& dst, const CopySide& src) {
  if (dst.device != nullptr && src.device != nullptr) return dst.device == src.device ? CopyKind::DtoD : CopyKind::PtoP;
  if (dst.device != nullptr) return CopyKind::HtoD;
  return src.device != nullptr ? CopyKind::DtoH : CopyKind::HtoH;
}

void move_bytes(const Copy& copy) {
  const bool flat =
      copy.depth == 1 && (copy.height == 1 || (copy.dst.pitch == copy.width && copy.src.pitch == copy.width));
  if (flat) {
    std::memmove(copy.dst.data, copy.src.data, copy.width * copy.height);
    return;
  }
  for (size_t z = 0; z < copy.depth; ++z) {
    for (size_t y = 0; y < copy.height; ++y) {
      std::memmove(copy.dst.data + z * copy.dst.slice + y * copy.dst.pitch,
                   copy.src.data + z * copy.src.slice + y * copy.src.pitch, copy.width);
    }
  }
}

MemoryKind host_side(const Copy& copy) {
  switch (copy.kind) {
    case CopyKind::HtoD:
      return copy.src.memory;
    case CopyKind::DtoH:
      return copy.dst.memory;
    case CopyKind::HtoH:
      return copy.src.memory;
    case CopyKind::DtoD:
    case CopyKind::PtoP:
      break;
  }
  return copy.src.memory == MemoryKind::managed ? copy.dst.memory : copy.src.memory;
}

}  // namespace

const char* text(CopyKind kind) {
  switch (kind) {
    case CopyKind::HtoD:
      return "HtoD";
    case CopyKind::DtoH:
      return "DtoH";
    case CopyKind::DtoD:
      return "DtoD";
    case CopyKind::PtoP:
      return "PtoP";
    case CopyKind::HtoH:
      return "HtoH";
  }
  return "";
}

bool Copy::host_pageable() const { return src.memory == MemoryKind::pageable || dst.memory == MemoryKind::pageable; }

CUDA_MEMCPY3D_PEER linear_description(CUmemorytype dst_type, uint64_t dst, CUmemorytype src_type, uint64_t src,
                                      size_t bytes) {
  CUDA_MEMCPY3D_PEER d{};
  d.dstMemoryType = dst_type;
  d.srcMemoryType = src_type;
  if (dst_type == CU_MEMORYTYPE_HOST)
    d.dstHost = reinterpret_cast<void*>(dst);
  else
    d.dstDevice = dst;
  if (src_type == CU_MEMORYTYPE_HOST)
    d.srcHost = reinterpret_cast<const void*>(src);
  else
    d.srcDevice = src;
  d.dstPitch = d.srcPitch = bytes;
  d.WidthInBytes = bytes;
  d.Height = d.Depth = 1;
  return d;
}

CUDA_MEMCPY3D_PEER with_peer(const CUDA_MEMCPY3D& from) {
  CUDA_MEMCPY3D_PEER d{};
  d.srcXInBytes = from.srcXInBytes;
  d.srcY = from.srcY;
  d.srcZ = from.srcZ;
  d.srcLOD = from.srcLOD;
  d.srcMemoryType = from.srcMemoryType;
  d.srcHost = from.srcHost;
  d.srcDevice = from.srcDevice;
  d.srcArray = from.srcArray;
  d.srcPitch = from.srcPitch;
  d.srcHeight = from.srcHeight;
  d.dstXInBytes = from.dstXInBytes;
  d.dstY = from.dstY;
  d.dstZ = from.dstZ;
  d.dstLOD = from.dstLOD;
  d.dstMemoryType = from.dstMemoryType;
  d.dstHost = from.dstHost;
  d.dstDevice = from.dstDevice;
  d.dstArray = from.dstArray;
  d.dstPitch = from.dstPitch;
  d.dstHeight = from.dstHeight;
  d.WidthInBytes = from.WidthInBytes;
  d.Height = from.Height;
  d.Depth = from.Depth;
  return d;
}

CUDA_MEMCPY3D without_peer(const CUDA_MEMCPY3D_PEER& from) {
  CUDA_MEMCPY3D d{};
  d.srcXInBytes = from.srcXInBytes;
  d.srcY = from.srcY;
  d.srcZ = from.srcZ;
  d.srcLOD = from.srcLOD;
  d.srcMemoryType = from.srcMemoryType;
  d.srcHost = from.srcHost;
  d.srcDevice = from.srcDevice;
  d.srcArray = from.srcArray;
  d.srcPitch = from.srcPitch;
  d.srcHeight = from.srcHeight;
  d.dstXInBytes = from.dstXInBytes;
  d.dstY = from.dstY;
  d.dstZ = from.dstZ;
  d.dstLOD = from.dstLOD;
  d.dstMemoryType = from.dstMemoryType;
  d.dstHost = from.dstHost;
  d.dstDevice = from.dstDevice;
  d.dstArray = from.dstArray;
  d.dstPitch = from.dstPitch;
  d.dstHeight = from.dstHeight;
  d.WidthInBytes = from.WidthInBytes;
  d.Height = from.Height;
  d.Depth = from.Depth;
  return d;
}

CUresult describe_copy(const CUDA_MEMCPY3D_PEER& d, Context* context, Copy* copy) {
  *copy = Copy{};
  copy->width = d.WidthInBytes;
  copy->height = d.Height;
  copy->depth = d.Depth;
  copy->device = context != nullptr ? context->device : nullptr;
  if (copy->bytes() == 0) return CUDA_SUCCESS;
  if (d.srcLOD != 0 || d.dstLOD != 0) return CUDA_ERROR_INVALID_VALUE;
  const Extent extent{d.WidthInBytes, d.Height, d.Depth};
  const SideDescription dst{d.dstMemoryType, reinterpret_cast<uint64_t>(d.dstHost),
                            d.dstDevice,     d.dstArray,
                            d.dstXInBytes,   d.dstY,
                            d.dstZ,          d.dstPitch,
                            d.dstHeight};
  const SideDescription src{d.srcMemoryType, reinterpret_cast<uint64_t>(d.srcHost),
                            d.srcDevice,     d.srcArray,
                            d.srcXInBytes,   d.srcY,
                            d.srcZ,          d.srcPitch,
                            d.srcHeight};
  if (CUresult result = resolve(dst, extent, &copy->dst); result != CUDA_SUCCESS) return result;
  if (CUresult result = resolve(src, extent, &copy->src); result != CUDA_SUCCESS) return result;
  copy->kind = kind_of(copy->dst, copy->src);
  if (copy->src.device != nullptr)
    copy->device = copy->src.device;
  else if (copy->dst.device != nullptr)
    copy->device = copy->dst.device;
  return copy->device != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

Span perform(const Copy& copy, const Origin& origin, Nanos ready) {
  if (copy.bytes() == 0) return {ready, ready};
  move_bytes(copy);
  double bandwidth = knobs().copy_bandwidth;
  if (copy.kind == CopyKind::DtoD) bandwidth *= kDeviceBandwidthFactor;
  const Nanos duration = kCopyBase + static_cast<Nanos>(static_cast<double>(copy.bytes()) / bandwidth * 1e9);
  Span span{ready, ready + duration};
  if (copy.kind == CopyKind::HtoD) span = occupy_engine(*copy.device, 0, ready, duration);
  if (copy.kind == CopyKind::DtoH || copy.kind == CopyKind::PtoP)
    span = occupy_engine(*copy.device, 1, ready, duration);
  if (looked_at(look::device)) show(copy, origin, span);
  if (origin.stamp) {
    TruthFields fields("copy");
    fields.add("kind", text(copy.kind))
        .add("bytes", copy.bytes())
        .add("memory", copy_memory_text(host_side(copy)))
        .add("async", copy.async ? 1 : 0)
        .add("device", copy.device->ordinal)
        .add("stream", origin.stream->id)
        .add("stream_handle", static_cast<const void*>(public_handle(origin.stream)))
        .add("start_ns", span.start)
        .add("end_ns", span.end)
        .add("correlation", origin.correlation);
    add_graph(fields, origin);
    origin.stamp->add(fields);
  }
  return span;
}

}  // namespace simgpu
