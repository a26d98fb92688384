#include "analysis/steps/sampled_batches.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string_view>

#include "analysis/lines/loaders.h"
#include "analysis/lines/sites.h"

namespace gputrace {
namespace {

constexpr Nanos kLeast = 50'000;     // what is shorter holds no batch that anybody waits for
constexpr u64 kOf = 3, kMostOf = 2;  // so many of so many are most
constexpr u64 kMakesOf = 2;  // one thread besides the calling ones is looked at at a time, and not whenever those are
constexpr u64 kMakesOfMany = 8;  // where there are more of them, which do nothing else

// The host gave nothing to a device meanwhile.
struct Silence {
  Nanos begin = 0, end = 0;
  u64 place = 0;       // the event before it and the one behind it
  u32 thread = 0;      // where looks found the loader asked: the one that asks
  bool asked = false;  // looks found the loader asked
};

// What looks found in all pauses of one place.
struct Place {
  u64 looks = 0, asked = 0;
  u64 waits = 0;  // looks that found it asleep in TensorFlow
  u64 makes = 0;  // that found tf.data, or Keras' enqueuer, run what the program gave it
  u64 elsewhere =
      0;           // that found another thread or process, which calls nothing, in lines of the program's, or at work
  u32 thread = 0;  // one that asks
  std::vector<Nanos> lengths;  // of those in which it was asked
  std::map<std::string_view, u64> loaders;
};

constexpr bool is_most(u64 part, u64 of) { return part != 0 && kOf * part >= kMostOf * of; }

// A graph that somebody waits for asks for its batch itself: it is being made meanwhile. Of a pool that makes it all threads have their turns to be
// looked at, those too that only wait for each other.
bool asks_within_a_graph(const Place& place) {
  const bool is_all_they_do = is_most(place.makes, place.makes + place.elsewhere);
  return place.makes >= kFewSamples && (is_all_they_do ? kMakesOfMany : kMakesOf) * place.makes >= place.waits;
}

std::vector<Silence> pauses_of(const std::vector<LoopEvent>& events) {
  std::vector<Silence> pauses;
  const LoopEvent* last = nullptr;  // that ended last
  for (const LoopEvent& event : events) {
    if (event.kind() == LoopKind::Mark) continue;
    if (last && event.begin >= last->end + kLeast)
      pauses.push_back({last->end, event.begin, u64{last->symbol} << 32 | event.symbol});
    if (!last || event.end > last->end) last = &event;
  }
  return pauses;
}

Silence* pause_at(std::vector<Silence>& pauses, Nanos at) {
  const auto after = std::upper_bound(pauses.begin(), pauses.end(), at,
                                      [](Nanos time, const Silence& pause) { return time < pause.begin; });
  return after == pauses.begin() || at >= std::prev(after)->end ? nullptr : &*std::prev(after);
}

template <typename Visit>
void for_each_look(const SampleFacts& samples, bool of_callers, std::vector<Silence>& pauses, Visit&& visit) {
  for (const SampledThread& series : samples.threads) {
    if (series.calls_cuda() != of_callers) continue;
    for (const SamplePoint& point : series.points) {
      if (point.frame == 0 || point.in_call) continue;
      if (Silence* const pause = pause_at(pauses, point.at)) visit(*pause, point, series.thread);
    }
  }
}

// Which threads may be a loop's. Not so: one that is not the process's first, makes no optimizer's step, and launches little (a conversion of what
// it loaded); where it asks a loader, it does so ahead. The events are read once for each thread that is asked about.
class LoopThreads {
 public:
  explicit LoopThreads(const ProcessTrace& process) : process_(process) {}
  bool operator()(u32 thread) {
    const auto [known, fresh] = known_.try_emplace(thread, true);
    if (fresh) known->second = is_first(thread) || steps_or_launches(thread);
    return known->second;
  }

 private:
  static constexpr u64 kFewOf = 10;
  bool is_first(u32 thread) const {
    return thread < process_.threads.size() && process_.threads[thread].tid == process_.who.pid;
  }
  bool steps_or_launches(u32 thread) const {
    u64 own = 0, all = 0;
    for (const LoopEvent& event : process_.loop_log.events) {
      if (event.thread == thread && event.is(LoopMark::OptimizerStep)) return true;
      all += event.is_launch(), own += event.is_launch() && event.thread == thread;
    }
    return kFewOf * own >= all;
  }

  const ProcessTrace& process_;
  std::map<u32, bool> known_;
};

// Whether another thread asked its loader at some time.
bool is_asked(const std::vector<LoopEvent>& ahead, Nanos at) {
  const auto after = std::upper_bound(ahead.begin(), ahead.end(), at,
                                      [](Nanos time, const LoopEvent& event) { return time < event.begin; });
  return after != ahead.begin() && at < std::prev(after)->end;
}

bool waits_for_others(const SamplePoint& point) {
  return point.waits == WaitFor::Lock || point.waits == WaitFor::Pipe || point.waits == WaitFor::Socket;
}

std::map<u64, Place> places_of(const ProcessTrace& process, const std::vector<LoopEvent>& ahead,
                               std::vector<Silence>& pauses) {
  const SampleFacts& samples = process.samples;
  const LoaderStacks stacks(samples.frames);
  LoopThreads is_loop(process);
  std::map<u64, Place> places;
  const auto waits = [&](const SamplePoint& point) { return !point.ran && stacks.in_tensorflow(point.frame); };
  for_each_look(samples, false, pauses, [&](const Silence& pause, const SamplePoint& point, u32) {
    Place& place = places[pause.place];
    if (!stacks.makes_within_a_graph(point.frame)) {
      place.elsewhere += point.ran || innermost_own(samples.frames, point.frame) != 0;
      return;
    }
    const std::string_view asked = stacks.asked(point.frame);  // Keras gives its own data to tf.data
    ++place.makes, ++place.loaders[asked.empty() ? stacks.maker(point.frame) : asked];
  });
  for_each_look(samples, true, pauses, [&](const Silence& pause, const SamplePoint& point, u32) {
    places[pause.place].waits += waits(point);
  });
  const auto waits_for_ahead = [&](const SamplePoint& point) {
    return waits_for_others(point) && is_asked(ahead, point.at);
  };
  const auto asks = [&](const Place& place, const SamplePoint& point) {
    return (waits(point) && asks_within_a_graph(place)) || !stacks.asked(point.frame).empty() || waits_for_ahead(point);
  };
  for_each_look(samples, true, pauses, [&](Silence& pause, const SamplePoint& point, u32 thread) {
    if (pause.asked || !is_loop(thread) || !asks(places[pause.place], point)) return;
    pause.asked = true;
    pause.thread = thread;
  });
  // While one thread asks, another that calls, too, may sleep: it says nothing of the pause.
  for_each_look(samples, true, pauses, [&](const Silence& pause, const SamplePoint& point, u32 thread) {
    if (!is_loop(thread)) return;
    Place& place = places[pause.place];
    const bool asking = asks(place, point);
    if (!asking && !point.ran && pause.asked && thread != pause.thread) return;
    ++place.looks;
    place.asked += asking;
    const std::string_view asked = stacks.asked(point.frame);
    const std::string_view loader = asked.empty() && waits_for_ahead(point) ? kTorchLoader : asked;
    if (asking && !loader.empty()) ++place.loaders[loader];
  });
  for (const Silence& pause : pauses) {
    if (!pause.asked) continue;
    places[pause.place].thread = pause.thread;
    places[pause.place].lengths.push_back(pause.end - pause.begin);
  }
  return places;
}

// A pause of that place is a wait where it is no much shorter one than those in which looks found it.
Nanos least_of(Place& place) {
  const auto middle = place.lengths.begin() + static_cast<std::ptrdiff_t>(place.lengths.size() / 2);
  std::nth_element(place.lengths.begin(), middle, place.lengths.end());
  return *middle / 4;
}

}  // namespace

std::vector<LoopEvent> take_asked_ahead(ProcessTrace& process) {
  std::vector<LoopEvent>& events = process.loop_log.events;
  const auto asks = [](const LoopEvent& event) { return event.is(LoopMark::NextBatch); };
  LoopThreads is_loop(process);
  std::set<u32> asking;
  for (const LoopEvent& event : events)
    if (asks(event) && !is_loop(event.thread)) asking.insert(event.thread);
  if (asking.empty()) return {};
  const auto first = std::stable_partition(events.begin(), events.end(), [&](const LoopEvent& event) {
    return !asks(event) || !asking.contains(event.thread);
  });
  std::vector<LoopEvent> ahead;
  for (auto event = first; event != events.end(); ++event) {  // of several threads they overlap
    if (ahead.empty() || event->begin > ahead.back().end)
      ahead.push_back(*event);
    else
      ahead.back().end = std::max(ahead.back().end, event->end);
  }
  events.erase(first, events.end());
  if (std::none_of(events.begin(), events.end(), asks)) process.loop_log.loader.clear();
  return ahead;
}

void add_sampled_batches(ProcessTrace& process, const std::vector<LoopEvent>& ahead) {
  LoopLog& log = process.loop_log;
  if (!log.loader.empty() || log.events.empty() || process.samples.threads.empty()) return;
  std::vector<Silence> pauses = pauses_of(log.events);
  std::map<u64, Place> places = places_of(process, ahead, pauses);
  std::map<u64, Nanos> least;  // of a pause in which no look found it asked
  std::map<std::string_view, u64> loaders;
  u64 asked = 0, looks = 0;
  for (auto& [key, place] : places) {
    looks += place.looks;
    if (!is_most(place.asked, place.looks)) continue;
    least[key] = place.looks >= kFewSamples ? least_of(place) : std::numeric_limits<Nanos>::max();
    asked += place.asked;
    for (const auto& [loader, looks] : place.loaders) loaders[loader] += looks;
  }
  if (asked < kFewSamples) {
    if (ahead.empty() || looks < kFewSamples) return;
    log.loader = kTorchLoader;  // and the loop waits for none of its batches
    process.steps.loader_sampled = true;
    return;
  }
  for (const Silence& pause : pauses) {
    const auto of_place = least.find(pause.place);
    if (of_place == least.end() || (!pause.asked && pause.end - pause.begin < of_place->second)) continue;
    log.events.push_back({pause.begin, pause.end, loop_symbol(LoopMark::NextBatch),
                          pause.asked ? pause.thread : places[pause.place].thread});
  }
  std::stable_sort(log.events.begin(), log.events.end(),
                   [](const LoopEvent& a, const LoopEvent& b) { return a.begin < b.begin; });
  log.loader = std::max_element(loaders.begin(), loaders.end(), [](const auto& a, const auto& b) {
                 return a.second < b.second;
               })->first;
  process.steps.loader_sampled = true;
}

}  // namespace gputrace
