#pragma once

#include <driver_types.h>

#include <atomic>
#include <cstdint>

#include "simgpu/runtime/life/driver.h"

// What every runtime call shares: lazy start of the driver and of the primary context, and the last error.
namespace simgpu::runtime {

// Counts resets: a thread whose number differs has no context bound by us.
extern std::atomic<std::uint32_t> context_generation;

struct ThreadState {
  std::uint32_t generation = 0;  // of the context that this thread is bound to; 0: none yet
  int device = 0;                // chosen by cudaSetDevice
  cudaError_t last_error = cudaSuccess;
};

// Plain data: no destructor runs at thread end, so calls from TLS destructors still work.
inline ThreadState& thread_state() {
  static thread_local ThreadState state;
  return state;
}

// cuInit, once. cudaErrorInsufficientDriver without a driver.
cudaError_t start_driver();
// Makes a context current in this thread: the one that is current already, else the primary one of its device.
cudaError_t bind_context();
// After the program has taken the context away through the driver API. False when there is a current context.
bool context_was_lost();
// The primary context of a device, retained once by the runtime.
CUresult primary_context(int device, CUcontext* context);
CUresult select_device(int device);
CUresult reset_device();
// The context that graph nodes are made for.
CUcontext current_context();

inline cudaError_t ready() {
  return thread_state().generation == context_generation.load(std::memory_order_acquire) ? cudaSuccess : bind_context();
}

// Remembers a failure for cudaGetLastError and hands it back. A sticky one stays until cudaDeviceReset.
cudaError_t record(cudaError_t error);
inline cudaError_t record(CUresult result) { return record(static_cast<cudaError_t>(result)); }
cudaError_t last_error(bool clear);

constexpr CUresult as_result(cudaError_t error) { return static_cast<CUresult>(error); }

// A runtime call as a CUPTI sees it, from its first to its last statement; inside another one it is nothing.
class Seen {
 public:
  explicit Seen(const char* name) : call_{name, 0, 0, 0, false} {
    const RuntimeDoor* door = runtime_door();
    if (door == nullptr || door->looks->load(std::memory_order_relaxed) == 0) return;
    door_ = door;
    door->enter(&call_);
  }
  Seen(const Seen&) = delete;
  Seen& operator=(const Seen&) = delete;
  cudaError_t left(cudaError_t result) {
    if (door_ != nullptr) door_->leave(&call_, static_cast<int>(result));
    return result;
  }

 private:
  const RuntimeDoor* door_ = nullptr;
  RuntimeCall call_;
};

// Remembers why a call failed, and counts the one that the driver could not serve.
cudaError_t record_of(const char* name, CUresult result);

// Runs a call that needs a current context; the numbers of cudaError_t and CUresult are the same.
// The name is that of the exported function, which calls this itself.
template <typename Call>
cudaError_t run(Call&& call, const char* name = __builtin_FUNCTION()) {
  Seen seen(name);
  if (const cudaError_t error = ready(); error != cudaSuccess) {
    return seen.left(record(error));
  }
  CUresult result = call();
  if (result == CUDA_ERROR_INVALID_CONTEXT && context_was_lost() && bind_context() == cudaSuccess) {
    result = call();
  }
  return seen.left(result == CUDA_SUCCESS ? cudaSuccess : record_of(name, result));
}

// Runs a call that needs an initialized driver only.
template <typename Call>
cudaError_t run_without_context(Call&& call, const char* name = __builtin_FUNCTION()) {
  Seen seen(name);
  if (const cudaError_t error = start_driver(); error != cudaSuccess) {
    return seen.left(record(error));
  }
  const CUresult result = call();
  return seen.left(result == CUDA_SUCCESS ? cudaSuccess : record_of(name, result));
}

// A call that is another exported one with fewer arguments: a CUPTI sees it under its own name, and not that one.
template <typename Call>
cudaError_t as_itself(Call&& call, const char* name = __builtin_FUNCTION()) {
  Seen seen(name);
  return seen.left(call());
}

inline CUdeviceptr device_pointer(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }
inline CUdeviceptr* device_pointer_out(void** pointer) { return reinterpret_cast<CUdeviceptr*>(pointer); }

}  // namespace simgpu::runtime
