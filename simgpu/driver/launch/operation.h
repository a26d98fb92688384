// What the device does: kernels, copies, memsets, as plain values. They are made (and judged) by the exported calls,
// performed at once or from a stream's queue, or kept as graph nodes and performed at each replay.
#pragma once

#include <memory>

#include "simgpu/driver/launch/kernel_work.h"
#include "simgpu/driver/life/call.h"
#include "simgpu/driver/life/state.h"
#include "simgpu/driver/life/truth.h"
#include "simgpu/driver/memory/memory.h"
#include "simgpu/driver/observe/observe.h"

namespace simgpu {

// Where an operation comes from, for the truth file.
struct GraphOrigin {
  uint64_t exec = 0;
  uint64_t node = 0;
  uint64_t launch = 0;  // seq of the graph launch
  uint32_t exec_id = 0;
  uint64_t node_id = 0;
};
struct Origin {
  Stamp stamp;  // null: truth off
  Stream* stream = nullptr;
  bool in_graph = false;
  GraphOrigin graph;
  uint32_t correlation = 0;
  Nanos called = 0;  // when the call began
  bool async = true;

  static Origin of(Call& call, Stream& stream, bool async = true) {
    return {call.stamp(), &stream, false, {}, call.correlation(), call.begin(), async};
  }
};
// The `graph` field of a device operation's truth line: null outside graphs.
void add_graph(TruthFields& fields, const Origin& origin);

struct KernelLaunch {
  Function* function = nullptr;
  Dim3 grid;
  Dim3 block;
  Dim3 cluster;
  uint32_t dynamic_shared = 0;
  int priority = 0;
  bool cooperative = false;
  bool programmatic = false;               // may start before its predecessor in the stream has ended
  std::shared_ptr<const KernelWork> work;  // null: it takes what the model says
  Nanos least = 0;                         // where the model says less: what its launcher knows it to take
};

// One execution of a kernel with work. Polled on the worker alone.
class KernelExecution {
 public:
  explicit KernelExecution(KernelLaunch launch) : launch_(std::move(launch)) {}
  bool ended(Nanos ready);  // `ready`: its start; the first one counts
  const KernelLaunch& launch() const { return launch_; }
  const Span& span() const { return span_; }  // once it has ended

 private:
  KernelLaunch launch_;
  bool begun_ = false;
  void* state_ = nullptr;
  Span span_;
};
std::shared_ptr<const KernelWork> take_next_kernel();  // what this thread was told about its next launch; or null

// CUDA_SUCCESS, or the error cuLaunchKernel gives for this geometry and function.
CUresult check_launch(const KernelLaunch& launch);
Nanos kernel_duration(const KernelLaunch& launch);
Span perform(const KernelLaunch& launch, const Origin& origin, Nanos ready);
void show_kernel(const KernelLaunch& launch, const Origin& origin, const Span& span);  // to observers and the truth
// The truth line of a launch under capture.
void truth_node(CallStamp* stamp, const KernelLaunch& launch, const Stream& stream, const void* node);

enum class CopyKind : uint8_t { HtoD, DtoH, DtoD, PtoP, HtoH };
const char* text(CopyKind kind);

// One end of a copy: `data` is where the first byte lies.
struct CopySide {
  char* data = nullptr;
  size_t pitch = 0;
  size_t slice = 0;
  MemoryKind memory = MemoryKind::pageable;
  Device* device = nullptr;  // null on the host
};
struct Copy {
  CopySide dst;
  CopySide src;
  size_t width = 0;  // bytes
  size_t height = 1;
  size_t depth = 1;
  CopyKind kind = CopyKind::HtoD;
  Device* device = nullptr;
  bool async = true;
  uint64_t bytes() const { return uint64_t{width} * height * depth; }
  bool host_pageable() const;
};

// The general description of a copy of plain memory, of any of the kinds of pointers.
CUDA_MEMCPY3D_PEER linear_description(CUmemorytype dst_type, uint64_t dst, CUmemorytype src_type, uint64_t src,
                                      size_t bytes);
CUDA_MEMCPY3D_PEER with_peer(const CUDA_MEMCPY3D& description);
CUDA_MEMCPY3D without_peer(const CUDA_MEMCPY3D_PEER& description);

// Fills `copy` from the general description; CUDA_SUCCESS or the error. `context`: where an operation without device
// memory counts. Nothing is moved.
CUresult describe_copy(const CUDA_MEMCPY3D_PEER& description, Context* context, Copy* copy);
inline CUresult describe_copy(const CUDA_MEMCPY3D& description, Context* context, Copy* copy) {
  return describe_copy(with_peer(description), context, copy);
}
Span perform(const Copy& copy, const Origin& origin, Nanos ready);

struct Memset {
  CUdeviceptr dst = 0;
  size_t pitch = 0;
  uint32_t value = 0;
  unsigned element_bytes = 1;
  size_t width = 0;  // elements
  size_t height = 1;
  MemoryKind memory = MemoryKind::device;
  Device* device = nullptr;
  uint64_t bytes() const { return uint64_t{width} * element_bytes * height; }
};
CUresult check_memset(Memset& memset);  // also finds memory and device
Span perform(const Memset& memset, const Origin& origin, Nanos ready);

}  // namespace simgpu
