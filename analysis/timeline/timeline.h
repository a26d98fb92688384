// The timeline of one process: device records on the host's clock, joined to the calls that caused them, put in order,
// and folded into DeviceActivity, into the times of kernels, copies, launches and graphs, and into gaps with causes: a
// value that is nobody else's until finish() gives it away.
// One streaming pass in the order of RecordStream; one instance per trace; one thread.
//
//   host calls ──▶ LaunchWindow ─────────────┐ (numbers; what each operation waits for)
//                                            ▼
//   device records ──▶ Intake: a batch until the clock is known ──▶ ReorderWindow ──▶ join ──▶ DeviceSweep ──▶ facts
//
//   · Device records come late, by another thread's ring, in any order. They are converted when a reading of the clock
//     that is newer than them is there; they leave the reorder window when it is full, oldest start first.
//   · Join: by key (DeviceApi within the thread's call → correlation id), else by order in the stream with agreeing
//     kernel and shape, else not; each is counted.
//   · Memory: LaunchWindow 2 M operations, ReorderWindow 288 K operations, HostLog 4 M calls at most; what falls out of
//     them is counted.
#pragma once

#include <vector>

#include "analysis/facts/facts.h"
#include "analysis/facts/gain_facts.h"
#include "analysis/facts/kernel_origins.h"
#include "analysis/facts/timeline_facts.h"
#include "analysis/gaps/dispatch_times.h"
#include "analysis/gaps/gap_division.h"
#include "analysis/gaps/host_log.h"
#include "analysis/gaps/lost_work.h"
#include "analysis/gaps/operations.h"
#include "analysis/gaps/overhead_log.h"
#include "analysis/read/tick_clock.h"
#include "analysis/read/time_window.h"
#include "analysis/replay/tape_recorder.h"
#include "analysis/timeline/activity_log.h"
#include "analysis/timeline/device_shapes.h"
#include "analysis/timeline/device_sweep.h"
#include "analysis/timeline/intake.h"
#include "analysis/timeline/launch_window.h"
#include "analysis/timeline/library_calls.h"
#include "analysis/timeline/range_projection.h"
#include "analysis/timeline/reorder_window.h"
#include "analysis/timeline/stream_candidates.h"
#include "analysis/timeline/stream_track.h"
#include "analysis/timeline/targets.h"
#include "analysis/timeline/witness.h"
#include "trace/reader.h"

namespace gputrace {

class Timeline {
 public:
  // `witness` is told of every operation and gap in the window; what it has no use for (see there) is not in the facts.
  Timeline(const TraceReader& reader, TimeWindow window, Witness* witness = nullptr);

  // The host's side, in the order of RecordStream.
  void called(u32 thread, Nanos begin, Nanos end, u16 call, HostLog::Kind kind, u32 origin);
  // `expected` false: a device record may come, and need not. `as_call`: called() is told with it, of a launch.
  void operation(const HostOperation& operation, const StreamName& stream, bool as_call = false);
  void ordered(const StreamOrder& record, const StreamName& stream, Nanos begin, Nanos end);
  void object(const ObjectCall& record);
  // The thread waited, or asked and was told that all is done.
  struct WaitedFor {
    SyncKind what = SyncKind::Context;
    u64 object = 0;  // event
    StreamName stream;
  };
  void waited(u32 thread, Nanos begin, Nanos end, const WaitedFor& what);
  // The newest wait of the thread was for nothing that was read.
  void wait_was_needless(u32 thread) { recorder_.was_needless(thread); }
  // The thread's operations since `begin` are a collective of a communication library.
  void collective(u32 thread, Nanos begin) { window_.mark_collective(thread, begin); }

  // We held the thread ourselves, outside of the program's calls. `counted`: ns of it that the report counts.
  void own_work(u32 thread, Nanos begin, Nanos end, u64 counted) {
    activity_.own_work_ns += counted;
    overhead_.add({begin, end, thread, IdleCause::Collection});
  }

  // NVTX ranges.
  RangeProjection& ranges() { return ranges_; }
  // What operations count for.
  Targets& targets() { return targets_; }
  // Calls of vendor libraries are in the trace: their kernels are theirs. Before the first record.
  void collect_libraries() { facts_.library.collected = true; }
  LibraryCalls& libraries() { return libraries_; }

  // Records of device activity from `at` on, none of them a DeviceStream: at most `most`, and up to `end`. Where it stopped.
  struct Stopped {
    const u8* at;
    u32 taken;  // records
  };
  Stopped device(const u8* at, const u8* end, u32 most, TickClock& clock);
  // `context`: the pass's number of its context. `handled`: when the collector had it.
  void device_stream(const DeviceStream& record, u32 context, Nanos handled);

  // Entries of the tables that grow with what is different on the device.
  u64 things() const;

  // Everything was told. Once.
  TimelineFacts finish();
  // What changes would bring, by replays of what was recorded. Once, after finish(). `kernels`: by the number that they have in its facts.
  GainFacts gains(const KernelChanges& kernels);

 private:
  struct Joined {
    HostOperation* call = nullptr;
    u32 sequence = kNone;
    u32 origin = 0;  // CallOrigin of the call; of a graph's node the one that captured it, where that is known
  };
  struct DeviceTrack {
    DeviceSweep sweep;
    DispatchTimes dispatch, kept_dispatch;  // of all gaps; of those that are idle for certain
    u32 newest_call = kNone;                // of the operation that ended last
    LostWork lost;
  };

  // Takes what the reorder window gives.
  struct Taker {
    Timeline& timeline;
    void operator()(DeviceOperation& operation, u32 keyed) { timeline.take(operation, keyed); }
    [[gnu::always_inline]] inline void soon(const DeviceOperation& operation) {
      timeline.window_.expect_keyed(operation.correlation);
    }
    // The operation of the host that has its key.
    [[gnu::always_inline]] inline u32 next(const DeviceOperation& operation) {
      const u32 keyed = timeline.keyed(operation);
      timeline.window_.expect(keyed);
      return keyed;
    }
  };

  void take_in();
  void take(DeviceOperation& operation, u32 keyed);
  void take_any(DeviceOperation& operation, u32 keyed);
  bool is_plain(const HostOperation& call, const DeviceOperation& operation) const;
  void take_launched(DeviceOperation& operation, HostOperation& call, u32 sequence);
  void answer(const DeviceOperation& operation, HostOperation& call, u32 sequence);
  void note_early(const DeviceOperation& operation, const HostOperation& call);
  void pass(const DeviceOperation& operation, u32 sequence);
  void make_room();
  u32 keyed(const DeviceOperation& operation) const {
    return operation.correlation ? window_.keyed(operation.correlation) : kNone;
  }
  void put_on_tape(const HostOperation& given);
  void count_unanswered();
  std::string why_no_replay() const;
  bool on_device(const DeviceOperation& operation) const;
  bool runs_alone(const HostOperation* call, const DeviceOperation& operation) const;
  void find_noise(Nanos overlap);
  Joined join(const DeviceOperation& operation, u32 keyed);
  u32 origin_of(const DeviceOperation& operation, const HostOperation* call);
  Targets::NodeNames names_of(const DeviceOperation& operation, const HostOperation* call) const;
  Joined join_by_key(const DeviceOperation& operation, u32 keyed);
  Joined next_of_one_call(HostOperation& answered, u32 sequence, const DeviceOperation& operation);
  bool has_double(const HostOperation& call, const DeviceOperation& operation) const;
  u32 join_by_order(const DeviceOperation& operation);
  u32 the_one_that_agrees(const DeviceOperation& operation);
  OperationLook look_of(const HostOperation& call) const;
  void begin_candidates();
  u32 agreeing(u32 stream, const DeviceOperation& operation) const;
  bool agrees(const HostOperation& call, const DeviceOperation& operation, bool strictly) const;
  void learn(const HostOperation& call, const DeviceOperation& operation);
  void find_waited(const HostOperation* call, u32 stream, Waited& waited);
  void add_wait(u32 sequence, Waited& waited, unsigned depth);
  GraphTimes& graph_times(u32 graph);
  void count(const DeviceOperation& operation, const Joined& joined);
  void count_answer(const HostOperation& call);
  u32 count_kernel(const DeviceOperation& operation, const Joined& joined);  // its number
  void count_copy(const DeviceOperation& operation, const Joined& joined);
  void log_activity(const DeviceOperation& operation, u32 kernel, const HostOperation* call);
  void log_gap(const IdleGap& gap, const DispatchTimes& dispatch);
  void count_wait(const DeviceOperation& operation, const HostOperation& call, const Waited& waited, u32 depth);
  void count_launch(const DeviceOperation& operation, const HostOperation& call, LaunchTimes& times,
                    const Waited& waited, u32 depth);
  void count_execution(TimelineKernel& kernel, const Joined& joined, u32 target, u64 length, const DeviceShape& shape);
  void count_graph(const DeviceOperation& operation, const HostOperation& call);
  void find_gap(DeviceTimes& times, const DeviceOperation& operation, const Joined& joined, const Waited& waited,
                u32 depth);
  void end_gap(const DeviceOperation& operation, const Joined& joined, const Waited& waited, u32 depth);
  Nanos earliest_start(const HostOperation& call) const;
  void lost_before(const HostOperation& first, Nanos end);
  void give_up_unheard(Nanos until);
  void settle_gaps(u32 device, Nanos until);
  void finish_gaps(u32 device);
  void keep_gap(DeviceTimes& times, const IdleGap& gap);
  void count_parts(DeviceTimes& times, const LostWork::Held& held);
  void limit_dispatch();
  void trim_logs();

  const TimeSpan report_;  // operations that start in it are counted
  Witness* const witness_;
  const bool sums_;            // are made: not where the witness has no use for them
  const bool taped_;           // what gains replay is kept
  const bool counts_plainly_;  // all sums, and nobody else is told
  TimelineFacts facts_;
  DeviceActivity& activity_;
  Targets targets_;
  LibraryCalls libraries_;
  DeviceShapes shapes_;
  LaunchWindow window_;
  HostLog log_;
  KernelOrigins kernel_origins_;
  TapeRecorder recorder_;
  // When everything was told, for gains().
  bool replays_ = false;
  u32 end_missing_from_ = kNone;  // from this operation on most that should have a record have none
  u64 unanswered_at_end_ = 0;     // of those
  std::string why_no_replay_;
  std::vector<TimelineCopies> replayed_copies_;
  ActivityLog activities_;
  RangeProjection ranges_;
  OverheadLog overhead_;
  GapDivision division_;
  Intake intake_;
  ReorderWindow reorder_;
  std::vector<DeviceTrack> devices_;  // by index in DeviceActivity::devices
  std::vector<StreamTrack> tracks_;   // by index in DeviceActivity::streams
  std::vector<u8> seen_threads_;      // by thread: the device has done something for it
  StreamCandidates candidates_;
  std::vector<StreamTimes> uncounted_;  // by stream: of operations outside of the report's time
  // Operations since a key was tied to another one than was looked up ahead; counted up to kNext.
  u32 since_tied_ = ReorderWindow::kNext;
  u64 since_trim_ = 0;
};

}  // namespace gputrace
