// ProcessBuilder: what the host does again and again, for whoever looks for steps: launches, waits, and the marks that
// frameworks and the program set itself.
#include <algorithm>

#include "analysis/pass/process_builder.h"

namespace gputrace {
namespace {

constexpr const char* kBackward = "autograd::engine::evaluate_function";

}  // namespace

void ProcessBuilder::log(ThreadState& thread, u32 lane, Nanos begin, Nanos end, LoopKind kind, u32 number) {
  // What an autotuner tries again and again is no loop of the program's.
  if (xla_.compiling(lane)) return;
  const StackMarks::Place place = stack_marks_.place_of(facts_.lines.frames, facts_.lines.origins[thread.stack].frame);
  if (place.kind == StackMarks::Kind::Trial) return;
  const bool is_launch = kind == LoopKind::Kernel || kind == LoopKind::Graph;
  if (is_launch || place.kind == StackMarks::Kind::Batch || thread.turn.in_batch())
    log_turn(thread, lane, begin, place);
  if (kind == LoopKind::ToHost && place.kind == StackMarks::Kind::Save)
    facts_.loop_log.add(LoopKind::Mark, static_cast<u32>(LoopMark::Saves), begin, begin, lane);
  facts_.loop_log.add(kind, number, begin, end, lane);
}

void ProcessBuilder::log_turn(ThreadState& thread, u32 lane, Nanos begin, StackMarks::Place place) {
  const auto mark = [&](LoopMark what) {
    facts_.loop_log.add(LoopKind::Mark, static_cast<u32>(what), begin, begin, lane);
  };
  switch (thread.turn.next(place)) {
    case StackMarks::Turn::Begins::Prefill:
      return mark(LoopMark::Prefill);
    case StackMarks::Turn::Begins::Token:
      return mark(LoopMark::Token);
    case StackMarks::Turn::Begins::Batch:
      return mark(LoopMark::EngineBatch);
    case StackMarks::Turn::Begins::AfterBatch:
      return mark(LoopMark::EngineBatchEnds);
    case StackMarks::Turn::Begins::Outside:
      return mark(LoopMark::GenerationEnds);
    case StackMarks::Turn::Begins::Nothing:
      return;
  }
}

ProcessBuilder::MarkSort ProcessBuilder::mark_of(u32 frame) {
  if (frame >= mark_sorts_.size()) mark_sorts_.resize(frame + 1u, MarkSort::NotKnown);
  MarkSort& known = mark_sorts_[frame];
  if (known != MarkSort::NotKnown || frame >= facts_.lines.frames.size()) return known;
  known = MarkSort::None;
  const std::string& name = facts_.lines.frames[frame].function;
  const auto begins = [&name](const char* with) { return name.rfind(with, 0) == 0; };
  const auto after = [&name](const char* mark) { return name.substr(name.find(mark) + 1); };
  if (begins("Optimizer.step#")) {
    known = MarkSort::OptimizerStep;
    facts_.loop_log.optimizer = after("#");
  } else if (begins("Optimizer.zero_grad#")) {
    known = MarkSort::ZeroGrad;
  } else if (begins("enumerate(DataLoader)#")) {
    known = MarkSort::NextBatch;
    facts_.loop_log.loader = after("#");
  } else if (begins(kBackward)) {
    known = MarkSort::Backward;
  } else if (name == "DistributedDataParallel.forward") {
    known = MarkSort::Replicated;
  } else if (name == "c10d::allreduce_" && is_within_backward(frame)) {
    known = MarkSort::Reduction;
  }
  return known;
}

bool ProcessBuilder::is_within_backward(u32 frame) const {
  const auto& frames = facts_.lines.frames;
  while (frame != 0 && frame < frames.size() && !frames[frame].function.starts_with(kBackward))
    frame = frames[frame].parent;
  return frame != 0 && frame < frames.size();
}

void ProcessBuilder::on_operation(const Operation& value, u32 thread) {
  const TimeSpan ran = clock_.span(value.header);
  const Nanos begin = ran.from, end = ran.to;
  const u64 self = threads_[thread].operations.self_time(begin, end);
  tensors_.operation_ended(value.frame, thread, begin, end);
  if (value.frame == 0 || value.frame >= kMostStackFrames || begin < window_.from || begin >= window_.to) return;
  OperationTotals& totals = entry_at(facts_.lines.operations, value.frame);
  ++totals.count;
  totals.total_ns += static_cast<u64>(end - begin);
  totals.self_ns += self;
  const auto mark = [&](LoopMark what, Nanos from, Nanos to) {
    facts_.loop_log.add(LoopKind::Mark, static_cast<u32>(what), from, to, thread);
  };
  switch (mark_of(value.frame)) {
    case MarkSort::OptimizerStep:  // stands behind what it launched
      gradient_passes_.taken();
      mark(LoopMark::OptimizerBegins, begin, begin);
      return mark(LoopMark::OptimizerStep, end, end);
    case MarkSort::ZeroGrad:
      marks_backward_ = true;
      gradient_passes_.taken();
      return mark(LoopMark::ZeroGrad, begin, begin);
    case MarkSort::NextBatch:
      marks_backward_ = true;
      return mark(LoopMark::NextBatch, begin, end);
    case MarkSort::Backward:
      if (marks_backward_) mark(LoopMark::Backward, begin, begin);
      marks_backward_ = false;
      return;
    case MarkSort::Replicated:
      return gradient_passes_.forward();
    case MarkSort::Reduction:
      return gradient_passes_.reduced();
    default:
      return;
  }
}

void ProcessBuilder::on_nvtx(const Nvtx& value, u32 thread) {
  const Nanos at = clock_.nanos(value.header.begin);
  ranges_.add(value, thread, at, window_.holds(at));
  if (xla_.add(value, thread, at, window_.holds(at))) find_origin(thread);
  if (value.what == static_cast<u32>(NvtxAct::Push)) timeline_.range_pushed(thread, at, ranges_.innermost(thread));
  if (value.what == static_cast<u32>(NvtxAct::Pop)) timeline_.range_popped(thread, at);
}

// cuProfilerStart … cuProfilerStop is a range like one of NVTX's, without a name.
void ProcessBuilder::on_plain_call(const Moment& at) {
  const CallSort sort = sort_of(at.record.call);
  if (sort == CallSort::Memset3d) at.thread.within_memset = false;
  if (!at.counted || (sort != CallSort::ProfilerStart && sort != CallSort::ProfilerStop)) return;
  std::vector<LoopRange>& ranges = facts_.loop_log.profiler;
  if (sort == CallSort::ProfilerStart && ranges.size() < LoopLog::kMostRanges)
    ranges.push_back({at.begin, 0, 0, at.lane});
  else if (sort == CallSort::ProfilerStop && !ranges.empty() && ranges.back().end == 0)
    ranges.back().end = at.end;
}

}  // namespace gputrace
