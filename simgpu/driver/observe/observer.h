// What a CUPTI sees of the driver, and what it asks. simgpu's libcupti finds `simgpu_cupti_attach` in the loaded
// libcuda.so.1 (the one exported name that no CUDA program knows) and exchanges tables with it.
//   · Nobody looks: one load and a branch per operation, nothing per call.
//   · Only plain data crosses: each of the two has a C++ library of its own.
//   · Notices come on the thread of the call, or on the driver's worker for queued work; device notices may come under
//     a stream's lock, so they must neither call CUDA nor wait for a thread that does.
#pragma once

#include <atomic>
#include <cstdint>

#include "simgpu/driver/life/clock.h"
#include "simgpu/driver/life/cuda_api.h"
#include "simgpu/driver/observe/runtime_door.h"

namespace simgpu {

// Bits of what is looked at. `driver_calls`, `runtime_calls`: begin and end of calls, at least of some; `device`: kernels,
// copies, memsets, graph launches.
namespace look {
inline constexpr uint32_t driver_calls = 1;
inline constexpr uint32_t device = 2;
inline constexpr uint32_t syncs = 4;
inline constexpr uint32_t memory = 8;
inline constexpr uint32_t resources = 16;
inline constexpr uint32_t runtime_calls = 32;
}  // namespace look

// One API call. Runtime calls (of simgpu's runtime) look the same.
struct CallNotice {
  const char* name;     // documented: cuMemAlloc
  const char* variant;  // exported: cuMemAlloc_v2
  bool runtime;
  bool inside_runtime;  // a driver call of a runtime call, whether or not that one is shown
  uint32_t correlation;
  uint32_t context;  // id of the current context; 0: none
  CUcontext context_handle;
  Nanos begin;
  Nanos end;         // when the call is left
  int result;        // likewise
  uint64_t* client;  // kept from enter to leave
};

// What all device operations have. Times are on the truth's clock.
struct OperationNotice {
  uint32_t correlation;
  uint32_t device;
  uint32_t context;
  uint32_t stream;
  Nanos called;  // when the call began
  Nanos start;
  Nanos end;
  uint32_t graph;       // id of the executable graph; 0: none
  uint64_t graph_node;  // id of its node
};

struct KernelNotice : OperationNotice {
  const char* symbol;  // valid while the notice is given
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t cluster[3];
  uint32_t registers;  // 0: unknown
  uint32_t static_shared;
  uint32_t dynamic_shared;
  uint32_t local_bytes;  // per thread
  bool cooperative;
};

// As CUpti_ActivityMemoryKind numbers it.
enum class SeenMemory : uint8_t { unknown = 0, pageable = 1, pinned = 2, device = 3, array = 4, managed = 5 };

struct CopyNotice : OperationNotice {
  uint64_t bytes;
  SeenMemory source;
  SeenMemory destination;
  bool async;
  bool peer;
  uint32_t source_device;
  uint32_t destination_device;
  uint32_t source_context;  // of the devices' primary contexts
  uint32_t destination_context;
};

struct MemsetNotice : OperationNotice {
  uint64_t bytes;
  uint32_t value;
  SeenMemory memory;
  bool async;
};

struct GraphNotice : OperationNotice {
  uint64_t nodes;
};

struct SyncNotice {
  enum class Kind : uint8_t { event = 1, stream_wait_event = 2, stream = 3, context = 4 };  // CUPTI's numbers
  Kind kind;
  uint32_t correlation;
  uint32_t context;
  uint32_t stream;  // ~0: none
  uint32_t event;   // ~0: none
  CUcontext context_handle;
  CUstream stream_handle;
  Nanos begin;
  Nanos end;
};

struct MemoryNotice {
  bool allocation;  // else: freed
  bool async;
  SeenMemory memory;
  uint32_t correlation;
  uint32_t device;
  uint32_t context;
  uint32_t stream;  // ~0: none
  uint64_t address;
  uint64_t bytes;
  uint64_t pool;  // handle; 0: none
  Nanos at;
};

struct PoolNotice {
  enum class Act : uint8_t { created = 1, destroyed = 2, trimmed = 3 };  // CUPTI's numbers
  Act act;
  uint32_t correlation;
  uint32_t device;
  uint64_t pool;  // handle
  uint64_t reserved;
  uint64_t used;
  uint64_t threshold;
  uint64_t keep;  // trimmed: bytes to keep
  Nanos at;
};

struct ResourceNotice {
  enum class Act : uint8_t {
    context_created,
    context_destroyed,
    stream_created,
    stream_destroyed,
    module_loaded,
    module_unloaded,
    graph_created,
    graph_destroyed,
    graph_node_created,
    graph_node_cloned,
    graph_node_destroyed,
    graph_exec_created,
    graph_exec_destroyed,
  };
  Act act;
  uint32_t correlation;
  uint32_t device;
  uint32_t id;  // of the context, stream, module, graph or executable graph
  uint32_t context_id;
  CUcontext context;
  CUstream stream;
  const void* image;  // module: the machine code; valid while the notice is given
  uint64_t image_bytes;
  CUgraph graph;
  CUgraph original_graph;
  CUgraphNode node;
  CUgraphNode original_node;
  int node_type;
  uint32_t priority;     // stream
  uint32_t stream_flag;  // CUpti_ActivityStreamFlag
  bool compiled;         // module: PTX had to be compiled
  CUgraphExec exec;
  Nanos begin;
  Nanos end;
};

// CUPTI's side. Never changes while attached, and stays in memory for good.
struct Observer {
  // Whether enter() and leave() shall hear of calls of that exported name, a literal: asked as such a call begins.
  bool (*wants)(const char* variant, bool runtime);
  void (*enter)(const CallNotice&);
  void (*leave)(const CallNotice&);
  void (*kernel)(const KernelNotice&);
  void (*copy)(const CopyNotice&);
  void (*memset)(const MemsetNotice&);
  void (*graph)(const GraphNotice&);
  void (*sync)(const SyncNotice&);
  void (*memory)(const MemoryNotice&);
  void (*pool)(const PoolNotice&);
  void (*resource)(const ResourceNotice&);
};

struct DeviceFacts {
  char name[96];
  CUuuid uuid;
  uint64_t memory_bytes;
  int sms;
  int cc_major;
  int cc_minor;
  double copy_bandwidth;
};

// The driver's side. Everything but `set_looks` asks only; CUresult as the driver's own calls would give it.
struct DriverSide {
  void (*set_looks)(uint32_t looks, bool separate_runtime_ids);
  bool (*initialized)();  // cuInit has succeeded in this process
  uint32_t (*contexts_made)();
  CUresult (*context_id)(CUcontext context, uint32_t* id);  // null: the current one
  CUresult (*device_id)(CUcontext context, uint32_t* id);
  CUresult (*stream_id)(CUcontext context, CUstream stream, bool per_thread, uint32_t* id);
  CUresult (*graph_id)(CUgraph graph, uint32_t* id);
  CUresult (*graph_exec_id)(CUgraphExec exec, uint32_t* id);
  CUresult (*graph_node_id)(CUgraphNode node, uint64_t* id);
  uint32_t (*devices)();
  bool (*device_facts)(uint32_t device, DeviceFacts* facts);
};

extern constinit std::atomic<uint32_t> looks;
inline bool looked_at(uint32_t bits) { return (looks.load(std::memory_order_relaxed) & bits) != 0; }
const Observer& observer();  // only where looked_at

}  // namespace simgpu

extern "C" const simgpu::RuntimeDoor* simgpu_runtime_door();
extern "C" const simgpu::DriverSide* simgpu_cupti_attach(const simgpu::Observer* observer);
