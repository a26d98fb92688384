// NVML: what the simulated machine is. Nothing here initializes the driver, so that a program may still fork.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "simgpu/driver/context/machine.h"
#include "simgpu/libs/nvml/types.h"

// Any other driver does not have it.
extern "C" __attribute__((weak)) const simgpu::Machine* simgpu_machine();

#define NVML_ENTRY(result, name, parameters) extern "C" __attribute__((visibility("default"))) result name parameters

namespace {

std::atomic<int> uses{0};  // nvmlInit without nvmlShutdown

// A handle is a device's number and one.
nvmlDevice_t handle_of(int ordinal) { return reinterpret_cast<nvmlDevice_t>(static_cast<uintptr_t>(ordinal) + 1); }
int ordinal_of(nvmlDevice_t device) {
  const auto number = reinterpret_cast<uintptr_t>(device);
  return number >= 1 && number <= static_cast<uintptr_t>(simgpu_machine()->devices) ? static_cast<int>(number) - 1 : -1;
}

// What every call goes through: initialized, a device that there is, somewhere to write to.
template <typename Out, typename Value>
nvmlReturn_t tell(nvmlDevice_t device, Out* out, const Value& value) {
  if (uses == 0) return NVML_ERROR_UNINITIALIZED;
  const int ordinal = ordinal_of(device);
  if (ordinal < 0 || !out) return NVML_ERROR_INVALID_ARGUMENT;
  *out = value(ordinal);
  return NVML_SUCCESS;
}
template <typename Out>
nvmlReturn_t tell_fixed(nvmlDevice_t device, Out* out, Out value) {
  return tell(device, out, [value](int) { return value; });
}
nvmlReturn_t tell_text(char* out, unsigned length, const char* text) {
  if (uses == 0) return NVML_ERROR_UNINITIALIZED;
  if (!out) return NVML_ERROR_INVALID_ARGUMENT;
  if (std::strlen(text) >= length) return NVML_ERROR_INSUFFICIENT_SIZE;
  std::strcpy(out, text);
  return NVML_SUCCESS;
}
nvmlReturn_t find(int ordinal, nvmlDevice_t* out) {
  if (uses == 0) return NVML_ERROR_UNINITIALIZED;
  if (!out) return NVML_ERROR_INVALID_ARGUMENT;
  if (ordinal < 0 || ordinal >= simgpu_machine()->devices) return NVML_ERROR_INVALID_ARGUMENT;
  *out = handle_of(ordinal);
  return NVML_SUCCESS;
}

struct Uuid {
  char text[48];
  explicit Uuid(int ordinal) {
    unsigned char b[16];
    simgpu_machine()->uuid(ordinal, &b);
    std::snprintf(text, sizeof text, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0],
                  b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
  }
};

// As the driver's: bus n + 1 of domain 0.
nvmlPciInfo_t pci_of(int ordinal) {
  nvmlPciInfo_t pci{};
  pci.bus = static_cast<unsigned>(ordinal) + 1;
  pci.pciDeviceId = 0x233010de;
  std::snprintf(pci.busIdLegacy, sizeof pci.busIdLegacy, "0000:%02X:00.0", pci.bus);
  std::snprintf(pci.busId, sizeof pci.busId, "00000000:%02X:00.0", pci.bus);
  return pci;
}

}  // namespace

// ------------------------------------------------------------------ the library and the system
NVML_ENTRY(nvmlReturn_t, nvmlInit_v2, ()) {
  if (!simgpu_machine) return NVML_ERROR_DRIVER_NOT_LOADED;
  ++uses;
  return NVML_SUCCESS;
}
NVML_ENTRY(nvmlReturn_t, nvmlInit, ()) { return nvmlInit_v2(); }
NVML_ENTRY(nvmlReturn_t, nvmlInitWithFlags, (unsigned)) { return nvmlInit_v2(); }
NVML_ENTRY(nvmlReturn_t, nvmlShutdown, ()) {
  int now = uses;
  while (now > 0 && !uses.compare_exchange_weak(now, now - 1)) {
  }
  return now > 0 ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED;
}
NVML_ENTRY(const char*, nvmlErrorString, (nvmlReturn_t code)) {
  switch (static_cast<int>(code)) {
    case NVML_SUCCESS:
      return "The operation was successful";
    case NVML_ERROR_UNINITIALIZED:
      return "NVML was not first initialized with nvmlInit()";
    case NVML_ERROR_INVALID_ARGUMENT:
      return "A supplied argument is invalid";
    case NVML_ERROR_NOT_SUPPORTED:
      return "The requested operation is not available on target device";
    case NVML_ERROR_NOT_FOUND:
      return "A query to find an object was unsuccessful";
    case NVML_ERROR_INSUFFICIENT_SIZE:
      return "An input argument is not large enough";
    case NVML_ERROR_DRIVER_NOT_LOADED:
      return "Driver is not loaded";
    default:
      return "Unknown error";
  }
}
NVML_ENTRY(nvmlReturn_t, nvmlSystemGetDriverVersion, (char* out, unsigned length)) {
  // A release that has this CUDA.
  return tell_text(out, length, simgpu_machine && simgpu_machine()->driver < 13000 ? "575.57.08" : "580.65.06");
}
NVML_ENTRY(nvmlReturn_t, nvmlSystemGetNVMLVersion, (char* out, unsigned length)) {
  return tell_text(out, length, simgpu_machine && simgpu_machine()->driver < 13000 ? "12.575.57.08" : "13.580.65.06");
}
NVML_ENTRY(nvmlReturn_t, nvmlSystemGetCudaDriverVersion, (int* out)) {
  if (!simgpu_machine) return NVML_ERROR_DRIVER_NOT_LOADED;
  if (!out) return NVML_ERROR_INVALID_ARGUMENT;
  *out = simgpu_machine()->driver;
  return NVML_SUCCESS;
}
NVML_ENTRY(nvmlReturn_t, nvmlSystemGetCudaDriverVersion_v2, (int* out)) { return nvmlSystemGetCudaDriverVersion(out); }

// ------------------------------------------------------------------ devices
NVML_ENTRY(nvmlReturn_t, nvmlDeviceGetCount_v2, (unsigned* out)) {
  if (uses == 0) return NVML_ERROR_UNINITIALIZED;
  if (!out) return NVML_ERROR_INVALID_ARGUMENT;
  *out = static_cast<unsigned>(simgpu_machine()->devices);
  return NVML_SUCCESS;
}
NVML_ENTRY(nvmlReturn_t, nvmlDeviceGetCount, (unsigned* out)) { return nvmlDeviceGetCount_v2(out); }
NVML_ENTRY(nvmlReturn_t, nvmlDeviceGetHandleByIndex_v2, (unsigned index, nvmlDevice_t* out)) {
  return find(static_cast<int>(index), out);
}
NVML_ENTRY(nvmlReturn_t, nvmlDeviceGetHandleByIndex, (unsigned index, nvmlDevice_t* out)) {
  return find(static_cast<int>(index), out);
}
NVML_ENTRY(nvmlReturn_t, nvmlDeviceGetHandleByUUID, (const char* uuid, nvmlDevice_t* out)) {
  if (uses == 0) return NVML_ERROR_UNINITIALIZED;
  if (!uuid || !out) return NVML_ERROR_INVALID_ARGUMENT;
  for (int i = 0; i < simgpu_machine()->devices; ++i) {
    if (std::strcmp(Uuid(i).text, uuid) == 0) return find(i, out);
  }
  return NVML_ERROR_NOT_FOUND;
}
NVML_ENTRY(nvmlReturn_t, nvmlDeviceGetHandleByPciBusId_v2, (const char* id, nvmlDevice_t* out)) {
  if (uses == 0) return NVML_ERROR_UNINITIALIZED;
  unsigned domain = 0, bus = 0, slot = 0;
  if (!id || !out || std::sscanf(id, "%x:%x:%x", &domain, &bus, &slot) != 3) return NVML_ERROR_INVALID_ARGUMENT;
  const bool there = domain == 0 && slot == 0 && bus >= 1 && bus <= static_cast<unsigned>(simgpu_machine()->devices);
  return there ? find(static_cast<int>(bus) - 1, out) : NVML_ERROR_NOT_FOUND;
}
NVML_ENTRY(nvmlReturn_t, nvmlDeviceGetHandleByPciBusId, (const char* id, nvmlDevice_t* out)) {
  return nvmlDeviceGetHandleByPciBusId_v2(id, out);
}
NVML_ENTRY(nvmlReturn_t, nvmlDeviceGetIndex, (nvmlDevice_t device, unsigned* out)) {
  return tell(device, out, [](int ordinal) { return static_cast<unsigned>(ordinal); });
}
NVML_ENTRY(nvmlReturn_t, nvmlDeviceGetMinorNumber, (nvmlDevice_t device, unsigned* out)) {
  return nvmlDeviceGetIndex(device, out);
}
NVML_ENTRY(nvmlReturn_t, nvmlDeviceGetName, (nvmlDevice_t device, char* out, unsigned length)) {
  if (uses != 0 && ordinal_of(device) < 0) return NVML_ERROR_INVALID_ARGUMENT;
  return tell_text(out, length, simgpu_machine ? simgpu_machine()->name : "");
}
NVML_ENTRY(nvmlReturn_t, nvmlDeviceGetUUID, (nvmlDevice_t device, char* out, unsigned length)) {
  if (uses == 0) return NVML_ERROR_UNINITIALIZED;
  const int ordinal = ordinal_of(device);
  return ordinal < 0 ? NVML_ERROR_INVALID_ARGUMENT : tell_text(out, length, Uuid(ordinal).text);
}
NVML_ENTRY(nvmlReturn_t, nvmlDeviceGetPciInfo_v3, (nvmlDevice_t device, nvmlPciInfo_t* out)) {
  return tell(device, out, pci_of);
}
NVML_ENTRY(nvmlReturn_t, nvmlDeviceGetCudaComputeCapability, (nvmlDevice_t device, int* major, int* minor)) {
  const nvmlReturn_t result = tell_fixed(device, major, simgpu_machine ? simgpu_machine()->cc_major : 0);
  return result == NVML_SUCCESS ? tell_fixed(device, minor, simgpu_machine()->cc_minor) : result;
}
NVML_ENTRY(nvmlReturn_t, nvmlDeviceGetNumGpuCores, (nvmlDevice_t device, unsigned* out)) {
  return tell(device, out, [](int) { return static_cast<unsigned>(simgpu_machine()->sms) * 128; });
}
NVML_ENTRY(nvmlReturn_t, nvmlDeviceGetMemoryInfo, (nvmlDevice_t device, nvmlMemory_t* out)) {
  return tell(device, out, [](int ordinal) {
    const unsigned long long total = simgpu_machine()->memory_bytes, free = simgpu_machine()->free_bytes(ordinal);
    return nvmlMemory_t{total, free, total - free};
  });
}
NVML_ENTRY(nvmlReturn_t, nvmlDeviceGetMemoryInfo_v2, (nvmlDevice_t device, nvmlMemory_v2_t* out)) {
  return tell(device, out, [out](int ordinal) {
    const unsigned long long total = simgpu_machine()->memory_bytes, free = simgpu_machine()->free_bytes(ordinal);
    return nvmlMemory_v2_t{out->version, total, 0, free, total - free};
  });
}
// Of other processes nothing is known, and of this one nothing that it does not know.
NVML_ENTRY(nvmlReturn_t, nvmlDeviceGetComputeRunningProcesses_v3,
           (nvmlDevice_t device, unsigned* count, nvmlProcessInfo_t*)) {
  return tell_fixed(device, count, 0u);
}

// ------------------------------------------------------------------ a data-center card that is idle
NVML_ENTRY(nvmlReturn_t, nvmlDeviceGetUtilizationRates, (nvmlDevice_t device, nvmlUtilization_t* out)) {
  return tell_fixed(device, out, nvmlUtilization_t{0, 0});
}
NVML_ENTRY(nvmlReturn_t, nvmlDeviceGetTemperature, (nvmlDevice_t device, nvmlTemperatureSensors_t, unsigned* out)) {
  return tell_fixed(device, out, 42u);
}
NVML_ENTRY(nvmlReturn_t, nvmlDeviceGetPowerUsage, (nvmlDevice_t device, unsigned* out)) {
  return tell_fixed(device, out, 350'000u);
}
NVML_ENTRY(nvmlReturn_t, nvmlDeviceGetPowerManagementLimit, (nvmlDevice_t device, unsigned* out)) {
  return tell_fixed(device, out, 700'000u);
}
NVML_ENTRY(nvmlReturn_t, nvmlDeviceGetEnforcedPowerLimit, (nvmlDevice_t device, unsigned* out)) {
  return tell_fixed(device, out, 700'000u);
}
NVML_ENTRY(nvmlReturn_t, nvmlDeviceGetClockInfo, (nvmlDevice_t device, nvmlClockType_t type, unsigned* out)) {
  return tell_fixed(device, out, type == NVML_CLOCK_MEM ? 2619u : 1755u);
}
NVML_ENTRY(nvmlReturn_t, nvmlDeviceGetMaxClockInfo, (nvmlDevice_t device, nvmlClockType_t type, unsigned* out)) {
  return tell_fixed(device, out, type == NVML_CLOCK_MEM ? 2619u : 1980u);
}
NVML_ENTRY(nvmlReturn_t, nvmlDeviceGetPerformanceState, (nvmlDevice_t device, nvmlPstates_t* out)) {
  return tell_fixed(device, out, NVML_PSTATE_0);
}
NVML_ENTRY(nvmlReturn_t, nvmlDeviceGetComputeMode, (nvmlDevice_t device, nvmlComputeMode_t* out)) {
  return tell_fixed(device, out, NVML_COMPUTEMODE_DEFAULT);
}
NVML_ENTRY(nvmlReturn_t, nvmlDeviceGetPersistenceMode, (nvmlDevice_t device, nvmlEnableState_t* out)) {
  return tell_fixed(device, out, NVML_FEATURE_ENABLED);
}
NVML_ENTRY(nvmlReturn_t, nvmlDeviceGetBrand, (nvmlDevice_t device, nvmlBrandType_t* out)) {
  return tell_fixed(device, out, NVML_BRAND_NVIDIA);
}
NVML_ENTRY(nvmlReturn_t, nvmlDeviceGetCurrPcieLinkGeneration, (nvmlDevice_t device, unsigned* out)) {
  return tell_fixed(device, out, 5u);
}
NVML_ENTRY(nvmlReturn_t, nvmlDeviceGetMaxPcieLinkGeneration, (nvmlDevice_t device, unsigned* out)) {
  return tell_fixed(device, out, 5u);
}
NVML_ENTRY(nvmlReturn_t, nvmlDeviceGetCurrPcieLinkWidth, (nvmlDevice_t device, unsigned* out)) {
  return tell_fixed(device, out, 16u);
}
NVML_ENTRY(nvmlReturn_t, nvmlDeviceGetMaxPcieLinkWidth, (nvmlDevice_t device, unsigned* out)) {
  return tell_fixed(device, out, 16u);
}
// Devices reach each other, but not by NVLink.
NVML_ENTRY(nvmlReturn_t, nvmlDeviceGetP2PStatus,
           (nvmlDevice_t a, nvmlDevice_t b, nvmlGpuP2PCapsIndex_t what, nvmlGpuP2PStatus_t* out)) {
  if (uses != 0 && ordinal_of(b) < 0) return NVML_ERROR_INVALID_ARGUMENT;
  const bool reach = what == NVML_P2P_CAPS_INDEX_READ || what == NVML_P2P_CAPS_INDEX_WRITE;
  return tell_fixed(a, out, reach ? NVML_P2P_STATUS_OK : NVML_P2P_STATUS_NOT_SUPPORTED);
}
NVML_ENTRY(nvmlReturn_t, nvmlDeviceGetTopologyCommonAncestor,
           (nvmlDevice_t a, nvmlDevice_t b, nvmlGpuTopologyLevel_t* out)) {
  if (uses != 0 && ordinal_of(b) < 0) return NVML_ERROR_INVALID_ARGUMENT;
  return tell_fixed(a, out, a == b ? NVML_TOPOLOGY_INTERNAL : NVML_TOPOLOGY_NODE);
}
