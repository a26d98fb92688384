#include "analysis/load.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <future>
#include <limits>
#include <mutex>
#include <span>
#include <thread>

#include "analysis/kernels/kernel_changes.h"
#include "analysis/lines/packages.h"
#include "analysis/read/huge_pages.h"
#include "analysis/read/identity.h"
#include "analysis/read/kept_pages.h"
#include "analysis/read/processors.h"
#include "analysis/read/record_stream.h"
#include "analysis/run/communicator_ranks.h"
#include "analysis/run/runs.h"
#include "analysis/steps/find_steps.h"
#include "analysis/symbols/native_frames.h"
#include "analysis/words/human.h"

namespace gputrace {
namespace {

constexpr unsigned kWorkers = 3;  // each with threads of its own behind it: what one waits for, another does meanwhile

struct Loaded {
  std::optional<ProcessTrace> process;
  std::string error;
};

TimeSpan together(TimeSpan a, TimeSpan b) { return {std::min(a.from, b.from), std::max(a.to, b.to)}; }

// Somebody may have put it there.
bool has_strange_owner(const std::string& file) {
  struct stat own {
  }, around{};
  const std::size_t slash = file.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : file.substr(0, slash + 1);
  return ::stat(file.c_str(), &own) == 0 && ::stat(directory.c_str(), &around) == 0 && own.st_uid != around.st_uid;
}

Loaded load_file(const LoadRequest& request, std::size_t number, TimeWindow window, Allowance& allowance,
                 RunWitness* run_witness) {
  const std::string& file = request.files[number];
  Loaded loaded;
  auto opened = TraceReader::open(file);
  if (!opened) {
    loaded.error = describe(file, opened.error());
    return loaded;
  }
  Witness* const witness = run_witness ? run_witness->opened(number, opened.value(), window) : nullptr;
  const ProcessIsRead being_read;
  // Of single steps the whole is read for where they are, and reports are of them.
  loaded.process = load_process(opened.value(), window, request.step_pattern, witness, &allowance,
                                request.steps ? 0 : kMostReadTwice);
  loaded.process->who.file = file;
  if (witness) run_witness->loaded(number, *loaded.process);
  if (has_strange_owner(file))
    loaded.process->notes.push_back("the file belongs to another user than its directory: " + file);
  return loaded;
}

std::vector<Loaded> load_files(const LoadRequest& request, TimeWindow window, RunWitness* witness) {
  const std::vector<std::string>& files = request.files;
  std::vector<Loaded> loaded(files.size());
  const KeptPages pages;  // of one process for the next
  const u64 bytes = bytes_of(files);
  ask_for_huge_pages(bytes);
  Allowance allowance(bytes);
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i; (i = next++) < files.size();) loaded[i] = load_file(request, i, window, allowance, witness);
  };
  if (files.size() < 2) {
    work();
    return loaded;
  }
  std::vector<std::thread> workers;
  for (unsigned i = 0; i < kWorkers; ++i) workers.emplace_back(work);
  for (std::thread& worker : workers) worker.join();
  return loaded;
}

void keep_newest_run(std::vector<ProcessTrace>& processes) {
  const auto newest = std::max_element(processes.begin(), processes.end(), [](const auto& a, const auto& b) {
    return a.first_realtime < b.first_realtime;
  });
  if (newest == processes.end()) return;
  const std::vector<std::size_t> runs = runs_of(processes);
  const std::size_t run = runs[static_cast<std::size_t>(newest - processes.begin())];
  std::vector<ProcessTrace> kept;
  for (std::size_t i = 0; i < processes.size(); ++i) {
    if (runs[i] == run) kept.push_back(std::move(processes[i]));
  }
  processes = std::move(kept);
}

void find_wall(LoadedRun& run) {
  bool one_clock = true;
  const ProcessTrace* first = nullptr;
  for (const ProcessTrace& process : run.processes) {
    if (process.end == 0) continue;
    if (!first) first = &process;
    one_clock = one_clock && process.who.boot_id == first->who.boot_id;
  }
  bool any = false;
  for (const ProcessTrace& process : run.processes) {
    if (process.end == 0) continue;
    const Nanos begin = one_clock ? process.begin : process.first_realtime;
    const Nanos end = begin + (process.end - process.begin);
    if (!any || begin < run.wall_begin) run.wall_begin = begin;
    if (!any || end > run.wall_end) run.wall_end = end;
    any = true;
  }
  if (any && one_clock) run.origin = run.wall_begin;
}

void note_unread(const TraceReader& reader, const Allowance& allowance, ProcessTrace& process) {
  const u64 all = reader.conservation().stored;
  process.damage.push_back(human_count(all - std::min(all, process.records)) + " of " + human_count(all) +
                           " records were not read: " + allowance.why() + "; GPUTRACE_READ_LIMITS=off reads them");
}

constexpr u64 kFewestOfMany = 10;  // steps that stand for a loop of more
// Twice as long as device records wait in CUPTI's buffers at most: a second, where the program makes no calls (cupti/).
constexpr Nanos kDeviceRecordsComeWithin = 2'000'000'000;
constexpr Nanos kEndOfTime = std::numeric_limits<Nanos>::max();

Nanos begin_of(const RecordStream::Span& span, const TraceReader& reader) {
  RecordHeader first;
  std::memcpy(&first, span.begin, sizeof first);
  return reader.clock().nanos(first.begin);
}

// `last`: what was recorded later is not read. `meanwhile`: what else is made of the process, while its gains are found where a
// processor has nothing else to do, else after them: they are made of what was kept for them alone, and the memory of both is worth
// it only then.
ProcessTrace fold(const TraceReader& reader, TimeWindow window, Allowance& allowance, Witness* witness,
                  Nanos last = kEndOfTime, const std::function<void(ProcessTrace&)>& meanwhile = {}) {
  ProcessTrace process;
  read_identity(reader, process);
  read_counters(reader, process);
  read_damage(reader, process);
  // Outlives the builder, which holds chunks of it.
  RecordStream stream(reader, {}, RecordStream::Order::Time, ProcessBuilder::in_bulk(reader));
  ProcessBuilder builder(reader, window, allowance, process, witness);
  ChunkBuffer buffer;
  for (const ThreadInfo& thread : reader.threads()) {
    if (thread.tid != 0) continue;
    for (const u32 chunk : thread.chunks) {
      auto records = reader.decode(reader.record_chunks()[chunk], buffer);
      if (!records || !records.value().types.has(static_cast<u16>(RecordType::ContextFacts))) continue;
      for (const RecordHeader& record : records.value()) builder.foresee(record);
    }
  }
  const bool watched = witness != nullptr || last != kEndOfTime;
  stream.for_each_spans([&](std::span<const RecordStream::Span> runs) {
    if (!watched) {
      builder.add(runs, stream);
      return !allowance.spent();
    }
    return std::all_of(runs.begin(), runs.end(), [&](const RecordStream::Span& run) {
      builder.add({&run, 1}, stream);
      if (witness) witness->recorded(run);
      return !allowance.spent() && (last == kEndOfTime || begin_of(run, reader) < last);
    });
  });
  for (const std::string& damage : stream.damage()) process.damage.push_back(damage);
  builder.finish();
  if (witness) witness->read(stream);
  const bool all = !witness || witness->wants() == Wanted::All;
  std::future<GainFacts> gains;
  if (process.device.collected && all) {
    const bool at_once = meanwhile && !processors_are_busy();
    gains = std::async(at_once ? std::launch::async : std::launch::deferred,
                       [&builder, changes = kernel_changes(process)] { return builder.gains(changes); });
    if (!at_once) gains.wait();
  }
  if (allowance.spent()) note_unread(reader, allowance, process);
  process.unknown_records = stream.unknown_records();
  if (process.end) process.first_realtime = reader.clock().realtime(process.begin);
  if (meanwhile) meanwhile(process);
  if (gains.valid()) process.gains = gains.get();
  return process;
}

TimeWindow window_of(const StepSpan& steps) {
  TimeWindow window{steps.called_from, steps.called_to};
  if (steps.called_from != steps.begin || steps.called_to != steps.end) window.operations = {steps.begin, steps.end};
  return window;
}

TimeWindow together(const TimeWindow& a, const TimeWindow& b) {
  const TimeSpan calls = together(TimeSpan{a.from, a.to}, TimeSpan{b.from, b.to});
  TimeWindow window{calls.from, calls.to};
  if (a.operations || b.operations) window.operations = together(a.of_operations(), b.of_operations());
  return window;
}

// When the first chunk of records begins that are not read twice; nothing: all are.
std::optional<Nanos> begin_of_others(const TraceReader& reader, u64 read_twice) {
  std::vector<RecordChunk> chunks = reader.record_chunks();
  std::sort(chunks.begin(), chunks.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
  u64 records = 0;
  for (const RecordChunk& chunk : chunks)
    if ((records += chunk.record_count) > read_twice) return reader.clock().nanos(chunk.begin);
  return std::nullopt;
}

// The same without start-up, warm-up and what follows the last step; of a long run its first steps.
void add_loop(const TraceReader& reader, ProcessTrace& process, u64 read_twice) {
  if (!loop_of(process.steps) || !process.device.collected || share_outside(process) < kMostOutside) return;
  const auto leave_out = [&](const std::string& why) {
    process.notes.push_back("findings are of the whole run, start-up included, not of the loop alone: " + why);
  };
  StepFacts steps = process.steps;
  const std::optional<Nanos> limit = process.records > read_twice ? begin_of_others(reader, read_twice) : std::nullopt;
  if (limit) steps = steps_between(process.steps, std::numeric_limits<Nanos>::min(), *limit);
  const auto span = loop_of(steps);
  if (!span || (limit && statistics_of(steps).counted < kFewestOfMany))
    return leave_out("more than " + human_count(read_twice) + " records are not read twice");
  Allowance allowance(reader.data_bytes());
  const Nanos last = limit ? std::max(span->called_to, span->end) + kDeviceRecordsComeWithin : kEndOfTime;
  auto loop = std::make_shared<ProcessTrace>(fold(reader, window_of(*span), allowance, nullptr, last));
  if (allowance.spent()) return leave_out(allowance.why());  // half a loop tells wrong causes and gains
  loop->loop_log = {}, loop->activities = {};
  loop->lines.frames = process.lines.frames;  // the same definitions, with the names that were looked up
  find_packages(*loop);                       // what looks found in it
  loop->steps = steps_between(process.steps, span->begin, span->end);
  if (limit)
    process.notes.push_back(
        fmt::format("findings of the loop are of {} of its {} steps: more than {} records are not read twice",
                    human_count(statistics_of(loop->steps).counted), human_count(statistics_of(process.steps).counted),
                    human_count(read_twice)));
  process.loop = std::move(loop);
}

Result<LoadedRun, InputError> load_once(const LoadRequest& request, TimeWindow window, RunWitness* witness) {
  LoadedRun run;
  Nanos first = std::numeric_limits<Nanos>::max();  // also of processes that are left out: what --from counts from
  for (Loaded& loaded : load_files(request, window, witness)) {
    if (!loaded.process) {
      run.unread.push_back(loaded.error);
      continue;
    }
    if (loaded.process->end) first = std::min(first, loaded.process->begin);
    run.processes.push_back(std::move(*loaded.process));
  }
  if (run.processes.empty() && !run.unread.empty()) return Failure{InputError{run.unread.front()}};
  std::vector<ProcessTrace> unique;  // of two files of one process, the one that holds more
  for (ProcessTrace& process : run.processes) {
    const auto same = std::find_if(unique.begin(), unique.end(), [&](const ProcessTrace& known) {
      return process.who.random_id != 0 && known.who.random_id == process.who.random_id &&
             known.who.pid == process.who.pid;
    });
    if (same == unique.end()) {
      unique.push_back(std::move(process));
      continue;
    }
    if (process.records > same->records) std::swap(process, *same);
    same->notes.push_back(process.who.file + " is a second copy of a process that is counted already: left out");
  }
  run.processes = std::move(unique);
  take_ranks_of_communicators(run.processes);
  if (request.rank)
    std::erase_if(run.processes, [&](const ProcessTrace& process) { return process.who.rank != *request.rank; });
  if (run.processes.empty())
    return Failure{InputError{"no process of rank " + request.rank.value_or("?") + " in these traces"}};
  if (request.last) keep_newest_run(run.processes);
  find_wall(run);
  if (run.origin) run.origin = request.from && !window.whole() ? window.from - *request.from : first;
  return run;
}

// The steps of a part of the run are those of the whole, with their numbers: of a process that was faster than others not all that lie in
// that time.
void keep_steps(const RunSteps& whole, TimeWindow window, std::pair<u64, u64> asked_for, LoadedRun& part) {
  for (ProcessTrace& process : part.processes) {
    for (const RunSteps::Process& known : whole.processes) {
      if (known.file != process.who.file) continue;
      process.steps = steps_between(known.steps, window.of_operations().from, window.of_operations().to, asked_for);
    }
  }
}

}  // namespace

u64 bytes_of(const std::vector<std::string>& files) {
  u64 bytes = 0;
  struct stat about {};
  for (const std::string& file : files)
    if (::stat(file.c_str(), &about) == 0 && about.st_size > 0) bytes += static_cast<u64>(about.st_size);
  return bytes;
}

std::string describe(const std::string& path, const OpenError& error) { return path + ": " + error.message; }

std::optional<TimeSpan> span_of_records(const TraceReader& reader) {
  std::optional<TimeSpan> span;
  for (const RecordChunk& chunk : reader.record_chunks()) {
    if (reader.threads()[chunk.thread].tid == 0 || chunk.begin == 0)
      continue;  // definitions may be older than the first call
    const TimeSpan own{reader.clock().nanos(chunk.begin), reader.clock().nanos(std::max(chunk.begin, chunk.end))};
    span = span ? together(*span, own) : own;
  }
  return span;
}

Result<TimeWindow, InputError> window_of(const LoadRequest& request) {
  TimeWindow window;
  if (!request.from && !request.to) return window;
  std::optional<TimeSpan> whole;
  for (const std::string& file : request.files) {
    auto opened = TraceReader::open(file);
    const auto own = opened ? span_of_records(opened.value()) : std::nullopt;
    if (own) whole = whole ? together(*whole, *own) : *own;
  }
  if (!whole) return window;
  const Nanos length = whole->to - whole->from;
  if (request.from && *request.from > length)
    return Failure{InputError{"--from " + human_nanos(*request.from) + ": the run ended " + human_nanos(length) +
                              " after its first call"}};
  if (request.from) window.from = whole->from + *request.from;
  if (request.to) window.to = whole->from + *request.to;
  return window;
}

ProcessTrace load_process(const TraceReader& reader, TimeWindow window, const std::string& step_pattern,
                          Witness* witness, Allowance* shared, u64 read_twice) {
  std::optional<Allowance> own;
  Allowance& allowance = shared ? *shared : own.emplace(reader.data_bytes());
  const Wanted wanted = witness ? witness->wants() : Wanted::All;
  const auto name_and_find_steps = [&](ProcessTrace& read) {
    find_packages(read);
    name_native_frames(read.lines, read.who.package_folders);
    if (wanted != Wanted::Operations) find_steps(read, step_pattern);
  };
  ProcessTrace process = fold(reader, window, allowance, witness, kEndOfTime, name_and_find_steps);
  if (read_twice && window.whole() && wanted == Wanted::All && !allowance.spent())
    add_loop(reader, process, read_twice);
  return process;
}

RunSteps steps_of(const LoadedRun& whole) {
  RunSteps steps;
  for (const ProcessTrace& process : whole.processes) steps.processes.push_back({process.who.file, process.steps});
  steps.why_none = why_no_steps(whole);
  steps.origin = whole.origin;
  return steps;
}

Result<TimeWindow, InputError> window_of_steps(const RunSteps& whole, std::pair<u64, u64> steps_asked_for) {
  std::optional<TimeWindow> window;
  u64 most = 0;
  const auto [first, last] = steps_asked_for;
  for (const RunSteps::Process& process : whole.processes) {
    const std::vector<Step>& steps = process.steps.steps;
    most = std::max<u64>(most, steps.size());
    if (first == 0 || first > steps.size()) continue;
    const StepSpan span = span_of(process.steps, steps[first - 1], steps[std::min<u64>(last, steps.size()) - 1]);
    window = window ? together(*window, window_of(span)) : window_of(span);
  }
  if (window) return *window;
  return Failure{InputError{most ? "there are steps 1 to " + std::to_string(most)
                                 : "no steps were found in these traces: " + whole.why_none}};
}

Result<LoadedRun, InputError> load_steps(const LoadRequest& request, const RunSteps& whole, RunWitness* witness) {
  const auto window = window_of_steps(whole, *request.steps);
  if (!window) return Failure{window.error()};
  auto part = load_once(request, window.value(), witness);
  if (!part) return part;
  u64 most = 0;
  for (const RunSteps::Process& process : whole.processes) most = std::max<u64>(most, process.steps.steps.size());
  keep_steps(whole, window.value(), *request.steps, part.value());
  const auto [first, last] = *request.steps;
  part.value().only_steps = "steps " + std::to_string(first) + " to " + std::to_string(std::min(last, most));
  part.value().origin = whole.origin;
  return part;
}

Result<LoadedRun, InputError> load_run(const LoadRequest& request, RunWitness* witness) {
  const auto window = window_of(request);
  if (!window) return Failure{window.error()};
  auto whole = load_once(request, window.value(), request.steps ? nullptr : witness);
  if (!whole || !request.steps) return whole;
  return load_steps(request, steps_of(whole.value()), witness);
}

}  // namespace gputrace
