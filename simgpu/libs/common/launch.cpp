#include "simgpu/libs/common/launch.h"

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

extern "C" __attribute__((visibility("hidden"))) const unsigned char simlibs_image[];
// The simulated driver's; on another driver there is no model to help.
extern "C" __attribute__((weak)) int simgpu_next_kernel_takes(uint64_t nanoseconds);

namespace simlibs {
namespace {

// Never destroyed: programs launch from exit handlers.
struct Kernels {
  std::mutex mutex;
  CUlibrary library = nullptr;
  std::map<std::string, CUkernel, std::less<>> known;
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

CUresult find_kernel(const char* name, CUkernel& kernel) {
  Kernels& all = kernels();
  const std::lock_guard lock(all.mutex);
  if (const auto at = all.known.find(name); at != all.known.end()) {
    kernel = at->second;
    return CUDA_SUCCESS;
  }
  const RelaxedCapture relaxed;
  if (!all.library) {
    const CUresult loaded = cuLibraryLoadData(&all.library, simlibs_image, nullptr, nullptr, 0, nullptr, nullptr, 0);
    if (loaded != CUDA_SUCCESS) return loaded;
  }
  const CUresult found = cuLibraryGetKernel(&kernel, all.library, name);
  if (found == CUDA_SUCCESS) all.known.emplace(name, kernel);
  return found;
}

// More than 48 KiB must be asked for, on each device.
CUresult allow_shared_memory(CUkernel kernel, unsigned bytes) {
  constexpr unsigned kWithoutAsking = 48 * 1024;
  CUdevice device = 0;
  if (bytes <= kWithoutAsking) return CUDA_SUCCESS;
  const CUresult result = cuCtxGetDevice(&device);
  if (result != CUDA_SUCCESS) return result;
  int most = 0;
  cuDeviceGetAttribute(&most, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, device);
  return cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, static_cast<int>(bytes), kernel, device);
}

int device_attribute(CUdevice_attribute attribute) {
  CUdevice device = 0;
  int value = 0;
  if (cuCtxGetDevice(&device) != CUDA_SUCCESS) return 0;
  cuDeviceGetAttribute(&value, attribute, device);
  return value;
}

}  // namespace

CUresult launch(const char* name, CUstream stream, const LaunchShape& shape, const KernelArguments& arguments) {
  CUkernel kernel = nullptr;
  CUresult result = find_kernel(name, kernel);
  if (result == CUDA_SUCCESS) result = allow_shared_memory(kernel, shape.dynamic_shared_bytes);
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

int capability() {
  return 10 * device_attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
         device_attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
}

double clock_ghz() { return device_attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE) / 1e6; }

unsigned largest_shared_bytes() {
  return static_cast<unsigned>(device_attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN));
}

int multiprocessors() { return device_attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT); }

}  // namespace simlibs
