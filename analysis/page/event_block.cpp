#include "analysis/page/event_block.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "analysis/page/packed.h"

namespace gputrace {
namespace {

using Json = nlohmann::ordered_json;
using Events = std::vector<LoggedEvent>;

class Packer {
 public:
  Packer(const EventTables& tables, const PickedEvents& picked)
      : tables_(tables), picked_(picked), hosts_(in_order(picked.host)), devices_(in_order(picked.device)) {}

  EventBlock pack() {
    Json processes = Json::array(), names = Json::array();
    for (std::size_t p = 0; p < tables_.processes.size(); ++p) {
      const EventTables::Process& who = tables_.processes[p];
      processes.push_back({{"pid", who.pid}, {"rank", who.rank}, {"host", who.host}, {"executable", who.executable}});
      pack_process(p);
    }
    for (const EventTables::Name& name : tables_.names)
      names.push_back({name.text, name.kind, name.whole, name.detail});
    const EventSide &host = picked_.host, &device = picked_.device;
    const u64 left_out = host.left_out + device.left_out;
    const Json exact = left_out ? Json{std::max(host.begin, device.begin), std::min(host.end, device.end)} : Json();
    const Json whole = {{"processes", processes}, {"tracks", tracks_},
                        {"names", names},         {"sites", tables_.sites},
                        {"left_out", left_out},   {"shortest_ns", std::max(host.shortest, device.shortest)},
                        {"exact", exact}};
    return {whole.dump(-1, ' ', false, Json::error_handler_t::replace), block_.base64()};
  }

 private:
  static Events in_order(const EventSide& side) {
    Events all = side.inside;
    all.insert(all.end(), side.longest.begin(), side.longest.end());
    std::sort(all.begin(), all.end(), [](const LoggedEvent& a, const LoggedEvent& b) {
      return std::tuple(a.track, a.begin, b.end, a.name, a.flow, a.amount, a.site) <
             std::tuple(b.track, b.begin, a.end, b.name, b.flow, b.amount, b.site);
    });
    return all;
  }

  // Threads first: streams name calls by their places among them.
  void pack_process(std::size_t process) {
    calls_.clear();
    u64 place = 0;
    for (u32 t = 0; t < tables_.tracks.size(); ++t) {
      const EventTables::Track& track = tables_.tracks[t];
      if (track.process == process && !track.is_device()) pack_host(t, place);
    }
    for (u32 t = 0; t < tables_.tracks.size(); ++t) {
      const EventTables::Track& track = tables_.tracks[t];
      if (track.process == process && track.is_device()) pack_stream(t);
    }
  }

  static std::pair<Events::const_iterator, Events::const_iterator> of_track(const Events& events, u32 track) {
    const auto begin = std::lower_bound(events.begin(), events.end(), track,
                                        [](const LoggedEvent& one, u32 number) { return one.track < number; });
    const auto end = std::find_if(begin, events.end(), [&](const LoggedEvent& one) { return one.track != track; });
    return {begin, end};
  }

  void pack_host(u32 number, u64& place) {
    const auto [begin, end] = of_track(hosts_, number);
    PackedColumn starts, lengths, names, results, sites;
    Nanos before = 0;
    for (auto event = begin; event != end; ++event) {
      add_times(*event, before, starts, lengths, names);
      results.add(event->amount);
      sites.add(event->site);
      ++place;
      if (event->flow) calls_[event->flow] = place;
    }
    finish(number, end - begin, {&starts, &lengths, &names, &results, &sites});
  }

  void pack_stream(u32 number) {
    const auto [begin, end] = of_track(devices_, number);
    PackedColumn starts, lengths, names, bytes, launches;
    Nanos before = 0;
    i64 launch_before = 0;
    for (auto event = begin; event != end; ++event) {
      add_times(*event, before, starts, lengths, names);
      bytes.add(event->amount);
      const auto call = event->flow ? calls_.find(event->flow) : calls_.end();
      const i64 launch = call == calls_.end() ? 0 : static_cast<i64>(call->second);
      launches.add_signed(launch - launch_before);
      launch_before = launch;
    }
    finish(number, end - begin, {&starts, &lengths, &names, &bytes, &launches});
  }

  static void add_times(const LoggedEvent& event, Nanos& before, PackedColumn& starts, PackedColumn& lengths,
                        PackedColumn& names) {
    starts.add_signed(event.begin - before);
    before = event.begin;
    lengths.add(static_cast<u64>(event.end - event.begin));
    names.add(event.name);
  }

  void finish(u32 number, std::ptrdiff_t events, std::initializer_list<const PackedColumn*> columns) {
    const EventTables::Track& track = tables_.tracks[number];
    Json extents = Json::array();
    for (const PackedColumn* column : columns) {
      const PackedBlock::Extent extent = block_.add(*column);
      extents.push_back({extent.raw, extent.packed});
    }
    Json made = {{"process", track.process},
                 {"kind", track.kind},
                 {"label", track.label},
                 {"id", track.id},
                 {"device", track.device ? Json(*track.device) : Json()},
                 {"events", events},
                 {"columns", extents}};
    if (number < picked_.strips.size()) {
      if (Json strip = described(picked_.strips[number]); !strip.is_null()) made["strip"] = std::move(strip);
    }
    tracks_.push_back(std::move(made));
  }

  // From the first piece to the last one with something in it; null: there is none.
  static Json described(const EventStrip& strip) {
    const auto filled = [](const EventStrip::Piece& piece) { return piece.count || piece.busy_ns; };
    const auto begin = std::find_if(strip.pieces.begin(), strip.pieces.end(), filled);
    const auto end = std::find_if(strip.pieces.rbegin(), strip.pieces.rend(), filled).base();
    if (begin == strip.pieces.end()) return {};
    Json busy = Json::array(), counts = Json::array();
    for (auto piece = begin; piece != end; ++piece) {
      busy.push_back(piece->busy_ns);
      counts.push_back(piece->count);
    }
    const auto first = static_cast<Nanos>(strip.first) + (begin - strip.pieces.begin());
    return {{"from", strip.begin + first * strip.width}, {"width", strip.width}, {"busy", busy}, {"counts", counts}};
  }

  const EventTables& tables_;
  const PickedEvents& picked_;
  const Events hosts_, devices_;
  Json tracks_ = Json::array();
  PackedBlock block_;
  std::unordered_map<u64, u64> calls_;  // of a process: the place + 1 of the call of each flow
};

}  // namespace

EventBlock pack_events(const EventTables& tables, const PickedEvents& picked) { return Packer(tables, picked).pack(); }

}  // namespace gputrace
