// Launching the kernels of a stand-in. They come with the library, as one fatbin, and compute nothing of use; a launch has the name, the
// shape and the resources of what the vendor's library would launch.
//   · Any thread; the context that is current. Works while a stream is captured: it becomes a node.
//   · Kernels are loaded at the first launch in the process, for all contexts, and stay.
//   · Through the documented driver API, so that tracers see it as they see the vendor's.
#pragma once

#include <cuda.h>

#include <initializer_list>

namespace simlibs {

struct Size {
  unsigned x = 1, y = 1, z = 1;
};

struct LaunchShape {
  Size grid{}, block{};
  unsigned dynamic_shared_bytes = 0;
  Size cluster{};  // 1×1×1: none
  // What the work of its blocks takes, ns: the simulation's own model of time knows the grid alone.
  unsigned long long least_ns = 0;
};

// What every kernel here takes: bodies.cuh reads it.
struct KernelArguments {
  const void *a = nullptr, *b = nullptr;
  void* c = nullptr;
  long long m = 0, n = 0, k = 0;
};

// CUDA_ERROR_NOT_FOUND: the library has no kernel of that name.
CUresult launch(const char* kernel, CUstream stream, const LaunchShape& shape, const KernelArguments& arguments = {});

// Makes sure that there is a current context, device 0's primary one as with the runtime.
CUresult enter_context();
// Compute capability of the current device, 90 for 9.0; 0: there is none.
int capability();
// Multiprocessors of the current device, and its clock.
int multiprocessors();
double clock_ghz();
// The most shared memory that a block may ask for.
unsigned largest_shared_bytes();

inline unsigned tiles(long long n, long long tile) {
  return n <= 0 ? 1u : static_cast<unsigned>((n + tile - 1) / tile);
}

}  // namespace simlibs
