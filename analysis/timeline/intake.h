// Device records into operations on the host's clock: decodes them, numbers devices, streams and shapes, keeps a batch
// until the clock is known, and hands the keys of the join to the LaunchWindow.
//   · Keys and overhead of a batch go before its operations.
//   · Memory: a batch is what came since the newest reading of the clock, at most kMostWaiting records.
#pragma once

#include <algorithm>
#include <array>
#include <unordered_map>
#include <vector>

#include "analysis/facts/facts.h"
#include "analysis/read/appended.h"
#include "analysis/read/record_view.h"
#include "analysis/read/tick_clock.h"
#include "analysis/read/time_window.h"
#include "analysis/timeline/device_clock.h"
#include "analysis/timeline/device_shapes.h"
#include "analysis/timeline/launch_window.h"
#include "trace/reader.h"

namespace gputrace {

class Intake {
 public:
  static constexpr std::size_t kMostWaiting = 1u << 20;

  Intake(const TraceReader& reader, DeviceActivity& activity, DeviceShapes& shapes, LaunchWindow& window,
         OverheadLog& overhead, TimeSpan report);

  // True: a batch is ready to be taken.
  bool add(const RecordHeader& record, TickClock& clock) {
    switch (static_cast<RecordType>(record.type)) {
      case RecordType::DeviceKernel:
        handled_ = clock.end(record);
        on_kernel(*RecordView<DeviceKernel>(record));
        break;
      case RecordType::DeviceApi:
        handled_ = clock.end(record);
        on_key(*RecordView<DeviceApi>(record));
        break;
      default:
        return add_other(record, clock.span(record));
    }
    return is_full();
  }
  void add_stream(const DeviceStream& record, u32 context, Nanos handled);
  // Gives every operation of the batch to `give`, and when it ran on the host's clock: its own times are still CUPTI's.
  template <typename Give>
  void drain(Give&& give) {
    settle_keys();
    settle_overhead();
    settle_environment();
    TimeSpan ran;
    constexpr std::size_t kAhead = 8;
    batch_.for_each<kAhead>([&](Waiting& each, const Waiting& further) {
      __builtin_prefetch(&further);
      if (convert(each.operation, each.handled, ran)) give(each.operation, ran);
    });
    batch_.clear();
  }
  void finish();

  bool active() const { return active_; }
  bool collecting() const { return collecting_; }
  // Jumps included, whose moment is not known.
  Nanos clock_error() const { return std::max<Nanos>(0, clock_.error()) + clock_.largest_step(); }
  // The host's stream that a stream of the device is known to be; kNone: not known.
  u32 host_stream(u32 stream) const { return host_streams_[stream]; }
  void set_host_stream(u32 stream, u32 host);
  // Whether a stream of the device is known to be it.
  bool taken(u32 host) const { return host < taken_.size() && taken_[host] != 0; }
  // CUgraphNode and CUgraphExec of CUPTI's ids for a node and its executable graph; 0: not told.
  struct Node {
    u64 node = 0, exec = 0;
  };
  Node node(u64 id, u32 graph) const;

 private:
  struct Waiting {
    DeviceOperation operation;  // its times are CUPTI's
    Nanos handled;              // host time at which the collector had the record
  };

  struct Key {
    u64 start, finish;
    u32 correlation, thread, callback, level;
    Nanos handled;
  };

  struct Held {
    u64 start, finish;
    u32 kind, thread;
    Nanos handled;
  };

  struct Sample {
    DeviceEnvironment record;
    Nanos handled;
  };

  bool is_full() const { return batch_.size() + keys_.size() >= kMostWaiting; }
  bool add_other(const RecordHeader& record, TimeSpan handled);
  void on_kernel(const DeviceKernel& record);
  void on_key(const DeviceApi& record);
  template <typename Record>
  void on_transfer(const Record& record, OperationKind kind);
  void on_graph(const DeviceGraph& record);
  void on_state(const DeviceState& record);
  void on_overhead(const DeviceOverhead& record);
  void on_jit(const DeviceJit& record);
  template <typename Record>
  DeviceOperation& put(const Record& record, OperationKind kind);
  u32 device_index(i32 ordinal);
  struct RecentStream {
    u64 key = 0;
    u32 stream = kNone, device = kNone;
    i32 ordinal = -1;  // of the device
  };
  const RecentStream& stream_of(i32 ordinal, u32 context, u32 id);
  void look_up(RecentStream& recent, i32 ordinal, u32 context, u32 id);
  struct RecentThread {
    u32 tid = 0, thread = kNone;
  };
  u32 thread_index(u32 tid, Nanos at);
  u32 look_up(RecentThread& recent, u32 tid, Nanos at);
  void settle_keys();
  void settle_overhead();
  void settle_environment();
  bool convert(DeviceOperation& operation, Nanos handled, TimeSpan& ran);

  const TraceReader& reader_;
  DeviceActivity& activity_;
  DeviceShapes& shapes_;
  LaunchWindow& window_;
  OverheadLog& overhead_;
  const TimeSpan report_;  // operations that start in it are counted
  DeviceTimeline clock_;
  Appended<Waiting> batch_;
  Appended<Key> keys_;
  std::vector<Held> held_;
  std::vector<Sample> samples_;
  std::vector<u32> host_streams_;               // by index in DeviceActivity::streams
  std::vector<u32> taken_;                      // by the host's stream: how many of the device's it is
  std::unordered_map<u64, u32> streams_by_id_;  // CUPTI context and stream id
  std::unordered_map<u64, u32> host_by_id_;     // told before the stream's first operation
  std::unordered_map<u32, std::vector<u32>> threads_by_tid_;
  std::unordered_map<u64, Node> nodes_;
  std::unordered_map<u32, u64> execs_;           // by CUPTI id of the executable graph
  std::array<RecentThread, 64> recent_threads_;  // by id; of threads whose id was not given out again
  std::array<RecentStream, 64> recent_streams_;  // by the stream's id
  Nanos handled_ = 0;
  bool active_ = false, collecting_ = false, ended_ = false;
};

}  // namespace gputrace
