#include <cstddef>
#include <cstring>

#include "simgpu/runtime/life/convert.h"

// Arrays, textures, surfaces.
namespace simgpu::runtime {
namespace {

CUresult array_descriptor(const cudaChannelFormatDesc* desc, cudaExtent extent, unsigned flags,
                          CUDA_ARRAY3D_DESCRIPTOR* out) {
  ElementFormat format{};
  if (desc == nullptr || !element_format(*desc, &format)) {
    return as_result(cudaErrorInvalidChannelDescriptor);
  }
  *out = {};
  out->Width = extent.width;
  out->Height = extent.height;
  out->Depth = extent.depth;
  out->Format = format.format;
  out->NumChannels = format.channels;
  out->Flags = flags;
  return CUDA_SUCCESS;
}

CUresult make_array(cudaArray_t* array, const cudaChannelFormatDesc* desc, cudaExtent extent, unsigned flags) {
  CUDA_ARRAY3D_DESCRIPTOR descriptor{};
  if (const CUresult result = array_descriptor(desc, extent, flags, &descriptor); result != CUDA_SUCCESS) {
    return result;
  }
  return driver.cuArray3DCreate(reinterpret_cast<CUarray*>(array), &descriptor);
}

CUresult resource(const cudaResourceDesc& in, CUDA_RESOURCE_DESC* out) {
  ElementFormat format{};
  *out = {};
  out->resType = static_cast<CUresourcetype>(in.resType);
#if CUDART_VERSION >= 13000
  out->flags = in.flags;
#endif
  switch (in.resType) {
    case cudaResourceTypeArray:
      out->res.array.hArray = driver_array(in.res.array.array);
      return CUDA_SUCCESS;
    case cudaResourceTypeMipmappedArray:
      out->res.mipmap.hMipmappedArray = driver_array(in.res.mipmap.mipmap);
      return CUDA_SUCCESS;
    case cudaResourceTypeLinear:
      if (!element_format(in.res.linear.desc, &format)) {
        return as_result(cudaErrorInvalidChannelDescriptor);
      }
      out->res.linear = {device_pointer(in.res.linear.devPtr), format.format, format.channels,
                         in.res.linear.sizeInBytes};
      return CUDA_SUCCESS;
    case cudaResourceTypePitch2D:
      if (!element_format(in.res.pitch2D.desc, &format)) {
        return as_result(cudaErrorInvalidChannelDescriptor);
      }
      out->res.pitch2D = {device_pointer(in.res.pitch2D.devPtr),
                          format.format,
                          format.channels,
                          in.res.pitch2D.width,
                          in.res.pitch2D.height,
                          in.res.pitch2D.pitchInBytes};
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

cudaResourceDesc runtime_resource(const CUDA_RESOURCE_DESC& in) {
  cudaResourceDesc out{};
  out.resType = static_cast<cudaResourceType>(in.resType);
#if CUDART_VERSION >= 13000
  out.flags = in.flags;
#endif
  if (in.resType == CU_RESOURCE_TYPE_ARRAY) {
    out.res.array.array = reinterpret_cast<cudaArray_t>(in.res.array.hArray);
  } else if (in.resType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY) {
    out.res.mipmap.mipmap = reinterpret_cast<cudaMipmappedArray_t>(in.res.mipmap.hMipmappedArray);
  } else if (in.resType == CU_RESOURCE_TYPE_LINEAR) {
    out.res.linear.devPtr = reinterpret_cast<void*>(in.res.linear.devPtr);
    out.res.linear.desc = channel_desc({in.res.linear.format, in.res.linear.numChannels});
    out.res.linear.sizeInBytes = in.res.linear.sizeInBytes;
  } else if (in.resType == CU_RESOURCE_TYPE_PITCH2D) {
    out.res.pitch2D.devPtr = reinterpret_cast<void*>(in.res.pitch2D.devPtr);
    out.res.pitch2D.desc = channel_desc({in.res.pitch2D.format, in.res.pitch2D.numChannels});
    out.res.pitch2D.width = in.res.pitch2D.width;
    out.res.pitch2D.height = in.res.pitch2D.height;
    out.res.pitch2D.pitchInBytes = in.res.pitch2D.pitchInBytes;
  }
  return out;
}

struct TextureFlag {
  int cudaTextureDesc::*field;
  unsigned flag;
};
constexpr TextureFlag texture_flags[] = {
    {&cudaTextureDesc::normalizedCoords, CU_TRSF_NORMALIZED_COORDINATES},
    {&cudaTextureDesc::sRGB, CU_TRSF_SRGB},
    {&cudaTextureDesc::disableTrilinearOptimization, CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION},
    {&cudaTextureDesc::seamlessCubemap, CU_TRSF_SEAMLESS_CUBEMAP},
};

CUDA_TEXTURE_DESC texture(const cudaTextureDesc& in) {
  CUDA_TEXTURE_DESC out{};
  for (int axis = 0; axis < 3; ++axis) {
    out.addressMode[axis] = static_cast<CUaddress_mode>(in.addressMode[axis]);
  }
  out.filterMode = static_cast<CUfilter_mode>(in.filterMode);
  out.flags = in.readMode == cudaReadModeElementType ? CU_TRSF_READ_AS_INTEGER : 0u;
  for (const TextureFlag& flag : texture_flags) {
    out.flags |= in.*flag.field != 0 ? flag.flag : 0u;
  }
  out.maxAnisotropy = in.maxAnisotropy;
  out.mipmapFilterMode = static_cast<CUfilter_mode>(in.mipmapFilterMode);
  out.mipmapLevelBias = in.mipmapLevelBias;
  out.minMipmapLevelClamp = in.minMipmapLevelClamp;
  out.maxMipmapLevelClamp = in.maxMipmapLevelClamp;
  for (int channel = 0; channel < 4; ++channel) {
    out.borderColor[channel] = in.borderColor[channel];
  }
  return out;
}

cudaTextureDesc runtime_texture(const CUDA_TEXTURE_DESC& in) {
  cudaTextureDesc out{};
  for (int axis = 0; axis < 3; ++axis) {
    out.addressMode[axis] = static_cast<cudaTextureAddressMode>(in.addressMode[axis]);
  }
  out.filterMode = static_cast<cudaTextureFilterMode>(in.filterMode);
  out.readMode = (in.flags & CU_TRSF_READ_AS_INTEGER) != 0 ? cudaReadModeElementType : cudaReadModeNormalizedFloat;
  for (const TextureFlag& flag : texture_flags) {
    out.*flag.field = (in.flags & flag.flag) != 0 ? 1 : 0;
  }
  out.maxAnisotropy = in.maxAnisotropy;
  out.mipmapFilterMode = static_cast<cudaTextureFilterMode>(in.mipmapFilterMode);
  out.mipmapLevelBias = in.mipmapLevelBias;
  out.minMipmapLevelClamp = in.minMipmapLevelClamp;
  out.maxMipmapLevelClamp = in.maxMipmapLevelClamp;
  for (int channel = 0; channel < 4; ++channel) {
    out.borderColor[channel] = in.borderColor[channel];
  }
  return out;
}

// The runtime's has no reserved end before 13; else they are the same.
static_assert(sizeof(cudaResourceViewDesc) <= sizeof(CUDA_RESOURCE_VIEW_DESC));
static_assert(offsetof(cudaResourceViewDesc, lastLayer) == offsetof(CUDA_RESOURCE_VIEW_DESC, lastLayer));
static_assert(sizeof(cudaArraySparseProperties) == sizeof(CUDA_ARRAY_SPARSE_PROPERTIES));
static_assert(sizeof(cudaArrayMemoryRequirements) == sizeof(CUDA_ARRAY_MEMORY_REQUIREMENTS));

}  // namespace
}  // namespace simgpu::runtime

using namespace simgpu::runtime;

extern "C" cudaError_t cudaMallocArray(cudaArray_t* array, const cudaChannelFormatDesc* desc, size_t width,
                                       size_t height, unsigned flags) {
  return run([&] { return make_array(array, desc, {width, height, 0}, flags); });
}

extern "C" cudaError_t cudaMalloc3DArray(cudaArray_t* array, const cudaChannelFormatDesc* desc, cudaExtent extent,
                                         unsigned flags) {
  return run([&] { return make_array(array, desc, extent, flags); });
}

extern "C" cudaError_t cudaFreeArray(cudaArray_t array) {
  return run([&] { return array == nullptr ? CUDA_SUCCESS : driver.cuArrayDestroy(driver_array(array)); });
}

extern "C" cudaError_t cudaMallocMipmappedArray(cudaMipmappedArray_t* array, const cudaChannelFormatDesc* desc,
                                                cudaExtent extent, unsigned levels, unsigned flags) {
  return run([&] {
    CUDA_ARRAY3D_DESCRIPTOR descriptor{};
    const CUresult result = array_descriptor(desc, extent, flags, &descriptor);
    return result == CUDA_SUCCESS
               ? driver.cuMipmappedArrayCreate(reinterpret_cast<CUmipmappedArray*>(array), &descriptor, levels)
               : result;
  });
}

extern "C" cudaError_t cudaFreeMipmappedArray(cudaMipmappedArray_t array) {
  return run([&] { return array == nullptr ? CUDA_SUCCESS : driver.cuMipmappedArrayDestroy(driver_array(array)); });
}

extern "C" cudaError_t cudaGetMipmappedArrayLevel(cudaArray_t* level, cudaMipmappedArray_const_t array,
                                                  unsigned index) {
  return run(
      [&] { return driver.cuMipmappedArrayGetLevel(reinterpret_cast<CUarray*>(level), driver_array(array), index); });
}

extern "C" cudaError_t cudaArrayGetInfo(cudaChannelFormatDesc* desc, cudaExtent* extent, unsigned* flags,
                                        cudaArray_t array) {
  return run([&] {
    CUDA_ARRAY3D_DESCRIPTOR descriptor{};
    if (const CUresult result = driver.cuArray3DGetDescriptor(&descriptor, driver_array(array));
        result != CUDA_SUCCESS) {
      return result;
    }
    if (desc != nullptr) {
      *desc = channel_desc({descriptor.Format, descriptor.NumChannels});
    }
    if (extent != nullptr) {
      *extent = {descriptor.Width, descriptor.Height, descriptor.Depth};
    }
    if (flags != nullptr) {
      *flags = descriptor.Flags;
    }
    return CUDA_SUCCESS;
  });
}

extern "C" cudaError_t cudaGetChannelDesc(cudaChannelFormatDesc* desc, cudaArray_const_t array) {
  return as_itself([&] { return cudaArrayGetInfo(desc, nullptr, nullptr, const_cast<cudaArray_t>(array)); });
}

extern "C" cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, cudaChannelFormatKind kind) {
  return {x, y, z, w, kind};
}

extern "C" cudaError_t cudaArrayGetPlane(cudaArray_t* plane, cudaArray_t array, unsigned index) {
  return run([&] { return driver.cuArrayGetPlane(reinterpret_cast<CUarray*>(plane), driver_array(array), index); });
}

extern "C" cudaError_t cudaArrayGetMemoryRequirements(cudaArrayMemoryRequirements* out, cudaArray_t array, int device) {
  return run([&] {
    return driver.cuArrayGetMemoryRequirements(reinterpret_cast<CUDA_ARRAY_MEMORY_REQUIREMENTS*>(out),
                                               driver_array(array), device);
  });
}

extern "C" cudaError_t cudaMipmappedArrayGetMemoryRequirements(cudaArrayMemoryRequirements* out,
                                                               cudaMipmappedArray_t array, int device) {
  return run([&] {
    return driver.cuMipmappedArrayGetMemoryRequirements(reinterpret_cast<CUDA_ARRAY_MEMORY_REQUIREMENTS*>(out),
                                                        driver_array(array), device);
  });
}

extern "C" cudaError_t cudaArrayGetSparseProperties(cudaArraySparseProperties* out, cudaArray_t array) {
  return run([&] {
    return driver.cuArrayGetSparseProperties(reinterpret_cast<CUDA_ARRAY_SPARSE_PROPERTIES*>(out), driver_array(array));
  });
}

extern "C" cudaError_t cudaMipmappedArrayGetSparseProperties(cudaArraySparseProperties* out,
                                                             cudaMipmappedArray_t array) {
  return run([&] {
    return driver.cuMipmappedArrayGetSparseProperties(reinterpret_cast<CUDA_ARRAY_SPARSE_PROPERTIES*>(out),
                                                      driver_array(array));
  });
}

extern "C" cudaError_t cudaCreateTextureObject(cudaTextureObject_t* object, const cudaResourceDesc* desc,
                                               const cudaTextureDesc* sampling, const cudaResourceViewDesc* view) {
  return run([&] {
    CUDA_RESOURCE_DESC driver_resource{};
    if (desc == nullptr || sampling == nullptr) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (const CUresult result = resource(*desc, &driver_resource); result != CUDA_SUCCESS) {
      return result;
    }
    const CUDA_TEXTURE_DESC driver_texture = texture(*sampling);
    CUDA_RESOURCE_VIEW_DESC driver_view{};
    if (view != nullptr) std::memcpy(&driver_view, view, sizeof *view);
    return driver.cuTexObjectCreate(object, &driver_resource, &driver_texture,
                                    view != nullptr ? &driver_view : nullptr);
  });
}

extern "C" cudaError_t cudaDestroyTextureObject(cudaTextureObject_t object) {
  return run([&] { return object == 0 ? CUDA_SUCCESS : driver.cuTexObjectDestroy(object); });
}

extern "C" cudaError_t cudaGetTextureObjectResourceDesc(cudaResourceDesc* desc, cudaTextureObject_t object) {
  CUDA_RESOURCE_DESC found{};
  const cudaError_t error = run([&] { return driver.cuTexObjectGetResourceDesc(&found, object); });
  if (error == cudaSuccess) {
    *desc = runtime_resource(found);
  }
  return error;
}

extern "C" cudaError_t cudaGetTextureObjectTextureDesc(cudaTextureDesc* desc, cudaTextureObject_t object) {
  CUDA_TEXTURE_DESC found{};
  const cudaError_t error = run([&] { return driver.cuTexObjectGetTextureDesc(&found, object); });
  if (error == cudaSuccess) {
    *desc = runtime_texture(found);
  }
  return error;
}

extern "C" cudaError_t cudaGetTextureObjectResourceViewDesc(cudaResourceViewDesc* desc, cudaTextureObject_t object) {
  return run([&] {
    CUDA_RESOURCE_VIEW_DESC driver_view{};
    const CUresult result = driver.cuTexObjectGetResourceViewDesc(&driver_view, object);
    if (result == CUDA_SUCCESS) std::memcpy(desc, &driver_view, sizeof *desc);
    return result;
  });
}

extern "C" cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t* object, const cudaResourceDesc* desc) {
  return run([&] {
    CUDA_RESOURCE_DESC driver_resource{};
    const CUresult result = desc != nullptr ? resource(*desc, &driver_resource) : CUDA_ERROR_INVALID_VALUE;
    return result == CUDA_SUCCESS ? driver.cuSurfObjectCreate(object, &driver_resource) : result;
  });
}

extern "C" cudaError_t cudaDestroySurfaceObject(cudaSurfaceObject_t object) {
  return run([&] { return object == 0 ? CUDA_SUCCESS : driver.cuSurfObjectDestroy(object); });
}

extern "C" cudaError_t cudaGetSurfaceObjectResourceDesc(cudaResourceDesc* desc, cudaSurfaceObject_t object) {
  CUDA_RESOURCE_DESC found{};
  const cudaError_t error = run([&] { return driver.cuSurfObjectGetResourceDesc(&found, object); });
  if (error == cudaSuccess) {
    *desc = runtime_resource(found);
  }
  return error;
}
