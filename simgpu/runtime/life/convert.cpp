#include "simgpu/runtime/life/convert.h"

#include <algorithm>
#include <array>

namespace simgpu::runtime {
namespace {

static_assert(sizeof(cudaMemLocation) == sizeof(CUmemLocation));
static_assert(sizeof(cudaMemPoolProps) == sizeof(CUmemPoolProps));
static_assert(sizeof(cudaMemAccessDesc) == sizeof(CUmemAccessDesc));

struct FormatRow {
  CUarray_format format;
  cudaChannelFormatKind kind;
  int bits;
};

constexpr std::array formats = {
    FormatRow{CU_AD_FORMAT_UNSIGNED_INT8, cudaChannelFormatKindUnsigned, 8},
    FormatRow{CU_AD_FORMAT_UNSIGNED_INT16, cudaChannelFormatKindUnsigned, 16},
    FormatRow{CU_AD_FORMAT_UNSIGNED_INT32, cudaChannelFormatKindUnsigned, 32},
    FormatRow{CU_AD_FORMAT_SIGNED_INT8, cudaChannelFormatKindSigned, 8},
    FormatRow{CU_AD_FORMAT_SIGNED_INT16, cudaChannelFormatKindSigned, 16},
    FormatRow{CU_AD_FORMAT_SIGNED_INT32, cudaChannelFormatKindSigned, 32},
    FormatRow{CU_AD_FORMAT_HALF, cudaChannelFormatKindFloat, 16},
    FormatRow{CU_AD_FORMAT_FLOAT, cudaChannelFormatKindFloat, 32},
};

int bits_of(CUarray_format format) {
  const auto* const row =
      std::find_if(formats.begin(), formats.end(), [&](const FormatRow& entry) { return entry.format == format; });
  return row != formats.end() ? row->bits : 8;
}

CUmemorytype host_or_device(cudaMemcpyKind kind, bool source) {
  switch (kind) {
    case cudaMemcpyHostToHost:
      return CU_MEMORYTYPE_HOST;
    case cudaMemcpyHostToDevice:
      return source ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    case cudaMemcpyDeviceToHost:
      return source ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
    case cudaMemcpyDeviceToDevice:
      return CU_MEMORYTYPE_DEVICE;
    default:
      return CU_MEMORYTYPE_UNIFIED;
  }
}

template <typename Copy>
void set_source(const CopySide& side, CUmemorytype type, Copy* out) {
  const std::size_t element = element_bytes(side.array);
  out->srcXInBytes = side.position.x * element;
  out->srcY = side.position.y;
  out->srcZ = side.position.z;
  out->srcMemoryType = side.array != nullptr ? CU_MEMORYTYPE_ARRAY : type;
  out->srcArray = driver_array(side.array);
  out->srcPitch = side.memory.pitch;
  out->srcHeight = side.memory.ysize;
  if (type == CU_MEMORYTYPE_HOST) {
    out->srcHost = side.memory.ptr;
  } else {
    out->srcDevice = device_pointer(side.memory.ptr);
  }
}

template <typename Copy>
void set_target(const CopySide& side, CUmemorytype type, Copy* out) {
  const std::size_t element = element_bytes(side.array);
  out->dstXInBytes = side.position.x * element;
  out->dstY = side.position.y;
  out->dstZ = side.position.z;
  out->dstMemoryType = side.array != nullptr ? CU_MEMORYTYPE_ARRAY : type;
  out->dstArray = driver_array(side.array);
  out->dstPitch = side.memory.pitch;
  out->dstHeight = side.memory.ysize;
  if (type == CU_MEMORYTYPE_HOST) {
    out->dstHost = side.memory.ptr;
  } else {
    out->dstDevice = device_pointer(side.memory.ptr);
  }
}

// The width of a copy is in elements of the array that takes part, in bytes where none does.
template <typename Copy>
void set_extent(const CopySide& source, const CopySide& target, cudaExtent extent, Copy* out) {
  const std::size_t element = source.array != nullptr ? element_bytes(source.array) : element_bytes(target.array);
  out->WidthInBytes = extent.width * element;
  out->Height = extent.height;
  out->Depth = extent.depth;
}

}  // namespace

bool element_format(const cudaChannelFormatDesc& desc, ElementFormat* out) {
  const int channels = (desc.x != 0) + (desc.y != 0) + (desc.z != 0) + (desc.w != 0);
  const auto* const row = std::find_if(formats.begin(), formats.end(), [&](const FormatRow& entry) {
    return entry.kind == desc.f && entry.bits == desc.x;
  });
  if (row == formats.end() || channels == 3) {
    return false;
  }
  *out = {row->format, static_cast<unsigned>(channels)};
  return true;
}

cudaChannelFormatDesc channel_desc(ElementFormat element) {
  const auto* const row = std::find_if(formats.begin(), formats.end(),
                                       [&](const FormatRow& entry) { return entry.format == element.format; });
  if (row == formats.end()) {
    return {0, 0, 0, 0, cudaChannelFormatKindNone};
  }
  const auto bits = [&](unsigned channel) { return element.channels > channel ? row->bits : 0; };
  return {bits(0), bits(1), bits(2), bits(3), row->kind};
}

std::size_t element_bytes(ElementFormat element) {
  return static_cast<std::size_t>(bits_of(element.format)) / 8 * element.channels;
}

std::size_t element_bytes(const cudaArray* array) {
  CUDA_ARRAY3D_DESCRIPTOR descriptor{};
  if (array == nullptr || driver.cuArray3DGetDescriptor(&descriptor, driver_array(array)) != CUDA_SUCCESS) {
    return 1;
  }
  return element_bytes(ElementFormat{descriptor.Format, descriptor.NumChannels});
}

CUresult copy_3d(const CopySide& source, const CopySide& target, cudaExtent extent, cudaMemcpyKind kind,
                 CUDA_MEMCPY3D* out) {
  if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault) {
    return as_result(cudaErrorInvalidMemcpyDirection);
  }
  *out = {};
  set_source(source, host_or_device(kind, true), out);
  set_target(target, host_or_device(kind, false), out);
  set_extent(source, target, extent, out);
  return CUDA_SUCCESS;
}

CUresult copy_3d(const cudaMemcpy3DParms& parms, CUDA_MEMCPY3D* out) {
  return copy_3d({parms.srcArray, parms.srcPos, parms.srcPtr}, {parms.dstArray, parms.dstPos, parms.dstPtr},
                 parms.extent, parms.kind, out);
}

CUresult copy_3d(const cudaMemcpy3DPeerParms& parms, CUDA_MEMCPY3D_PEER* out) {
  *out = {};
  const CopySide source{parms.srcArray, parms.srcPos, parms.srcPtr};
  const CopySide target{parms.dstArray, parms.dstPos, parms.dstPtr};
  set_source(source, CU_MEMORYTYPE_DEVICE, out);
  set_target(target, CU_MEMORYTYPE_DEVICE, out);
  set_extent(source, target, parms.extent, out);
  if (const CUresult result = primary_context(parms.srcDevice, &out->srcContext); result != CUDA_SUCCESS) {
    return result;
  }
  return primary_context(parms.dstDevice, &out->dstContext);
}

CUresult copy_1d(void* target, const void* source, std::size_t bytes, cudaMemcpyKind kind, CUDA_MEMCPY3D* out) {
  const CopySide from{nullptr, {}, {const_cast<void*>(source), bytes, bytes, 1}};
  const CopySide to{nullptr, {}, {target, bytes, bytes, 1}};
  return copy_3d(from, to, {bytes, 1, 1}, kind, out);
}

cudaMemcpy3DParms runtime_copy(const CUDA_MEMCPY3D& copy) {
  const bool from_host = copy.srcMemoryType == CU_MEMORYTYPE_HOST;
  const bool to_host = copy.dstMemoryType == CU_MEMORYTYPE_HOST;
  const bool unified = copy.srcMemoryType == CU_MEMORYTYPE_UNIFIED || copy.dstMemoryType == CU_MEMORYTYPE_UNIFIED;
  const auto address = [](CUdeviceptr device) { return reinterpret_cast<void*>(device); };
  cudaMemcpy3DParms out{};
  out.srcArray = reinterpret_cast<cudaArray_t>(copy.srcArray);
  out.dstArray = reinterpret_cast<cudaArray_t>(copy.dstArray);
  out.srcPos = {copy.srcXInBytes / element_bytes(out.srcArray), copy.srcY, copy.srcZ};
  out.dstPos = {copy.dstXInBytes / element_bytes(out.dstArray), copy.dstY, copy.dstZ};
  out.srcPtr = {from_host ? const_cast<void*>(copy.srcHost) : address(copy.srcDevice), copy.srcPitch, copy.srcPitch,
                copy.srcHeight};
  out.dstPtr = {to_host ? copy.dstHost : address(copy.dstDevice), copy.dstPitch, copy.dstPitch, copy.dstHeight};
  const std::size_t element = element_bytes(out.srcArray != nullptr ? out.srcArray : out.dstArray);
  out.extent = {copy.WidthInBytes / element, copy.Height, copy.Depth};
  out.kind = unified     ? cudaMemcpyDefault
             : from_host ? (to_host ? cudaMemcpyHostToHost : cudaMemcpyHostToDevice)
                         : (to_host ? cudaMemcpyDeviceToHost : cudaMemcpyDeviceToDevice);
  return out;
}

}  // namespace simgpu::runtime
