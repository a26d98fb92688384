#include "interpose/record/context_facts.h"

#include <cstring>

#include "interpose/device/device_collection.h"
#include "interpose/hot/session.h"
#include "interpose/lookup/driver_query.h"
#include "interpose/lookup/elf_lookup.h"

namespace gputrace {
namespace {

constexpr u32 kKnownContexts = 64;
constexpr i32 kKnownDevices = 64;

// Under the definition lock; looked at without it to find out whether there is something to ask.
constinit u64 known_contexts[kKnownContexts]{};
constinit u32 context_count = 0;
constinit u64 known_devices = 0;                               // bit per ordinal
constinit std::atomic<u64> primary_contexts[kKnownDevices]{};  // by ordinal, as cuDevicePrimaryCtxRetain gave them
constinit std::atomic<bool> process_recorded{false};

u32 device_number(const DriverQuery& query, CUdevice device, CUdevice_attribute attribute) {
  int value = 0;
  return query.cuDeviceGetAttribute && query.cuDeviceGetAttribute(&value, attribute, device) == CUDA_SUCCESS &&
                 value > 0
             ? static_cast<u32>(value)
             : 0;
}

struct DeviceAnswer {
  DeviceFacts facts;
  char name[256];
};

void ask_device(CUdevice device, DeviceAnswer& answer) {
  const DriverQuery& query = driver_query();
  DeviceFacts& facts = answer.facts;
  facts.device = device;
  if (!query.cuDeviceGetName || query.cuDeviceGetName(answer.name, sizeof answer.name, device) != CUDA_SUCCESS)
    answer.name[0] = 0;
  CUuuid uuid{};
  if (query.cuDeviceGetUuid && query.cuDeviceGetUuid(&uuid, device) == CUDA_SUCCESS) {
    std::memcpy(&facts.uuid_low, uuid.bytes, 8);
    std::memcpy(&facts.uuid_high, uuid.bytes + 8, 8);
  }
  size_t bytes = 0;
  if (query.cuDeviceTotalMem_v2 && query.cuDeviceTotalMem_v2(&bytes, device) == CUDA_SUCCESS)
    facts.memory_bytes = bytes;
  const auto number = [&](CUdevice_attribute attribute) { return device_number(query, device, attribute); };
  facts.sms = number(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  facts.capability_major = number(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  facts.capability_minor = number(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  facts.clock_khz = number(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
  facts.memory_clock_khz = number(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
  facts.bus_width_bits = number(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
  facts.max_threads_per_sm = number(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
  facts.max_blocks_per_sm = number(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
  facts.registers_per_sm = number(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
  facts.shared_bytes_per_sm = number(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
  facts.reserved_shared_bytes = number(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
  facts.warp_size = number(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
  facts.l2_bytes = number(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  facts.pci_domain = number(CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID);
  facts.pci_bus_device = number(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID) << 8 | number(CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID);
}

bool context_known(u64 context) {
  for (u32 i = 0; i < context_count; ++i) {
    if (known_contexts[i] == context) return true;
  }
  return false;
}

// Records a context at its first sight, and its device. Asked before the lock is taken, written under it.
void record_context(const FinishedCall& call, u64 context) {
  const DriverQuery& query = driver_query();
  ContextFacts facts{};
  facts.context = context;
  CUdevice device = -1;
  if (!query.cuCtxGetDevice || query.cuCtxGetDevice(&device) != CUDA_SUCCESS) device = -1;
  facts.device = device;
  const bool numbered = device >= 0 && device < kKnownDevices;
  facts.flags = numbered && primary_contexts[device].load(std::memory_order_relaxed) == context;
  const FinishedCall definition = call.nameless();
  const bool new_device = numbered && !(known_devices >> device & 1);
  DeviceAnswer answer{};
  if (new_device) ask_device(device, answer);
  const Definitions lock;
  if (!lock.held()) return;
  if (!context_known(context)) {
    if (context_count < kKnownContexts) known_contexts[context_count++] = context;
    define(definition, facts);
  }
  if (new_device && !(known_devices >> device & 1)) {
    known_devices |= 1ull << device;
    answer.facts.name = define_text(definition, answer.name, std::strlen(answer.name));
    define(definition, answer.facts);
  }
}

}  // namespace

void reset_context_facts() {
  process_recorded.store(false, std::memory_order_relaxed);
  for (std::atomic<u64>& context : primary_contexts) context.store(0, std::memory_order_relaxed);
  context_count = 0;
  known_devices = 0;
}

u64 refresh_context(FinishedCall call) {
  if (!call.ok()) return 0;
  ErrnoGuard guard;
  const DriverQuery& query = driver_query();
  CUcontext current = nullptr;
  if (!query.cuCtxGetCurrent || query.cuCtxGetCurrent(&current) != CUDA_SUCCESS || !current)
    return 0;  // asked again next time
  const u64 context = reinterpret_cast<u64>(current);
  process_ready(call);
  if (!context_known(context)) record_context(call, context);
  default_stream_used(call, context);
  thread_state.context = context;
  return context;
}

void primary_context_retained(i64 device, u64 context) {
  if (context && device >= 0 && device < kKnownDevices)
    primary_contexts[device].store(context, std::memory_order_relaxed);
}

void process_ready(const FinishedCall& call) {
  if (process_recorded.load(std::memory_order_relaxed)) return;
  ErrnoGuard guard;
  const DriverQuery& query = driver_query();
  ProcessFacts facts{};
  int version = 0, devices = -1;
  if (query.cuDriverGetVersion && query.cuDriverGetVersion(&version) == CUDA_SUCCESS) facts.driver_version = version;
  facts.devices = query.cuDeviceGetCount && query.cuDeviceGetCount(&devices) == CUDA_SUCCESS ? devices : -1;
  LoadedObject driver, runtime;
  const bool has_driver = find_object(ObjectRole::Driver, driver);
  const bool has_runtime = find_object(ObjectRole::Runtime, runtime);
  const Definitions lock;
  if (!lock.held() || process_recorded.exchange(true, std::memory_order_relaxed)) return;
  const FinishedCall definition = call.nameless();
  if (has_driver) facts.driver_path = define_text(definition, driver.path, std::strlen(driver.path));
  if (has_runtime) facts.runtime_path = define_text(definition, runtime.path, std::strlen(runtime.path));
  define(definition, facts);
}

}  // namespace gputrace
