// Texture and surface objects: kernels are not computed, so they are their descriptions.
#include "simgpu/driver/life/call.h"
#include "simgpu/driver/life/state.h"
#include "simgpu/driver/memory/memory.h"

namespace simgpu {

struct TextureObject : Object {
  static constexpr uint64_t kTag = object_tag("sgTEXOBJ");
  using Handle = CUtexObject;
  CUDA_RESOURCE_DESC resource{};
  CUDA_TEXTURE_DESC texture{};
  CUDA_RESOURCE_VIEW_DESC view{};
  bool has_view = false;
};

struct SurfaceObject : Object {
  static constexpr uint64_t kTag = object_tag("sgSRFOBJ");
  using Handle = CUsurfObject;
  CUDA_RESOURCE_DESC resource{};
};

}  // namespace simgpu

using namespace simgpu;

namespace {

CUresult judge(const CUDA_RESOURCE_DESC& d) {
  if (d.flags != 0) return CUDA_ERROR_INVALID_VALUE;
  switch (d.resType) {
    case CU_RESOURCE_TYPE_ARRAY:
      return live<Array>(d.res.array.hArray) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
      return d.res.mipmap.hMipmappedArray != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_RESOURCE_TYPE_LINEAR:
      return find_range(d.res.linear.devPtr, d.res.linear.sizeInBytes) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_RESOURCE_TYPE_PITCH2D: {
      const auto& p = d.res.pitch2D;
      const bool sane = p.width != 0 && p.height != 0 && p.pitchInBytes != 0 && find_allocation(p.devPtr).has_value();
      return sane ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    }
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

}  // namespace

SIM_API(cuTexObjectCreate, "cuTexObjectCreate",
        (CUtexObject * out, const CUDA_RESOURCE_DESC* resource, const CUDA_TEXTURE_DESC* texture,
         const CUDA_RESOURCE_VIEW_DESC* view),
        (out, resource, texture, view)) {
  if (out == nullptr || resource == nullptr || texture == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (call.context() == nullptr) return call.context_error();
  if (const CUresult result = judge(*resource); result != CUDA_SUCCESS) return result;
  TextureObject* object = create<TextureObject>();
  if (object == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  object->resource = *resource;
  object->texture = *texture;
  object->has_view = view != nullptr;
  if (view != nullptr) object->view = *view;
  *out = handle_of(object);
  return CUDA_SUCCESS;
}

SIM_API(cuTexObjectDestroy, "cuTexObjectDestroy", (CUtexObject handle), (handle)) {
  TextureObject* object = live<TextureObject>(handle);
  if (object == nullptr) return CUDA_ERROR_INVALID_VALUE;
  retire(object);
  return CUDA_SUCCESS;
}

SIM_API(cuTexObjectGetResourceDesc, "cuTexObjectGetResourceDesc", (CUDA_RESOURCE_DESC * out, CUtexObject handle),
        (out, handle)) {
  const TextureObject* object = live<TextureObject>(handle);
  if (object == nullptr || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = object->resource;
  return CUDA_SUCCESS;
}

SIM_API(cuTexObjectGetTextureDesc, "cuTexObjectGetTextureDesc", (CUDA_TEXTURE_DESC * out, CUtexObject handle),
        (out, handle)) {
  const TextureObject* object = live<TextureObject>(handle);
  if (object == nullptr || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = object->texture;
  return CUDA_SUCCESS;
}

SIM_API(cuTexObjectGetResourceViewDesc, "cuTexObjectGetResourceViewDesc",
        (CUDA_RESOURCE_VIEW_DESC * out, CUtexObject handle), (out, handle)) {
  const TextureObject* object = live<TextureObject>(handle);
  if (object == nullptr || out == nullptr || !object->has_view) return CUDA_ERROR_INVALID_VALUE;
  *out = object->view;
  return CUDA_SUCCESS;
}

SIM_API(cuSurfObjectCreate, "cuSurfObjectCreate", (CUsurfObject * out, const CUDA_RESOURCE_DESC* resource),
        (out, resource)) {
  if (out == nullptr || resource == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (call.context() == nullptr) return call.context_error();
  if (resource->resType != CU_RESOURCE_TYPE_ARRAY) return CUDA_ERROR_INVALID_VALUE;
  const Array* array = live<Array>(resource->res.array.hArray);
  if (array == nullptr || (array->descriptor.Flags & CUDA_ARRAY3D_SURFACE_LDST) == 0) return CUDA_ERROR_INVALID_VALUE;
  SurfaceObject* object = create<SurfaceObject>();
  if (object == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  object->resource = *resource;
  *out = handle_of(object);
  return CUDA_SUCCESS;
}

SIM_API(cuSurfObjectDestroy, "cuSurfObjectDestroy", (CUsurfObject handle), (handle)) {
  SurfaceObject* object = live<SurfaceObject>(handle);
  if (object == nullptr) return CUDA_ERROR_INVALID_VALUE;
  retire(object);
  return CUDA_SUCCESS;
}

SIM_API(cuSurfObjectGetResourceDesc, "cuSurfObjectGetResourceDesc", (CUDA_RESOURCE_DESC * out, CUsurfObject handle),
        (out, handle)) {
  const SurfaceObject* object = live<SurfaceObject>(handle);
  if (object == nullptr || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = object->resource;
  return CUDA_SUCCESS;
}
