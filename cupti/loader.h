// Device time from CUPTI: all that the rest of the preloaded library knows of this folder.
//
//   · Nothing is opened before device_start(), which the session calls when the program makes its first context, just
//     before it does (just before its cuInit, only for latency stamps).
//   · A thread of our own turns CUPTI's buffers into records on a ring of its own. It begins when the first work was given
//     to a device: until then the process has no thread of ours (decision 63). The program's threads never wait for it, but
//     for a bounded time where they must: at exit, and when another client of CUPTI takes over.
//   · The first failing call of CUPTI ends device collection for good; the program and the recording of calls go on.
//   · A child of fork has none of this: what it inherited belongs to its parent and is not touched.
//   · Every function: any thread, no exceptions; may change errno (the callers guard it).
#pragma once

#include <atomic>

#include "base/types.h"

namespace gputrace {

// How this folder reaches what belongs to the session. Set once, constant.
struct DeviceHost {
  void* (*libc_function)(const char* name);          // by walking ELF tables; nullptr: there is none
  void* thread_create;                               // the pthread_create to use; nullptr: there is none
  u64 (*define_text)(const char* text, u64 length);  // a string definition; 0: no room just now
  void (*release)(void* memory);                     // the program's free()
  bool (*define)(void* record);                      // a record among the definitions; false: no room just now
  const char* (*variable)(const char* name);         // CUDA_HOME, CUDA_INJECTION64_PATH as the program began with them
};

struct DeviceOptions {
  u64 generation = 0;             // of the session
  const char* library = nullptr;  // GPUTRACE_CUPTI; nullptr: look for one
  const char* driver_path = nullptr;
  const char* runtime_path = nullptr;  // nullptr: none loaded
  i32 driver_version = 0;              // 13000; 0: not known (before cuInit)
  Bytes buffer_budget = 16u << 20;     // for CUPTI's activity buffers
  bool latency = false;
  bool environment = false;
  bool node_graphs = false;  // GPUTRACE_GRAPHS=node
};

// Opens CUPTI and begins to collect if the window is open; tells why not otherwise. Once per process.
void device_start(const DeviceOptions& options, const DeviceHost& host);

// A device was given work, and nobody fetches its records yet. Cheap to look at; it may be true in a child of fork, too.
extern __attribute__((visibility("hidden"))) std::atomic<bool> device_awaits_work;
// Begins to fetch. On a stack that pthread_create may use.
void device_work_given();

// What was collected is brought in, bounded as at exit; after that nothing here does anything any more.
void device_leave();

// The window of the session changed (cuProfilerStart/Stop, an NVTX range): collection follows before this returns.
void device_window_changed();

// A stream came to be, or a default stream was first used (stream 0; per_thread: the calling thread's own).
void device_stream_seen(u64 context, u64 stream, bool per_thread, u32 thread);
// An executable graph came to be: its id.
void device_graph_seen(u64 exec);
// Where nodes are collected: around the call that makes an executable graph, on its thread; in between each of its nodes,
// whose clone's id is recorded. The second may be left out only where the call was not made.
void device_graph_begins();
void device_graph_node_seen(u64 exec, u64 node);
void device_graph_done();

// ------------------------------------------------------------------ other clients of CUPTI
// Their calls pass through us: device_client_calls() before the real call, device_client_called() after it.
enum class CuptiClientCall : u32 { Subscribe, Unsubscribe, Register, Configure, Clock, Enable, Disable, Finalize };
void device_client_calls(CuptiClientCall call);
// `what` is enabled or disabled: one of those below; of Unsubscribe the subscriber; 0 for the other calls.
void device_client_called(CuptiClientCall call, u64 what, u32 result);
// A kind of activity, everywhere, in one context or for one subscriber; one function of the driver's or the runtime's.
// Never 0. Of an address 47 bits say all.
constexpr u64 client_kind(u32 kind, u64 owner = 0) { return 1ull << 62 | owner << 8 | (kind & 0xff); }
constexpr u64 client_function(bool runtime, u32 function, u64 owner = 0) {
  return (runtime ? 3ull : 2ull) << 62 | owner << 14 | (function & 0x3fff);
}
constexpr u64 owner_of(u64 what) { return (what & ((1ull << 62) - 1)) >> (what >> 62 == 1 ? 8 : 14); }
// CUPTI has one pair of buffer callbacks. Theirs is replaced by one of ours that hands each buffer to whom it belongs.
// False: leave theirs as it is.
bool device_client_callbacks(void** requested, void** completed);
// They registered callbacks of the newer kind (13.3), with a subscriber: ours are no longer sure to be CUPTI's.
void device_client_registered_own();

}  // namespace gputrace
