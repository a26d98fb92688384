// What one traced process did, as facts that reports read: dense tables of calls, launches, copies, memory, graphs.
// Made by ProcessBuilder in one pass over the records in time order; constant afterwards.
// Size is bounded by what is different (functions, shapes, calls), not by how often it happened; times are
// CLOCK_MONOTONIC ns.
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/facts/code_coverage.h"
#include "analysis/facts/code_facts.h"
#include "analysis/facts/device_facts.h"
#include "analysis/facts/distribution.h"
#include "analysis/facts/gain_facts.h"
#include "analysis/facts/launch_loops.h"
#include "analysis/facts/library_facts.h"
#include "analysis/facts/memory_span.h"
#include "analysis/facts/nvtx_facts.h"
#include "analysis/facts/occupancy.h"
#include "analysis/facts/sample_facts.h"
#include "analysis/facts/source_lines.h"
#include "analysis/facts/step_facts.h"
#include "analysis/facts/tensor_facts.h"
#include "base/types.h"
#include "trace/record.h"

namespace gputrace {

inline constexpr u32 kNone = 0xffffffffu;  // no index

struct CallFacts {
  u16 id = 0;
  std::string name, variant, level;
  u64 calls = 0;
  u64 errors = 0;
  u64 self_ns = 0;
  Distribution durations;
  std::map<u16, u64> results;        // what was returned but 0, and how often
  std::map<u16, u32> error_origins;  // by result: CallOrigin of the first of those calls that had one
  u64 waits = 0;                     // Sync records
  u64 wait_ns = 0;
  OriginAmounts waits_by_origin;  // of wait_ns
};

struct ModuleInstance {
  u64 handle = 0;
  u64 bytes = 0;
  u64 hash = 0;
  std::string path;
  ImageKind image = ImageKind::Unknown;
  ModuleAct what = ModuleAct::Module;
  std::vector<u64> images;  // ids of the images that hold its code
};

// A function or kernel object of the driver, from the moment its handle was given this meaning until it was given
// another.
struct Function {
  u64 handle = 0;
  std::string symbol;  // empty: not known
  u32 module = kNone;  // index in ProcessTrace::modules
  i32 registers = -1, static_shared = -1, local_bytes = -1, max_threads = -1, ptx_version = -1, binary_version = -1;
  Distribution launch_calls;     // durations of plain launches that succeeded
  LaunchTimes waits;             // of those whose kernel was joined
  std::vector<KernelCode> code;  // for each chip that its module has code for; see code_on()
  std::string caller;            // library whose call launched it, in the words of categories.def; empty: none seen
};

struct Context {
  u64 handle = 0;
  i32 device = -1;  // ordinal in the process
};

struct KernelShape {
  u32 function = kNone;
  u32 context = kNone;
  u32 grid[3] = {}, block[3] = {};
  u32 dynamic_shared = 0;
  u32 cluster[3] = {};
  bool operator==(const KernelShape&) const = default;
};
inline std::size_t hash_of(const KernelShape& shape) {
  u64 hash = 0x9e3779b97f4a7c15ull;
  const auto mix = [&hash](u64 value) {
    hash = (hash ^ value) * 0xff51afd7ed558ccdull;
    hash ^= hash >> 32;
  };
  mix(static_cast<u64>(shape.function) << 32 | shape.context);
  mix(static_cast<u64>(shape.grid[0]) << 32 | shape.block[0]);
  mix(static_cast<u64>(shape.grid[1]) << 32 | shape.block[1]);
  mix(static_cast<u64>(shape.grid[2]) << 32 | shape.block[2]);
  mix(static_cast<u64>(shape.dynamic_shared) << 32 | shape.cluster[0] << 20 | shape.cluster[1] << 10 |
      shape.cluster[2]);
  return hash;
}
struct KernelLaunches {
  KernelShape shape;
  u64 plain = 0;          // launches outside a capture that succeeded
  u64 in_graphs = 0;      // graph nodes × replays
  u64 captured = 0;       // nodes added under capture
  KernelTimes times;      // of the executions that the device reported
  u64 answered = 0;       // of `plain`: those whose kernel was reported, in the window or not
  u64 started = 0;        // of `times`: kernels of plain launches, made in the window or not
  bool unjoined = false;  // nodes of a graph that has several functions of that name: they are counted with those

  // Each execution belongs to the window in which it started; one that was not reported, to that of its call.
  u64 executions() const {
    if (unjoined) return 0;
    return plain - std::min(plain, answered) + started + std::max(in_graphs, times.durations.count() - started);
  }
};

enum class HostMemory : u8 { Unknown, Pinned, Pageable, Managed, Device };
enum class TransferKind : u8 { Unknown, HtoD, DtoH, DtoD, PtoP, HtoH, Memset };
struct CopyGroup {
  TransferKind kind = TransferKind::Unknown;
  HostMemory memory = HostMemory::Unknown;
  bool asynchronous = false;
  i32 device = -1;
  u64 count = 0;  // as the program asked for them: a cudaMemset3D is one
  u64 parts = 0;  // memsets that those took beyond one each
  u64 bytes = 0;
  u64 call_ns = 0;           // host time in the calls (members of a batch share one call: counted once)
  u64 in_graphs = 0;         // of `count`
  u64 between_launches = 0;  // of `count`: a kernel was launched by the same thread since its last such copy
  u64 device_count = 0;      // executions that the device reported (parts not), and their bytes and time (parts too)
  u64 device_bytes = 0;
  u64 device_ns = 0;
  u64 answered = 0, answered_bytes = 0;  // of `count`: calls whose copy was reported, in the window or not
  u64 started = 0, started_bytes = 0;    // of device_count: copies of plain calls, made in the window or not
  u64 graph_bytes = 0;                   // of `bytes`
  OriginAmounts bytes_by_origin;         // of `bytes`, but for those in graphs
  OriginAmounts time_by_origin;          // of call_ns

  // As KernelLaunches::executions().
  u64 executions() const {
    const u64 plain = count - in_graphs;
    return plain - std::min(plain, answered) + started + std::max(in_graphs, device_count - started);
  }
  u64 executed_bytes() const {
    const u64 plain = bytes - graph_bytes;
    return plain - std::min(plain, answered_bytes) + started_bytes +
           std::max(graph_bytes, device_bytes - started_bytes);
  }
};

// What allocates: one per (device, kind of memory, explicit pool).
struct MemoryPool {
  i32 device = -1;  // -1: host memory, or not known
  AllocKind kind = AllocKind::Device;
  u64 pool = 0;  // handle; 0: the default pool, or no pool
  std::string name;
  u64 allocations = 0, frees = 0;
  u64 live_bytes = 0, live_count = 0;
  u64 peak_bytes = 0;
  u64 certain_peak_bytes = 0, certain_live_bytes = 0;  // where records were lost: lower bounds
  Nanos peak_at = 0;
};
struct MemorySample {
  Nanos at = 0;
  u64 bytes = 0;
};
struct PeakPart {
  AllocKind kind = AllocKind::Device;
  u64 bytes = 0, count = 0;
};
// One device's memory, all its pools together, over time.
struct DeviceMemory {
  i32 device = -1;
  u64 live_bytes = 0;
  u64 peak_bytes = 0;
  u64 certain_peak_bytes = 0, certain_live_bytes = 0;  // as in MemoryPool
  Nanos peak_at = 0;
  std::vector<PeakPart> at_peak;
  MemorySpans spans;
  std::vector<MemorySample>
      samples;  // after each change; thinned to the largest of an interval once there are too many
  bool thinned = false;
};

// What was allocated and not freed when the trace ended: by the call that allocated it, from where, and the kernel that its
// thread had launched last before.
struct LiveMemory {
  i32 device = -1;
  u16 call = 0;
  u32 origin = 0;  // number of the CallOrigin
  u32 function = kNone;
  u64 count = 0, bytes = 0;
  Nanos oldest = 0, newest = 0;  // when the first and the last of them were allocated
};

struct AllocationLoop {
  u64 between_launches =
      0;  // cuMemAlloc, managed and host allocations with a launch of the same thread since its last one
  Nanos first = 0, last = 0;
  u64 launches_at_first = 0, launches_at_last = 0;  // that the process had made by then
  OriginAmounts time_by_origin, freeing_by_origin;  // host time in such calls, in those that free such memory
};

struct Graph {
  u64 handle = 0;
  u64 nodes = 0, kernel_nodes = 0;  // of the newest version
  u32 largest = kNone;              // function of its kernel node with the most threads
  u64 largest_threads = 0;
  u64 instantiations = 0, updates = 0;
  bool unreadable = false;  // its nodes could not be read: their kernels are not counted
  u64 launches = 0;
  i32 device = kNoDevice;  // that it was launched on; kSeveral: on several
  static constexpr i32 kNoDevice = -1, kSeveral = -2;
  Distribution launch_calls;
  GraphTimes times;  // of the replays that were joined
};

struct Device {
  i32 ordinal = -1;
  std::string name, uuid;
  u64 memory_bytes = 0;
  u32 sms = 0, capability_major = 0, capability_minor = 0;
  u32 clock_khz = 0, pci_domain = 0, pci_bus_device = 0;
  DeviceLimits limits;
};

struct ThreadFacts {
  i32 tid = 0;
  u32 slot = 0, incarnation = 0;
  std::string name;
  u64 seen = 0, stored = 0;
  u64 calls = 0,
      wait_ns = 0;  // calls in the window, at every level; of them, host time in those that wait for a device
  std::array<u64, kDropReasons> dropped{};
  bool exact = true;
  bool process_wide =
      false;  // what belongs to no thread in the file: threads without a slot, or whose slot was reclaimed
};

struct OpenCall {
  i32 tid = 0;
  std::string call;
  u64 argument = 0;
  u32 depth = 0;
  Nanos begin = 0;
};

struct ModuleLoads {
  ModuleAct what = ModuleAct::Module;
  ImageKind image = ImageKind::Unknown;
  u64 bytes = 0;
  u64 count = 0;
  u64 total_ns = 0, max_ns = 0;
  OriginAmounts time_by_origin;  // of total_ns
};

// Whether a program of that path or name is a Python interpreter: "/usr/bin/python3.11".
inline bool is_interpreter(std::string_view path) { return path.substr(path.rfind('/') + 1).starts_with("python"); }

struct ProcessIdentity {
  std::string file;  // path of the trace
  u64 file_bytes = 0;
  std::string title;  // what it calls itself in place of its arguments; empty: they are there
  std::string host, boot_id, executable, command, rank, local_rank, job, run, gputrace_version, begin_realtime;
  i32 pid = 0;
  i32 parent = 0;   // the parent's pid when the trace began; 0: not known
  u32 restart = 0;  // how often the launcher had started the job's ranks anew before (TORCHELASTIC_RESTART_COUNT)
  u64 random_id = 0;
  std::string end_reason;
  bool ended = false;      // the End chunk is there
  bool died = false;       // by a signal, or in a way that nobody saw
  bool failed = false;     // by a signal, or with an exit code that is not 0
  bool end_known = false;  // how it ended, its exit code too
  i32 signal = 0;          // that ended it; 0: none is known
  Nanos end_realtime = 0;  // wall clock, when it was found to be gone; 0: it has not ended
  std::string never_open;  // why no call was within the window; empty: one may have been
  i32 driver_version = 0, runtime_version = 0, device_count = -1;
  std::string driver_path, runtime_path;
  std::vector<std::string> package_folders;  // into which Python's packages were installed, outside of a site-packages
};

struct ProcessTrace {
  ProcessIdentity who;
  // The same from the begin of the first step that counts to the end of the last, of a long run to that of one of the first; nothing: there
  // are none, or they are nearly all of it.
  std::shared_ptr<const ProcessTrace> loop;
  Nanos begin = 0, end = 0;  // first begin, last end of its records in the window; 0, 0: none
  Nanos first_realtime = 0;  // wall clock of `begin`
  u64 records = 0, unknown_records = 0;
  u64 seen = 0, dropped = 0;
  std::array<u64, kDropReasons> dropped_by{};
  bool counters_exact = true;
  Nanos clock_error = -1;

  std::string window;  // how the recording was limited in time, in words; empty: it was not

  std::vector<CallFacts> calls;
  std::vector<ModuleInstance> modules;
  std::vector<Function> functions;
  std::vector<Context> contexts;
  std::vector<KernelLaunches> kernels;
  std::vector<CopyGroup> copies;
  std::vector<MemoryPool> pools;
  std::vector<DeviceMemory> device_memory;
  std::vector<FrameworkMemory> tensors;
  std::vector<LiveMemory> live_memory;  // of devices, the largest first
  std::vector<Graph> graphs;
  std::vector<Device> devices;
  std::vector<ThreadFacts> threads;
  std::vector<OpenCall> in_flight;
  std::vector<ModuleLoads> module_loads;
  LibraryFacts library;
  AllocationLoop allocation_loop;
  LaunchLoopFacts loops;
  GradientPassFacts gradient_passes;
  DeviceActivity device;
  SourceLines lines;
  SampleFacts samples;
  GainFacts gains;
  StepFacts steps;
  std::vector<XlaCompiling> xla_compiling;  // in the order of their ends
  std::vector<NvtxRangeTotals> nvtx;
  LoopLog loop_log;              // of which the steps are found; then empty
  Activities activities;         // likewise
  bool ledger_complete = false;  // every allocation since the first CUDA call is in the trace
  u64 unmatched_frees = 0;       // of addresses whose allocation was not seen
  u64 plain_launches = 0, graph_launches = 0, launches_unsure = 0;

  CodeCoverage code_coverage;
  u64 images_not_read = 0;            // machine code that was asked for and not read when the file was written so far
  std::vector<std::string> notes;     // what the library and the sidecar said, one sentence each
  std::vector<std::string> warnings;  // options that were not understood
  std::vector<std::string> damage;    // what is wrong with the file
  std::vector<std::pair<std::string, std::string>> not_collected;
  std::map<std::string, std::string> options;
  std::map<std::string, std::string, std::less<>>
      environment;  // its variables that change how it runs (writer/kept_variables.cpp)
};

struct LoadedRun {
  std::vector<ProcessTrace> processes;
  std::vector<std::string> unread;     // files that could not be read, with the reason
  Nanos wall_begin = 0, wall_end = 0;  // over all processes (of one host: one clock)
  // The first record of all, also where a window begins later; nothing: the processes do not share a clock.
  std::optional<Nanos> origin;
  std::optional<i64> only_device;  // what other devices did was taken out (run/one_device.h)
  std::string only_steps;          // "steps 5 to 9": what else happened was left out; empty: it was not
};

}  // namespace gputrace
