#include "analysis/page/event_names.h"

#include <algorithm>

#include "analysis/facts/kind_names.h"
#include "analysis/names/kernel_names.h"

namespace gputrace {
namespace {

std::string triple_of(const u32 (&size)[3]) {
  return std::to_string(size[0]) + "," + std::to_string(size[1]) + "," + std::to_string(size[2]);
}

EventTables::Name name_like(const DeviceSlice& slice) {
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
  return made;
}

std::string key_of(const EventTables::Name& name) {
  return name.kind + '\0' + name.text + '\0' + name.whole + '\0' + name.detail;
}

}  // namespace

u32 DeviceSideNames::track_of(const DeviceSlice& slice) {
  const Stream key{slice.device, slice.context, slice.stream};
  for (std::size_t i = tracks_.size(); i-- > 0;) {
    if (tracks_[i] == key) return static_cast<u32>(i);
  }
  tracks_.push_back(key);
  return static_cast<u32>(tracks_.size() - 1);
}

u32 DeviceSideNames::name_of(const DeviceSlice& slice) {
  const u32 number = slice.work->number;
  if (number >= names_by_work_.size()) names_by_work_.resize(number + 1u, kNone);
  u32& known = names_by_work_[number];
  if (known == kNone) {
    known = static_cast<u32>(names_.size());
    names_.push_back(name_like(slice));
  }
  return known;
}

HostSideNames::HostSideNames(const ExportProcess& process) {
  for (const ExportThread& thread : process.threads) threads_.emplace_back(thread.tid, thread.name);
}

u32 HostSideNames::track_of(const HostSlice& slice) {
  std::vector<u32>& known = slice.across_threads ? range_tracks_ : thread_tracks_;
  if (slice.thread >= known.size()) known.resize(slice.thread + 1u, kNone);
  u32& track = known[slice.thread];
  if (track == kNone) {
    track = static_cast<u32>(tracks_.size());
    tracks_.push_back({slice.thread, slice.across_threads});
  }
  return track;
}

u32 HostSideNames::name_of(const HostSlice& slice) {
  const auto fresh = [&](EventTables::Name named, u32 frame) {
    names_.push_back({std::move(named), frame});
    return static_cast<u32>(names_.size() - 1);
  };
  if (slice.kind == HostKind::Call) {
    if (slice.call >= names_by_call_.size()) names_by_call_.resize(slice.call + 1u, kNone);
    u32& known = names_by_call_[slice.call];
    if (known == kNone) known = fresh({std::string(slice.name), std::string(slice.level), "", ""}, 0);
    return known;
  }
  if (slice.kind == HostKind::Operation) {
    const auto [known, is_new] = names_by_frame_.try_emplace(slice.frame, 0);
    if (is_new) known->second = fresh({"", "operation", "", ""}, slice.frame);
    return known->second;
  }
  EventTables::Name named{std::string(slice.name), slice.kind == HostKind::Range ? "range" : "mark", "",
                          std::string(slice.level)};
  const auto [known, is_new] = names_by_text_.try_emplace(key_of(named), 0);
  if (is_new) known->second = fresh(std::move(named), 0);
  return known->second;
}

u32 HostSideNames::site_of(const HostSlice& slice) {
  if (slice.kind != HostKind::Call || slice.frame == 0) return 0;
  const u32 frame = slice.frame;
  if (frame == newest_frame_) return newest_site_;
  const auto [known, fresh] = sites_by_frame_.try_emplace(frame, static_cast<u32>(sites_.size()));
  if (fresh) sites_.push_back(frame);
  newest_frame_ = frame;
  return newest_site_ = known->second;
}

EventTables::Track HostSideNames::described(const Lane& lane) const {
  EventTables::Track track;
  track.kind = lane.across_threads ? "ranges" : "thread";
  if (lane.thread < threads_.size()) {
    track.id = threads_[lane.thread].first;
    track.label = threads_[lane.thread].second;
  }
  return track;
}

RunNames::RunNames(const LoadedRun& run) : run_(run), devices_(run), files_(run.processes.size()) {
  tables_.length = run.wall_end - run.wall_begin;
  for (const ProcessTrace& one : run.processes)
    tables_.processes.push_back({one.who.pid, one.who.rank, one.who.host, one.who.executable});
}

std::optional<std::size_t> RunNames::place_of(const std::string& file) const {
  const auto found = std::find_if(run_.processes.begin(), run_.processes.end(),
                                  [&](const ProcessTrace& one) { return one.who.file == file; });
  if (found == run_.processes.end()) return {};
  return static_cast<std::size_t>(found - run_.processes.begin());
}

void RunNames::add(std::size_t process, const DeviceSideNames& side, SideNumbers& numbers) {
  while (numbers.tracks.size() < side.tracks().size()) {
    const DeviceSideNames::Stream& stream = side.tracks()[numbers.tracks.size()];
    numbers.tracks.push_back(static_cast<u32>(tables_.tracks.size()));
    EventTables::Track& track = tables_.tracks.emplace_back();
    track.process = process, track.kind = "stream", track.id = stream.stream;
    const Value device = devices_.number(process, stream.device);
    if (const auto* number = std::get_if<i64>(&device)) track.device = *number;
  }
  while (numbers.names.size() < side.names().size()) numbers.names.push_back(name(side.names()[numbers.names.size()]));
  numbers.sites = {0};
}

void RunNames::add(std::size_t process, const HostSideNames& side, SideNumbers& numbers) {
  const SourceFrames& frames = run_.processes[process].lines.frames;
  if (!files_[process]) files_[process].emplace(run_.processes[process]);
  while (numbers.tracks.size() < side.tracks().size()) {
    const HostSideNames::Lane& lane = side.tracks()[numbers.tracks.size()];
    numbers.tracks.push_back(static_cast<u32>(tables_.tracks.size()));
    tables_.tracks.push_back(side.described(lane));
    tables_.tracks.back().process = process;
  }
  while (numbers.names.size() < side.names().size()) {
    const HostSideNames::Name& one = side.names()[numbers.names.size()];
    EventTables::Name named = one.known;
    // Of a damaged trace the frame may not be there.
    if (one.frame != 0)
      named.text = one.frame < frames.size() ? frames[one.frame].function : "operation without a name";
    numbers.names.push_back(name(std::move(named)));
  }
  while (numbers.sites.size() < side.sites().size()) {
    const u32 frame = side.sites()[numbers.sites.size()];
    numbers.sites.push_back(site(site_name(frames, own_frame(frames, frame), *files_[process])));
  }
}

u32 RunNames::name(EventTables::Name named) {
  const auto [known, fresh] = names_by_text_.try_emplace(key_of(named), static_cast<u32>(tables_.names.size()));
  if (fresh) tables_.names.push_back(std::move(named));
  return known->second;
}

u32 RunNames::site(const std::string& text) {
  if (text.empty()) return 0;
  const auto [known, fresh] = sites_by_text_.try_emplace(text, static_cast<u32>(tables_.sites.size()));
  if (fresh) tables_.sites.push_back(text);
  return known->second;
}

}  // namespace gputrace
