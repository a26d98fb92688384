// Managed memory: advice, prefetch, discard. The pages are the host's; what is kept is what was said about them.
#include <cstring>

#include "simgpu/driver/context/device.h"
#include "simgpu/driver/graph/capture.h"
#include "simgpu/driver/memory/memory.h"
#include "simgpu/driver/time/timeline.h"

using namespace simgpu;

namespace {

constexpr Nanos kPrefetchBase = 1'000;

// A location as one number: a device's ordinal or CU_DEVICE_CPU. False: no such location.
bool ordinal_of(const CUmemLocation& location, int* out) {
  switch (location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
      *out = location.id;
      return device_at(location.id) != nullptr;
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
      *out = CU_DEVICE_CPU;
      return true;
    default:
      return false;
  }
}

bool known_ordinal(int ordinal) { return ordinal == CU_DEVICE_CPU || device_at(ordinal) != nullptr; }

std::optional<Allocation> managed_range(CUdeviceptr address, size_t bytes) {
  if (bytes == 0) return std::nullopt;
  std::optional<Allocation> allocation = find_range(address, bytes);
  if (allocation && allocation->kind != MemoryKind::managed) return std::nullopt;
  return allocation;
}

CUresult prefetch(Call& call, CUdeviceptr address, size_t bytes, int to, CUstream handle) {
  if (!known_ordinal(to)) return CUDA_ERROR_INVALID_DEVICE;
  const std::optional<Allocation> allocation = managed_range(address, bytes);
  if (!allocation) return CUDA_ERROR_INVALID_VALUE;
  Stream* stream = call.stream(handle);
  if (stream == nullptr) return call.stream_error(handle);
  if (CUresult refused = capture_refuses_sync(call, *stream); refused != CUDA_SUCCESS) return refused;
  update_allocation(address, [to](Allocation& own) { own.last_prefetch = to; });
  Device* device = to == CU_DEVICE_CPU ? stream->context->device : device_at(to);
  const int engine = to == CU_DEVICE_CPU ? 1 : 0;
  const Nanos duration = kPrefetchBase + static_cast<Nanos>(static_cast<double>(bytes) / knobs().copy_bandwidth * 1e9);
  in_order(call, *stream,
           [device, engine, duration](Nanos ready) { return occupy_engine(*device, engine, ready, duration).end; });
  return CUDA_SUCCESS;
}

CUresult advise(CUdeviceptr address, size_t bytes, CUmem_advise advice, int where) {
  if (!managed_range(address, bytes)) return CUDA_ERROR_INVALID_VALUE;
  const bool placed = advice == CU_MEM_ADVISE_SET_PREFERRED_LOCATION || advice == CU_MEM_ADVISE_SET_ACCESSED_BY ||
                      advice == CU_MEM_ADVISE_UNSET_ACCESSED_BY;
  if (placed && !known_ordinal(where)) return CUDA_ERROR_INVALID_DEVICE;
  const auto change = [advice, where](Allocation& own) {
    const bool set = advice == CU_MEM_ADVISE_SET_ACCESSED_BY;
    switch (advice) {
      case CU_MEM_ADVISE_SET_READ_MOSTLY:
        own.read_mostly = true;
        break;
      case CU_MEM_ADVISE_UNSET_READ_MOSTLY:
        own.read_mostly = false;
        break;
      case CU_MEM_ADVISE_SET_PREFERRED_LOCATION:
        own.preferred_location = where;
        break;
      case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION:
        own.preferred_location = CU_DEVICE_INVALID;
        break;
      case CU_MEM_ADVISE_SET_ACCESSED_BY:
      case CU_MEM_ADVISE_UNSET_ACCESSED_BY:
        if (where == CU_DEVICE_CPU)
          own.accessed_by_host = set;
        else if (set)
          own.accessed_by |= uint64_t{1} << where;
        else
          own.accessed_by &= ~(uint64_t{1} << where);
        break;
    }
  };
  if (advice < CU_MEM_ADVISE_SET_READ_MOSTLY || advice > CU_MEM_ADVISE_UNSET_ACCESSED_BY)
    return CUDA_ERROR_INVALID_VALUE;
  return update_allocation(address, change) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

int location_type(int ordinal) {
  if (ordinal == CU_DEVICE_INVALID) return CU_MEM_LOCATION_TYPE_INVALID;
  return ordinal == CU_DEVICE_CPU ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE;
}

CUresult range_attribute(const Allocation& own, void* data, size_t bytes, CUmem_range_attribute attribute) {
  if (data == nullptr || bytes < sizeof(int) || bytes % sizeof(int) != 0) return CUDA_ERROR_INVALID_VALUE;
  auto* out = static_cast<int*>(data);
  if (attribute != CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY && bytes != sizeof(int)) return CUDA_ERROR_INVALID_VALUE;
  switch (attribute) {
    case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY:
      *out = own.read_mostly ? 1 : 0;
      return CUDA_SUCCESS;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION:
      *out = own.preferred_location;
      return CUDA_SUCCESS;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION:
      *out = own.last_prefetch;
      return CUDA_SUCCESS;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE:
      *out = location_type(own.preferred_location);
      return CUDA_SUCCESS;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID:
      *out = own.preferred_location;
      return CUDA_SUCCESS;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE:
      *out = location_type(own.last_prefetch);
      return CUDA_SUCCESS;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID:
      *out = own.last_prefetch;
      return CUDA_SUCCESS;
    case CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY: {
      size_t filled = 0;
      const size_t room = bytes / sizeof(int);
      if (own.accessed_by_host && filled < room) out[filled++] = CU_DEVICE_CPU;
      for (int i = 0; i < 64 && filled < room; ++i) {
        if ((own.accessed_by >> i & 1) != 0) out[filled++] = i;
      }
      while (filled < room) out[filled++] = CU_DEVICE_INVALID;
      return CUDA_SUCCESS;
    }
  }
  return CUDA_ERROR_INVALID_VALUE;
}

struct Batch {
  const CUdeviceptr* addresses;
  const size_t* sizes;
  size_t count;
  const CUmemLocation* locations;
  const size_t* starts;
  size_t location_count;
};

// Prefetches each range to the location whose turn it is.
CUresult prefetch_batch(Call& call, const Batch& batch, unsigned long long flags, CUstream stream) {
  if (batch.addresses == nullptr || batch.sizes == nullptr || batch.count == 0 || flags != 0)
    return CUDA_ERROR_INVALID_VALUE;
  if (batch.locations == nullptr || batch.starts == nullptr || batch.location_count == 0 || batch.starts[0] != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  size_t turn = 0;
  for (size_t i = 0; i < batch.count; ++i) {
    while (turn + 1 < batch.location_count && batch.starts[turn + 1] <= i) ++turn;
    int to = 0;
    if (!ordinal_of(batch.locations[turn], &to)) return CUDA_ERROR_INVALID_VALUE;
    if (CUresult result = prefetch(call, batch.addresses[i], batch.sizes[i], to, stream); result != CUDA_SUCCESS)
      return result;
  }
  return CUDA_SUCCESS;
}

// What a discarded range holds is nobody's business until it is written again: nothing to do but to judge.
CUresult discard_batch(Call& call, const CUdeviceptr* addresses, const size_t* sizes, size_t count,
                       unsigned long long flags, CUstream handle) {
  if (addresses == nullptr || sizes == nullptr || count == 0 || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (call.stream(handle) == nullptr) return call.stream_error(handle);
  for (size_t i = 0; i < count; ++i) {
    if (!managed_range(addresses[i], sizes[i])) return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

}  // namespace

SIM_API_PTSZ(cuMemPrefetchAsync, "cuMemPrefetchAsync",
             (CUdeviceptr address, size_t bytes, CUdevice to, CUstream stream), (address, bytes, to, stream)) {
  return prefetch(call, address, bytes, to, stream);
}

SIM_API_PTSZ(cuMemPrefetchAsync_v2, "cuMemPrefetchAsync",
             (CUdeviceptr address, size_t bytes, CUmemLocation location, unsigned flags, CUstream stream),
             (address, bytes, location, flags, stream)) {
  int to = 0;
  if (flags != 0 || !ordinal_of(location, &to)) return CUDA_ERROR_INVALID_VALUE;
  return prefetch(call, address, bytes, to, stream);
}

SIM_API_PTSZ(cuMemPrefetchBatchAsync, "cuMemPrefetchBatchAsync",
             (CUdeviceptr * addresses, size_t* sizes, size_t count, CUmemLocation* locations, size_t* starts,
              size_t location_count, unsigned long long flags, CUstream stream),
             (addresses, sizes, count, locations, starts, location_count, flags, stream)) {
  return prefetch_batch(call, {addresses, sizes, count, locations, starts, location_count}, flags, stream);
}

SIM_API_PTSZ(cuMemDiscardBatchAsync, "cuMemDiscardBatchAsync",
             (CUdeviceptr * addresses, size_t* sizes, size_t count, unsigned long long flags, CUstream stream),
             (addresses, sizes, count, flags, stream)) {
  return discard_batch(call, addresses, sizes, count, flags, stream);
}

SIM_API_PTSZ(cuMemDiscardAndPrefetchBatchAsync, "cuMemDiscardAndPrefetchBatchAsync",
             (CUdeviceptr * addresses, size_t* sizes, size_t count, CUmemLocation* locations, size_t* starts,
              size_t location_count, unsigned long long flags, CUstream stream),
             (addresses, sizes, count, locations, starts, location_count, flags, stream)) {
  if (CUresult result = discard_batch(call, addresses, sizes, count, flags, stream); result != CUDA_SUCCESS)
    return result;
  return prefetch_batch(call, {addresses, sizes, count, locations, starts, location_count}, flags, stream);
}

SIM_API(cuMemAdvise, "cuMemAdvise", (CUdeviceptr address, size_t bytes, CUmem_advise advice, CUdevice where),
        (address, bytes, advice, where)) {
  return advise(address, bytes, advice, where);
}

SIM_API(cuMemAdvise_v2, "cuMemAdvise", (CUdeviceptr address, size_t bytes, CUmem_advise advice, CUmemLocation location),
        (address, bytes, advice, location)) {
  int where = CU_DEVICE_INVALID;
  const bool placed = ordinal_of(location, &where);
  const bool needs_place = advice != CU_MEM_ADVISE_SET_READ_MOSTLY && advice != CU_MEM_ADVISE_UNSET_READ_MOSTLY &&
                           advice != CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION;
  if (needs_place && !placed) return CUDA_ERROR_INVALID_VALUE;
  return advise(address, bytes, advice, where);
}

SIM_API(cuMemRangeGetAttribute, "cuMemRangeGetAttribute",
        (void* data, size_t data_bytes, CUmem_range_attribute attribute, CUdeviceptr address, size_t bytes),
        (data, data_bytes, attribute, address, bytes)) {
  const std::optional<Allocation> allocation = managed_range(address, bytes);
  if (!allocation) return CUDA_ERROR_INVALID_VALUE;
  return range_attribute(*allocation, data, data_bytes, attribute);
}

SIM_API(cuMemRangeGetAttributes, "cuMemRangeGetAttributes",
        (void** data, size_t* data_bytes, CUmem_range_attribute* attributes, size_t count, CUdeviceptr address,
         size_t bytes),
        (data, data_bytes, attributes, count, address, bytes)) {
  if (data == nullptr || data_bytes == nullptr || attributes == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  const std::optional<Allocation> allocation = managed_range(address, bytes);
  if (!allocation) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    const CUresult result = range_attribute(*allocation, data[i], data_bytes[i], attributes[i]);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}
