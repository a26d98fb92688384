// Launching the kernels of a stand-in. They come with the library, as one fatbin, and compute nothing of use; a launch has the name, the
// shape and the resources of what the vendor's library would launch.
//   · Any thread; the context that is current. Works while a stream is captured: it becomes a node.
//   · Kernels are loaded at the first launch in the process, for all contexts, and stay.
//   · Through the documented driver API, so that tracers see it as they see the vendor's.
#pragma once

#include <cuda.h>

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
// What the choice of a kernel asks of a device.
struct DeviceFacts {
  int ordinal = 0;
  int capability = 0;  // 90 for 9.0; 0: there is no current device
  int multiprocessors = 0;
  double clock_ghz = 0;
  unsigned largest_shared_bytes = 0;  // that a block may ask for
};
// Of the device that a library's handle was made for, while a call with that handle is under way on this thread; else of the current one.
// Asked of the driver once a device: a call of the library must not cost more calls of the driver than the vendor's.
const DeviceFacts& device_facts();
class OnDevice {
 public:
  explicit OnDevice(const DeviceFacts& device);
  ~OnDevice();
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  const DeviceFacts* before_;
};
inline int capability() { return device_facts().capability; }
inline int multiprocessors() { return device_facts().multiprocessors; }

inline unsigned tiles(long long n, long long tile) {
  return n <= 0 ? 1u : static_cast<unsigned>((n + tile - 1) / tile);
}

}  // namespace simlibs
