// Ranks of one job: the step of each and its parts, who is behind, and with what.
#include <fmt/format.h>

#include "analysis/reports/section_report.h"
#include "analysis/run/device_time.h"
#include "analysis/run/devices.h"
#include "analysis/steps/rank_steps.h"
#include "analysis/words/human.h"

namespace gputrace {
namespace {

constexpr StepCategory kRankParts[] = {
    StepCategory::Compute16, StepCategory::Compute32,   StepCategory::ComputeOther,  StepCategory::Collective,
    StepCategory::Input,     StepCategory::Launch,      StepCategory::Host,          StepCategory::Output,
    StepCategory::Other,     StepCategory::Compilation, StepCategory::DeviceToDevice};
static_assert(std::size(kRankParts) == kStepCategories);

std::string more_of_rank(const RankSteps& rank) {
  return fmt::format("{} +{}", step_category_name(rank.most), human_nanos(static_cast<Nanos>(rank.more_ns)));
}

// The one that its steps ran on.
Value device_of_rank(const LoadedRun& run, const DeviceMap& devices, const RankSteps& rank) {
  const auto& used = run.processes[rank.process].device.devices;
  return used.size() == 1 ? devices.number(rank.process, used.front().device) : Value();
}

void fill_ranks(const LoadedRun& run, Table& table) {
  const std::vector<RankSteps> ranks = rank_steps(run);
  if (ranks.empty()) {
    table.notes = {"fewer than two ranks with steps whose time is divided"};
    return;
  }
  if (const u32 start = run.processes[ranks.front().process].who.restart)
    table.notes.push_back(
        fmt::format("as they were started last (restart {}): what they did before is not in it", start));
  const DeviceMap devices(run);
  const RankSteps* const last = straggler_of(ranks);
  for (const RankSteps& rank : ranks) {
    Row row{rank.rank, run.processes[rank.process].who.host, device_of_rank(run, devices, rank),
            number(rank.steps.counted), number(rank.steps.mean_ns)};
    for (const StepCategory category : kRankParts) row.push_back(number(rank.part(category)));
    row.push_back(rank.score);
    row.emplace_back();
    if (last && last != &rank) row.back() = last->rank;
    row.emplace_back();
    if (rank.more_ns) row.back() = more_of_rank(rank);
    row.push_back(static_cast<i64>(run.processes[rank.process].who.pid));
    table.rows.push_back(std::move(row));
  }
}

}  // namespace

extern constexpr SectionReport ranks_report = {
    .section = "ranks",
    .title = "Ranks, by number",
    .answers =
        "rank: its mean step, where its time went, who waits for whom, and what the one that is behind does more",
    .shown = Shown::Filled,
    .needs = {Need::Calls, Need::Device},
    .columns = {{"rank", Unit::None},
                {"host", Unit::Text, Hint::Detail},
                {"device", Unit::None},
                {"steps", Unit::Count},
                {"step_mean_ns", Unit::Nanos},
                {"compute_16_ns", Unit::Nanos},
                {"compute_32_ns", Unit::Nanos},
                {"compute_other_ns", Unit::Nanos},
                {"collective_ns", Unit::Nanos},
                {"input_ns", Unit::Nanos},
                {"launch_ns", Unit::Nanos},
                {"host_ns", Unit::Nanos},
                {"output_ns", Unit::Nanos},
                {"other_ns", Unit::Nanos},
                {"compilation_ns", Unit::Nanos},
                {"device_to_device_ns", Unit::Nanos},
                {"straggler_score", Unit::Ratio},
                extra({"waits_for", Unit::None}),
                extra({"more", Unit::Text}),
                extra({"pid", Unit::None, Hint::Detail})},
    .notes = {"parts = of the mean step, as in steps; straggler_score = by how much of its step a rank would be slower "
              "than the median one if none waited for another: its step but for collectives, and what these take the "
              "rank that waits "
              "least, but no less than its host is busy; waits_for = the rank that is most "
              "behind, by a twentieth of a step or more; more = on what it spends most more than the median rank"},
    .fill = fill_ranks,
    .of_all_devices = true,
};

}  // namespace gputrace
