#include "analysis/timeline/launch_window.h"

#include <algorithm>
#include <array>

#include "trace/key_calls.h"

namespace gputrace {
namespace {

constexpr u32 kSkippedKeys = 16;    // operations of a thread that a key may have skipped (their keys were lost)
constexpr Nanos kBlurred = 50'000;  // a clock that is off by more cannot tell neighbours apart: their order can
constexpr u32 kLeavesSoon = 8;      // operations ahead of the oldest, whose memory is far
constexpr u32 kCallbacks = 1024;    // above any callback id of CUPTI

// How far the call as CUPTI saw it lies outside of the operation's own call; of the other way round for runtime calls.
Nanos outside(TimeSpan call, bool runtime, const HostOperation& operation) {
  if (runtime) return std::max<Nanos>(0, call.from - operation.begin) + std::max<Nanos>(0, operation.end - call.to);
  return std::max<Nanos>(0, operation.begin - call.from) + std::max<Nanos>(0, call.to - operation.end);
}

// By how much later than its operation's call CUPTI has it: what must be taken off its times for the one to lie in the other. 0: they fit, or
// nothing makes them.
Nanos misfit(TimeSpan call, bool runtime, const HostOperation& operation) {
  Nanos early = operation.begin - call.from, late = call.to - operation.end;
  if (runtime) early = operation.end - call.to, late = call.from - operation.begin;
  if (early > 0) return late > 0 ? 0 : -early;
  return std::max<Nanos>(0, late);
}

}  // namespace

// The oldest leaves, unless its record may still come, or it lies close behind those whose records come now: then there
// must be more room, as long as there may be.
void LaunchWindow::make_room() {
  if (next_ - oldest_ <= mask_) return;
  expect(oldest_ + kLeavesSoon);
  const HostOperation& gone = ring_[oldest_ & mask_];
  const bool waits = gone.expected && !gone.answered;
  if (active_ && mask_ + 1 < kMost && (waits || newest_passed_ < oldest_ || newest_passed_ - oldest_ < kHistory))
    return grow();
  forgotten_ += active_ && waits;
  Head& head = heads_[gone.stream];
  if (head.first == oldest_) head.first = gone.next_in_stream;
  ++oldest_;
}

// In place: those that lie elsewhere in a ring twice as large lie in its upper half, where nothing is yet.
[[gnu::noinline]] void LaunchWindow::grow() {
  const u32 mask = mask_ * 2 + 1;
  for (u32 sequence = oldest_; sequence != next_; ++sequence) {
    if ((sequence & mask) != (sequence & mask_)) ring_[sequence & mask] = ring_[sequence & mask_];
  }
  mask_ = mask;
}

// All of scratch_, which is empty afterwards.
[[gnu::noinline]] void LaunchWindow::keep_waits(HostOperation& made) {
  made.waits_count = static_cast<u8>(scratch_.size());
  made.waits = scratch_.size() == 1 ? scratch_[0] : waits_next_;
  for (std::size_t i = 0; scratch_.size() > 1 && i < scratch_.size(); ++i) {
    const u32 at = waits_next_++ & (kWaitRing - 1);
    if (at >= waits_.size()) waits_.resize(std::min<std::size_t>(kWaitRing, at * 2u + 64));
    waits_[at] = scratch_[i];
  }
  scratch_.clear();
}

HostOperation* LaunchWindow::add(const HostOperation& operation, u32 stream) {
  if (next_ == kNone - 1) {  // four thousand million operations: no numbers left
    ++forgotten_;
    return nullptr;
  }
  make_room();
  const u32 sequence = next_++;
  // Copied first and changed where it lies: what is copied while it is still being stored is waited for.
  HostOperation& made = ring_[sequence & mask_];
  made = operation;
  made.stream = stream;
  made.waits = streams_.given(stream, sequence, scratch_);
  made.waits_count = made.waits != kNone;
  if (!scratch_.empty()) [[unlikely]]
    keep_waits(made);
  if (stream >= heads_.size()) heads_.resize(stream + 1u);
  if (!is_reported(operation.kind)) return &made;
  Thread& thread = threads_[operation.thread];
  if (HostOperation* const before = find(thread.newest)) before->next_in_thread = sequence;
  thread.newest = sequence;
  Head& head = heads_[stream];
  if (head.first == kNone) head.first = sequence;
  if (find(head.last)) ring_[head.last & mask_].next_in_stream = sequence;
  head.last = sequence;
  return &made;
}

void LaunchWindow::mark_collective(u32 thread, Nanos begin) {
  for (u32 sequence = next_; sequence-- > oldest_;) {
    HostOperation& operation = ring_[sequence & mask_];
    if (operation.end < begin) return;
    if (operation.thread == thread && operation.begin >= begin) operation.collective = true;
  }
}

// The first such operation of a stream from `from` on, before `to`.
u32 LaunchWindow::unheard(u32 from, u32 to) const {
  while (from != to) {
    const HostOperation* operation = find(from);
    if (!operation) return kNone;
    if (operation->on_device && !operation->answered) return from;
    from = operation->next_in_stream;
  }
  return kNone;
}

u32 LaunchWindow::passed(u32 sequence) {
  const HostOperation* operation = find(sequence);
  if (!operation) return kNone;
  newest_passed_ = std::max(newest_passed_, sequence);
  Head& head = heads_[operation->stream];
  if (head.first == kNone || sequence < head.first) return kNone;
  const u32 first = unheard(head.first, sequence);
  head.first = operation->next_in_stream;
  return first;
}

// The thread's next operation, where the driver's call lies in it: what search() would find, with nothing to learn of the clocks from it.
u32 LaunchWindow::next_that_holds(const Thread& thread, const KeyedCall& call, TimeSpan fitted, int kind) const {
  const HostOperation* const keyed = find(thread.keyed);
  const u32 sequence = keyed ? keyed->next_in_thread : kNone;
  const HostOperation* const next = find(sequence);
  const bool holds = next && next->begin <= fitted.from && fitted.to <= next->end && fitted.from <= fitted.to;
  const bool fits = holds && !call.runtime && !call.jumped && !next->batch_member;
  return fits && (kind < 0 || static_cast<int>(next->kind) == kind) ? sequence : kNone;
}

// Without loss the next operation of the thread is the one. Else: by time, where the clock can tell neighbours apart.
[[gnu::noinline]] u32 LaunchWindow::search(const KeyedCall& call, TimeSpan fitted, int kind, Nanos error) {
  const bool blurred = call.jumped || error > kBlurred;
  u32 best = kNone;
  Nanos least = error + 1;
  const HostOperation* const keyed = find(threads_[call.thread].keyed);
  u32 sequence = keyed ? keyed->next_in_thread : kNone;
  for (u32 i = 0; i < kSkippedKeys; ++i) {
    const HostOperation* const operation = find(sequence);
    if (!operation || operation->begin > fitted.to + error) break;
    if (!operation->batch_member && (kind < 0 || static_cast<int>(operation->kind) == kind)) {
      const Nanos off = outside(fitted, call.runtime, *operation);
      if (off < least) least = off, best = sequence;
      if (off == 0 || (best != kNone && blurred)) return best;
    }
    sequence = operation->next_in_thread;
  }
  return best != kNone ? best : nearest(call, fitted, kind, error);
}

// The whole window is in the order of the calls' ends.
[[gnu::noinline]] u32 LaunchWindow::nearest(const KeyedCall& call, TimeSpan fitted, int kind, Nanos error) {
  const Nanos from = (call.runtime ? fitted.from : fitted.to) - error;
  u32 low = oldest_, high = next_;
  while (low < high) {
    const u32 middle = low + (high - low) / 2;
    if (ring_[middle & mask_].end < from)
      low = middle + 1;
    else
      high = middle;
  }
  u32 best = kNone;
  Nanos least = error + 1;
  u32 own = 0;
  for (u32 sequence = low; sequence != next_ && own < 4; ++sequence) {
    const HostOperation& operation = ring_[sequence & mask_];
    if (operation.begin > fitted.to + error && operation.thread == call.thread) break;
    if (operation.thread != call.thread || operation.batch_member || !is_reported(operation.kind)) continue;
    if (kind >= 0 && static_cast<int>(operation.kind) != kind) continue;
    ++own;
    const Nanos off = outside(fitted, call.runtime, operation);
    if (off < least) least = off, best = sequence;
  }
  return best;
}

void LaunchWindow::key(const KeyedCall& call, Nanos error) {
  if (call.thread >= threads_.size() || call.correlation == 0) return;
  const int kind = call.runtime ? kUnknownCallback : driver_callback_kind(call.callback);
  if (kind == kNothing) return;
  const TimeSpan told{call.begin, call.end};
  TimeSpan fitted = told;
  if (!call.jumped) {
    misfit_ = std::clamp(misfit_, -error, error);
    fitted.from -= misfit_, fitted.to -= misfit_;
  }
  Thread& thread = threads_[call.thread];
  u32 sequence = next_that_holds(thread, call, fitted, kind);
  if (sequence != kNone) [[likely]] {
    if (misfit_ != 0 && error <= kBlurred)
      farthest_ = std::max(farthest_, outside(told, false, ring_[sequence & mask_]));
    thread.keyed = sequence;
  } else {
    sequence = search(call, fitted, kind, error);
    if (sequence == kNone) return;
    const HostOperation& found = ring_[sequence & mask_];
    if (!call.jumped) misfit_ += misfit(fitted, call.runtime, found);
    if (error <= kBlurred && !call.jumped) farthest_ = std::max(farthest_, outside(told, call.runtime, found));
    if (!find(thread.keyed) || sequence > thread.keyed) thread.keyed = sequence;
  }
  expect(ring_[sequence & mask_].next_in_thread);  // the thread's next key is most likely that one's
  // Several driver calls of one runtime call have its id: the first of them leads to the others.
  correlations_.put_first(call.correlation, sequence, oldest_);
}

namespace {

constexpr i8 kind_of(KeyWork work) {
  switch (work) {
    case KeyWork::Kernel:
      return static_cast<i8>(OperationKind::Kernel);
    case KeyWork::Graph:
      return static_cast<i8>(OperationKind::Graph);
    case KeyWork::Copy:
      return static_cast<i8>(OperationKind::Copy);
    case KeyWork::Memset:
      return static_cast<i8>(OperationKind::Memset);
    case KeyWork::Nothing:
      break;
  }
  return kNothing;
}

constexpr std::array<i8, kCallbacks> kinds_by_callback() {
  std::array<i8, kCallbacks> kinds{};
  for (i8& kind : kinds) kind = kUnknownCallback;
  for (const KeyCall& call : kKeyCalls) kinds[call.callback] = kind_of(call.work);
  return kinds;
}

}  // namespace

int driver_callback_kind(u32 callback) {
  static constexpr auto kinds = kinds_by_callback();
  return callback < kCallbacks ? kinds[callback] : kUnknownCallback;
}

}  // namespace gputrace
