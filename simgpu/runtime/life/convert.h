#pragma once

#include <cuda_runtime_api.h>

#include "simgpu/runtime/life/core.h"

// The runtime's structures as the driver wants them, and back. Where both have the same layout they are reinterpreted
// and a static_assert says so.
namespace simgpu::runtime {

CUlaunchConfig driver_config(const cudaLaunchConfig_t& config);

// Arrays: one element is `channels` values of one format.
struct ElementFormat {
  CUarray_format format;
  unsigned channels;
};
// False when the descriptor has no driver equivalent.
bool element_format(const cudaChannelFormatDesc& desc, ElementFormat* out);
cudaChannelFormatDesc channel_desc(ElementFormat format);
std::size_t element_bytes(ElementFormat format);
// Bytes of one element of an array; 1 for null, whose extents are in bytes already.
std::size_t element_bytes(const cudaArray* array);

inline CUarray driver_array(const cudaArray* array) { return reinterpret_cast<CUarray>(const_cast<cudaArray*>(array)); }
inline CUmipmappedArray driver_array(const cudaMipmappedArray* array) {
  return reinterpret_cast<CUmipmappedArray>(const_cast<cudaMipmappedArray*>(array));
}

// One side of a strided copy: an array, or rows of memory.
struct CopySide {
  const cudaArray* array = nullptr;
  cudaPos position{};  // in elements of an array, in bytes (x) of memory
  cudaPitchedPtr memory{};
};

// Fails for a direction that does not exist.
CUresult copy_3d(const CopySide& source, const CopySide& target, cudaExtent extent, cudaMemcpyKind kind,
                 CUDA_MEMCPY3D* out);
CUresult copy_3d(const cudaMemcpy3DParms& parms, CUDA_MEMCPY3D* out);
CUresult copy_3d(const cudaMemcpy3DPeerParms& parms, CUDA_MEMCPY3D_PEER* out);
// A plain run of bytes.
CUresult copy_1d(void* target, const void* source, std::size_t bytes, cudaMemcpyKind kind, CUDA_MEMCPY3D* out);
cudaMemcpy3DParms runtime_copy(const CUDA_MEMCPY3D& copy);

}  // namespace simgpu::runtime
