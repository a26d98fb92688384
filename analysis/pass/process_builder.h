// Folds the records of one trace file, in time order, into ProcessTrace. One instance per file; one thread.
#pragma once

#include <array>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>

#include "analysis/facts/facts.h"
#include "analysis/facts/kernel_origins.h"
#include "analysis/facts/launch_loops.h"
#include "analysis/memory/memory_ledger.h"
#include "analysis/memory/tensor_memory.h"
#include "analysis/pass/call_nesting.h"
#include "analysis/pass/function_table.h"
#include "analysis/pass/graph_table.h"
#include "analysis/pass/host_samples.h"
#include "analysis/pass/nvtx_ranges.h"
#include "analysis/pass/stack_marks.h"
#include "analysis/pass/xla_operations.h"
#include "analysis/read/allowance.h"
#include "analysis/read/record_stream.h"
#include "analysis/read/tick_clock.h"
#include "analysis/read/time_window.h"
#include "analysis/timeline/timeline_feed.h"
#include "trace/reader.h"

namespace gputrace {

class ProcessBuilder {
 public:
  ProcessBuilder(const TraceReader& reader, TimeWindow window, Allowance& allowance, ProcessTrace& facts,
                 Witness* witness = nullptr);

  // Of devices, but for what is told with the pass's own numbers: what add() wants in bulk.
  static TypeSet in_bulk(const TraceReader& reader);
  // A definition that may be needed before its place in time: told before the pass.
  void foresee(const RecordHeader& record);
  // Runs of one thread's records each, as the stream gives them; what comes when the allowance is spent is left out.
  void add(std::span<const RecordStream::Span> runs, const RecordStream& stream);
  void finish();
  // Once, after finish(). As Timeline has them.
  GainFacts gains(const KernelChanges& kernels) { return timeline_.gains(kernels); }

 private:
  bool add_bulk(const RecordStream::Span& run, const RecordStream& stream);
  void add(const RecordHeader& record, const RecordStream::Span& run, const RecordStream& stream);
  bool add_usual_launch(const RecordHeader& record, u32 lane);
  void add_launch(const RecordHeader& record, const RecordStream::Span& run, const RecordStream& stream);
  bool add_told(const RecordHeader& record, u32 thread);
  bool spent();
  bool look_at_allowance();
  void name_callers();
  void find_losses();
  struct ThreadState {
    CallNesting nesting;
    Ticks last_begin = 0, last_end = 0;
    Ticks newest = 0;        // end of its newest record
    u64 calls = 0;           // in ThreadFacts at the end
    u64 usual_launches = 0;  // from where it is: in StackTotals when it goes on
    u16 last_call = 0;
    bool definitions = false;          // no thread: the definitions, which threads share
    bool launched_since_copy[8] = {};  // by TransferKind
    bool launched_since_allocation = false;
    bool within_memset = false;  // a call of the runtime that takes several memsets has made its first
    StackMarks::Turn turn;
    u32 stack = 0;           // number of the CallOrigin from which it makes its calls
    u32 launched = kNone;    // function of its newest launch
    CallOrigin told;         // by its newest Stack
    u64 told_lost = 0;       // records that its Gap records stand for
    CallNesting operations;  // of frameworks
    CallNesting own_work;    // of ours
  };
  // One record, its times converted.
  struct Moment {
    const RecordHeader& record;
    ThreadState& thread;
    Nanos begin, end;
    bool counted;              // in the window
    bool first_of_call;        // not one more record of a call that was counted already
    bool definitions;          // in the definitions, which threads share
    u32 lane;                  // index of the thread in the trace
    bool call_untold = false;  // the timeline hears of the call with its operation
    u64 duration() const { return static_cast<u64>(end - begin); }
  };

  static bool is_new_call(const ThreadState& thread, const RecordHeader& record) {
    return thread.last_call != record.call || thread.last_begin != record.begin || thread.last_end != record.end;
  }
  static void note_call(ThreadState& thread, const RecordHeader& record) {
    thread.last_call = record.call;
    thread.last_begin = record.begin;
    thread.last_end = record.end;
  }
  static void note_launch(ThreadState& thread) {
    for (bool& launched : thread.launched_since_copy) launched = true;
    thread.launched_since_allocation = true;
  }
  Moment moment_of(const RecordHeader& record, u32 thread);
  StreamName stream_of(const Moment& at, u64 handle, u64 context, u32 flags);
  u32 context_of(u64 stream, u64 current);
  HostOperation operation_of(const Moment& at, OperationKind kind) const;
  void fill(HostOperation& operation, const Moment& at, OperationKind kind) const;
  void on_order(const Moment& at);
  void on_stack_frame(const StackFrame& value);
  void on_native_frame(const NativeFrame& value);
  std::string_view frame_text(u64 id);
  void on_stack(const Stack& value, u32 thread);
  void forget_untold_frames();
  void find_origin(u32 thread);
  void set_origin(ThreadState& thread, u32 origin);
  void on_operation(const Operation& value, u32 thread);
  void on_loss(const Gap& value, u32 thread);
  void on_own_work(const RecordHeader& record, u32 thread);
  void on_nvtx(const Nvtx& value, u32 thread);
  void on_plain_call(const Moment& at);
  // What the host gave to a device, or waited for.
  void log(const Moment& at, LoopKind kind, u32 number) {
    if (sums_) log(at.thread, at.lane, at.begin, at.end, kind, number);
  }
  void log(ThreadState& thread, u32 lane, Nanos begin, Nanos end, LoopKind kind, u32 number);
  enum class MarkSort : u8 { NotKnown, None, OptimizerStep, ZeroGrad, NextBatch, Backward, Replicated, Reduction };
  MarkSort mark_of(u32 frame);
  bool is_within_backward(u32 frame) const;
  void log_turn(ThreadState& thread, u32 lane, Nanos begin, StackMarks::Place place);
  // Of a call that counts.
  StackTotals& stack_of(const Moment& at) { return entry_at(facts_.lines.totals, at.thread.stack); }
  enum class CallSort : u8 { NotKnown, Other, Library, DeviceAddressOfHost, ProfilerStart, ProfilerStop, Memset3d };
  CallSort sort_of(u16 id);
  void on_library_call(const Moment& at, const std::shared_ptr<const void>& chunk);
  void on_graph_node(const GraphNode& value);
  void on_instantiate(const GraphInstantiate& value);
  CallFacts& call_facts(u16 id) { return id == newest_call_ ? *newest_call_facts_ : other_call_facts(id); }
  CallFacts& other_call_facts(u16 id);
  CallFacts& new_call_facts(u16 id);
  void count_in_span(Nanos begin, Nanos end);
  ThreadState* caller_of(const RecordHeader& record);
  // What statistics of calls are made of.
  struct EndedCall {
    Nanos begin;
    u64 self_ns, duration_ns;
    u32 result;
    u32 stack;  // number of the CallOrigin
    u32 lane;   // index of the thread in the trace; kNone: not known
    u16 call;
  };
  void count_call(Moment& at);
  void count_ended(const EndedCall& ended);
  void tell_call(Moment& at, const ThreadState& caller);
  void tell_other_call(const Moment& at, const ThreadState& caller);
  u32 context_index(u64 handle);
  u32 cached_context_index(u64 handle);  // the same, for what is asked again and again
  void context_is_on(u32 context, i32 device);
  i32 device_of(u32 context) const;
  void add_definition(const RecordHeader& record);
  void on_launch(const Moment& at);
  void on_graph_launch(const Moment& at);
  void on_copy(const Moment& at);
  void on_memset(const Moment& at);
  void on_alloc(const Moment& at);
  void on_free(const Moment& at);
  void on_sync(const Moment& at);
  void on_object(const Moment& at);
  void on_query(const Moment& at, const ObjectCall& value);
  void on_context(const ObjectCall& value, Nanos at);
  void on_module(const Moment& at);
  void on_device(const DeviceFacts& device);
  KernelLaunches& kernel(const KernelShape& shape);
  u32 known_kernel(const KernelShape& shape);  // kNone: none
  // A launch as the record has it, and what it means until a handle means something else.
  struct Launched {
    u64 handle = 0;              // of the function
    std::array<u64, 6> words{};  // of the record, from its context to its end
    u32 kernel = kNone, context = kNone;
    u32 function = kNone;
    u64 version = ~0ull;
    u64 plain = 0;  // launches that its kernel does not count yet
  };
  Launched& launched(const KernelLaunch& value);
  void find_launched(const KernelLaunch& value, Launched& known);
  void count_launches(Launched& known);
  CopyGroup& copy_group(TransferKind kind, HostMemory memory, bool asynchronous, i32 device);
  MemoryLedger::Place place_of(u8 said, u64 address) const;
  void count_transfer(const Moment& at, CopyGroup& group, u64 bytes, bool part);
  void replayed(const GraphTable::Node& node, u32 context, u64 times);

  struct ShapeHash {
    std::size_t operator()(const KernelShape& shape) const { return hash_of(shape); }
  };

  const TraceReader& reader_;
  const bool sums_;  // are made, of calls and launches: not where a witness has no use for them
  Allowance::Meter meter_;
  TimeWindow window_;
  ProcessTrace& facts_;
  TickClock clock_;
  FunctionTable functions_;
  GraphTable graphs_;
  KernelOrigins replayed_;
  MemoryLedger ledger_;
  TensorLedger tensors_;
  HostSamples samples_;
  LaunchLoops loops_;
  NvtxRanges ranges_;
  XlaOperations xla_;
  std::vector<ThreadState> threads_;
  std::vector<u32> calls_by_id_;
  u32 newest_call_ = kNone;  // the id that was asked for last, and what is known of it
  CallFacts* newest_call_facts_ = nullptr;
  std::unordered_map<u64, u32> contexts_by_handle_;
  std::unordered_map<u64, i32> foreseen_devices_;
  std::set<i32> ordinals_;                       // of facts_.devices
  std::unordered_map<u64, u32> origins_;         // by both numbers of a CallOrigin
  std::unordered_map<u64, u32> native_objects_;  // by path and build id
  std::size_t frame_text_bytes_ = 0;
  std::unordered_map<u64, u64> stream_contexts_;  // of created streams
  std::unordered_map<KernelShape, u32, ShapeHash> kernels_by_shape_;
  std::unordered_map<u64, u32> copies_by_key_;
  u32 last_kernel_ = kNone;
  std::vector<Launched> recent_launches_{1024};  // by hash
  u64 last_context_handle_ = 0, last_contexts_version_ = ~0ull;
  u32 last_context_ = kNone;
  u64 contexts_version_ = 0;  // changes whenever a known handle may mean another context
  TimelineFeed timeline_;
  CodeTable code_;
  std::vector<CallSort> call_sorts_;  // by call id
  std::vector<MarkSort> mark_sorts_;  // by frame
  // A batch was asked for, or gradients set to zero, and no backward pass has begun since.
  bool marks_backward_ = false;
  GradientPasses gradient_passes_{facts_.gradient_passes};
  StackMarks stack_marks_;
  u64 results_ = 0;                     // different ones of all calls
  std::vector<EndedCall> definitions_;  // of a recorded window: which of them fell into it is known at its end
  // Records between two looks at the allowance, and how many of them are left.
  static constexpr u32 kLookEvery = 16;
  u32 until_look_ = kLookEvery, looks_ = 0;
};

}  // namespace gputrace
