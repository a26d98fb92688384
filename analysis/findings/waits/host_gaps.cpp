// What idle-gaps says of the time that the host took while a device waited: whom it waited for, what it slept or read, what lies behind which line, what
// others did meanwhile, and what to do about it.
#include "analysis/findings/waits/host_gaps.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "analysis/advice/advice.h"
#include "analysis/run/compiling.h"
#include "analysis/run/host_use.h"
#include "analysis/run/input_ops.h"
#include "analysis/run/input_wait.h"
#include "analysis/run/processor_use.h"
#include "analysis/words/human.h"
#include "trace/schema.h"

namespace gputrace {

bool is_good_part(u64 part, u64 of) {
  return part != 0 && static_cast<double>(part) >= kGoodPart * static_cast<double>(of);
}

void say_files(const FilesUsed& used, u64 of_ns, const std::string& where, Finding& finding) {
  if (!is_good_part(used.total_ns, of_ns)) return;
  const std::string path = used.path.empty() ? "files without a name" : used.path;
  finding.text += fmt::format("; file calls {} took {} of the run ({} in {} calls), most of it {} of {}", where,
                              human_nanos(static_cast<Nanos>(used.total_ns)), human_bytes(used.bytes),
                              human_count(used.count), word_of(used.call), path);
  finding.evidence.emplace_back("io_ns", number(used.total_ns));
  finding.evidence.emplace_back("io_bytes", number(used.bytes));
  finding.evidence.emplace_back("io_calls", number(used.count));
  finding.evidence.emplace_back("io_call", std::string(word_of(used.call)));
  finding.evidence.emplace_back("io_path", path);
}

void say_wait(const std::optional<LongWait>& waited, u64 of_ns, Finding& finding) {
  if (!waited || !is_good_part(waited->total_ns, of_ns)) return;
  const bool is_python = waited->what == WaitFor::InterpreterLock;
  finding.text += fmt::format("; its thread waited {} of the run {}({}, {} times)",
                              human_nanos(static_cast<Nanos>(waited->total_ns)),
                              is_python ? "for Python's lock, which other threads held " : "at " + waited->site + " ",
                              word_of(waited->what), human_count(waited->count));
  finding.evidence.emplace_back("wait_for", std::string(word_of(waited->what)));
  finding.evidence.emplace_back("wait_ns", number(waited->total_ns));
  finding.evidence.emplace_back("wait_count", number(waited->count));
  if (is_python) finding.fix = kFixOfInterpreterLock;
}

namespace {

constexpr const char* kFixOfSleep =
    "let it wait for what it needs (an event, a future, a descriptor) instead of for some time, or sleep in another "
    "thread";

// Threads that begin, launch and end, one for each request or batch: what comes before the first call of one is no work of its own.
constexpr u64 kManyThreads = 10;

// "; 9.2 ms of that it sleeps (most of it in retry.py call, at train.py:8)": `what` is "sleeps"; `key`_ns, `key`_in and `key`_at.
void say_sampled(const SampledWait& wait, const std::string& what, const std::string& key, Finding& finding) {
  const std::string place = wait.function.empty() ? "at " + wait.site : "in " + wait.function + ", at " + wait.site;
  finding.text +=
      fmt::format("; {} of that it {} (most of it {})", human_nanos(static_cast<Nanos>(wait.total_ns)), what, place);
  finding.evidence.emplace_back(key + "_ns", number(wait.total_ns));
  finding.evidence.emplace_back(key + "_in", text_or_null(wait.function));
  finding.evidence.emplace_back(key + "_at", wait.site);
}

// Of the host's time, what lay in short gaps; 0: it is not known, or not most of what it does at the line that the finding names. There the
// device is held up all along, and no place is that something could be moved away from; a batch, a file, a log line take longer. Waiting for
// batches is another finding's.
u64 in_short_gaps(const DeviceTimes& device, const IdleSite& site, u64 host_ns, u64 batches_ns) {
  u64 in_long = 0;
  for (const IdleGap& gap : device.longest) {
    if (gap.length() >= IdleSite::kLongGap)
      in_long += static_cast<u64>(gap.parts[static_cast<unsigned>(IdleCause::Host)]);
  }
  const bool all_long_kept =
      device.longest.size() < DeviceTimes::kGapsKept || device.longest.back().length() < IdleSite::kLongGap;
  const u64 loading = std::min(batches_ns, site.in_long_ns);
  return all_long_kept && 2 * (site.in_long_ns - loading) <= site.host_ns - loading
             ? host_ns - std::min(host_ns, in_long)
             : 0;
}

void give_others(bool threads, const SampledShare& work, Finding& finding) {
  finding.evidence.emplace_back("others", std::string(threads ? "threads" : "processes"));
  finding.evidence.emplace_back("others_at", work.site);
  finding.evidence.emplace_back("others_share", work.share);
}

// Of processes that it forked or of its other threads, whichever were found at work more often.
void say_work_of_others(const ProcessTrace& process, bool asleep_too, Finding& finding) {
  const auto of_processes = work_of_others(process, LineOf::Worker, asleep_too);
  const auto of_threads = work_of_others(process, LineOf::OtherThread, asleep_too);
  if (!of_processes && !of_threads) return;
  const bool threads = !of_processes || (of_threads && of_threads->samples > of_processes->samples);
  const SampledShare& work = threads ? *of_threads : *of_processes;
  finding.text +=
      fmt::format("; {:.0f} % of what {} {} meanwhile is {}", work.share * 100,
                  threads ? "its other threads" : "processes that it forked", asleep_too ? "do" : "work", work.site);
  give_others(threads, work, finding);
}

// What others used while that thread waited so long. Those that call CUDA as well worked for it only as far as looks found them running
// meanwhile; without enough looks, all the time.
std::optional<u64> used_by_others(const ProcessTrace& process, i32 tid, u64 waits_ns) {
  const std::optional<OthersUse> use = cpu_of_others(process, tid);
  if (!use) return {};
  const SampleFacts& samples = process.samples;
  if (samples.asleep < kFewSamples) return use->others_ns + use->callers_ns;
  const double running = static_cast<double>(samples.peers_ran) / static_cast<double>(samples.asleep);
  return use->others_ns + std::min(use->callers_ns, static_cast<u64>(running * static_cast<double>(waits_ns)));
}

// Nobody asks a loop that trains: what it waits for is data.
bool trains(const StepFacts& steps) {
  u64 counted = 0, training = 0;
  for (const Step& step : steps.steps) {
    counted += step.counted;
    training += step.counted && step.phase == RunPhase::Training;
  }
  return 2 * training > counted;
}

// Waiting for others is no work that could be done less of. Where nothing else of the program worked meanwhile either, what is waited for
// comes from outside, and no change of the host's own work brings that time back: returns how much. (What a framework waits for in a function of its
// own does not, nor what a loop that trains does, nor what is compiled: that may be done by a process of a compiler's, of which nothing is seen.)
u64 add_waiting(const ProcessTrace& process, i32 tid, const SampledWait& waits, u64 host_ns, Finding& finding) {
  constexpr u64 kFewOf = 10;
  if (!is_good_part(waits.total_ns, host_ns)) return 0;
  const std::optional<u64> others = used_by_others(process, tid, waits.total_ns);
  const bool training = trains(process.steps);
  const u64 unseen = cpu_of_unseen(process, tid);  // many short-lived threads: they do not come from outside
  const bool from_outside = others && 2 * (*others + unseen) <= waits.total_ns && kFewOf * unseen <= waits.total_ns &&
                            2 * waits.in_framework_ns <= waits.total_ns && !training &&
                            2 * compiling_of(process).ns <= waits.total_ns;
  say_sampled(waits,
              from_outside ? "waits for what comes from outside"
              : others     ? "waits for other threads or processes"
                           : "waits for others",
              "waits", finding);
  finding.evidence.emplace_back("others_cpu_ns", others ? number(*others + unseen) : Value());
  if (from_outside) finding.evidence.emplace_back("outside_ns", number(waits.total_ns));
  if (!from_outside) say_work_of_others(process, training, finding);
  return from_outside ? waits.total_ns : 0;
}

// Lines have what all devices waited for them: of that, the part of one of which the host made `host_ns`.
double part_of_device(const ProcessTrace& process, u64 host_ns) {
  u64 of_all = 0;
  for (const DeviceTimes& device : process.device.devices)
    of_all += device.causes[static_cast<unsigned>(IdleCause::Host)].total_ns;
  return of_all == 0 ? 1 : static_cast<double>(host_ns) / static_cast<double>(of_all);
}

SampledWaits waits_before(const ProcessTrace& process, u64 host_ns) {
  SampledWaits waits = sampled_waits(process);
  const double part = part_of_device(process, host_ns);
  for (SampledWait& wait : waits.kinds) wait.total_ns = static_cast<u64>(part * static_cast<double>(wait.total_ns));
  return waits;
}

// What to do about the kind of waiting that most of the host's time is; empty: about none.
std::string fix_of_waits(const ProcessTrace& process, const SampledWaits& waits, bool for_outside, u64 host_ns) {
  const auto is_most = [&](HostWait kind) { return 2 * waits.of(kind).total_ns > host_ns; };
  if (is_most(HostWait::Others))
    return for_outside ? "nothing of the program's own work: it is asked too seldom for the device; gathering requests "
                         "for a shorter time answers them sooner"
                       : advise(Advice::MakeAhead, process);
  if (is_most(HostWait::InterpreterLock)) return kFixOfInterpreterLock;
  if (is_most(HostWait::Sleep)) return kFixOfSleep;
  if (is_most(HostWait::Files))
    return "read and write beside the device's work, in another thread or process; keep what is read again in memory";
  return "";
}

// Who had Python's lock: where the other threads ran meanwhile; not said twice.
void say_holders(const ProcessTrace& process, Finding& finding) {
  const auto known = [](const auto& each) { return each.first == "others_at"; };
  if (std::any_of(finding.evidence.begin(), finding.evidence.end(), known)) return;
  const auto held = work_of_others(process, LineOf::OtherThread);
  if (!held) return;
  finding.text += fmt::format("; {:.0f} % of what those run meanwhile is {}", held->share * 100, held->site);
  give_others(true, *held, finding);
}

// What was counted stands for itself: files (`io`) and Python's lock (`waits`).
void add_own_waits(const ProcessTrace& process, const SampledWaits& waits, u64 host_ns, Finding& finding) {
  if (process.samples.waits.empty() && is_good_part(waits.of(HostWait::InterpreterLock).total_ns, host_ns)) {
    say_sampled(waits.of(HostWait::InterpreterLock), "waits for Python's lock, which other threads hold", "python_lock",
                finding);
    say_holders(process, finding);
  }
  if (is_good_part(waits.of(HostWait::Sleep).total_ns, host_ns))
    say_sampled(waits.of(HostWait::Sleep), "sleeps", "sleeps", finding);
  if (process.samples.files.empty() && is_good_part(waits.of(HostWait::Files).total_ns, host_ns))
    say_sampled(waits.of(HostWait::Files), "waits for files", "files", finding);
}

// Advice of the loop's own: a loader that the loop does not wait for need not load faster. Not looked at: whether the host works or waits is not known.
void advise_on_host(const ProcessTrace& process, const DeviceTimes& device, const IdleSite& site, u64 host_ns,
                    bool looked_at, Finding& finding) {
  constexpr u64 kFew = 10;  // one part of so many
  const auto input = input_wait_of(process.steps);
  const u64 in_short = in_short_gaps(device, site, host_ns, input ? input->batches_ns : 0);
  if (in_short != 0) {
    const std::string part = in_short == host_ns ? "all" : human_nanos(static_cast<Nanos>(in_short));
    finding.text += "; " + part + " of that in gaps shorter than 1 ms";
    finding.evidence.emplace_back("short_gaps_ns", number(in_short));
    finding.fix = std::string("give the device more for each launch") +
                  (looked_at ? ", since the host is busy all along: " : ": ") + fewer_launches(process) +
                  ", less of the program's own work from launch to launch";
  } else if (input && process.steps.batches != 0 && kFew * input->batches_ns <= host_ns) {
    finding.fix = "do that work beside the device's (before a wait, in another thread or process), or less often";
  }
}

// Of what the threads that call CUDA waited for, as libc's functions tell it (`waits`), the kind that they waited longest for.
std::optional<std::pair<WaitFor, WaitUses>> longest_kind(const ProcessTrace& process) {
  const std::set<i32> callers = callers_of(process);
  std::map<WaitFor, WaitUses> kinds;
  for (const WaitUses& uses : process.samples.waits) {
    if (uses.process != 0 || !callers.contains(uses.tid)) continue;
    kinds[uses.what].count += uses.count;
    kinds[uses.what].total_ns += uses.total_ns;
  }
  const auto longest = std::max_element(
      kinds.begin(), kinds.end(), [](const auto& a, const auto& b) { return a.second.total_ns < b.second.total_ns; });
  if (longest == kinds.end()) return {};
  return *longest;
}

// Looks at the lines of threads that call CUDA found something: of native code they do not.
bool is_looked_at(const ProcessTrace& process) {
  const auto& threads = process.samples.threads;
  return std::any_of(threads.begin(), threads.end(),
                     [](const SampledThread& thread) { return thread.calls_cuda() && !thread.points.empty(); });
}

// Of the host's time, for how long at least nothing that calls CUDA ran, by what the kernel says of those threads: they waited or slept, which is
// no work that could be less. 0: that is not known.
u64 stood_still(const ProcessTrace& process, const DeviceTimes& device, u64 host_ns) {
  const u64 ran = callers_ran(process, device.span_ns()).value_or(host_ns);
  return host_ns - std::min(host_ns, ran);
}

// True: the fix is of that, since what they wait for is not known, or it is most of that time, or each waits most of it for one kind of thing.
bool say_standstill(const ProcessTrace& process, u64 still, u64 host_ns, Finding& finding) {
  if (!is_good_part(still, host_ns)) return false;
  finding.text +=
      fmt::format("; for {} of that at least nothing that calls CUDA ran", human_nanos(static_cast<Nanos>(still)));
  finding.evidence.emplace_back("stood_still_ns", number(still));
  const auto longest = longest_kind(process);
  if (longest) {
    const auto& [what, uses] = *longest;
    finding.text += fmt::format(" (what those threads wait for longest is {}: {} in {} times, all threads together)",
                                word_of(what), human_nanos(static_cast<Nanos>(uses.total_ns)), human_count(uses.count));
    finding.evidence.emplace_back("stood_still_for", std::string(word_of(what)));
  }
  const bool each_waits = longest && 2 * longest->second.total_ns > callers_of(process).size() * host_ns;
  if (longest && 2 * still <= host_ns && !each_waits) return false;
  finding.fix = longest && longest->first == WaitFor::Sleep ? kFixOfSleep
                : longest ? "have ready what it waits for before it is needed: made beside the device's work, by more "
                            "threads"
                          : "look at what it waits for (`gputrace run --collect +waits`): have that ready before it "
                            "is needed";
  return true;
}

// The work lies behind the first line and before the second: said where these are two, and it is a good part of all.
void add_pause(const ProcessTrace& process, u64 host_ns, Finding& finding) {
  PausedLines pause = lines_of_pauses(process);
  pause.length_ns = static_cast<u64>(part_of_device(process, host_ns) * static_cast<double>(pause.length_ns));
  if (pause.after.empty() || pause.before.empty() || pause.after == pause.before) return;
  if (!is_good_part(pause.length_ns, host_ns)) return;
  finding.text += fmt::format("; {} of that between {} and {}", human_nanos(static_cast<Nanos>(pause.length_ns)),
                              pause.after, pause.before);
  finding.evidence.emplace_back("pause_after", pause.after);
  finding.evidence.emplace_back("pause_before", pause.before);
  finding.evidence.emplace_back("pause_ns", number(pause.length_ns));
}

// A loader that starts its workers anew for each epoch.
void add_loader_starts(const ProcessTrace& process, u64 host_ns, Finding& finding) {
  const auto spent = static_cast<u64>(part_of_device(process, host_ns) * static_cast<double>(loader_starts(process)));
  if (!is_good_part(spent, host_ns)) return;
  finding.text += fmt::format("; {} of that DataLoader starts its worker processes and ends them",
                              human_nanos(static_cast<Nanos>(spent)));
  finding.evidence.emplace_back("loader_starts_ns", number(spent));
  if (2 * spent <= host_ns) return;
  const Maker by = calls_made(process).by;  // the loader is PyTorch's, whoever calls CUDA
  finding.fix = advise(Advice::KeepWorkers, by == Maker::Transformers ? by : Maker::PyTorch);
}

// What of the host's work was file calls or waiting, at the line where that work is.
void add_use(const ProcessTrace& process, const DeviceTimes& device, u64 host_ns, Finding& finding) {
  const std::string& site = finding.site;
  if (!process.samples.files.empty()) say_files(files_used_at(process, site), host_ns, "at " + site, finding);
  if (process.samples.waits.empty()) return;
  say_wait(longest_wait_at(process, thread_of_host_time(process, device), site), host_ns, finding);
}

}  // namespace

u64 say_host_time(const ProcessTrace& process, const DeviceTimes& device, const IdleSite& site, u64 host_ns,
                  Finding& finding) {
  add_pause(process, host_ns, finding);
  const SampledWaits waits = waits_before(process, host_ns);
  const u64 from_outside =
      add_waiting(process, thread_of_host_time(process, device), waits.of(HostWait::Others), host_ns, finding);
  add_own_waits(process, waits, host_ns, finding);
  const bool looked_at = is_looked_at(process);
  if (const std::string fix = fix_of_waits(process, waits, from_outside != 0, host_ns); !fix.empty())
    finding.fix = fix;
  else if (looked_at || !say_standstill(process, stood_still(process, device, host_ns), host_ns, finding))
    advise_on_host(process, device, site, host_ns, looked_at, finding);
  add_loader_starts(process, host_ns, finding);
  add_use(process, device, host_ns, finding);
  return from_outside;
}

bool say_new_threads(const DeviceTimes& device, u64 host_ns, Finding& finding) {
  const IdleSum& before = device.before_new_threads;
  if (before.count < kManyThreads || 2 * before.total_ns <= host_ns) return false;
  finding.severity = Severity::Hint;
  finding.text += fmt::format("; {} of that before the first call of each of {} threads",
                              human_nanos(static_cast<Nanos>(before.total_ns)), human_count(before.count));
  finding.fix =
      "look at what the program waits for before it begins a thread: where that is a request from outside, "
      "the device is asked too seldom; where it is its own work, do it beside the device's";
  finding.evidence.emplace_back("new_threads", number(before.count));
  finding.evidence.emplace_back("before_new_threads_ns", number(before.total_ns));
  return true;
}

u64 say_compiling(const ProcessTrace& process, u64 host_ns, Finding& finding) {
  const Compiling compiling = compiling_of(process);
  if (2 * compiling.ns <= host_ns) return 0;
  finding.severity = Severity::Hint;
  finding.text +=
      fmt::format("; {} of the time {} compiles", human_nanos(static_cast<Nanos>(compiling.ns)), compiling.compiler);
  finding.fix = "keep what is compiled from run to run: " + advise(Advice::KeepCompiled, process);
  finding.evidence.emplace_back("compiling_ns", number(compiling.ns));
  return compiling.ns;
}

}  // namespace gputrace
