#include "analysis/replay/tape_recorder.h"

#include <algorithm>
#include <limits>

namespace gputrace {

void TapeRecorder::close(Nanos until) {
  if (!recording()) return;
  log_.trim(until, [this](u32 thread, const HostLog::Entry& entry) {
    tape().calls.push_back({entry.begin, entry.end, thread, entry.kind});
  });
  std::fill(newest_wait_.begin(), newest_wait_.end(), kNone);
}

[[gnu::noinline]] void TapeRecorder::turn_to(u32 sequence, const HostOperation& operation) {
  close(operation.begin);
  begun_ = true;
  piece_ = sequence / kPiece;
  if (tapes_.size() == most_ && piece_ % stride_ == 0) thin_out();
  recording_ = piece_ % stride_ == 0;
  if (!recording_) return;
  log_.trim(operation.begin);
  tapes_.emplace_back().first = sequence;
  newest_missed_ = kNone;
  tape().operations.reserve(kPiece);
  if (tapes_.size() == 1) return;
  const Tape& before = tapes_[tapes_.size() - 2];
  tape().first_wait = before.first_wait + static_cast<u32>(before.waits.size());
  tape().first_copy = before.first_copy + static_cast<u32>(before.copies.size());
  // As many again, about: what grows is touched twice.
  tape().calls.reserve(before.calls.size() + before.calls.size() / 16);
  tape().waits.reserve(before.waits.size() + before.waits.size() / 16);
}

void TapeRecorder::thin_out() {
  stride_ *= 2;
  const auto odd = [this](const Tape& tape) { return tape.first / kPiece % stride_ != 0; };
  tapes_.erase(std::remove_if(tapes_.begin(), tapes_.end(), odd), tapes_.end());
}

void TapeRecorder::put_times(u32 sequence, const DeviceOperation& operation) {
  if (newest_found_ >= tapes_.size() || tapes_[newest_found_].first / kPiece != sequence / kPiece) {
    const auto at = std::find_if(tapes_.begin(), tapes_.end(),
                                 [&](const Tape& tape) { return tape.first / kPiece == sequence / kPiece; });
    if (at == tapes_.end()) return static_cast<void>(newest_missed_ = sequence / kPiece);
    newest_found_ = static_cast<u32>(at - tapes_.begin());
  }
  Tape& tape = tapes_[newest_found_];
  if (sequence < tape.first || sequence - tape.begin() >= tape.operations.size()) return;
  TapeOperation& known = tape.operations[sequence - tape.begin()];
  known.start = known.start == 0 ? operation.start : std::min(known.start, operation.start);
  known.finish = std::max(known.finish, operation.end);
}

TapeRecorder::Recorded TapeRecorder::finish(u32 end_missing_from) {
  constexpr Nanos kEver = std::numeric_limits<Nanos>::max();
  close(kEver);
  for (Tape& tape : tapes_) {
    for (std::size_t at = end_missing_from - std::min(end_missing_from, tape.begin()); at < tape.operations.size();
         ++at)
      tape.operations[at].start = tape.operations[at].finish = 0;
  }
  Recorded recorded;
  if (!tapes_.empty())
    recorded.operations = std::max<u64>(next_, tapes_.back().begin() + tapes_.back().operations.size());
  recorded.whole = stride_ == 1;
  recorded.tapes = std::move(tapes_);
  return recorded;
}

}  // namespace gputrace
