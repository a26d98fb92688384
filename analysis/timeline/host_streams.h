// The host's streams, and what an operation that is given to one must wait for: the operation before it, those that an
// event stands for that the stream was told to wait for, and the rules of the legacy default stream.
//   · A frontier is the set of operations that must have ended before what comes next may start.
//   · Handles may be given out again: a destroyed stream's or event's handle means a new one.
//   · At most kMostWaits operations are kept for one frontier; the oldest go.
#pragma once

#include <array>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analysis/facts/facts.h"
#include "base/types.h"

namespace gputrace {

// A stream as a call names it.
struct StreamName {
  u32 context = kNone;      // index in ProcessTrace::contexts
  u64 handle = 0;           // as passed: 0 NULL, 1 legacy, 2 per thread
  bool per_thread = false;  // NULL means the per-thread default stream
  u32 thread = kNone;
  bool operator==(const StreamName&) const = default;
};

class HostStreams {
 public:
  static constexpr std::size_t kMostWaits = 16;

  u32 find(const StreamName& name) {
    // Numbers of threads and handles differ in their lowest bits: of one mixed with the other as it is, all would fall together.
    const u64 hash = (name.handle ^ static_cast<u64>(name.context) << 32 ^ static_cast<u64>(name.thread) << 48) *
                     0x9e3779b97f4a7c15ull;
    Recent& recent = recent_[hash >> 58];
    if (recent.stream != kNone && recent.name == name) [[likely]]
      return recent.stream;
    recent.name = name;
    return recent.stream = look_up(name);
  }
  void created(u64 handle, bool waits_for_legacy) { independent_[handle] = !waits_for_legacy; }
  void destroyed(u64 handle);

  // An operation with that number is given to the stream. What it waits for, where that is one operation or none (kNone); else
  // kNone, and `waits`, which is empty before, has them.
  u32 given(u32 stream, u32 sequence, std::vector<u32>& waits) {
    Stream& to = streams_[stream];
    if (to.settled && to.frontier.more.empty()) [[likely]]
      return std::exchange(to.frontier.last, sequence);
    return given_after_others(stream, sequence, waits);
  }
  void event_recorded(u64 event, u32 stream);
  void event_awaited(u64 event, u32 stream);
  // What must have ended for a stream, an event or a context to have nothing left to do.
  template <typename Visit>
  void for_each_of_stream(u32 stream, Visit&& visit) const {
    visit_all(streams_[stream].frontier, visit);
  }
  template <typename Visit>
  void for_each_of_event(u64 event, Visit&& visit) const {
    const auto known = events_.find(event);
    if (known != events_.end()) visit_all(known->second, visit);
  }
  template <typename Visit>
  void for_each_of_context(u32 context, Visit&& visit) const {
    for (const Stream& stream : streams_) {
      if (stream.name.context == context) visit_all(stream.frontier, visit);
    }
  }
  void event_destroyed(u64 event) { events_.erase(event); }

  u64 handle(u32 stream) const { return streams_[stream].name.handle; }
  u32 context(u32 stream) const { return streams_[stream].name.context; }
  std::size_t size() const { return streams_.size(); }

 private:
  struct Frontier {
    u32 last = kNone;
    std::vector<u32> more;
  };
  enum class Kind : u8 { Legacy, Blocking, Independent };
  struct Stream {
    StreamName name;
    Kind kind = Kind::Blocking;
    bool since_legacy = false;  // got work since the legacy stream's last operation
    bool settled = false;       // what is given to it next waits for nothing that the legacy stream does
    u32 legacy_taken = kNone;   // the legacy stream's operation that it waits for already
    Frontier frontier;
  };
  struct LegacyState {
    u32 last = kNone;        // the legacy stream's newest operation
    std::vector<u32> since;  // streams that got work since then
  };

  template <typename Visit>
  static void visit_all(const Frontier& frontier, Visit&& visit) {
    if (frontier.last != kNone) visit(frontier.last);
    for (const u32 sequence : frontier.more) visit(sequence);
  }
  static void join(Frontier& into, u32 sequence);
  u32 given_after_others(u32 stream, u32 sequence, std::vector<u32>& waits);
  u32 make(const StreamName& name, Kind kind);
  u32 look_up(const StreamName& name);

  std::vector<Stream> streams_;
  std::unordered_map<u64, u32> by_handle_;        // created streams
  std::unordered_map<u64, u32> default_streams_;  // by context and thread
  std::unordered_map<u64, bool> independent_;
  std::unordered_map<u64, Frontier> events_;
  std::vector<LegacyState> legacy_;  // by context
  struct Recent {
    StreamName name;
    u32 stream = kNone;  // kNone: nothing is remembered here
  };
  std::array<Recent, 64> recent_;  // by hash of the name
};

}  // namespace gputrace
