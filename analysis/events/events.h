// The events of traces, one by one: the door behind every export and behind the page's timeline.
//
//   for each process:   begin(process)
//                       device slices and gaps, each stream in the order of its starts, but for what came late
//                       facts(process): what is known of it now as a whole: devices, memory over time
//                       calls, operations, ranges and marks, each thread in the order of their ends
//                       end()
//
//   · Memory is bounded: a trace is read twice, nothing of it is kept but what load_process() keeps.
//   · Times are ns on one clock of all processes: CLOCK_MONOTONIC where they share a boot, else the wall clock.
//   · A flow joins a call and what a device did for it: the same number on both sides; 0: none.
//   · Texts and the facts live until end(); events during the call only.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/facts/facts.h"
#include "analysis/gaps/operations.h"
#include "analysis/load.h"
#include "base/result.h"

namespace gputrace {

struct ExportThread {
  i32 tid = 0;  // 0: what belongs to no thread
  std::string_view name;
};

struct ExportProcess {
  u32 number = 0;  // from 0, in the order of the files
  const ProcessIdentity* who = nullptr;
  std::vector<ExportThread> threads;  // by HostSlice::thread
  Nanos shift = 0;                    // event times = the process's facts + shift
  Nanos realtime = 0;                 // wall clock at `anchor`
  Nanos anchor = 0;                   // an instant of the process, on the clock of the events; both 0: it has no record
};

// What a device did, described once for all that are alike: the address tells them apart until end().
struct DeviceWork {
  u32 number = 0;  // tells it from the others of its process too; small
  OperationKind kind = OperationKind::Kernel;
  std::string name;    // demangled kernel; "Memcpy HtoD", "Memset", "graph"
  std::string symbol;  // kernels, as loaded
  u32 grid[3] = {}, block[3] = {}, cluster[3] = {};
  u32 dynamic_shared = 0, static_shared = 0, local_bytes = 0, registers = 0;
  TransferKind transfer = TransferKind::Unknown;
  HostMemory memory = HostMemory::Unknown;  // of the host's side
  bool asynchronous = false;
};

// The number that a call and what a device did for it share: its thread, above its begin.
inline constexpr unsigned kFlowTimeBits = 46;
inline u64 flow_time(u64 flow) { return flow & ((u64{1} << kFlowTimeBits) - 1); }
inline u64 flow_thread(u64 flow) { return flow >> kFlowTimeBits; }
inline u64 flow_of(u32 thread, Nanos call_begin) {
  return (u64{thread} + 1) << kFlowTimeBits | flow_time(static_cast<u64>(call_begin));
}

struct DeviceSlice {
  Nanos begin = 0, end = 0;
  const DeviceWork* work = nullptr;
  i32 device = -1;              // ordinal in the process
  u32 context = 0, stream = 0;  // as CUPTI numbers them
  u64 bytes = 0;                // copies, memsets
  u64 graph_node = 0;           // CUPTI's id; 0: none
  u32 graph = 0;                // CUPTI's id of the executable graph; 0: none
  u32 correlation = 0;          // CUPTI's id of the call; 0: not told
  u64 flow = 0;
  u32 origin = 0;  // from where it was asked for: number of the CallOrigin in facts(); 0: not known
  bool collective = false;
  Nanos queued = 0, submitted = 0;  // 0: not told
  u64 length() const { return static_cast<u64>(end - begin); }
};

enum class HostKind : u8 { Call, Operation, Range, Mark };
struct HostSlice {
  HostKind kind = HostKind::Call;
  Nanos begin = 0, end = 0;
  std::string_view name;
  std::string_view level;  // calls: driver, runtime, library; ranges and marks: their domain, empty for the default
  std::string_view site;   // calls: the program's line that made it; empty: not known
  u32 frame = 0;           // calls: the innermost of its stack; operations: that which names it; 0: not known
  u32 thread = 0;          // index in ExportProcess::threads
  u16 call = 0;            // calls: id in the trace
  u32 result = 0;          // calls: 0 is success
  u64 flow = 0;
  bool across_threads = false;  // ranges by start and end: not nested in their thread
  bool open = false;            // ranges: its begin or its end is not in the trace
  u32 category = 0, color = 0;  // ranges and marks; color: ARGB, 0: none
  u64 length() const { return static_cast<u64>(end - begin); }
};

class EventSink {
 public:
  virtual ~EventSink() = default;

  virtual void begin(const ExportProcess& process) = 0;
  virtual void ran(const DeviceSlice& slice) = 0;
  virtual void idled(const IdleGap&) {}
  virtual void facts(const ProcessTrace&) {}
  virtual void host(const HostSlice& slice) = 0;
  virtual void end() {}
  // Whether facts() shall hold steps and other sums, which take a third more time; Wanted says which. The same at all times.
  virtual bool wants_sums() const { return false; }
  // What it writes cannot be written any more: nothing further is told.
  virtual bool failed() const { return false; }
};

// The events of a run while it is loaded (RunEvents): the same ones, but of several processes at a time, and of each the devices' side and
// the host's at a time too, from two threads. No facts(), no idled().
class EventSinks {
 public:
  virtual ~EventSinks() = default;
  // On any thread; `process` lives during the call only. nullptr: nobody wants its events. Its end() comes after all its slices.
  // Of operations no name is told and of calls no site: frames are, which are named when the process is loaded.
  virtual EventSink* sink(std::size_t file, const ExportProcess& process) = 0;
};

struct Exported {
  u64 processes = 0, device_slices = 0, host_slices = 0, bytes_read = 0;
  u64 dropped = 0;                  // records that are not in the traces
  std::vector<std::string> unread;  // files that could not be read, with the reason
  std::vector<std::string> damage;
};

class ExportProgress {
 public:
  virtual ~ExportProgress() = default;
  virtual void reached(u32 file, u32 files, u64 events) = 0;  // now and then
};

// The error: none of the files could be read, or none is left by the request. Where it asks for steps, the traces are loaded once more
// before, to find them.
Result<Exported, InputError> export_events(const LoadRequest& request, EventSink& sink,
                                           ExportProgress* progress = nullptr);

}  // namespace gputrace
