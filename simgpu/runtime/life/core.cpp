#include "simgpu/runtime/life/core.h"

#include <mutex>
#include <vector>

#include "simgpu/missing/missing.h"

namespace simgpu::runtime {

std::atomic<std::uint32_t> context_generation{1};

namespace {

std::atomic<int> sticky_error{cudaSuccess};

// Never destroyed: programs call the runtime from their own static destructors.
struct Contexts {
  std::mutex mutex;
  std::vector<CUcontext> primary;  // by device; null: not retained
};

Contexts& contexts() {
  static auto* const the_contexts = new Contexts;
  return *the_contexts;
}

bool is_sticky(cudaError_t error) {
  switch (error) {
    case cudaErrorECCUncorrectable:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
      return true;
    default:
      return false;
  }
}

}  // namespace

cudaError_t record(cudaError_t error) {
  if (error != cudaSuccess) {
    thread_state().last_error = error;
    if (is_sticky(error)) {
      sticky_error.store(error, std::memory_order_relaxed);
    }
  }
  return error;
}

cudaError_t record_of(const char* name, CUresult result) {
  if (result == CUDA_ERROR_NOT_SUPPORTED) simgpu_missing(SIMGPU_SONAME, name);
  return record(result);
}

cudaError_t last_error(bool clear) {
  if (const int sticky = sticky_error.load(std::memory_order_relaxed); sticky != cudaSuccess) {
    return static_cast<cudaError_t>(sticky);
  }
  const cudaError_t error = thread_state().last_error;
  if (clear) {
    thread_state().last_error = cudaSuccess;
  }
  return error;
}

cudaError_t start_driver() {
  static std::atomic<bool> started{false};
  if (started.load(std::memory_order_acquire)) {
    return cudaSuccess;
  }
  if (!driver_present()) {
    return cudaErrorInsufficientDriver;
  }
  const CUresult result = driver.cuInit(0u);
  if (result == CUDA_SUCCESS) {
    started.store(true, std::memory_order_release);
  }
  return static_cast<cudaError_t>(result);
}

CUresult primary_context(int device, CUcontext* context) {
  int count = 0;
  if (const CUresult result = driver.cuDeviceGetCount(&count); result != CUDA_SUCCESS) {
    return result;
  }
  if (device < 0 || device >= count) {
    return CUDA_ERROR_INVALID_DEVICE;
  }
  Contexts& all = contexts();
  const std::scoped_lock lock(all.mutex);
  all.primary.resize(static_cast<std::size_t>(count));
  CUcontext& held = all.primary[static_cast<std::size_t>(device)];
  if (held == nullptr) {
    if (const CUresult result = driver.cuDevicePrimaryCtxRetain(&held, device); result != CUDA_SUCCESS) {
      held = nullptr;
      return result;
    }
  }
  *context = held;
  return CUDA_SUCCESS;
}

CUresult select_device(int device) {
  const std::uint32_t generation = context_generation.load(std::memory_order_acquire);
  CUcontext context = nullptr;
  if (const CUresult result = primary_context(device, &context); result != CUDA_SUCCESS) {
    return result;
  }
  if (const CUresult result = driver.cuCtxSetCurrent(context); result != CUDA_SUCCESS) {
    return result;
  }
  thread_state().device = device;
  thread_state().generation = generation;
  return CUDA_SUCCESS;
}

CUcontext current_context() {
  CUcontext context = nullptr;
  return driver.cuCtxGetCurrent(&context) == CUDA_SUCCESS ? context : nullptr;
}

cudaError_t bind_context() {
  if (const cudaError_t error = start_driver(); error != cudaSuccess) {
    return error;
  }
  const std::uint32_t generation = context_generation.load(std::memory_order_acquire);
  if (current_context() != nullptr) {
    thread_state().generation = generation;
    return cudaSuccess;
  }
  return static_cast<cudaError_t>(select_device(thread_state().device));
}

bool context_was_lost() { return current_context() == nullptr; }

CUresult reset_device() {
  const int device = thread_state().device;
  {
    Contexts& all = contexts();
    const std::scoped_lock lock(all.mutex);
    if (static_cast<std::size_t>(device) < all.primary.size() && all.primary[static_cast<std::size_t>(device)]) {
      all.primary[static_cast<std::size_t>(device)] = nullptr;
      driver.cuCtxSetCurrent(CUcontext{nullptr});
      driver.cuDevicePrimaryCtxRelease(device);
    }
  }
  sticky_error.store(cudaSuccess, std::memory_order_relaxed);
  thread_state().last_error = cudaSuccess;
  const CUresult result = driver.cuDevicePrimaryCtxReset(device);
  context_generation.fetch_add(1, std::memory_order_acq_rel);
  return result;
}

}  // namespace simgpu::runtime
