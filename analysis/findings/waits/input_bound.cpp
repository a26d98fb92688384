// A loop that waits for its next batch.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/advice/advice.h"
#include "analysis/findings/rules.h"
#include "analysis/gains/gains.h"
#include "analysis/lines/loaders.h"
#include "analysis/lines/sites.h"
#include "analysis/run/host_use.h"
#include "analysis/run/input_ops.h"
#include "analysis/run/input_wait.h"
#include "analysis/words/human.h"
#include "trace/schema.h"

namespace gputrace {
namespace {

// The loader is PyTorch's, whoever calls CUDA; a trainer that makes it has words of its own.
std::string fix_of_loader(const ProcessTrace& process, const std::optional<BatchMaking>& making) {
  const bool sleeps = making && 2 * making->asleep_share > 1;
  const std::string& loader = process.steps.loader;
  const Maker known = calls_made(process).by;
  const Maker maker = known == Maker::Transformers || is_keras(known) ? known : Maker::PyTorch;
  const std::string of_workers =
      sleeps
          ? "; workers need no processor while they sleep, so there may be many; fewer and larger reads, data kept near"
          : ", or less work for each batch: cheaper transforms, data kept decoded";
  if (making && making->loader == kPyDataset) return advise(Advice::MoreWorkers, Maker::Keras) + of_workers;
  const bool is_torch = loader == kTorchLoader, has_workers = is_torch && !loader_processes(process).empty();
  // StatefulDataLoader's names hold the DataLoader's.
  const auto iterates = [&](std::string_view name) { return loader.find(name) != std::string::npos; };
  if (iterates("SingleProcessDataLoaderIter") || (is_torch && !has_workers))
    return advise(Advice::LoadAhead, maker) +
           (sleeps ? "; they need no processor while they sleep, so there may be many" : "");
  if (iterates("MultiProcessingDataLoaderIter") || has_workers) return advise(Advice::MoreWorkers, maker) + of_workers;
  if (loader == kTfData) return advise(Advice::LoadAhead, Maker::TensorFlow);
  if (loader == kPyDataset) return advise(Advice::LoadAhead, Maker::Keras);
  if (loader == kGrain) return advise(Advice::LoadAhead, Maker::Jax);
  if (loader == kTorchData)
    return advise(Advice::MoreWorkers, Maker::General) +
           " (num_workers of ParallelMapper; method='process' where they compute in Python)" + of_workers;
  if (loader == kRayData)
    return advise(Advice::MoreWorkers, Maker::General) +
           " (concurrency= of Dataset.map and map_batches, more CPUs for Ray, prefetch_batches= of "
           "iter_torch_batches)" +
           of_workers;
  // Those that load for themselves have options of their own.
  return advise(Advice::LoadAhead, loader == kHuggingFace || is_keras(known) ? known : Maker::General);
}

// What of making a batch was reading or waiting: of the thread itself, or of the workers, each of which has all of that time.
void add_reading(const ProcessTrace& process, u64 waited_ns, Finding& finding) {
  const std::size_t workers = loader_processes(process).size();
  if (workers != 0) return say_files(read_by_workers(process), waited_ns * workers, "of its workers", finding);
  say_files(read_by_loop(process), waited_ns, "within the loader", finding);
  const auto& devices = process.device.devices;
  if (process.samples.waits.empty() || devices.empty()) return;
  const auto worst = std::max_element(devices.begin(), devices.end(),
                                      [](const auto& a, const auto& b) { return a.idle_ns < b.idle_ns; });
  say_wait(longest_wait_at(process, thread_of_host_time(process, *worst), finding.site), waited_ns, finding);
}

// Who makes the batches, where, and whether that is work: what sleeps needs no processor.
void add_making(const BatchMaking& making, Finding& finding) {
  if (!making.site.empty()) finding.site = making.site;
  const bool beside = making.by != LineOf::Caller;
  if (beside && !making.site.empty()) {
    const std::string makers = making.by == LineOf::Worker ? "its workers"
                               : making.loader.empty()     ? "threads that load ahead"
                                                           : making.loader + "'s threads";
    finding.text +=
        fmt::format("; {:.0f} % of what {} do meanwhile is {}", making.site_share * 100, makers, making.site);
    finding.evidence.emplace_back("worker_share", making.site_share);
    finding.evidence.emplace_back("worker_samples", number(making.samples));
  }
  if (making.asleep_share < kGoodPart) return;
  finding.text +=
      fmt::format("; {} {:.0f} % of the time that batches take ({})", beside ? "they sleep" : "the loader sleeps",
                  making.asleep_share * 100, word_of(making.asleep_for));
  finding.evidence.emplace_back("asleep_share", making.asleep_share);
  finding.evidence.emplace_back("asleep_for", std::string(word_of(making.asleep_for)));
}

std::optional<Finding> judge_input(const ProcessTrace& process) {
  const StepFacts& steps = process.steps;
  const auto wait = input_wait_of(steps);
  if (!wait || wait->batches_ns == 0) return {};
  const u64 gain = wait->batches_ns;
  const double share = static_cast<double>(gain) / static_cast<double>(wait->steps_ns);
  if (share < kModeratelyInputBound) return {};
  const auto making = batch_making(process);
  const auto words = [&](u64 length) { return human_nanos(static_cast<Nanos>(length / wait->steps)); };
  Finding finding{"input-bound",
                  share >= kHighlyInputBound ? Severity::Problem : Severity::Warning,
                  "steps",
                  fmt::format("{}: of each step of {} the device waits {} ({:.0f} %) for the next batch{}",
                              input_verdict(share), words(wait->steps_ns), words(gain), share * 100,
                              steps.loader_sampled ? " of " + steps.loader + ", as looks at its threads found" : ""),
                  fix_of_loader(process, making),
                  {{"input_ns", number(gain)},
                   {"steps", number(wait->steps)},
                   {"share", share},
                   {"batches", number(steps.batches)},
                   {"batch_ns", number(steps.batch_ns)},
                   {"loader", steps.loader}}};
  finding.gain_ns = gain;
  finding.site = site_of_idle(process, IdleCause::Host).site;
  if (making) add_making(*making, finding);
  add_reading(process, gain, finding);
  return finding;
}

void find_input_bound(const LoadedRun& run, Findings& found) { add_worst(run, found, judge_input); }

}  // namespace

extern constexpr FindingRule input_bound_rule = {
    .findings = {{"input-bound", "a loop that waits for its next batch while the device has nothing to do"}},
    .needs = {Need::Calls, Need::Device},
    .find = find_input_bound,
    .of_the_loop = true,
};

}  // namespace gputrace
