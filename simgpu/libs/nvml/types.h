// The types and numbers of NVML's documented interface that the stand-in uses. With SIMLIBS_VENDOR_HEADERS the vendor's
// header takes their place, and the compiler holds every function that we define against its declaration.
#pragma once

#if defined(SIMLIBS_VENDOR_HEADERS)
#define NVML_NO_UNVERSIONED_FUNC_DEFS
#include <nvml.h>
#else
struct nvmlDevice_st;
using nvmlDevice_t = nvmlDevice_st*;

enum nvmlReturn_t : int {
  NVML_SUCCESS = 0,
  NVML_ERROR_UNINITIALIZED = 1,
  NVML_ERROR_INVALID_ARGUMENT = 2,
  NVML_ERROR_NOT_SUPPORTED = 3,
  NVML_ERROR_NO_PERMISSION = 4,
  NVML_ERROR_NOT_FOUND = 6,
  NVML_ERROR_INSUFFICIENT_SIZE = 7,
  NVML_ERROR_DRIVER_NOT_LOADED = 9,
  NVML_ERROR_UNKNOWN = 999
};
enum nvmlEnableState_t : int { NVML_FEATURE_DISABLED = 0, NVML_FEATURE_ENABLED = 1 };
enum nvmlClockType_t : int { NVML_CLOCK_GRAPHICS = 0, NVML_CLOCK_SM = 1, NVML_CLOCK_MEM = 2, NVML_CLOCK_VIDEO = 3 };
enum nvmlTemperatureSensors_t : int { NVML_TEMPERATURE_GPU = 0 };
enum nvmlPstates_t : int { NVML_PSTATE_0 = 0 };
enum nvmlComputeMode_t : int { NVML_COMPUTEMODE_DEFAULT = 0 };
enum nvmlBrandType_t : int { NVML_BRAND_NVIDIA = 14 };
enum nvmlGpuTopologyLevel_t : int { NVML_TOPOLOGY_INTERNAL = 0, NVML_TOPOLOGY_NODE = 40 };
enum nvmlGpuP2PCapsIndex_t : int {
  NVML_P2P_CAPS_INDEX_READ = 0,
  NVML_P2P_CAPS_INDEX_WRITE = 1,
  NVML_P2P_CAPS_INDEX_NVLINK = 2
};
enum nvmlGpuP2PStatus_t : int { NVML_P2P_STATUS_OK = 0, NVML_P2P_STATUS_NOT_SUPPORTED = 5 };
using nvmlDeviceArchitecture_t = unsigned;

struct nvmlPciInfo_t {
  char busIdLegacy[16];
  unsigned domain, bus, device, pciDeviceId, pciSubSystemId;
  char busId[32];
};
struct nvmlMemory_t {
  unsigned long long total, free, used;
};
struct nvmlMemory_v2_t {
  unsigned version;
  unsigned long long total, reserved, free, used;
};
struct nvmlUtilization_t {
  unsigned gpu, memory;
};
struct nvmlProcessInfo_t {
  unsigned pid;
  unsigned long long usedGpuMemory;
  unsigned gpuInstanceId, computeInstanceId;
};
#endif
