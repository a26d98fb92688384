#include "analysis/timeline/host_streams.h"

#include <algorithm>
#include <utility>

namespace gputrace {

u32 HostStreams::make(const StreamName& name, Kind kind) {
  const u32 index = static_cast<u32>(streams_.size());
  Stream& made = streams_.emplace_back();
  made.name = name;
  made.kind = kind;
  return index;
}

[[gnu::noinline]] u32 HostStreams::look_up(const StreamName& name) {
  const bool per_thread = name.handle == 2 || (name.handle == 0 && name.per_thread);
  if (name.handle <= 2) {
    const u64 key = static_cast<u64>(name.context) << 32 | (per_thread ? name.thread : kNone);
    const auto known = default_streams_.find(key);
    if (known != default_streams_.end()) return known->second;
    const u32 made = make(name, per_thread ? Kind::Blocking : Kind::Legacy);
    default_streams_.emplace(key, made);
    return made;
  }
  const auto known = by_handle_.find(name.handle);
  if (known != by_handle_.end()) return known->second;
  const auto independent = independent_.find(name.handle);
  const u32 made =
      make(name, independent != independent_.end() && independent->second ? Kind::Independent : Kind::Blocking);
  by_handle_.emplace(name.handle, made);
  return made;
}

void HostStreams::destroyed(u64 handle) {
  by_handle_.erase(handle);
  independent_.erase(handle);
  recent_.fill({});
}

[[gnu::noinline]] void HostStreams::join(Frontier& into, u32 sequence) {
  if (sequence == kNone || into.last == sequence) return;
  if (std::find(into.more.begin(), into.more.end(), sequence) != into.more.end()) return;
  if (into.last == kNone && into.more.empty()) {
    into.last = sequence;
    return;
  }
  if (into.more.size() + 1 >= kMostWaits) into.more.erase(into.more.begin());
  into.more.push_back(sequence);
}

[[gnu::noinline]] u32 HostStreams::given_after_others(u32 index, u32 sequence, std::vector<u32>& waits) {
  Stream& stream = streams_[index];
  const u32 context = stream.name.context == kNone ? 0 : stream.name.context;
  if (stream.kind != Kind::Independent) {
    if (context >= legacy_.size()) legacy_.resize(context + 1u);
    LegacyState& legacy = legacy_[context];
    if (stream.kind == Kind::Legacy) {
      for (const u32 other : legacy.since) {
        join(stream.frontier, streams_[other].frontier.last);
        streams_[other].since_legacy = streams_[other].settled = false;
      }
      legacy.since.clear();
      legacy.last = sequence;
    } else {
      if (legacy.last != stream.legacy_taken) join(stream.frontier, legacy.last);
      stream.legacy_taken = legacy.last;
      if (!stream.since_legacy) legacy.since.push_back(index);
      stream.since_legacy = true;
    }
  }
  stream.settled = stream.kind != Kind::Legacy;
  Frontier& frontier = stream.frontier;
  const u32 last = std::exchange(frontier.last, sequence);
  if (frontier.more.empty()) [[likely]]
    return last;
  if (last != kNone) waits.push_back(last);
  waits.insert(waits.end(), frontier.more.begin(), frontier.more.end());
  frontier.more.clear();
  return kNone;
}

void HostStreams::event_recorded(u64 event, u32 stream) {
  Frontier& known = events_[event];
  known.last = streams_[stream].frontier.last;
  known.more = streams_[stream].frontier.more;
}

void HostStreams::event_awaited(u64 event, u32 stream) {
  const auto known = events_.find(event);
  if (known == events_.end()) return;
  Frontier& frontier = streams_[stream].frontier;
  join(frontier, known->second.last);
  for (const u32 sequence : known->second.more) join(frontier, sequence);
}

}  // namespace gputrace
