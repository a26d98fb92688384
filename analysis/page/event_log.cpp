#include "analysis/page/event_log.h"

#include <algorithm>

#include "analysis/facts/kind_names.h"
#include "analysis/names/kernel_names.h"

namespace gputrace {
namespace {

std::string triple_of(const u32 (&size)[3]) {
  return std::to_string(size[0]) + "," + std::to_string(size[1]) + "," + std::to_string(size[2]);
}

}  // namespace

// Pieces become twice as wide until all of them fit.
void EventStrip::widen(Nanos begin, Nanos end) {
  if (pieces.empty()) from = begin;
  const Nanos first = std::min(begin, from);
  const Nanos last = std::max(end, from + width * static_cast<Nanos>(pieces.size()));
  Nanos wide = width;
  while ((last - first) / wide + 2 > static_cast<Nanos>(kMostPieces)) wide *= 2;
  // Old pieces go into new ones whole: their border is one of the new ones'.
  const Nanos steps = (from - first + wide - 1) / wide;
  const Nanos start = from - steps * wide;
  std::vector<Piece> moved(static_cast<std::size_t>((last - start) / wide + 1));
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    Piece& to = moved[static_cast<std::size_t>((from + static_cast<Nanos>(i) * width - start) / wide)];
    to.busy_ns += pieces[i].busy_ns;
    to.count += pieces[i].count;
  }
  pieces = std::move(moved);
  from = start, width = wide;
}

void EventStrip::add(Nanos begin, Nanos end) {
  if (pieces.empty() || begin < from || end >= from + width * static_cast<Nanos>(pieces.size())) widen(begin, end);
  auto at = static_cast<std::size_t>((begin - from) / width);
  ++pieces[at].count;
  for (Nanos done = begin; done < end; ++at) {
    const Nanos until = std::min(end, from + width * static_cast<Nanos>(at + 1));
    pieces[at].busy_ns += static_cast<u64>(until - done);
    done = until;
  }
}

EventLog::EventLog(const LoadedRun& run, std::size_t most, std::optional<std::pair<Nanos, Nanos>> window)
    : run_(run),
      devices_(run),
      origin_(run.origin.value_or(run.wall_begin)),
      middle_(window ? window->first + (window->second - window->first) / 2
                     : run.wall_begin - origin_ + (run.wall_end - run.wall_begin) / 2) {
  if (window) {
    for (EventSide* side : {&host_, &device_}) side->begin = window->first, side->end = window->second;
  }
  host_.most = most / 3 * 2;  // a call or two for each operation
  device_.most = most / 3;
}

void EventLog::add_outside(EventSide& side, const LoggedEvent& event) {
  const auto strip_away = [&](const LoggedEvent& one) {
    tracks_[one.track].strip.add(one.begin, one.end);
    ++side.left_out;
  };
  const auto is_short = [&](const LoggedEvent& one) { return one.end - one.begin < side.shortest; };
  if (is_short(event)) return strip_away(event);
  side.longest.push_back(event);
  while (side.longest.size() > side.most / 2) {
    side.shortest = std::max<Nanos>(side.shortest * 2, 256);
    const auto kept = std::partition(side.longest.begin(), side.longest.end(),
                                     [&](const LoggedEvent& one) { return !is_short(one); });
    std::for_each(kept, side.longest.end(), strip_away);
    side.longest.erase(kept, side.longest.end());
  }
}

// Half as wide, around its middle; at first half of the run.
void EventLog::narrow(EventSide& side) {
  const Nanos length = run_.wall_end - run_.wall_begin;
  const Nanos half = side.whole() ? length / 4 : (side.end - side.begin) / 4;
  side.begin = middle_ - half, side.end = middle_ + half;
  const auto kept = std::partition(side.inside.begin(), side.inside.end(), [&](const LoggedEvent& one) {
    return one.begin >= side.begin && one.begin < side.end;
  });
  const std::vector<LoggedEvent> out(kept, side.inside.end());
  side.inside.erase(kept, side.inside.end());
  for (const LoggedEvent& one : out) add_outside(side, one);
}

void EventLog::add(EventSide& side, const LoggedEvent& event) {
  if (event.begin < side.begin || event.begin >= side.end) return add_outside(side, event);
  side.inside.push_back(event);
  if (side.inside.size() <= (side.whole() ? side.most : side.most / 2)) return;
  while (side.inside.size() > side.most / 2) narrow(side);
}

void EventLog::begin(const ExportProcess& process) {
  const auto same = [&](const ProcessTrace& one) { return one.who.file == process.who->file; };
  const auto found = std::find_if(run_.processes.begin(), run_.processes.end(), same);
  process_.reset();
  if (found != run_.processes.end()) process_ = static_cast<std::size_t>(found - run_.processes.begin());
  for (const ExportThread& thread : process.threads) threads_.emplace_back(thread.tid, thread.name);
}

void EventLog::end() {
  threads_.clear(), known_tracks_.clear(), names_by_address_.clear(), sites_by_address_.clear(), names_by_call_.clear();
}

u32 EventLog::track(const char* kind, std::tuple<i32, u32, u32> key) {
  const auto whole = std::tuple_cat(std::tuple(kind), key);
  for (std::size_t i = known_tracks_.size(); i-- > 0;) {
    if (known_tracks_[i].first == whole) return known_tracks_[i].second;
  }
  const u32 made = static_cast<u32>(tracks_.size());
  Track& fresh = tracks_.emplace_back();
  fresh.process = *process_, fresh.kind = kind;
  known_tracks_.emplace_back(whole, made);
  return made;
}

void EventLog::ran(const DeviceSlice& slice) {
  if (!process_) return;
  const std::size_t before = tracks_.size();
  const u32 at = track("stream", {slice.device, slice.context, slice.stream});
  if (tracks_.size() > before) {
    tracks_[at].id = slice.stream;
    tracks_[at].device = devices_.number(*process_, slice.device);
  }
  add(device_, {slice.begin - origin_, slice.end - origin_, slice.flow, slice.bytes, at, name_of(slice), 0});
}

void EventLog::host(const HostSlice& slice) {
  if (!process_) return;
  const std::size_t before = tracks_.size();
  const u32 at = track(slice.across_threads ? "ranges" : "thread", {0, 0, slice.thread});
  if (tracks_.size() > before && slice.thread < threads_.size()) {
    tracks_[at].id = threads_[slice.thread].first;
    tracks_[at].label = threads_[slice.thread].second;
  }
  add(host_,
      {slice.begin - origin_, slice.end - origin_, slice.flow, slice.result, at, name_of(slice), site_of(slice.site)});
}

u32 EventLog::name(Name named) {
  const std::string key = named.kind + '\0' + named.text + '\0' + named.whole + '\0' + named.detail;
  const auto [known, fresh] = names_by_text_.try_emplace(key, static_cast<u32>(names_.size()));
  if (fresh) names_.push_back(std::move(named));
  return known->second;
}

u32 EventLog::name_of(const DeviceSlice& slice) {
  const auto known = names_by_address_.find(slice.work);
  if (known != names_by_address_.end()) return known->second;
  const DeviceWork& work = *slice.work;
  Name made{work.name, "copy", "", host_memory_name(work.memory)};
  if (work.kind == OperationKind::Memset) made.kind = "memset";
  if (work.kind == OperationKind::Graph) made.kind = "graph";
  if (work.kind == OperationKind::Kernel) {
    made.kind = slice.collective ? "collective" : "kernel";
    made.text = work.symbol.empty() ? work.name : parse_kernel_name(work.symbol).brief;
    made.whole = work.name;
    made.detail = "grid " + triple_of(work.grid) + " block " + triple_of(work.block);
  }
  return names_by_address_[slice.work] = name(std::move(made));
}

u32 EventLog::name_of(const HostSlice& slice) {
  if (slice.kind == HostKind::Call) {
    if (slice.call >= names_by_call_.size()) names_by_call_.resize(slice.call + 1u, kNone);
    u32& known = names_by_call_[slice.call];
    if (known == kNone) known = name({std::string(slice.name), std::string(slice.level), "", ""});
    return known;
  }
  const char* kind = slice.kind == HostKind::Operation ? "operation" : slice.kind == HostKind::Range ? "range" : "mark";
  const std::string domain = slice.kind == HostKind::Operation ? "" : std::string(slice.level);
  return name({std::string(slice.name), kind, "", domain});
}

u32 EventLog::site_of(std::string_view site) {
  if (site.empty()) return 0;
  const auto known = sites_by_address_.find(site.data());
  if (known != sites_by_address_.end()) return known->second;
  const auto [place, fresh] = sites_by_text_.try_emplace(std::string(site), static_cast<u32>(sites_.size()));
  if (fresh) sites_.emplace_back(site);
  return sites_by_address_[site.data()] = place->second;
}

}  // namespace gputrace
