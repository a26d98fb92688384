#include "analysis/steps/find_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/steps/loop_period.h"
#include "analysis/steps/marking_thread.h"
#include "analysis/steps/replayed_steps.h"
#include "analysis/steps/run_phases.h"
#include "analysis/steps/sampled_batches.h"
#include "analysis/steps/step_marks.h"
#include "analysis/steps/step_parts.h"

namespace gputrace {
namespace {

constexpr u64 kStepsOfAnyFile = 65'536, kBytesOfStep = 8;  // of a trace's file
// Where the threads' own loops hold as many launches as one of all threads together, and a thread has so many more turns, that one is made of threads that
// do not wait for each other (XLA has one for each device), whose launches happen to come in the same order some times.
constexpr double kSure = 0.9, kMoreTurns = 1.25, kNearlyAll = 0.95;
constexpr std::size_t kTriedInVain = 3;  // busiest threads without a loop: then the others are not looked at
constexpr double kSlowStart = 1.5;       // a step at the begin that takes that many times the median is warm-up

// Which kernels update parameters or reduce over ranks, by their names. Each name is looked at once: a loop asks for every event.
class Updaters {
 public:
  explicit Updaters(const ProcessTrace& process) : process_(process), known_(process.functions.size()) {}

  bool operator()(u32 symbol) { return of(symbol) != Known::Neither; }
  // What reduces over ranks may do so for a model that is only asked.
  bool updates(u32 symbol) { return of(symbol) == Known::Updates; }

 private:
  enum class Known : u8 { Not, Neither, Updates, Reduces };

  Known of(u32 symbol) {
    const LoopEvent event{0, 0, symbol, 0};
    if (event.kind() != LoopKind::Kernel || event.number() >= known_.size()) return Known::Neither;
    Known& known = known_[event.number()];
    if (known == Known::Not) known = look(process_.functions[event.number()].symbol);
    return known;
  }

  static Known look(std::string name) {
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
    const auto has = [&name](const char* word) { return name.find(word) != std::string::npos; };
    for (const char* word : {"optim", "adam", "sgd", "lamb", "momentum", "adagrad", "rmsprop"}) {
      if (has(word)) return Known::Updates;
    }
    return has("nccl") || has("allreduce") ? Known::Reduces : Known::Neither;
  }

  const ProcessTrace& process_;
  std::vector<Known> known_;  // by function
};

std::optional<MarkedSteps> marked(const LoopLog& log, const std::vector<LoopEvent>& all, const std::string& pattern) {
  if (!pattern.empty()) return steps_of_ranges(log, pattern);
  const std::optional<MarkingThread> one = marking_thread(all);
  const std::vector<LoopEvent>& events = one ? one->events : all;
  const auto of_one = [&one](std::optional<MarkedSteps> made) {
    if (!made || !one) return made;
    made->thread = one->thread, made->other_threads = one->other_threads, made->other_turns = one->other_turns;
    made->evidence += fmt::format("; all on one of {} threads that do so beside each other", one->other_threads + 1);
    return made;
  };
  if (auto made = steps_of_profiler_step(log)) return made;
  const std::optional<ReplayedSteps> replayed = replayed_steps(events);
  auto framework = of_one(steps_of_framework(log, replayed ? replayed->events : events));
  if (framework && replayed) {
    framework->evidence +=
        fmt::format("; {} of them by a graph that holds such a step, the others were its warm-up", replayed->replays);
    for (Step& step : framework->steps)
      if (step.phase == RunPhase::Training && step.end <= replayed->first)
        step.phase = RunPhase::WarmUp, step.counted = false;
  }
  if (framework && !log.optimizer.empty()) return framework;
  if (auto made = steps_of_usual_ranges(log)) return made;
  if (auto made = steps_of_profiler_api(log)) return made;
  if (auto made = of_one(steps_of_generation(events))) return made;
  if (auto made = steps_of_engine(all)) return made;
  return framework;
}

std::optional<FoundLoop> find_loop(const std::vector<LoopEvent>& events, Updaters& updaters) {
  return find_period(events, [&updaters](u32 symbol) { return updaters(symbol); });
}

bool updates_any(const std::vector<LoopEvent>& events, Updaters& updaters) {
  return std::any_of(events.begin(), events.end(),
                     [&](const LoopEvent& event) { return updaters.updates(event.symbol); });
}

MarkedSteps steps_of(const FoundLoop& loop, const ProcessTrace& process, bool updating, const char* of_what) {
  MarkedSteps made;
  made.source = loop.of_graphs ? StepSource::Graph : StepSource::Inferred;
  made.confidence = loop.confidence;
  made.evidence = fmt::format("the same {} launches, copies and waits come again{}, {} times", loop.events, of_what,
                              loop.turns.size());
  // A small file can say the same few records a million times: what becomes of them is bounded by its size, as all else is.
  const u64 turns = loop.turns.size(), bytes = process.who.file_bytes;
  const u64 most = bytes ? std::min(turns, kStepsOfAnyFile + bytes / kBytesOfStep) : turns;
  if (most < turns)
    made.evidence += fmt::format("; the first {} of them are steps: as many as a file of its size may hold", most);
  made.steps.reserve(most);
  for (const LoopTurn& turn : loop.turns) {
    if (made.steps.size() == most) break;
    Step step;
    step.begin = turn.begin, step.end = turn.end;
    step.phase = updating ? RunPhase::Training : RunPhase::Other;
    made.steps.push_back(step);
  }
  return made;
}

// Launches that the loop holds, as far as it is sure of them.
double launches_in(const FoundLoop& loop) {
  return loop.confidence * static_cast<double>(loop.turns.size() * loop.events);
}

struct ThreadLoop {
  FoundLoop loop;
  bool updating = false;
};

// The events of each thread, in their order. By their places: of a long run they themselves are tens of megabytes.
class EventsByThread {
 public:
  explicit EventsByThread(const std::vector<LoopEvent>& events) : events_(events), places_(events.size()) {
    for (const LoopEvent& event : events) {
      if (event.thread >= threads_.size()) threads_.resize(event.thread + 1u);
      ++threads_[event.thread].count;
    }
    std::vector<std::size_t> next(threads_.size());
    for (std::size_t i = 1; i < threads_.size(); ++i)
      next[i] = threads_[i].first = threads_[i - 1].first + threads_[i - 1].count;
    for (std::size_t i = 0; i < events.size(); ++i) places_[next[events[i].thread]++] = static_cast<u32>(i);
    std::stable_sort(threads_.begin(), threads_.end(), [](const auto& a, const auto& b) { return a.count > b.count; });
  }
  std::size_t threads() const { return threads_.size(); }
  // The busiest thread is the first.
  void take(std::size_t thread, std::vector<LoopEvent>& own) const {
    const auto& [first, count] = threads_[thread];
    own.clear(), own.reserve(count);
    for (std::size_t i = first; i < first + count; ++i) own.push_back(events_[places_[i]]);
  }

 private:
  struct Thread {
    std::size_t first = 0, count = 0;  // in places_
  };
  const std::vector<LoopEvent>& events_;
  std::vector<u32> places_;
  std::vector<Thread> threads_;
};

// Of several threads those that have a loop of their own; that which holds most first.
std::vector<ThreadLoop> loops_of_threads(const std::vector<LoopEvent>& events, Updaters& updaters) {
  const auto is_of_another = [&events](const LoopEvent& event) { return event.thread != events.front().thread; };
  if (std::none_of(events.begin(), events.end(), is_of_another)) return {};
  const EventsByThread by_thread(events);
  std::vector<LoopEvent> own;
  std::vector<ThreadLoop> found;
  for (std::size_t i = 0; i < by_thread.threads() && (i < kTriedInVain || !found.empty()); ++i) {
    by_thread.take(i, own);
    if (auto loop = find_loop(own, updaters)) found.push_back({std::move(*loop), updates_any(own, updaters)});
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const ThreadLoop& a, const ThreadLoop& b) { return launches_in(a.loop) > launches_in(b.loop); });
  return found;
}

std::optional<MarkedSteps> inferred(const ProcessTrace& process, const std::vector<LoopEvent>& events) {
  Updaters updaters(process);
  const auto of_all = find_loop(events, updaters);
  if (of_all && launches_in(*of_all) >= kNearlyAll * static_cast<double>(events.size()))
    return steps_of(*of_all, process, updates_any(events, updaters), "");
  const std::vector<ThreadLoop> threads = loops_of_threads(events, updaters);
  double own = 0;
  for (const ThreadLoop& thread : threads) own += thread.loop.confidence >= kSure ? launches_in(thread.loop) : 0;
  const bool is_by_chance =
      of_all && !threads.empty() && own >= launches_in(*of_all) &&
      static_cast<double>(threads.front().loop.turns.size()) >= kMoreTurns * static_cast<double>(of_all->turns.size());
  if (of_all && !is_by_chance) return steps_of(*of_all, process, updates_any(events, updaters), "");
  if (threads.empty()) return std::nullopt;
  const FoundLoop& loop = threads.front().loop;
  MarkedSteps made = steps_of(loop, process, threads.front().updating, " on one thread");
  for (std::size_t i = 1; i < threads.size(); ++i) {
    if (threads[i].loop.symbols != loop.symbols) continue;
    ++made.other_threads;
    made.other_turns += threads[i].loop.turns.size();
  }
  return made;
}

u64 middle(std::vector<u64> values) {
  if (values.empty()) return 0;
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

// The first steps, as long as they take longer than most, and steps that compiled.
void leave_out_warm_up(StepFacts& facts) {
  std::vector<u64> lengths;
  for (const Step& step : facts.steps) {
    if (step.counted) lengths.push_back(step.length());
  }
  const double usual = static_cast<double>(middle(std::move(lengths)));
  bool first = true;
  for (Step& step : facts.steps) {
    if (!step.counted) continue;
    const u64 compiling = step.parts[static_cast<unsigned>(StepCategory::Compilation)];
    const bool slow = static_cast<double>(step.length()) > kSlowStart * usual;
    if (slow && static_cast<double>(compiling) > 0.1 * static_cast<double>(step.length()))
      step.phase = RunPhase::Compilation;
    else if (first && slow)
      step.phase = RunPhase::WarmUp;
    else
      first = false;
    step.counted = step.phase != RunPhase::Compilation && step.phase != RunPhase::WarmUp;
  }
  const bool any = std::any_of(facts.steps.begin(), facts.steps.end(), [](const Step& step) { return step.counted; });
  if (any) return;
  for (Step& step : facts.steps) step.counted = step.phase != RunPhase::Evaluation;
}

void count_batches(const std::vector<LoopEvent>& events, std::optional<u32> thread, StepFacts& facts) {
  for (const LoopEvent& event : events) {
    if (!event.is(LoopMark::NextBatch) || (thread && event.thread != *thread)) continue;
    const auto after = std::upper_bound(facts.steps.begin(), facts.steps.end(), event.begin,
                                        [](Nanos time, const Step& step) { return time < step.begin; });
    if (after == facts.steps.begin() || !std::prev(after)->counted || event.begin >= std::prev(after)->end) continue;
    ++facts.batches;
    facts.batch_ns += static_cast<u64>(event.end - event.begin);
  }
}

}  // namespace

void find_steps(ProcessTrace& process, const std::string& pattern) {
  StepFacts& facts = process.steps;
  std::vector<LoopEvent>& events = process.loop_log.events;
  const auto earlier = [](const LoopEvent& a, const LoopEvent& b) { return a.begin < b.begin; };
  if (!std::is_sorted(events.begin(), events.end(), earlier)) std::stable_sort(events.begin(), events.end(), earlier);
  const std::vector<LoopEvent> ahead = take_asked_ahead(process);
  std::optional<MarkedSteps> found = marked(process.loop_log, events, pattern);
  if (!found && pattern.empty()) found = inferred(process, events);
  if (!found && pattern.empty()) found = steps_of_modules(process.loop_log);
  if (found) {
    facts.source = found->source;
    facts.confidence = found->confidence;
    facts.evidence = std::move(found->evidence);
    facts.steps = std::move(found->steps);
    facts.other_threads = found->other_threads, facts.other_turns = found->other_turns;
    if (process.loop_log.events_left_out)
      facts.evidence +=
          fmt::format("; after the first {} launches, copies and waits nothing was looked for", LoopLog::kMostEvents);
    end_before_saving(process.loop_log, facts);
    add_sampled_batches(process, ahead);
    follow_device(process, facts);
    divide_steps(process, facts);
    measure_host(process.loop_log, facts);
    leave_out_warm_up(facts);
    count_batches(events, found->thread, facts);
    mark_checkpoints(process);
  } else if (!pattern.empty()) {
    facts.why_none = "no NVTX range's name holds " + pattern;
  } else if (process.loop_log.events.empty()) {
    facts.why_none = "nothing was launched";
  } else {
    facts.why_none = "the program marks none, and what it launches does not come again in the same order";
  }
  facts.phases = phases_of(process);
  facts.loader = process.loop_log.loader;
  process.loop_log = {};
  process.activities = {};
}

StepFacts steps_between(const StepFacts& facts, Nanos from, Nanos to, std::pair<u64, u64> numbers) {
  StepFacts part = facts;
  part.steps.clear();
  for (std::size_t i = 0; i < facts.steps.size(); ++i) {
    const Step& step = facts.steps[i];
    const u64 number = facts.first_number + i;
    if (step.begin < from || step.end > to || number < numbers.first || number > numbers.second) continue;
    if (part.steps.empty()) part.first_number = number;
    part.steps.push_back(step);
  }
  return part;
}

StepSpan span_of(const StepFacts& facts, const Step& first, const Step& last) {
  if (!facts.on_device) return {first.begin, last.end, first.begin, last.end};
  return {first.begin, last.end, first.called_from, last.called_to};
}

std::optional<StepSpan> loop_of(const StepFacts& facts) {
  const Step *first = nullptr, *last = nullptr;
  for (const Step& step : facts.steps) {
    if (!step.counted) continue;
    if (!first) first = &step;
    last = &step;
  }
  if (!first) return std::nullopt;
  return span_of(facts, *first, *last);
}

double share_outside(const ProcessTrace& process) {
  const auto span = loop_of(process.steps);
  if (!span) return 1;
  Nanos outside = 0, whole = 0;
  for (const DeviceTimes& device : process.device.devices) {
    outside += std::max<Nanos>(0, span->begin - device.first) + std::max<Nanos>(0, device.last - span->end);
    whole += device.last - device.first;
  }
  return whole > 0 ? static_cast<double>(outside) / static_cast<double>(whole) : 1;
}

StepStatistics statistics_of(const StepFacts& facts) {
  StepStatistics made;
  std::vector<u64> lengths;
  u64 sum = 0, busy = 0, known = 0;
  StepParts parts{};
  for (const Step& step : facts.steps) {
    ++made.steps;
    if (!step.counted) {
      ++made.beside[static_cast<unsigned>(step.phase)];
      continue;
    }
    lengths.push_back(step.length());
    sum += step.length();
    if (step.host_busy_ns) busy += step.host_busy_ns, ++known;
    if (!step.divided) continue;
    ++made.divided;
    for (unsigned i = 0; i < kStepCategories; ++i) parts[i] += step.parts[i];
  }
  made.counted = lengths.size();
  if (lengths.empty()) return made;
  std::sort(lengths.begin(), lengths.end());
  const auto rank = [&](double p) {
    const double at = std::ceil(p * static_cast<double>(lengths.size()));
    return lengths[std::min(lengths.size() - 1, static_cast<std::size_t>(std::max(1.0, at)) - 1)];
  };
  made.mean_ns = (sum + made.counted / 2) / made.counted;
  if (known) made.mean_host_busy_ns = busy / known;
  made.median_ns = rank(0.5), made.p99_ns = rank(0.99);
  made.min_ns = lengths.front(), made.max_ns = lengths.back();
  const StepSpan loop = *loop_of(facts);
  made.loop_ns = static_cast<u64>(loop.end - loop.begin);
  made.between_ns = made.loop_ns;
  for (const Step& step : facts.steps) {
    if (step.begin >= loop.begin && step.end <= loop.end) made.between_ns -= step.length();
  }
  for (unsigned i = 0; i < kStepCategories && made.divided; ++i) made.mean_parts[i] = parts[i] / made.divided;
  return made;
}

const ProcessTrace* main_steps(const LoadedRun& run) {
  const ProcessTrace* most = nullptr;
  for (const ProcessTrace& process : run.processes) {
    if (!process.steps.found()) continue;
    if (!most || process.plain_launches + process.graph_launches > most->plain_launches + most->graph_launches)
      most = &process;
  }
  return most;
}

std::string why_no_steps(const LoadedRun& run) {
  for (const ProcessTrace& process : run.processes) {
    if (!process.steps.found() && !process.steps.why_none.empty()) return process.steps.why_none;
  }
  return "no call was recorded";
}

const char* step_source_name(StepSource source) {
  static constexpr const char* kNames[] = {"none", "framework", "nvtx", "profiler-api", "graph", "inferred"};
  return kNames[static_cast<unsigned>(source)];
}

const char* step_category_name(StepCategory category) {
  static constexpr const char* kNames[kStepCategories] = {
      "compilation", "input",      "output",     "launch",        "host", "device_to_device",
      "collective",  "compute_16", "compute_32", "compute_other", "other"};
  return kNames[static_cast<unsigned>(category)];
}

const char* run_phase_name(RunPhase phase) {
  static constexpr const char* kNames[kRunPhases] = {"start-up",   "compilation", "warm-up", "training", "evaluation",
                                                     "checkpoint", "prefill",     "decode",  "other"};
  return kNames[static_cast<unsigned>(phase)];
}

}  // namespace gputrace
