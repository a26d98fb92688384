#include "simgpu/libs/common/launch.h"

#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>

extern "C" __attribute__((visibility("hidden"))) const unsigned char simlibs_image[];
// The simulated driver's; on another driver there is no model to help.
extern "C" __attribute__((weak)) int simgpu_next_kernel_takes(uint64_t nanoseconds);

namespace simlibs {
namespace {

// Never destroyed: programs launch from exit handlers.
struct Kernels {
  std::mutex mutex;
  CUlibrary library = nullptr;
  struct Kernel {
    CUkernel kernel = nullptr;
    std::set<int> large_on;  // devices on which it may use more than 48 KiB
  };
  std::map<std::string, Kernel, std::less<>> known;
};

Kernels& kernels() {
  static Kernels* const all = new Kernels;
  return *all;
}

// Loading is refused in a thread whose capture is global: the libraries relax it meanwhile, as the manual tells them to.
class RelaxedCapture {
 public:
  RelaxedCapture() { cuThreadExchangeStreamCaptureMode(&mode_); }
  ~RelaxedCapture() { cuThreadExchangeStreamCaptureMode(&mode_); }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

// More than 48 KiB of shared memory must be asked for, once on each device.
CUresult allow_shared_memory(Kernels::Kernel& kernel, unsigned bytes) {
  constexpr unsigned kWithoutAsking = 48 * 1024;
  if (bytes <= kWithoutAsking) return CUDA_SUCCESS;
  const int device = device_facts().ordinal;
  if (!kernel.large_on.insert(device).second) return CUDA_SUCCESS;
  return cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, static_cast<int>(bytes), kernel.kernel,
                              device);
}

CUresult find_kernel(const char* name, unsigned dynamic_shared_bytes, CUkernel& kernel) {
  Kernels& all = kernels();
  const std::lock_guard lock(all.mutex);
  auto at = all.known.find(name);
  if (at == all.known.end()) {
    const RelaxedCapture relaxed;
    if (!all.library) {
      const CUresult loaded = cuLibraryLoadData(&all.library, simlibs_image, nullptr, nullptr, 0, nullptr, nullptr, 0);
      if (loaded != CUDA_SUCCESS) return loaded;
    }
    CUkernel found = nullptr;
    const CUresult result = cuLibraryGetKernel(&found, all.library, name);
    if (result != CUDA_SUCCESS) return result;
    at = all.known.emplace(name, Kernels::Kernel{found, {}}).first;
  }
  kernel = at->second.kernel;
  return allow_shared_memory(at->second, dynamic_shared_bytes);
}

thread_local const DeviceFacts* facts_of_call = nullptr;

DeviceFacts ask_driver(CUdevice device) {
  const auto attribute = [device](CUdevice_attribute which) {
    int value = 0;
    cuDeviceGetAttribute(&value, which, device);
    return value;
  };
  DeviceFacts facts;
  facts.ordinal = device;
  facts.capability = 10 * attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
                     attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  facts.multiprocessors = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  facts.clock_ghz = attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE) / 1e6;
  facts.largest_shared_bytes = static_cast<unsigned>(attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN));
  return facts;
}

}  // namespace

CUresult launch(const char* name, CUstream stream, const LaunchShape& shape, const KernelArguments& arguments) {
  CUkernel kernel = nullptr;
  CUresult result = enter_context();  // a thread may have none yet
  if (result == CUDA_SUCCESS) result = find_kernel(name, shape.dynamic_shared_bytes, kernel);
  if (result != CUDA_SUCCESS) return result;
  KernelArguments copy = arguments;
  void* parameters[] = {&copy};
  const auto function = reinterpret_cast<CUfunction>(kernel);
  const auto& [grid, block, shared, cluster, least] = shape;
  if (least && simgpu_next_kernel_takes) simgpu_next_kernel_takes(least);
  if (cluster.x * cluster.y * cluster.z <= 1)
    return cuLaunchKernel(function, grid.x, grid.y, grid.z, block.x, block.y, block.z, shared, stream, parameters,
                          nullptr);
  CUlaunchAttribute attribute{};
  attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  attribute.value.clusterDim.x = cluster.x;
  attribute.value.clusterDim.y = cluster.y;
  attribute.value.clusterDim.z = cluster.z;
  CUlaunchConfig config{};
  const auto whole = [](unsigned blocks, unsigned per_cluster) {
    return (blocks + per_cluster - 1) / per_cluster * per_cluster;
  };
  config.gridDimX = whole(grid.x, cluster.x);
  config.gridDimY = whole(grid.y, cluster.y);
  config.gridDimZ = whole(grid.z, cluster.z);
  config.blockDimX = block.x;
  config.blockDimY = block.y;
  config.blockDimZ = block.z;
  config.sharedMemBytes = shared;
  config.hStream = stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  return cuLaunchKernelEx(&config, function, parameters, nullptr);
}

CUresult enter_context() {
  CUcontext context = nullptr;
  CUresult result = cuCtxGetCurrent(&context);
  if (result == CUDA_ERROR_NOT_INITIALIZED) result = cuInit(0);
  if (result != CUDA_SUCCESS || context) return result;
  CUdevice device = 0;
  result = cuDeviceGet(&device, 0);
  if (result == CUDA_SUCCESS) result = cuDevicePrimaryCtxRetain(&context, device);
  return result == CUDA_SUCCESS ? cuCtxSetCurrent(context) : result;
}

const DeviceFacts& device_facts() {
  static const DeviceFacts none;
  static std::mutex mutex;
  static auto* const known = new std::map<CUdevice, DeviceFacts>;
  if (facts_of_call) return *facts_of_call;
  CUdevice device = 0;
  // A thread without a context is on the first device, as in the runtime.
  if (cuCtxGetDevice(&device) != CUDA_SUCCESS && cuDeviceGet(&device, 0) != CUDA_SUCCESS) return none;
  const std::lock_guard lock(mutex);
  const auto at = known->find(device);
  return at != known->end() ? at->second : known->emplace(device, ask_driver(device)).first->second;
}

OnDevice::OnDevice(const DeviceFacts& device) : before_(std::exchange(facts_of_call, &device)) {}
OnDevice::~OnDevice() { facts_of_call = before_; }

}  // namespace simlibs
