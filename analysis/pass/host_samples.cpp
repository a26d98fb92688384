#include "analysis/pass/host_samples.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <span>
#include <tuple>

#include "trace/schema.h"

namespace gputrace {
namespace {

constexpr u32 kMostSampledFrames = 1u << 16;

u64 counter(const TraceReader& reader, std::string_view key) {
  for (const auto& [name, value] : reader.info_lines()) {
    if (name == key) return std::strtoull(value.c_str(), nullptr, 10);
  }
  return 0;
}

// The points of a thread between two times.
std::span<const SamplePoint> points_between(const SampledThread& series, Nanos begin, Nanos end) {
  const auto before = [](const SamplePoint& point, Nanos time) { return point.at < time; };
  const auto from = std::lower_bound(series.points.begin(), series.points.end(), begin, before);
  return {from, std::lower_bound(from, series.points.end(), end, before)};
}

}  // namespace

HostSamples::HostSamples(const TraceReader& reader, ProcessTrace& facts)
    : samples_(facts.samples), facts_(facts), newest_(reader.threads().size(), std::numeric_limits<Nanos>::min()) {
  for (u32 i = 0; i < reader.threads().size(); ++i) {
    const ThreadInfo& thread = reader.threads()[i];
    threads_.emplace(static_cast<u64>(thread.slot) << 32 | thread.incarnation, i);
  }
  samples_.outer_part = counter(reader, "samples_outer_part");
  samples_.torn = counter(reader, "samples_torn");
  samples_.cpu_ns = counter(reader, "samples_cpu_ns");
  samples_.unseen_cpu_ns = counter(reader, "thread_unseen_cpu_ns");
  samples_.files_left_out = counter(reader, "io_left_out");
  samples_.waits_left_out = counter(reader, "waits_left_out");
}

// 0: none that is known.
u32 HostSamples::index_of(u32 number) const {
  const u32 index = number >= kFirstSampledFrame ? number - kFirstSampledFrame + 1 : 0;
  return index < samples_.frames.size() ? index : 0;
}

void HostSamples::frame(const StackFrame& value, std::string_view function, std::string_view file) {
  const u32 index = value.id - kFirstSampledFrame + 1;
  if (index > kMostSampledFrames) return;
  const u32 parent = index_of(value.parent);
  SourceFrame* const frame = new_frame(samples_.frames, index, parent);
  if (!frame) return;
  frame->function = function;
  frame->file = file;
  frame->line = value.line;
}

// kNone: no such thread is in the trace.
u32 HostSamples::thread_of(const Sample& value) {
  const auto known = threads_.find(static_cast<u64>(value.slot) << 32 | value.incarnation);
  return known == threads_.end() ? kNone : known->second;
}

// `tid`: of one that calls no CUDA, which has no place in the trace. nullptr: one too many.
SampledThread* HostSamples::series_of(u32 thread, i32 process, i32 tid) {
  const auto known = series_.find({thread, process, tid});
  if (known != series_.end()) return &samples_.threads[known->second];
  if (samples_.threads.size() == SampleFacts::kMostSeries) return nullptr;
  series_.emplace(std::tuple{thread, process, tid}, static_cast<u32>(samples_.threads.size()));
  return &samples_.threads.emplace_back(SampledThread{thread, process, tid, {}});
}

void HostSamples::sample(const Sample& value, Nanos at, bool counted) {
  const u32 thread = thread_of(value), frame = index_of(value.frame);
  samples_.collected = true;
  samples_.newest = std::max(samples_.newest, at);
  const bool is_other = value.process == 0 && value.tid != 0;
  if ((thread == kNone && !is_other) || frame == 0 || !counted) return;
  ++(value.process ? samples_.of_workers : is_other ? samples_.of_others : samples_.taken);
  SampledThread* const series = is_other ? series_of(kNone, 0, value.tid) : series_of(thread, value.process, 0);
  if (!series || points_ == SampleFacts::kMostPoints) return static_cast<void>(++samples_.left_out);
  ++points_;
  std::optional<WaitFor> waits;
  const auto named = static_cast<WaitFor>(value.waits);
  if (*word_of(named)) waits = named;  // a newer writer's: not known here
  series->points.push_back({at, frame, false, (value.flags & kSampleRan) != 0, waits});
  if (value.process == 0 && !is_other) newest_[thread] = at;
}

void HostSamples::add_reading(HostThread& thread) {
  if (thread.process != 0) return;
  const ThreadReading reading{thread.seen, thread.cpu_ns, thread.ready_ns};
  const bool grows = !thread.readings.empty() && thread.readings.back().at < reading.at;
  if (grows && (readings_ < SampleFacts::kMostReadings || thread.readings.size() < 2)) {
    thread.readings.push_back(reading);
    ++readings_;
  } else {
    thread.readings.back() = reading;
  }
}

// Another thread that has the same number now began later than the one before was last seen.
void HostSamples::thread_use(const ThreadUse& value, Nanos at, std::string_view name) {
  const u64 key = static_cast<u64>(static_cast<u32>(value.process)) << 32 | static_cast<u32>(value.tid);
  HostThread made;
  made.process = value.process, made.tid = value.tid, made.parent = value.parent;
  made.name = name;
  const auto before = [](Nanos time, u64 by) {
    return by < static_cast<u64>(time) ? time - static_cast<Nanos>(by) : Nanos{0};
  };
  made.seen = before(at, value.since);
  made.began = before(made.seen, value.age);
  made.cpu_ns = value.cpu;
  made.ready_told = value.ready != ~u64{0};
  made.ready_ns = made.ready_told ? value.ready : 0;
  made.over = (value.flags & kThreadOver) != 0;
  auto& all = samples_.host_threads;
  const auto known = uses_.find(key);
  if (known != uses_.end() && made.began < all[known->second].seen) {
    made.readings = std::move(all[known->second].readings);
    add_reading(made);
    all[known->second] = std::move(made);
    return;
  }
  if (all.size() == SampleFacts::kMostHostThreads) return;
  if (made.process == 0) made.readings.push_back({made.began, 0, 0});
  add_reading(made);
  uses_[key] = static_cast<u32>(all.size());
  all.push_back(std::move(made));
}

void HostSamples::file_use(const FileUse& value, std::string_view path) {
  constexpr std::size_t kLongest = 1024;
  auto& all = samples_.files;
  const auto [known, is_new] =
      files_.try_emplace({value.path, value.process, value.frame, value.what}, static_cast<u32>(all.size()));
  if (is_new && all.size() == SampleFacts::kMostUses) {
    files_.erase(known);
    return;
  }
  if (is_new) {
    const auto [path_known, path_is_new] = paths_.try_emplace(value.path, static_cast<u32>(samples_.paths.size()));
    if (path_is_new) samples_.paths.emplace_back(path.substr(0, kLongest));
    all.push_back({path_known->second, value.process, static_cast<FileCall>(value.what), value.frame});
  }
  FileUses& uses = all[known->second];
  uses.count = value.count, uses.bytes = value.bytes, uses.total_ns = value.total, uses.longest_ns = value.longest;
}

void HostSamples::wait_use(const WaitUse& value) {
  auto& all = samples_.waits;
  const auto [known, is_new] =
      waits_.try_emplace({value.process, value.tid, value.frame, value.what}, static_cast<u32>(all.size()));
  if (is_new && all.size() == SampleFacts::kMostUses) {
    waits_.erase(known);
    return;
  }
  if (is_new) all.push_back({value.process, value.tid, value.frame, static_cast<WaitFor>(value.what)});
  WaitUses& uses = all[known->second];
  uses.count = value.count, uses.total_ns = value.total, uses.longest_ns = value.longest;
}

void HostSamples::mark(u32 thread, Nanos begin, Nanos end) {
  SampledThread* const series = series_of(thread, 0, 0);
  if (!series) return;
  auto& points = series->points;
  for (auto point = points.rbegin(); point != points.rend() && point->at >= begin; ++point)
    point->in_call = point->in_call || point->at < end;
}

// Who shows what had the device wait. A thread that has no lines launches what another one gave it, as XLA's own threads do: then the one
// that ran most meanwhile.
const SampledThread* HostSamples::thread_to_ask(const IdleGap& gap) const {
  const auto& origins = facts_.lines.origins;
  const bool has_lines = gap.origin < origins.size() && origins[gap.origin].frame != 0;
  const SampledThread* best = nullptr;
  std::pair<std::size_t, std::size_t> most{};
  for (const SampledThread& series : samples_.threads) {
    if (series.process != 0) continue;
    if (series.thread == gap.thread) return &series;
    if (has_lines) continue;
    const auto points = points_between(series, gap.begin, gap.called);
    const auto ran = std::count_if(points.begin(), points.end(), [](const SamplePoint& point) { return point.ran; });
    const std::pair here{static_cast<std::size_t>(ran), points.size()};
    if (here > most) most = here, best = &series;
  }
  return best;
}

// Whether that thread slept most of the time; then whether others that call CUDA as well, as the threads of a pool do, worked meanwhile.
bool HostSamples::tell_peers(const IdleGap& gap, const SampledThread& asked) {
  const auto looks = points_between(asked, gap.begin, gap.called);
  const auto ran = [](const SamplePoint& point) { return point.ran; };
  if (looks.empty() || 2 * static_cast<std::size_t>(std::count_if(looks.begin(), looks.end(), ran)) > looks.size())
    return false;
  samples_.asleep += looks.size();
  for (const SampledThread& series : samples_.threads) {
    if (&series == &asked || !series.calls_cuda()) continue;
    const auto points = points_between(series, gap.begin, gap.called);
    samples_.peers_ran += static_cast<u64>(std::count_if(points.begin(), points.end(), ran));
  }
  return true;
}

// What that thread did until the launching one called, and others meanwhile.
void HostSamples::tell_gap(IdleGap& gap) {
  if (gap.parts[static_cast<unsigned>(IdleCause::Host)] == 0) return;
  const SampledThread* const asked = thread_to_ask(gap);
  const bool slept = asked && tell_peers(gap, *asked);
  std::unordered_map<u32, u64> found;
  for (const SampledThread& series : samples_.threads) {
    const bool is_peer = &series != asked && series.calls_cuda();
    if (is_peer && !slept) continue;
    const LineOf of = &series == asked ? LineOf::Caller
                      : is_peer        ? LineOf::Peer
                      : series.process ? LineOf::Worker
                                       : LineOf::OtherThread;
    for (const SamplePoint& point : points_between(series, gap.begin, gap.called)) {
      if (point.in_call || (is_peer && !point.ran)) continue;
      ++idle_[{gap.origin, of}][{point.frame, point.ran, point.waits}];
      if (of == LineOf::Caller) ++found[point.frame];
    }
  }
  const auto most = std::max_element(found.begin(), found.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second < b.second : a.first > b.first;
  });
  if (most != found.end()) gap.sampled = most->first;
}

void HostSamples::finish() {
  for (SampledThread& series : samples_.threads)  // they come as they were taken, of one thread in order
    std::stable_sort(series.points.begin(), series.points.end(),
                     [](const auto& a, const auto& b) { return a.at < b.at; });
  if (samples_.threads.empty()) return;
  for (DeviceTimes& device : facts_.device.devices) {
    for (IdleGap& gap : device.longest) tell_gap(gap);
  }
  for (const auto& [key, frames] : idle_) {
    for (const auto& [what, count] : frames) {
      const auto& [frame, ran, waits] = what;
      samples_.idle.push_back({key.first, frame, ran, waits, key.second, count});
    }
  }
  std::sort(samples_.idle.begin(), samples_.idle.end(), [](const IdleLine& a, const IdleLine& b) {
    return std::tuple{a.origin, a.of, a.frame, a.ran, a.waits} < std::tuple{b.origin, b.of, b.frame, b.ran, b.waits};
  });
}

}  // namespace gputrace
