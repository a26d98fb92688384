// Steps: the turns of a program's loop (an iteration of training, a token, a request), how they were found, and where the time
// of each went. Made by steps/find_steps.h once a process is loaded; constant afterwards. Times are CLOCK_MONOTONIC ns.
//
// What it is made from comes first: what the host gave to the device in order (LoopLog), and what the device and the host did
// at each instant (ActivityLog). Both are given back when the steps are known.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/types.h"

namespace gputrace {

// ------------------------------------------------------------------ made from
enum class LoopKind : u8 { Kernel, Graph, ToDevice, ToHost, OtherCopy, Memset, Wait, Mark };

// Marks of a framework, by which it says what its loop does.
// Backward: of each batch's backward pass, where it begins.
// Of generate(): a prompt is taken in, one more token is made, and other work begins.
// Of an engine that serves requests: it begins to run its model once more, for all that are under way, and other work begins.
// Saves: of each copy to the host that is made to write a model to a file.
enum class LoopMark : u8 {
  OptimizerStep,
  ZeroGrad,
  NextBatch,
  OptimizerBegins,
  Backward,
  Prefill,
  Token,
  GenerationEnds,
  EngineBatch,
  EngineBatchEnds,
  Saves
};

// Something that the host gave to the device, waited for, or said of itself. `symbol`: kind in the upper 4 bits, then a
// function's, a graph's or a mark's number.
struct LoopEvent {
  Nanos begin = 0, end = 0;
  u32 symbol = 0;
  u32 thread = 0;

  LoopKind kind() const { return static_cast<LoopKind>(symbol >> 28); }
  u32 number() const { return symbol & 0x0fffffffu; }
  bool is(LoopMark mark) const;
  bool is_launch() const { return kind() == LoopKind::Kernel || kind() == LoopKind::Graph; }
  bool is_work() const { return kind() != LoopKind::Mark && kind() != LoopKind::Wait; }  // given to the device
};
constexpr u32 loop_symbol(LoopKind kind, u32 number) { return static_cast<u32>(kind) << 28 | (number & 0x0fffffffu); }
constexpr u32 loop_symbol(LoopMark mark) { return loop_symbol(LoopKind::Mark, static_cast<u32>(mark)); }
inline bool LoopEvent::is(LoopMark mark) const { return symbol == loop_symbol(mark); }

// A range of the program's own on one thread: NVTX, or the time for which it switched the profiler on.
struct LoopRange {
  Nanos begin = 0, end = 0;  // end 0: still open
  u32 name = 0;              // in LoopLog::names
  u32 thread = 0;
};

// Backward passes that added their gradients up over the ranks (DistributedDataParallel); of them those whose sums were added to by the
// next pass before anybody took them.
struct GradientPassFacts {
  u64 reduced = 0, needless = 0;
};

// Counts them, told of what happens in the order of time. (Needless ones: accumulation without no_sync().)
class GradientPasses {
 public:
  explicit GradientPasses(GradientPassFacts& facts) : facts_(facts) {}

  // The replicated model was asked: a pass may follow.
  void forward() { asked_ = true; }
  // Gradients are added up: the first such call of a pass counts it.
  void reduced() {
    if (!asked_) return;
    asked_ = false;
    ++facts_.reduced;
    facts_.needless += reduced_;  // the one before it was for nothing
    reduced_ = true;
  }
  // The optimizer took the gradients, or they were set to zero.
  void taken() { reduced_ = false; }

 private:
  GradientPassFacts& facts_;
  bool asked_ = false, reduced_ = false;
};

struct LoopLog {
  static constexpr std::size_t kMostEvents = 2u << 20, kMostRanges = 1u << 20;
  std::vector<LoopEvent> events;    // the first ones, in the order of their ends
  std::vector<LoopRange> ranges;    // in the order of their begins on each thread
  std::vector<std::string> names;   // of ranges
  std::vector<LoopRange> profiler;  // switched on and off
  u64 events_left_out = 0, ranges_left_out = 0;
  std::string optimizer, loader;  // what the framework calls them: "SGD.step"; empty: no such mark

  void add(LoopKind kind, u32 number, Nanos begin, Nanos end, u32 thread) {
    if (events.size() == kMostEvents && kind != LoopKind::Mark) return static_cast<void>(++events_left_out);
    events.push_back({begin, end, loop_symbol(kind, number), thread});
  }
};

// What an instant was spent on, as far as the device, its gaps and the framework tell. The highest that holds counts.
enum class Activity : u8 {
  Kernel,  // `number`: of its kernel in ProcessTrace::kernels
  ToHost,
  OnDevice,    // copies on or between devices
  InputWait,   // the program waits for its next batch
  Collective,  // kernels of a communication library
  Unknown,     // in a gap of which nothing is known
  Launch,      // from here on: the device does nothing, and the host ...
  ToDevice,
  Compilation,
  Host,
};
struct ActivitySpan {
  Nanos begin = 0;
  Nanos called = 0;  // when the call began that gave it to the device; 0: of a gap, or not known
  u32 length = 0;
  u32 what = 0;  // Activity in the upper 4 bits, then a number
  Activity activity() const { return static_cast<Activity>(what >> 28); }
  u32 number() const { return what & 0x0fffffffu; }
  Nanos end() const { return begin + length; }
};

// Spans in the order in which they came, a million of a long run: 16 bytes each where one begins within two seconds of the one before
// it, and within four of its call. Others lie beside them.
class ActivitySpans {
 public:
  void reserve(std::size_t count) { packed_.reserve(count); }
  std::size_t size() const { return packed_.size(); }
  bool empty() const { return packed_.empty(); }
  Nanos newest_begin() const { return newest_; }
  void add(const ActivitySpan& span) { packed_.push_back(packed(span)); }
  template <typename Visit>
  void for_each(Visit&& visit) const {
    Nanos before = 0;
    for (const Packed& each : packed_) {
      const ActivitySpan span = unpacked(each, before, far_);
      before = span.begin;
      visit(span);
    }
  }
  // Forgets the others.
  template <typename Keep>
  void keep_if(Keep&& keep) {
    const std::vector<ActivitySpan> far = std::exchange(far_, {});
    Nanos before = newest_ = 0;
    std::size_t kept = 0;
    for (const Packed& each : packed_) {
      const ActivitySpan span = unpacked(each, before, far);
      before = span.begin;
      if (keep(span)) packed_[kept++] = packed(span);
    }
    packed_.resize(kept);
  }

 private:
  struct Packed {
    u32 since;   // begin of the one before it, and kSoon more; of one that lies beside them its place there
    u32 length;  // as ActivitySpan has it
    u32 lead;    // from the call's begin, and one more; 0: not known
    u32 what;    // as ActivitySpan has it; kFar: it lies beside them
  };
  static constexpr u64 kSoon = u64{1} << 31, kLongest = 0xffffffffu;
  static constexpr u32 kFar = 0xf0000000u;  // no Activity

  Packed packed(const ActivitySpan& span) {
    const u64 begin = static_cast<u64>(span.begin);
    const u64 since = begin - static_cast<u64>(std::exchange(newest_, span.begin)) + kSoon;
    const u64 lead = begin - static_cast<u64>(span.called);
    if (since <= kLongest && (span.called == 0 || lead < kLongest)) [[likely]]
      return {static_cast<u32>(since), span.length, span.called == 0 ? 0 : static_cast<u32>(lead) + 1, span.what};
    far_.push_back(span);
    return {static_cast<u32>(far_.size() - 1), 0, 0, kFar};
  }
  static ActivitySpan unpacked(const Packed& each, Nanos before, const std::vector<ActivitySpan>& far) {
    if (each.what == kFar) return far[each.since];
    const u64 begin = static_cast<u64>(before) + each.since - kSoon;
    const u64 called = each.lead == 0 ? 0 : begin - (each.lead - 1);
    return {static_cast<Nanos>(begin), static_cast<Nanos>(called), each.length, each.what};
  }

  std::vector<Packed> packed_;
  std::vector<ActivitySpan> far_;
  Nanos newest_ = 0;
};

// All of a run's, or slices of it: every `stride`-th one of `width`.
struct Activities {
  ActivitySpans spans;
  Nanos origin = 0, width = 0;  // width 0: all
  Nanos until = 0;              // nothing is known from then on; 0: to the end
  i64 stride = 1;

  bool keeps(Nanos time) const { return time >= origin && (time - origin) / width % stride == 0; }
  // Whether all that happened in [begin, end) is here.
  bool covers(Nanos begin, Nanos end) const {
    if (until != 0 && end > until) return false;
    return width == 0 || (keeps(begin) && keeps(end) && (begin - origin) / width == (end - origin) / width);
  }
};

// XLA compiles a module on a thread, as it says itself by NVTX: the outermost of such ranges.
struct XlaCompiling {
  Nanos begin = 0, end = 0;
  u32 thread = 0;
  std::string module;  // "jit_step": xla_function() of its name
};

// The function that a module of XLA was made of. JAX names the module so ("jit_step"); TensorFlow numbers it anew for each shape, in a name
// that says how it is run: "__inference_step_77[_XlaMustCompile=true,…].5", later "a_inference_step_77__XlaMustCompile_true_….5" → "step".
inline std::string_view xla_function(std::string_view module) {
  constexpr std::string_view kInference = "_inference_";
  const std::size_t from = module.find(kInference);
  if (from > 1) return module;  // also where there is none
  std::string_view name = module.substr(from + kInference.size());
  name = name.substr(0, std::min(name.find('['), name.find("__XlaMustCompile")));
  const std::size_t number = name.find_last_not_of("0123456789");
  if (number != std::string_view::npos && number != 0 && number + 1 < name.size() && name[number] == '_')
    name = name.substr(0, number);
  return name.empty() ? module : name;
}

// ------------------------------------------------------------------ made of it
enum class StepSource : u8 { None, Framework, Nvtx, ProfilerApi, Graph, Inferred };

// What the wall time of a step is divided into; they sum to it.
enum class StepCategory : u8 {
  Compilation,
  Input,
  Output,
  Launch,
  Host,
  DeviceToDevice,
  Collective,
  Compute16,
  Compute32,
  ComputeOther,
  Other
};
inline constexpr unsigned kStepCategories = 11;
using StepParts = std::array<u64, kStepCategories>;

enum class RunPhase : u8 { StartUp, Compilation, WarmUp, Training, Evaluation, Checkpoint, Prefill, Decode, Other };
inline constexpr unsigned kRunPhases = 9;

struct Step {
  Nanos begin = 0, end = 0;
  Nanos called_from = 0, called_to = 0;  // on the device's times: when the host gave it that work; else 0
  RunPhase phase = RunPhase::Other;
  bool counted = true;   // in mean, median and percentiles: a step like most, not the first ones and no evaluation
  bool divided = false;  // `parts` are known
  StepParts parts{};
  u64 waited_for_batches_ns = 0;  // of `parts`: the program waited for its loader, and no kernel ran
  u64 host_busy_ns = 0;  // of the host's time that gave it its work: in no call that waits for a device; 0: not known
  u64 length() const { return static_cast<u64>(end - begin); }
};

struct PhaseSpan {
  RunPhase phase = RunPhase::Other;
  Nanos begin = 0, end = 0;
  std::string evidence;
};

struct StepFacts {
  StepSource source = StepSource::None;
  double confidence = 0;    // 0…1; 1: the program says it itself
  std::string evidence;     // what they were found by, in words
  std::string why_none;     // where there are none
  std::string not_divided;  // why (some) steps have no parts; empty: all have
  std::vector<Step> steps;  // in order, not overlapping; the first is step 1
  bool on_device = false;   // times are the device's: the host had gone on for longer than a step when it came to them
  u64 batches = 0,
      batch_ns = 0;  // times that the program asked a loader for a batch in steps that count, and what they took
  // Of other threads that do the same as the one whose turns are the steps (a server's requests): these turns overlap with the
  // steps, and are none.
  u64 other_threads = 0, other_turns = 0;
  // What the framework calls it, "_SingleProcessDataLoaderIter.__next__", or its users where looks found it ("tf.data").
  std::string loader;
  bool loader_sampled = false;  // so `batches` are pauses in which looks found it asked, and those like them
  u64 first_number = 1;         // of steps[0]: `--steps` leaves out those before
  std::vector<PhaseSpan> phases;

  bool found() const { return source != StepSource::None; }
};

}  // namespace gputrace
