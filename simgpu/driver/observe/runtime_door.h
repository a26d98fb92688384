// The way by which simgpu's runtime reports its calls to simgpu's driver, so that a CUPTI may see them. `simgpu_runtime_door`
// is looked up in the loaded driver; any other driver does not have it, and then nothing is reported.
#pragma once

#include <atomic>
#include <cstdint>

namespace simgpu {

inline constexpr uint32_t kNotDrawn = ~0u;

// One call of the runtime API, on its thread's stack.
struct RuntimeCall {
  const char* name;  // a literal: cudaMalloc, cudaMemcpyAsync_ptsz
  uint64_t begin;    // CLOCK_MONOTONIC, ns, where it is shown
  uint64_t client;   // the observer's
  // Its number, which the driver calls inside it share; 0: inside another runtime call; kNotDrawn: it needed none as it began.
  uint32_t correlation;
  bool shown;  // to the observer
};

struct RuntimeDoor {
  const std::atomic<uint32_t>* looks;  // 0: nobody looks, and neither function needs to be called
  void (*enter)(RuntimeCall* call);
  void (*leave)(RuntimeCall* call, int result);
};

}  // namespace simgpu
