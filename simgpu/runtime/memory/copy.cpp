#include "simgpu/runtime/life/convert.h"
#include "simgpu/runtime/life/registry.h"
#include "simgpu/runtime/life/streamed.h"

// Copies. A direction given by the program becomes the driver call of that direction, as the vendor's runtime has it;
// cudaMemcpyDefault and host to host become the call that asks the addresses.
namespace simgpu::runtime {
namespace {

CUresult copy_bytes(Mode mode, void* dst, const void* src, std::size_t bytes, cudaMemcpyKind kind) {
  switch (kind) {
    case cudaMemcpyHostToDevice:
      return driver.cuMemcpyHtoD(mode, device_pointer(dst), src, bytes);
    case cudaMemcpyDeviceToHost:
      return driver.cuMemcpyDtoH(mode, dst, device_pointer(src), bytes);
    case cudaMemcpyDeviceToDevice:
      return driver.cuMemcpyDtoD(mode, device_pointer(dst), device_pointer(src), bytes);
    case cudaMemcpyHostToHost:
    case cudaMemcpyDefault:
      return driver.cuMemcpy(mode, device_pointer(dst), device_pointer(src), bytes);
    default:
      return as_result(cudaErrorInvalidMemcpyDirection);
  }
}

CUresult copy_bytes_async(Mode mode, void* dst, const void* src, std::size_t bytes, cudaMemcpyKind kind,
                          cudaStream_t stream) {
  switch (kind) {
    case cudaMemcpyHostToDevice:
      return driver.cuMemcpyHtoDAsync(mode, device_pointer(dst), src, bytes, stream);
    case cudaMemcpyDeviceToHost:
      return driver.cuMemcpyDtoHAsync(mode, dst, device_pointer(src), bytes, stream);
    case cudaMemcpyDeviceToDevice:
      return driver.cuMemcpyDtoDAsync(mode, device_pointer(dst), device_pointer(src), bytes, stream);
    case cudaMemcpyHostToHost:
    case cudaMemcpyDefault:
      return driver.cuMemcpyAsync(mode, device_pointer(dst), device_pointer(src), bytes, stream);
    default:
      return as_result(cudaErrorInvalidMemcpyDirection);
  }
}

CUDA_MEMCPY2D flatten(const CUDA_MEMCPY3D& copy) {
  CUDA_MEMCPY2D out{};
  out.srcXInBytes = copy.srcXInBytes;
  out.srcY = copy.srcY;
  out.srcMemoryType = copy.srcMemoryType;
  out.srcHost = copy.srcHost;
  out.srcDevice = copy.srcDevice;
  out.srcArray = copy.srcArray;
  out.srcPitch = copy.srcPitch;
  out.dstXInBytes = copy.dstXInBytes;
  out.dstY = copy.dstY;
  out.dstMemoryType = copy.dstMemoryType;
  out.dstHost = copy.dstHost;
  out.dstDevice = copy.dstDevice;
  out.dstArray = copy.dstArray;
  out.dstPitch = copy.dstPitch;
  out.WidthInBytes = copy.WidthInBytes;
  out.Height = copy.Height;
  return out;
}

CopySide rows(const void* memory, std::size_t pitch, std::size_t height) {
  return {nullptr, {}, {const_cast<void*>(memory), pitch, pitch, height}};
}

// The 2D calls place and measure in bytes even where an array takes part.
CUresult copy_2d(CopySide source, CopySide target, std::size_t width, std::size_t height, cudaMemcpyKind kind,
                 CUDA_MEMCPY2D* out) {
  const cudaPos from = source.position;
  const cudaPos to = target.position;
  source.position = {};
  target.position = {};
  CUDA_MEMCPY3D copy{};
  const CUresult result = copy_3d(source, target, {0, height, 1}, kind, &copy);
  *out = flatten(copy);
  out->srcXInBytes = from.x;
  out->srcY = from.y;
  out->dstXInBytes = to.x;
  out->dstY = to.y;
  out->WidthInBytes = width;
  return result;
}

cudaError_t run_2d(Mode mode, const CopySide& source, const CopySide& target, std::size_t width, std::size_t height,
                   cudaMemcpyKind kind) {
  return run([&] {
    CUDA_MEMCPY2D copy{};
    const CUresult result = copy_2d(source, target, width, height, kind, &copy);
    return result == CUDA_SUCCESS ? driver.cuMemcpy2DUnaligned(mode, &copy) : result;
  });
}

cudaError_t run_2d_async(Mode mode, const CopySide& source, const CopySide& target, std::size_t width,
                         std::size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
  return run([&] {
    CUDA_MEMCPY2D copy{};
    const CUresult result = copy_2d(source, target, width, height, kind, &copy);
    return result == CUDA_SUCCESS ? driver.cuMemcpy2DAsync(mode, &copy, stream) : result;
  });
}

}  // namespace

cudaError_t streamed::cudaMemcpy(Mode mode, void* dst, const void* src, size_t count, cudaMemcpyKind kind) {
  return run([&] { return copy_bytes(mode, dst, src, count, kind); });
}

cudaError_t streamed::cudaMemcpyAsync(Mode mode, void* dst, const void* src, size_t count, cudaMemcpyKind kind,
                                      cudaStream_t stream) {
  return run([&] { return copy_bytes_async(mode, dst, src, count, kind, stream); });
}

cudaError_t streamed::cudaMemcpyToSymbol(Mode mode, const void* symbol, const void* src, size_t count, size_t offset,
                                         cudaMemcpyKind kind) {
  return run([&] {
    CUdeviceptr address = 0;
    const CUresult result = variable_of(symbol, &address, nullptr);
    return result == CUDA_SUCCESS ? copy_bytes(mode, reinterpret_cast<void*>(address + offset), src, count, kind)
                                  : result;
  });
}

cudaError_t streamed::cudaMemcpyFromSymbol(Mode mode, void* dst, const void* symbol, size_t count, size_t offset,
                                           cudaMemcpyKind kind) {
  return run([&] {
    CUdeviceptr address = 0;
    const CUresult result = variable_of(symbol, &address, nullptr);
    return result == CUDA_SUCCESS ? copy_bytes(mode, dst, reinterpret_cast<void*>(address + offset), count, kind)
                                  : result;
  });
}

cudaError_t streamed::cudaMemcpyToSymbolAsync(Mode mode, const void* symbol, const void* src, size_t count,
                                              size_t offset, cudaMemcpyKind kind, cudaStream_t stream) {
  return run([&] {
    CUdeviceptr address = 0;
    const CUresult result = variable_of(symbol, &address, nullptr);
    return result == CUDA_SUCCESS
               ? copy_bytes_async(mode, reinterpret_cast<void*>(address + offset), src, count, kind, stream)
               : result;
  });
}

cudaError_t streamed::cudaMemcpyFromSymbolAsync(Mode mode, void* dst, const void* symbol, size_t count, size_t offset,
                                                cudaMemcpyKind kind, cudaStream_t stream) {
  return run([&] {
    CUdeviceptr address = 0;
    const CUresult result = variable_of(symbol, &address, nullptr);
    return result == CUDA_SUCCESS
               ? copy_bytes_async(mode, dst, reinterpret_cast<void*>(address + offset), count, kind, stream)
               : result;
  });
}

cudaError_t streamed::cudaMemcpy2D(Mode mode, void* dst, size_t dpitch, const void* src, size_t spitch, size_t width,
                                   size_t height, cudaMemcpyKind kind) {
  return run_2d(mode, rows(src, spitch, height), rows(dst, dpitch, height), width, height, kind);
}

cudaError_t streamed::cudaMemcpy2DAsync(Mode mode, void* dst, size_t dpitch, const void* src, size_t spitch,
                                        size_t width, size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
  return run_2d_async(mode, rows(src, spitch, height), rows(dst, dpitch, height), width, height, kind, stream);
}

cudaError_t streamed::cudaMemcpy2DToArray(Mode mode, cudaArray_t dst, size_t x, size_t y, const void* src,
                                          size_t spitch, size_t width, size_t height, cudaMemcpyKind kind) {
  return run_2d(mode, rows(src, spitch, height), {dst, {x, y, 0}, {}}, width, height, kind);
}

cudaError_t streamed::cudaMemcpy2DToArrayAsync(Mode mode, cudaArray_t dst, size_t x, size_t y, const void* src,
                                               size_t spitch, size_t width, size_t height, cudaMemcpyKind kind,
                                               cudaStream_t stream) {
  return run_2d_async(mode, rows(src, spitch, height), {dst, {x, y, 0}, {}}, width, height, kind, stream);
}

cudaError_t streamed::cudaMemcpy2DFromArray(Mode mode, void* dst, size_t dpitch, cudaArray_const_t src, size_t x,
                                            size_t y, size_t width, size_t height, cudaMemcpyKind kind) {
  return run_2d(mode, {src, {x, y, 0}, {}}, rows(dst, dpitch, height), width, height, kind);
}

cudaError_t streamed::cudaMemcpy2DFromArrayAsync(Mode mode, void* dst, size_t dpitch, cudaArray_const_t src, size_t x,
                                                 size_t y, size_t width, size_t height, cudaMemcpyKind kind,
                                                 cudaStream_t stream) {
  return run_2d_async(mode, {src, {x, y, 0}, {}}, rows(dst, dpitch, height), width, height, kind, stream);
}

cudaError_t streamed::cudaMemcpy2DArrayToArray(Mode mode, cudaArray_t dst, size_t dst_x, size_t dst_y,
                                               cudaArray_const_t src, size_t src_x, size_t src_y, size_t width,
                                               size_t height, cudaMemcpyKind kind) {
  return run_2d(mode, {src, {src_x, src_y, 0}, {}}, {dst, {dst_x, dst_y, 0}, {}}, width, height, kind);
}

// The deprecated one-row forms.
cudaError_t streamed::cudaMemcpyToArray(Mode mode, cudaArray_t dst, size_t x, size_t y, const void* src, size_t count,
                                        cudaMemcpyKind kind) {
  return run_2d(mode, rows(src, count, 1), {dst, {x, y, 0}, {}}, count, 1, kind);
}

cudaError_t streamed::cudaMemcpyToArrayAsync(Mode mode, cudaArray_t dst, size_t x, size_t y, const void* src,
                                             size_t count, cudaMemcpyKind kind, cudaStream_t stream) {
  return run_2d_async(mode, rows(src, count, 1), {dst, {x, y, 0}, {}}, count, 1, kind, stream);
}

cudaError_t streamed::cudaMemcpyFromArray(Mode mode, void* dst, cudaArray_const_t src, size_t x, size_t y, size_t count,
                                          cudaMemcpyKind kind) {
  return run_2d(mode, {src, {x, y, 0}, {}}, rows(dst, count, 1), count, 1, kind);
}

cudaError_t streamed::cudaMemcpyFromArrayAsync(Mode mode, void* dst, cudaArray_const_t src, size_t x, size_t y,
                                               size_t count, cudaMemcpyKind kind, cudaStream_t stream) {
  return run_2d_async(mode, {src, {x, y, 0}, {}}, rows(dst, count, 1), count, 1, kind, stream);
}

cudaError_t streamed::cudaMemcpyArrayToArray(Mode mode, cudaArray_t dst, size_t dst_x, size_t dst_y,
                                             cudaArray_const_t src, size_t src_x, size_t src_y, size_t count,
                                             cudaMemcpyKind kind) {
  return run_2d(mode, {src, {src_x, src_y, 0}, {}}, {dst, {dst_x, dst_y, 0}, {}}, count, 1, kind);
}

cudaError_t streamed::cudaMemcpy3D(Mode mode, const cudaMemcpy3DParms* p) {
  return run([&] {
    CUDA_MEMCPY3D copy{};
    const CUresult result = p != nullptr ? copy_3d(*p, &copy) : CUDA_ERROR_INVALID_VALUE;
    return result == CUDA_SUCCESS ? driver.cuMemcpy3D(mode, &copy) : result;
  });
}

cudaError_t streamed::cudaMemcpy3DAsync(Mode mode, const cudaMemcpy3DParms* p, cudaStream_t stream) {
  return run([&] {
    CUDA_MEMCPY3D copy{};
    const CUresult result = p != nullptr ? copy_3d(*p, &copy) : CUDA_ERROR_INVALID_VALUE;
    return result == CUDA_SUCCESS ? driver.cuMemcpy3DAsync(mode, &copy, stream) : result;
  });
}

cudaError_t streamed::cudaMemcpy3DPeer(Mode mode, const cudaMemcpy3DPeerParms* p) {
  return run([&] {
    CUDA_MEMCPY3D_PEER copy{};
    const CUresult result = p != nullptr ? copy_3d(*p, &copy) : CUDA_ERROR_INVALID_VALUE;
    return result == CUDA_SUCCESS ? driver.cuMemcpy3DPeer(mode, &copy) : result;
  });
}

cudaError_t streamed::cudaMemcpy3DPeerAsync(Mode mode, const cudaMemcpy3DPeerParms* p, cudaStream_t stream) {
  return run([&] {
    CUDA_MEMCPY3D_PEER copy{};
    const CUresult result = p != nullptr ? copy_3d(*p, &copy) : CUDA_ERROR_INVALID_VALUE;
    return result == CUDA_SUCCESS ? driver.cuMemcpy3DPeerAsync(mode, &copy, stream) : result;
  });
}

#if CUDART_VERSION >= 13000
cudaError_t streamed::cudaMemcpyBatchAsync(Mode mode, void* const* dsts, const void* const* srcs, const size_t* sizes,
                                           size_t count, cudaMemcpyAttributes* attrs, size_t* attr_indices,
                                           size_t attr_count, cudaStream_t stream) {
  static_assert(sizeof(cudaMemcpyAttributes) == sizeof(CUmemcpyAttributes));
  return run([&] {
    return driver.cuMemcpyBatchAsync(mode, reinterpret_cast<CUdeviceptr*>(const_cast<void**>(dsts)),
                                     reinterpret_cast<CUdeviceptr*>(const_cast<void**>(srcs)),
                                     const_cast<size_t*>(sizes), count, reinterpret_cast<CUmemcpyAttributes*>(attrs),
                                     attr_indices, attr_count, stream);
  });
}

cudaError_t streamed::cudaMemcpy3DBatchAsync(Mode mode, size_t count, cudaMemcpy3DBatchOp* ops,
                                             unsigned long long flags, cudaStream_t stream) {
  static_assert(sizeof(cudaMemcpy3DBatchOp) == sizeof(CUDA_MEMCPY3D_BATCH_OP));
  return run([&] {
    return driver.cuMemcpy3DBatchAsync(mode, count, reinterpret_cast<CUDA_MEMCPY3D_BATCH_OP*>(ops), flags, stream);
  });
}
#endif

namespace {

// The name is that of the exported function, as for `run`.
cudaError_t copy_peer(void* dst, int dst_device, const void* src, int src_device, size_t count, bool async,
                      cudaStream_t stream, const char* name = __builtin_FUNCTION()) {
  return run(
      [&] {
        CUcontext from = nullptr;
        CUcontext to = nullptr;
        CUresult result = primary_context(src_device, &from);
        if (result == CUDA_SUCCESS) {
          result = primary_context(dst_device, &to);
        }
        if (result != CUDA_SUCCESS) {
          return result;
        }
        const CUdeviceptr target = device_pointer(dst);
        const CUdeviceptr source = device_pointer(src);
        return async ? driver.cuMemcpyPeerAsync(Mode::legacy, target, to, source, from, count, stream)
                     : driver.cuMemcpyPeer(Mode::legacy, target, to, source, from, count);
      },
      name);
}

}  // namespace
}  // namespace simgpu::runtime

using namespace simgpu::runtime;

extern "C" cudaError_t cudaMemcpyPeer(void* dst, int dst_device, const void* src, int src_device, size_t count) {
  return copy_peer(dst, dst_device, src, src_device, count, false, nullptr);
}

extern "C" cudaError_t cudaMemcpyPeerAsync(void* dst, int dst_device, const void* src, int src_device, size_t count,
                                           cudaStream_t stream) {
  return copy_peer(dst, dst_device, src, src_device, count, true, stream);
}
