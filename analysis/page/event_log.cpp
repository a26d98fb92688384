#include "analysis/page/event_log.h"

#include <algorithm>
#include <bit>

#include "analysis/facts/kind_names.h"
#include "analysis/names/kernel_names.h"

namespace gputrace {
namespace {

std::string triple_of(const u32 (&size)[3]) {
  return std::to_string(size[0]) + "," + std::to_string(size[1]) + "," + std::to_string(size[2]);
}

}  // namespace

Nanos EventStrip::width_of(Nanos run_length) {
  Nanos width = 1 << 16;
  while (run_length / width + 2 > static_cast<Nanos>(kMostPieces)) width *= 2;
  return width;
}

EventStrip::Piece& EventStrip::at(std::size_t piece) {
  if (pieces.empty()) first = piece;
  if (piece < first) {
    pieces.insert(pieces.begin(), first - piece, {});
    first = piece;
  }
  if (piece - first >= pieces.size()) pieces.resize(piece - first + 1);
  return pieces[piece - first];
}

void EventStrip::add(std::size_t piece, Piece sum) {
  Piece& to = at(piece);
  to.busy_ns += sum.busy_ns;
  to.count += sum.count;
}

void EventStrip::change(Nanos begin, Nanos end, bool less) {
  const auto change_by = [&](u64& value, u64 by) { value = less ? value - by : value + by; };
  // A width is a power of two.
  const int shift = std::countr_zero(static_cast<u64>(width));
  std::size_t piece = begin < 0 ? 0 : std::min<u64>(static_cast<u64>(begin) >> shift, kMostPieces - 1);
  change_by(at(piece).count, 1);
  for (Nanos done = begin; done < end; ++piece) {
    const bool last = piece + 1 >= kMostPieces;
    const Nanos until = last ? end : std::min(end, width * static_cast<Nanos>(piece + 1));
    change_by(at(piece).busy_ns, static_cast<u64>(until - done));
    done = until;
  }
}

PickedEvents::PickedEvents(std::size_t most, std::optional<std::pair<Nanos, Nanos>> window) {
  if (window) {
    for (EventSide* side : {&host, &device}) side->begin = window->first, side->end = window->second;
  }
  host.most = most / 3 * 2;  // a call or two for each operation
  device.most = most / 3;
}

void narrow_window(EventSide& side, Nanos middle, Nanos length) {
  const Nanos half = side.whole() ? length / 4 : (side.end - side.begin) / 4;
  side.begin = middle - half, side.end = middle + half;
}

EventLog::EventLog(const LoadedRun& run, std::size_t most, std::optional<std::pair<Nanos, Nanos>> window)
    : EventNamer(run),
      middle_(window ? window->first + (window->second - window->first) / 2 : tables_.length / 2),
      picked_(most, window) {}

void EventLog::add_outside(EventSide& side, const LoggedEvent& event) {
  const auto strip_away = [&](const LoggedEvent& one) {
    if (one.track >= picked_.strips.size())
      picked_.strips.resize(one.track + 1u, {EventStrip::width_of(tables_.length), 0, {}});
    picked_.strips[one.track].add(one.begin, one.end);
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

void EventLog::narrow(EventSide& side) {
  narrow_window(side, middle_, tables_.length);
  const auto kept = std::partition(side.inside.begin(), side.inside.end(), [&](const LoggedEvent& one) {
    return one.begin >= side.begin && one.begin < side.end;
  });
  const std::vector<LoggedEvent> out(kept, side.inside.end());
  side.inside.erase(kept, side.inside.end());
  for (const LoggedEvent& one : out) add_outside(side, one);
}

void EventLog::take(bool device, const LoggedEvent& event) {
  EventSide& side = device ? picked_.device : picked_.host;
  if (event.begin < side.begin || event.begin >= side.end) return add_outside(side, event);
  side.inside.push_back(event);
  if (side.inside.size() <= (side.whole() ? side.most : side.most / 2)) return;
  while (side.inside.size() > side.most / 2) narrow(side);
}

EventNamer::EventNamer(const LoadedRun& run) : run_(run), devices_(run), origin_(run.origin.value_or(run.wall_begin)) {
  tables_.length = run.wall_end - run.wall_begin;
  for (const ProcessTrace& one : run.processes)
    tables_.processes.push_back({one.who.pid, one.who.rank, one.who.host, one.who.executable});
}

void EventNamer::begin(const ExportProcess& process) {
  const auto same = [&](const ProcessTrace& one) { return one.who.file == process.who->file; };
  const auto found = std::find_if(run_.processes.begin(), run_.processes.end(), same);
  process_.reset();
  if (found != run_.processes.end()) process_ = static_cast<std::size_t>(found - run_.processes.begin());
  for (const ExportThread& thread : process.threads) threads_.emplace_back(thread.tid, thread.name);
}

void EventNamer::end() {
  threads_.clear(), stream_tracks_.clear(), thread_tracks_.clear(), range_tracks_.clear();
  names_by_address_.clear(), sites_by_address_.clear(), names_by_call_.clear();
  newest_site_ = nullptr;
}

u32 EventNamer::new_track(const char* kind) {
  EventTables::Track& fresh = tables_.tracks.emplace_back();
  fresh.process = *process_, fresh.kind = kind;
  return static_cast<u32>(tables_.tracks.size() - 1);
}

u32 EventNamer::track_of(const DeviceSlice& slice) {
  const std::tuple key{slice.device, slice.context, slice.stream};
  for (std::size_t i = stream_tracks_.size(); i-- > 0;) {
    if (stream_tracks_[i].first == key) return stream_tracks_[i].second;
  }
  const u32 made = new_track("stream");
  stream_tracks_.emplace_back(key, made);
  tables_.tracks[made].id = slice.stream;
  const Value device = devices_.number(*process_, slice.device);
  if (const auto* number = std::get_if<i64>(&device)) tables_.tracks[made].device = *number;
  return made;
}

u32 EventNamer::track_of(const HostSlice& slice) {
  std::vector<u32>& known = slice.across_threads ? range_tracks_ : thread_tracks_;
  if (slice.thread >= known.size()) known.resize(slice.thread + 1u, kNone);
  u32& track = known[slice.thread];
  if (track != kNone) return track;
  track = new_track(slice.across_threads ? "ranges" : "thread");
  if (slice.thread < threads_.size()) {
    tables_.tracks[track].id = threads_[slice.thread].first;
    tables_.tracks[track].label = threads_[slice.thread].second;
  }
  return track;
}

void EventNamer::ran(const DeviceSlice& slice) {
  if (!process_) return;
  const u32 at = track_of(slice);
  take(true, {slice.begin - origin_, slice.end - origin_, slice.flow, slice.bytes, at, name_of(slice), 0});
}

void EventNamer::host(const HostSlice& slice) {
  if (!process_) return;
  const u32 at = track_of(slice);
  take(false,
       {slice.begin - origin_, slice.end - origin_, slice.flow, slice.result, at, name_of(slice), site_of(slice.site)});
}

u32 EventNamer::name(EventTables::Name named) {
  const std::string key = named.kind + '\0' + named.text + '\0' + named.whole + '\0' + named.detail;
  const auto [known, fresh] = names_by_text_.try_emplace(key, static_cast<u32>(tables_.names.size()));
  if (fresh) tables_.names.push_back(std::move(named));
  return known->second;
}

u32 EventNamer::name_of(const DeviceSlice& slice) {
  const auto known = names_by_address_.find(slice.work);
  if (known != names_by_address_.end()) return known->second;
  const DeviceWork& work = *slice.work;
  EventTables::Name made{work.name, "copy", "", host_memory_name(work.memory)};
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

u32 EventNamer::name_of(const HostSlice& slice) {
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

u32 EventNamer::site_of(std::string_view site) {
  if (site.empty()) return 0;
  if (site.data() == newest_site_) return newest_site_number_;
  newest_site_ = site.data();
  const auto known = sites_by_address_.find(site.data());
  if (known != sites_by_address_.end()) return newest_site_number_ = known->second;
  const auto [place, fresh] = sites_by_text_.try_emplace(std::string(site), static_cast<u32>(tables_.sites.size()));
  if (fresh) tables_.sites.emplace_back(site);
  return newest_site_number_ = sites_by_address_[site.data()] = place->second;
}

}  // namespace gputrace
