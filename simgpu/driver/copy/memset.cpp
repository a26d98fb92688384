// cuMemset*: what they mean, what they write, how long it takes.
#include <cstring>

#include "simgpu/driver/graph/capture.h"
#include "simgpu/driver/launch/operation.h"
#include "simgpu/driver/life/knobs.h"
#include "simgpu/driver/time/timeline.h"

namespace simgpu {

namespace {

constexpr Nanos kMemsetBase = 1'000;
constexpr double kMemsetBandwidthFactor = 40;

template <class T>
void fill(const Memset& memset) {
  const T value = static_cast<T>(memset.value);
  for (size_t y = 0; y < memset.height; ++y) {
    auto* row = reinterpret_cast<T*>(memset.dst + y * memset.pitch);
    for (size_t x = 0; x < memset.width; ++x) row[x] = value;
  }
}

void fill_bytes(const Memset& memset) {
  for (size_t y = 0; y < memset.height; ++y) {
    std::memset(reinterpret_cast<void*>(memset.dst + y * memset.pitch), static_cast<int>(memset.value & 0xff),
                memset.width);
  }
}

}  // namespace

CUresult check_memset(Memset& memset) {
  if (memset.bytes() == 0) return CUDA_SUCCESS;
  constexpr size_t kLimit = size_t{1} << 47;
  if (memset.width > kLimit || memset.height > kLimit) return CUDA_ERROR_INVALID_VALUE;
  const size_t row = memset.width * memset.element_bytes;
  if (memset.height > 1 && memset.pitch < row) return CUDA_ERROR_INVALID_VALUE;
  if (memset.dst % memset.element_bytes != 0) return CUDA_ERROR_INVALID_VALUE;
  if (memset.height > 1 && (memset.pitch % memset.element_bytes != 0 || memset.height - 1 > kLimit / memset.pitch)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const std::optional<Allocation> owner = find_range(memset.dst, (memset.height - 1) * memset.pitch + row);
  if (!owner || !owner->readable) return CUDA_ERROR_INVALID_VALUE;
  memset.memory = owner->kind;
  memset.device = owner->device;
  return CUDA_SUCCESS;
}

Span perform(const Memset& memset, const Origin& origin, Nanos ready) {
  if (memset.bytes() == 0) return {ready, ready};
  switch (memset.element_bytes) {
    case 1:
      fill_bytes(memset);
      break;
    case 2:
      fill<uint16_t>(memset);
      break;
    default:
      fill<uint32_t>(memset);
      break;
  }
  const double bandwidth = knobs().copy_bandwidth * kMemsetBandwidthFactor;
  const Span span{ready,
                  ready + kMemsetBase + static_cast<Nanos>(static_cast<double>(memset.bytes()) / bandwidth * 1e9)};
  if (looked_at(look::device)) show(memset, origin, span);
  if (origin.stamp) {
    TruthFields fields("memset");
    fields.add("bytes", memset.bytes()).add("memory", copy_memory_text(memset.memory));
    if (memset.device != nullptr) fields.add("device", memset.device->ordinal);
    fields.add("stream", origin.stream->id)
        .add("stream_handle", static_cast<const void*>(public_handle(origin.stream)))
        .add("start_ns", span.start)
        .add("end_ns", span.end)
        .add("correlation", origin.correlation);
    add_graph(fields, origin);
    origin.stamp->add(fields);
  }
  return span;
}

namespace {

// Memsets return before they are done, except on pinned host memory.
CUresult submit(Call& call, CUstream handle, bool async, Memset memset) {
  if (call.context() == nullptr && (handle == nullptr || !async)) return call.context_error();
  Stream* stream = call.stream(handle);
  if (stream == nullptr) return call.stream_error(handle);
  if (CUresult result = check_memset(memset); result != CUDA_SUCCESS) return result;
  if (capturing(*stream)) return capture_memset(call, *stream, memset);
  if (CUresult refused = capture_refuses_legacy(call, *stream); refused != CUDA_SUCCESS) return refused;
  if (!async) {
    if (CUresult refused = capture_refuses_unsafe(call); refused != CUDA_SUCCESS) return refused;
  }
  if (memset.bytes() == 0) return CUDA_SUCCESS;
  in_order(call, *stream, [memset, origin = Origin::of(call, *stream, async)](Nanos ready) {
    origin.stream->last_kernel_start = 0;
    return perform(memset, origin, ready).end;
  });
  if (!async && memset.memory == MemoryKind::pinned) stream_wait_host(*stream);
  return CUDA_SUCCESS;
}

Memset flat(CUdeviceptr dst, uint32_t value, unsigned element, size_t count) {
  Memset memset;
  memset.dst = dst;
  memset.value = value;
  memset.element_bytes = element;
  memset.width = count;
  return memset;
}

Memset rows(CUdeviceptr dst, size_t pitch, uint32_t value, unsigned element, size_t width, size_t height) {
  Memset memset = flat(dst, value, element, width);
  memset.pitch = pitch;
  memset.height = height;
  return memset;
}

}  // namespace

}  // namespace simgpu

using namespace simgpu;

SIM_API_PTDS(cuMemsetD8_v2, "cuMemsetD8", (CUdeviceptr dst, unsigned char value, size_t n), (dst, value, n)) {
  return submit(call, nullptr, false, flat(dst, value, 1, n));
}
SIM_API_PTDS(cuMemsetD16_v2, "cuMemsetD16", (CUdeviceptr dst, unsigned short value, size_t n), (dst, value, n)) {
  return submit(call, nullptr, false, flat(dst, value, 2, n));
}
SIM_API_PTDS(cuMemsetD32_v2, "cuMemsetD32", (CUdeviceptr dst, unsigned value, size_t n), (dst, value, n)) {
  return submit(call, nullptr, false, flat(dst, value, 4, n));
}
SIM_API_PTDS(cuMemsetD2D8_v2, "cuMemsetD2D8", (CUdeviceptr dst, size_t pitch, unsigned char value, size_t w, size_t h),
             (dst, pitch, value, w, h)) {
  return submit(call, nullptr, false, rows(dst, pitch, value, 1, w, h));
}
SIM_API_PTDS(cuMemsetD2D16_v2, "cuMemsetD2D16",
             (CUdeviceptr dst, size_t pitch, unsigned short value, size_t w, size_t h), (dst, pitch, value, w, h)) {
  return submit(call, nullptr, false, rows(dst, pitch, value, 2, w, h));
}
SIM_API_PTDS(cuMemsetD2D32_v2, "cuMemsetD2D32", (CUdeviceptr dst, size_t pitch, unsigned value, size_t w, size_t h),
             (dst, pitch, value, w, h)) {
  return submit(call, nullptr, false, rows(dst, pitch, value, 4, w, h));
}
SIM_API_PTSZ(cuMemsetD8Async, "cuMemsetD8Async", (CUdeviceptr dst, unsigned char value, size_t n, CUstream stream),
             (dst, value, n, stream)) {
  return submit(call, stream, true, flat(dst, value, 1, n));
}
SIM_API_PTSZ(cuMemsetD16Async, "cuMemsetD16Async", (CUdeviceptr dst, unsigned short value, size_t n, CUstream stream),
             (dst, value, n, stream)) {
  return submit(call, stream, true, flat(dst, value, 2, n));
}
SIM_API_PTSZ(cuMemsetD32Async, "cuMemsetD32Async", (CUdeviceptr dst, unsigned value, size_t n, CUstream stream),
             (dst, value, n, stream)) {
  return submit(call, stream, true, flat(dst, value, 4, n));
}
SIM_API_PTSZ(cuMemsetD2D8Async, "cuMemsetD2D8Async",
             (CUdeviceptr dst, size_t pitch, unsigned char value, size_t w, size_t h, CUstream stream),
             (dst, pitch, value, w, h, stream)) {
  return submit(call, stream, true, rows(dst, pitch, value, 1, w, h));
}
SIM_API_PTSZ(cuMemsetD2D16Async, "cuMemsetD2D16Async",
             (CUdeviceptr dst, size_t pitch, unsigned short value, size_t w, size_t h, CUstream stream),
             (dst, pitch, value, w, h, stream)) {
  return submit(call, stream, true, rows(dst, pitch, value, 2, w, h));
}
SIM_API_PTSZ(cuMemsetD2D32Async, "cuMemsetD2D32Async",
             (CUdeviceptr dst, size_t pitch, unsigned value, size_t w, size_t h, CUstream stream),
             (dst, pitch, value, w, h, stream)) {
  return submit(call, stream, true, rows(dst, pitch, value, 4, w, h));
}
