// Records tapes while the timeline is made: the whole run while it has at most kMost operations, else pieces of it at equal
// distances, each time half of those that there are when there are too many.
//   · Memory: at most kTapes tapes of kPiece operations with their calls, some 70 MB with the replay; of small files fewer (an
//     operation for 16 bytes of the file: of honest ones hardly any has more).
//   · One thread.
#pragma once

#include <algorithm>
#include <vector>

#include "analysis/replay/tape.h"

namespace gputrace {

class TapeRecorder {
 public:
  static constexpr u32 kPiece = Tape::kPiece, kTapes = 16;
  static constexpr u32 kMost = kPiece * kTapes;

  TapeRecorder(std::size_t threads, u64 file_bytes)
      : log_(threads), newest_wait_(threads, kNone), most_(tapes_for(file_bytes)) {}
  static constexpr u32 tapes_for(u64 file_bytes) {
    u32 tapes = 2;
    while (tapes < kTapes && tapes * u64{kPiece} * 16 < file_bytes) tapes *= 2;
    return tapes;
  }

  void called(u32 thread, Nanos begin, Nanos end, u16 call, HostLog::Kind kind) {
    if (recording()) log_.add(thread, begin, end, call, kind, 0);
  }
  // In the order of sequence numbers. `waits(visit)`: gives each sequence number that it waits for.
  template <typename Waits>
  void operation(u32 sequence, const HostOperation& operation, Waits&& waits) {
    next_ = sequence + 1;
    if (sequence / kPiece != piece_ || !begun_) turn_to(sequence, operation);
    if (!recording()) return;
    Tape& to = tape();
    TapeOperation made;
    made.begin = operation.begin, made.end = operation.end;
    made.thread = std::min(operation.thread, TapeOperation::kNoThread);
    made.stream = std::min(operation.stream, TapeOperation::kNoStream);
    made.kind = operation.kind;
    made.target = operation.target;
    if (made.kind == OperationKind::Copy) {
      made.target = to.first_copy + static_cast<u32>(to.copies.size());
      to.copies.push_back({operation.bytes, operation.target});
    }
    made.waits = to.first_wait + static_cast<u32>(to.waits.size());
    u32 count = 0;
    waits([&](u32 before) { to.waits.push_back(before), ++count; });
    made.waits_count = static_cast<u8>(count);
    to.operations.resize(sequence - to.begin());
    to.operations.push_back(made);
  }
  template <typename Waits>
  void waited(u32 thread, Nanos begin, Nanos end, Waits&& waits) {
    if (!recording()) return;
    TapeWait made{begin, end, thread, tape().first_wait + static_cast<u32>(tape().waits.size()), 0, false};
    waits([&](u32 before) { tape().waits.push_back(before), ++made.waits_count; });
    newest_wait_[thread] = static_cast<u32>(tape().waited.size());
    tape().waited.push_back(made);
  }
  // The newest wait of that thread was for nothing that was read.
  void was_needless(u32 thread) {
    if (recording() && newest_wait_[thread] < tape().waited.size()) tape().waited[newest_wait_[thread]].needless = true;
  }
  // One operation of a device, of a graph or of a split copy one of several.
  void ran(u32 sequence, const DeviceOperation& operation) {
    if (!tapes_.empty() && sequence / kPiece != newest_missed_) put_times(sequence, operation);
  }

  struct Recorded {
    std::vector<Tape> tapes;  // in order
    bool whole = true;        // each follows the one before: the run is there as one
    u64 operations = 0;       // of the run
  };
  // From that operation on nothing counts as run; kNone: all does.
  Recorded finish(u32 end_missing_from);

 private:
  bool recording() const { return begun_ && recording_; }
  Tape& tape() { return tapes_.back(); }
  void put_times(u32 sequence, const DeviceOperation& operation);
  void turn_to(u32 sequence, const HostOperation& operation);
  void close(Nanos until);
  void thin_out();

  HostLog log_;
  std::vector<Tape> tapes_;
  std::vector<u32> newest_wait_;  // by thread, in the tape that is being recorded
  const u32 most_;                // tapes
  u32 piece_ = 0, stride_ = 1, next_ = 0, newest_found_ = 0;
  u32 newest_missed_ = kNone;  // a piece of which there is no tape
  bool begun_ = false, recording_ = false;
};

}  // namespace gputrace
