// CUDA arrays and mipmapped arrays: device memory in rows, of which the program knows the handle alone.
#include <algorithm>

#include "simgpu/driver/context/device.h"
#include "simgpu/driver/graph/capture.h"
#include "simgpu/driver/memory/memory.h"
#include "simgpu/driver/time/timeline.h"

namespace simgpu {

struct MipmappedArray : Object {
  static constexpr uint64_t kTag = object_tag("sgMIPMAP");
  using Handle = CUmipmappedArray;
  Context* context = nullptr;
  std::vector<Array*> levels;
};

}  // namespace simgpu

using namespace simgpu;

namespace {

constexpr size_t kMaxExtent = 131072;

size_t format_bytes(CUarray_format format) {
  switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
      return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
      return 2;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
      return 4;
    default:
      return 0;
  }
}

CUresult judge(const CUDA_ARRAY3D_DESCRIPTOR& d) {
  if (format_bytes(d.Format) == 0) return CUDA_ERROR_NOT_SUPPORTED;
  if (d.NumChannels != 1 && d.NumChannels != 2 && d.NumChannels != 4) return CUDA_ERROR_INVALID_VALUE;
  if (d.Width == 0 || d.Width > kMaxExtent || d.Height > kMaxExtent || d.Depth > kMaxExtent)
    return CUDA_ERROR_INVALID_VALUE;
  if ((d.Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING | CUDA_ARRAY3D_VIDEO_ENCODE_DECODE)) != 0) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  const bool layered = (d.Flags & CUDA_ARRAY3D_LAYERED) != 0, cube = (d.Flags & CUDA_ARRAY3D_CUBEMAP) != 0;
  if (d.Height == 0 && d.Depth != 0 && !layered) return CUDA_ERROR_INVALID_VALUE;
  if (layered && d.Depth == 0) return CUDA_ERROR_INVALID_VALUE;
  if (cube && (d.Width != d.Height || d.Depth == 0 || d.Depth % 6 != 0 || (!layered && d.Depth != 6))) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

Allocation record_of(const Array& array) {
  Allocation allocation;
  allocation.address = reinterpret_cast<uint64_t>(array.data);
  allocation.bytes = array.slice * std::max<size_t>(array.descriptor.Depth, 1);
  allocation.kind = MemoryKind::array;
  allocation.context = array.context;
  allocation.device = array.context->device;
  return allocation;
}

// As the program knows it: by its handle, with the bytes that it asked for; the layout is the driver's own matter.
Allocation as_asked(const Array& array) {
  Allocation allocation = record_of(array);
  const CUDA_ARRAY3D_DESCRIPTOR& asked = array.descriptor;
  allocation.address = reinterpret_cast<uint64_t>(handle_of(&array));
  allocation.bytes =
      asked.Width * std::max<size_t>(asked.Height, 1) * std::max<size_t>(asked.Depth, 1) * array.element_bytes;
  return allocation;
}

CUresult make_array(Call& call, Context& context, const CUDA_ARRAY3D_DESCRIPTOR& descriptor, Array** out) {
  if (const CUresult result = judge(descriptor); result != CUDA_SUCCESS) return result;
  Array* array = create<Array>();
  if (array == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  array->context = &context;
  array->descriptor = descriptor;
  array->element_bytes = format_bytes(descriptor.Format) * descriptor.NumChannels;
  const size_t row = descriptor.Width * array->element_bytes;
  array->pitch = (row + limits::kPitchAlignment - 1) / limits::kPitchAlignment * limits::kPitchAlignment;
  array->slice = array->pitch * std::max<size_t>(descriptor.Height, 1);
  const Allocation wanted = record_of(*array);
  array->data = static_cast<char*>(device_reserve(*context.device, wanted.bytes));
  if (array->data == nullptr) {
    retire(array);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  truth_alloc(call, "alloc", as_asked(*array));
  *out = array;
  return CUDA_SUCCESS;
}

void destroy_array(Call& call, Array& array) {
  const Allocation allocation = record_of(array);
  truth_alloc(call, "free", as_asked(array));
  device_return(*allocation.device, array.data, allocation.bytes);
  retire(&array);
}

CUresult create_array(Call& call, CUarray* out, const CUDA_ARRAY3D_DESCRIPTOR& descriptor) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Context* context = call.context();
  if (context == nullptr) return call.context_error();
  if (CUresult refused = capture_refuses_unsafe(call); refused != CUDA_SUCCESS) return refused;
  Array* array = nullptr;
  const CUresult result = make_array(call, *context, descriptor, &array);
  if (result == CUDA_SUCCESS) *out = handle_of(array);
  return result;
}

template <class Descriptor>
CUDA_ARRAY3D_DESCRIPTOR widened(const Descriptor& d) {
  CUDA_ARRAY3D_DESCRIPTOR wide{};
  wide.Width = d.Width;
  wide.Height = d.Height;
  wide.Format = d.Format;
  wide.NumChannels = d.NumChannels;
  return wide;
}

CUDA_ARRAY3D_DESCRIPTOR widened(const CUDA_ARRAY3D_DESCRIPTOR_v1& d) {
  CUDA_ARRAY3D_DESCRIPTOR wide{};
  wide.Width = d.Width;
  wide.Height = d.Height;
  wide.Depth = d.Depth;
  wide.Format = d.Format;
  wide.NumChannels = d.NumChannels;
  wide.Flags = d.Flags;
  return wide;
}

CUresult requirements(CUDA_ARRAY_MEMORY_REQUIREMENTS* out, uint64_t bytes, CUdevice device) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (device_at(device) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  *out = {};
  out->size = static_cast<size_t>(bytes);
  out->alignment = 64 * 1024;
  return CUDA_SUCCESS;
}

}  // namespace

SIM_API(cuArrayCreate_v2, "cuArrayCreate", (CUarray * out, const CUDA_ARRAY_DESCRIPTOR* d), (out, d)) {
  return d == nullptr ? CUDA_ERROR_INVALID_VALUE : create_array(call, out, widened(*d));
}

SIM_API(cuArrayCreate, "cuArrayCreate", (CUarray * out, const CUDA_ARRAY_DESCRIPTOR_v1* d), (out, d)) {
  return d == nullptr ? CUDA_ERROR_INVALID_VALUE : create_array(call, out, widened(*d));
}

SIM_API(cuArray3DCreate_v2, "cuArray3DCreate", (CUarray * out, const CUDA_ARRAY3D_DESCRIPTOR* d), (out, d)) {
  return d == nullptr ? CUDA_ERROR_INVALID_VALUE : create_array(call, out, *d);
}

SIM_API(cuArray3DCreate, "cuArray3DCreate", (CUarray * out, const CUDA_ARRAY3D_DESCRIPTOR_v1* d), (out, d)) {
  return d == nullptr ? CUDA_ERROR_INVALID_VALUE : create_array(call, out, widened(*d));
}

SIM_API(cuArrayGetDescriptor_v2, "cuArrayGetDescriptor", (CUDA_ARRAY_DESCRIPTOR * out, CUarray handle), (out, handle)) {
  const Array* array = live<Array>(handle);
  if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto& d = array->descriptor;
  *out = {d.Width, d.Height, d.Format, d.NumChannels};
  return CUDA_SUCCESS;
}

SIM_API(cuArrayGetDescriptor, "cuArrayGetDescriptor", (CUDA_ARRAY_DESCRIPTOR_v1 * out, CUarray handle), (out, handle)) {
  const Array* array = live<Array>(handle);
  if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto& d = array->descriptor;
  *out = {static_cast<unsigned>(d.Width), static_cast<unsigned>(d.Height), d.Format, d.NumChannels};
  return CUDA_SUCCESS;
}

SIM_API(cuArray3DGetDescriptor_v2, "cuArray3DGetDescriptor", (CUDA_ARRAY3D_DESCRIPTOR * out, CUarray handle),
        (out, handle)) {
  const Array* array = live<Array>(handle);
  if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = array->descriptor;
  return CUDA_SUCCESS;
}

SIM_API(cuArray3DGetDescriptor, "cuArray3DGetDescriptor", (CUDA_ARRAY3D_DESCRIPTOR_v1 * out, CUarray handle),
        (out, handle)) {
  const Array* array = live<Array>(handle);
  if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto& d = array->descriptor;
  *out = {static_cast<unsigned>(d.Width),
          static_cast<unsigned>(d.Height),
          static_cast<unsigned>(d.Depth),
          d.Format,
          d.NumChannels,
          d.Flags};
  return CUDA_SUCCESS;
}

SIM_API(cuArrayDestroy, "cuArrayDestroy", (CUarray handle), (handle)) {
  Array* array = live<Array>(handle);
  if (array == nullptr || !array->owns_data) return CUDA_ERROR_INVALID_HANDLE;
  if (CUresult refused = capture_refuses_unsafe(call); refused != CUDA_SUCCESS) return refused;
  context_wait_host(*array->context);
  destroy_array(call, *array);
  return CUDA_SUCCESS;
}

SIM_API(cuArrayGetMemoryRequirements, "cuArrayGetMemoryRequirements",
        (CUDA_ARRAY_MEMORY_REQUIREMENTS * out, CUarray handle, CUdevice device), (out, handle, device)) {
  const Array* array = live<Array>(handle);
  return array == nullptr ? CUDA_ERROR_INVALID_HANDLE : requirements(out, record_of(*array).bytes, device);
}

SIM_API(cuMipmappedArrayCreate, "cuMipmappedArrayCreate",
        (CUmipmappedArray * out, const CUDA_ARRAY3D_DESCRIPTOR* d, unsigned levels), (out, d, levels)) {
  if (out == nullptr || d == nullptr || levels == 0) return CUDA_ERROR_INVALID_VALUE;
  Context* context = call.context();
  if (context == nullptr) return call.context_error();
  if (CUresult refused = capture_refuses_unsafe(call); refused != CUDA_SUCCESS) return refused;
  MipmappedArray* mipmap = create<MipmappedArray>();
  if (mipmap == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  mipmap->context = context;
  CUDA_ARRAY3D_DESCRIPTOR level = *d;
  const bool layered = (d->Flags & CUDA_ARRAY3D_LAYERED) != 0;
  CUresult result = CUDA_SUCCESS;
  for (unsigned i = 0; i < levels && result == CUDA_SUCCESS; ++i) {
    Array* array = nullptr;
    result = make_array(call, *context, level, &array);
    if (result != CUDA_SUCCESS) break;
    array->owns_data = false;
    mipmap->levels.push_back(array);
    const bool smallest = level.Width <= 1 && level.Height <= 1 && (layered || level.Depth <= 1);
    if (smallest) break;
    level.Width = std::max<size_t>(level.Width / 2, 1);
    if (level.Height != 0) level.Height = std::max<size_t>(level.Height / 2, 1);
    if (level.Depth != 0 && !layered) level.Depth = std::max<size_t>(level.Depth / 2, 1);
  }
  if (result != CUDA_SUCCESS) {
    for (Array* array : mipmap->levels) destroy_array(call, *array);
    retire(mipmap);
    return result;
  }
  *out = handle_of(mipmap);
  return CUDA_SUCCESS;
}

SIM_API(cuMipmappedArrayGetLevel, "cuMipmappedArrayGetLevel", (CUarray * out, CUmipmappedArray handle, unsigned level),
        (out, handle, level)) {
  const MipmappedArray* mipmap = live<MipmappedArray>(handle);
  if (mipmap == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (out == nullptr || level >= mipmap->levels.size()) return CUDA_ERROR_INVALID_VALUE;
  *out = handle_of(mipmap->levels[level]);
  return CUDA_SUCCESS;
}

SIM_API(cuMipmappedArrayDestroy, "cuMipmappedArrayDestroy", (CUmipmappedArray handle), (handle)) {
  MipmappedArray* mipmap = live<MipmappedArray>(handle);
  if (mipmap == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (CUresult refused = capture_refuses_unsafe(call); refused != CUDA_SUCCESS) return refused;
  context_wait_host(*mipmap->context);
  for (Array* array : mipmap->levels) destroy_array(call, *array);
  retire(mipmap);
  return CUDA_SUCCESS;
}

SIM_API(cuMipmappedArrayGetMemoryRequirements, "cuMipmappedArrayGetMemoryRequirements",
        (CUDA_ARRAY_MEMORY_REQUIREMENTS * out, CUmipmappedArray handle, CUdevice device), (out, handle, device)) {
  const MipmappedArray* mipmap = live<MipmappedArray>(handle);
  if (mipmap == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  uint64_t bytes = 0;
  for (const Array* array : mipmap->levels) bytes += record_of(*array).bytes;
  return requirements(out, bytes, device);
}
