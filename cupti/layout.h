// Activity records as CUPTI lays them out: only the part that all versions from 12.0 on share, and never a size of
// theirs. Kernel8 (12.0) to Kernel10 (13.0) and later ones begin alike; so do the other kinds. What a version added at
// the end is read by offset, where cuptiGetVersion says that it is there.
#pragma once

#include "base/types.h"

namespace gputrace::cupti_layout {

struct Kernel {
  u32 kind;
  u8 cache_config;
  u8 shared_config;
  u16 registers;
  u32 partitioned_cache_requested;
  u32 partitioned_cache_executed;
  u64 start;
  u64 end;
  u64 completed;
  u32 device;
  u32 context;
  u32 stream;
  i32 grid[3];
  i32 block[3];
  i32 static_shared;
  i32 dynamic_shared;
  u32 local_per_thread;
  u32 local_total;
  u32 correlation;
  i64 grid_id;
  const char* name;
  u64 reserved;
  u64 queued;
  u64 submitted;
  u8 launch_type;
  u8 carveout_requested;
  u8 carveout;
  u8 padding;
  u32 shared_executed;
  u64 graph_node;
  u32 shared_limit_config;
  u32 graph;
  void* access_policy;
  u32 channel;
  u32 channel_type;
  u32 cluster[3];
  u32 cluster_policy;
};
static_assert(sizeof(Kernel) == 192 && offsetof(Kernel, start) == 16 && offsetof(Kernel, correlation) == 92 &&
              offsetof(Kernel, queued) == 120 && offsetof(Kernel, graph_node) == 144 &&
              offsetof(Kernel, cluster) == 176);
inline constexpr u64 kKernelDeviceLaunched = 208;  // u8, from 13.0 on

struct Memcpy {
  u32 kind;
  u8 copy_kind;
  u8 source_kind;
  u8 destination_kind;
  u8 flags;
  u64 bytes;
  u64 start;
  u64 end;
  u32 device;
  u32 context;
  u32 stream;
  u32 correlation;
  u32 runtime_correlation;
  u32 padding;
  u64 reserved;
  u64 graph_node;
  u32 graph;
};
static_assert(offsetof(Memcpy, correlation) == 44 && offsetof(Memcpy, graph_node) == 64);

struct MemcpyPeer {
  u32 kind;
  u8 copy_kind;
  u8 source_kind;
  u8 destination_kind;
  u8 flags;
  u64 bytes;
  u64 start;
  u64 end;
  u32 device;
  u32 context;
  u32 stream;
  u32 source_device;
  u32 source_context;
  u32 destination_device;
  u32 destination_context;
  u32 correlation;
  u64 reserved;
  u64 graph_node;
  u32 graph;
};
static_assert(offsetof(MemcpyPeer, correlation) == 60 && offsetof(MemcpyPeer, graph_node) == 72);

struct Memset {
  u32 kind;
  u32 value;
  u64 bytes;
  u64 start;
  u64 end;
  u32 device;
  u32 context;
  u32 stream;
  u32 correlation;
  u16 flags;
  u16 memory_kind;
  u32 padding;
  u64 reserved;
  u64 graph_node;
  u32 graph;
};
static_assert(offsetof(Memset, correlation) == 44 && offsetof(Memset, graph_node) == 64);

inline constexpr u8 kCopyAsync = 1;     // CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC
inline constexpr u16 kMemsetAsync = 1;  // CUPTI_ACTIVITY_FLAG_MEMSET_ASYNC

struct Api {
  u32 kind;
  u32 callback;
  u64 start;
  u64 end;
  u32 process;
  u32 thread;
  u32 correlation;
  u32 result;
};
static_assert(sizeof(Api) == 40);

struct Overhead {
  u32 kind;
  u32 overhead_kind;
  u32 object_kind;
  u32 object[3];  // of a thread: process id, thread id
  u64 start;
  u64 end;
};
static_assert(offsetof(Overhead, start) == 24);
// From 12.4 on, in Overhead3: memory that the reader has to free.
struct OverheadDetails {
  Overhead overhead;
  u32 correlation;
  u32 reserved;
  void* data;
};
static_assert(offsetof(OverheadDetails, data) == 48);
inline constexpr u32 kCommandBufferFull = 6
                                          << 16;  // CUPTI_ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL, the kind that has some
inline constexpr u32 kObjectThread = 2;           // CUPTI_ACTIVITY_OBJECT_THREAD

struct GraphTrace {
  u32 kind;
  u32 correlation;
  u64 start;
  u64 end;
  u32 device;
  u32 graph;
  u32 context;
  u32 stream;
};
static_assert(sizeof(GraphTrace) == 40);

struct Jit {
  u32 kind;
  u32 entry;
  u32 operation;
  u32 device;
  u64 start;
  u64 end;
  u32 correlation;
  u32 padding;
  u64 operation_correlation;
  u64 cache_size;
};
static_assert(offsetof(Jit, cache_size) == 48);

struct Environment {
  u32 kind;
  u32 device;
  u64 timestamp;
  u32 environment_kind;
  u32 data[5];
};
static_assert(sizeof(Environment) == 40);

}  // namespace gputrace::cupti_layout
