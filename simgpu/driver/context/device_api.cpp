// cuDevice*: what the machine has.
#include <cstdio>
#include <cstring>

#include "simgpu/driver/context/device.h"
#include "simgpu/driver/life/call.h"
#include "simgpu/driver/life/knobs.h"

using namespace simgpu;

SIM_API(cuDeviceGet, "cuDeviceGet", (CUdevice * device, int ordinal), (device, ordinal)) {
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (device_at(ordinal) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

SIM_API(cuDeviceGetCount, "cuDeviceGetCount", (int* count), (count)) {
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *count = static_cast<int>(devices().size());
  return CUDA_SUCCESS;
}

SIM_API(cuDeviceGetName, "cuDeviceGetName", (char* name, int len, CUdevice dev), (name, len, dev)) {
  const Device* device = device_at(dev);
  if (name == nullptr || len <= 0) return CUDA_ERROR_INVALID_VALUE;
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  std::snprintf(name, static_cast<size_t>(len), "%s", device->name.c_str());
  return CUDA_SUCCESS;
}

SIM_API(cuDeviceGetUuid_v2, "cuDeviceGetUuid", (CUuuid * uuid, CUdevice dev), (uuid, dev)) {
  const Device* device = device_at(dev);
  if (uuid == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  *uuid = device->uuid;
  return CUDA_SUCCESS;
}
SIM_ALIAS(cuDeviceGetUuid, cuDeviceGetUuid_v2, "cuDeviceGetUuid", (CUuuid * uuid, CUdevice dev), (uuid, dev))

// An identifier of Windows only.
SIM_API(cuDeviceGetLuid, "cuDeviceGetLuid", (char* luid, unsigned int* mask, CUdevice dev), (luid, mask, dev)) {
  if (luid == nullptr || mask == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return device_at(dev) == nullptr ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_NOT_SUPPORTED;
}

SIM_API(cuDeviceTotalMem_v2, "cuDeviceTotalMem", (size_t * bytes, CUdevice dev), (bytes, dev)) {
  if (bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (device_at(dev) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  *bytes = knobs().memory;
  return CUDA_SUCCESS;
}

SIM_API(cuDeviceGetAttribute, "cuDeviceGetAttribute", (int* value, CUdevice_attribute attribute, CUdevice dev),
        (value, attribute, dev)) {
  const Device* device = device_at(dev);
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  return device_attribute(*device, attribute, value);
}

SIM_API(cuDeviceComputeCapability, "cuDeviceComputeCapability", (int* major, int* minor, CUdevice dev),
        (major, minor, dev)) {
  if (major == nullptr || minor == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (device_at(dev) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  *major = knobs().cc_major;
  *minor = knobs().cc_minor;
  return CUDA_SUCCESS;
}

SIM_API(cuDeviceGetProperties, "cuDeviceGetProperties", (CUdevprop * properties, CUdevice dev), (properties, dev)) {
  const Device* device = device_at(dev);
  if (properties == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  const auto get = [&](CUdevice_attribute attribute) {
    int value = 0;
    device_attribute(*device, attribute, &value);
    return value;
  };
  *properties = CUdevprop{};
  properties->maxThreadsPerBlock = get(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  properties->maxThreadsDim[0] = get(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X);
  properties->maxThreadsDim[1] = get(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y);
  properties->maxThreadsDim[2] = get(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z);
  properties->maxGridSize[0] = get(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X);
  properties->maxGridSize[1] = get(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y);
  properties->maxGridSize[2] = get(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z);
  properties->sharedMemPerBlock = get(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
  properties->totalConstantMemory = get(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY);
  properties->SIMDWidth = get(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
  properties->memPitch = get(CU_DEVICE_ATTRIBUTE_MAX_PITCH);
  properties->regsPerBlock = get(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
  properties->clockRate = get(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
  properties->textureAlign = get(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT);
  return CUDA_SUCCESS;
}

SIM_API(cuDeviceGetPCIBusId, "cuDeviceGetPCIBusId", (char* text, int len, CUdevice dev), (text, len, dev)) {
  const Device* device = device_at(dev);
  if (text == nullptr || len <= 0) return CUDA_ERROR_INVALID_VALUE;
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  int bus = 0;
  device_attribute(*device, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, &bus);
  std::snprintf(text, static_cast<size_t>(len), "0000:%02X:00.0", static_cast<unsigned>(bus));
  return CUDA_SUCCESS;
}

SIM_API(cuDeviceGetByPCIBusId, "cuDeviceGetByPCIBusId", (CUdevice * dev, const char* text), (dev, text)) {
  if (dev == nullptr || text == nullptr) return CUDA_ERROR_INVALID_VALUE;
  unsigned domain = 0, bus = 0, slot = 0, function = 0;
  if (std::sscanf(text, "%x:%x:%x.%x", &domain, &bus, &slot, &function) < 3) {
    domain = 0;
    if (std::sscanf(text, "%x:%x", &bus, &slot) != 2) return CUDA_ERROR_INVALID_VALUE;
  }
  for (const auto& device : devices()) {
    int own_bus = 0;
    device_attribute(*device, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, &own_bus);
    if (domain != 0 || slot != 0 || function != 0 || static_cast<unsigned>(own_bus) != bus) continue;
    *dev = device->ordinal;
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_DEVICE;
}

SIM_API(cuDeviceGetTexture1DLinearMaxWidth, "cuDeviceGetTexture1DLinearMaxWidth",
        (size_t * width, CUarray_format format, unsigned channels, CUdevice dev), (width, format, channels, dev)) {
  if (width == nullptr || channels == 0 || channels > 4 || format == 0) return CUDA_ERROR_INVALID_VALUE;
  if (device_at(dev) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  *width = size_t{1} << 28;
  return CUDA_SUCCESS;
}

SIM_API(cuDeviceGetExecAffinitySupport, "cuDeviceGetExecAffinitySupport",
        (int* supported, CUexecAffinityType type, CUdevice dev), (supported, type, dev)) {
  if (supported == nullptr || type != CU_EXEC_AFFINITY_TYPE_SM_COUNT) return CUDA_ERROR_INVALID_VALUE;
  if (device_at(dev) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  *supported = 0;
  return CUDA_SUCCESS;
}

SIM_API(cuDeviceCanAccessPeer, "cuDeviceCanAccessPeer", (int* can, CUdevice dev, CUdevice peer), (can, dev, peer)) {
  if (can == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (device_at(dev) == nullptr || device_at(peer) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  *can = dev != peer ? 1 : 0;
  return CUDA_SUCCESS;
}

SIM_API(cuDeviceGetP2PAttribute, "cuDeviceGetP2PAttribute",
        (int* value, CUdevice_P2PAttribute attribute, CUdevice src, CUdevice dst), (value, attribute, src, dst)) {
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (device_at(src) == nullptr || device_at(dst) == nullptr || src == dst) return CUDA_ERROR_INVALID_DEVICE;
  switch (static_cast<int>(attribute)) {
    case CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK:
    case CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED:
      *value = 0;
      return CUDA_SUCCESS;
    case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED:
    case CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED:
    case CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED:
      *value = 1;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}
