#include "analysis/page/event_log.h"

#include <algorithm>

namespace gputrace {

EventLog::EventLog(const LoadedRun& run, std::size_t most, std::optional<std::pair<Nanos, Nanos>> window)
    : names_(run),
      origin_(run.origin.value_or(run.wall_begin)),
      length_(run.wall_end - run.wall_begin),
      middle_(window ? window->first + (window->second - window->first) / 2 : length_ / 2),
      picked_(most, window) {}

void EventLog::add_outside(EventSide& side, const LoggedEvent& event) {
  const auto strip_away = [&](const LoggedEvent& one) {
    if (one.track >= picked_.strips.size()) picked_.strips.resize(one.track + 1u, EventStrip::of_run(length_, origin_));
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
  narrow_window(side, middle_, length_);
  const auto kept = std::partition(side.inside.begin(), side.inside.end(), [&](const LoggedEvent& one) {
    return one.begin >= side.begin && one.begin < side.end;
  });
  const std::vector<LoggedEvent> out(kept, side.inside.end());
  side.inside.erase(kept, side.inside.end());
  for (const LoggedEvent& one : out) add_outside(side, one);
}

void EventLog::take(EventSide& side, const LoggedEvent& event) {
  if (event.begin < side.begin || event.begin >= side.end) return add_outside(side, event);
  side.inside.push_back(event);
  if (side.inside.size() <= (side.whole() ? side.most : side.most / 2)) return;
  while (side.inside.size() > side.most / 2) narrow(side);
}

void EventLog::begin(const ExportProcess& process) {
  process_.reset();
  if (const auto place = names_.place_of(process.who->file))
    process_.emplace(Process{*place, {}, HostSideNames(process), {}, {}});
}

void EventLog::ran(const DeviceSlice& slice) {
  if (!process_) return;
  const u32 track = process_->devices.track_of(slice), name = process_->devices.name_of(slice);
  SideNumbers& numbers = process_->device_numbers;
  if (track >= numbers.tracks.size() || name >= numbers.names.size())
    names_.add(process_->place, process_->devices, numbers);
  take(picked_.device, {slice.begin - origin_, slice.end - origin_, slice.flow, slice.bytes, numbers.tracks[track],
                        numbers.names[name], 0});
}

void EventLog::host(const HostSlice& slice) {
  if (!process_) return;
  const u32 track = process_->threads.track_of(slice), name = process_->threads.name_of(slice);
  const u32 site = process_->threads.site_of(slice);
  SideNumbers& numbers = process_->thread_numbers;
  if (track >= numbers.tracks.size() || name >= numbers.names.size() || site >= numbers.sites.size())
    names_.add(process_->place, process_->threads, numbers);
  take(picked_.host, {slice.begin - origin_, slice.end - origin_, slice.flow, slice.result, numbers.tracks[track],
                      numbers.names[name], numbers.sites[site]});
}

}  // namespace gputrace
