// Kernels that end when something outside of this driver says so: those of a communication library, which wait for other
// ranks and move bytes. The simulation's own stand-in of such a library finds `simgpu_next_kernel` in the loaded driver
// and calls it before an ordinary launch; the launch itself, and so what a tracer and CUPTI see, is as any other.
#pragma once

#include <cstdint>

namespace simgpu {

struct KernelStart {
  uint64_t start;           // when the stream has come to the kernel
  uint64_t ruled;           // what a SIMGPU_KERNEL_TIME rule says that it takes; 0: none matches
  uint64_t copy_bandwidth;  // SIMGPU_COPY_BANDWIDTH, bytes/s
};

// All functions are called on the driver's worker thread, one at a time; they must not block nor call CUDA. Times are
// CLOCK_MONOTONIC, ns.
struct KernelWork {
  void* plan;
  // The stream has come to the kernel. Called once for each execution; returns what `poll` gets.
  void* (*begin)(void* plan, const KernelStart* start);
  // True once the kernel has ended, with its end; the last call for this execution. Until then it is asked again.
  bool (*poll)(void* execution, uint64_t* end);
  // No launch, graph or replay has the plan any more. From any thread.
  void (*release)(void* plan);
};

}  // namespace simgpu

// The next kernel that this thread launches (or captures) takes at least so long, ns, unless a SIMGPU_KERNEL_TIME rule says otherwise: the
// model knows a grid, and not how long its blocks are at work. Returns 0.
extern "C" int simgpu_next_kernel_takes(uint64_t nanoseconds);

// The next kernel that this thread launches (or captures) does this work; null: none, after all. `work` is copied.
// Returns 0.
extern "C" int simgpu_next_kernel(const simgpu::KernelWork* work);
