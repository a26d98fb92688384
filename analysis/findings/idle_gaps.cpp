// Single long times in which a device had nothing to do.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "analysis/facts/kind_names.h"
#include "analysis/findings/device_idle.h"
#include "analysis/findings/rules.h"
#include "analysis/words/human.h"

namespace gputrace {
namespace {

constexpr u64 kLongNs = 1'000'000;       // what users set nsys's 500 ms to
constexpr double kMuchOfTheSpan = 0.10;  // below it a hint

// Other causes have findings of their own.
std::string fix_of(IdleCause cause) {
  if (cause != IdleCause::Host) return "";
  return "let the host work ahead: prepare the next batch while the device computes (loader workers, prefetch)";
}

void find_idle_gaps(const LoadedRun& run, Findings& found) {
  u64 count = 0, total = 0, longest = 0, profiler = 0;
  bool more = false;
  std::array<u64, kIdleCauses> causes{};
  for (const ProcessTrace& process : run.processes) {
    for (const DeviceTimes& device : process.device.devices) {
      u64 here = 0;
      for (const IdleGap& gap : device.longest) {
        if (gap.length() < kLongNs) continue;
        if (gap.largest() == IdleCause::Collection) {  // not the program's
          profiler += gap.length();
          continue;
        }
        ++here;
        total += gap.length();
        longest = std::max(longest, gap.length());
        causes[static_cast<unsigned>(gap.largest())] += gap.length();
      }
      count += here;
      more = more || here == DeviceTimes::kGapsKept;
    }
  }
  if (count == 0) return;
  const auto most = std::max_element(causes.begin(), causes.end());
  const std::string cause = idle_cause_name(static_cast<IdleCause>(most - causes.begin()));
  const u64 span = device_span_ns(run);
  const double share = span ? static_cast<double>(total) / static_cast<double>(span) : 0;
  Finding finding{
      "idle-gaps",
      share >= kMuchOfTheSpan ? Severity::Warning : Severity::Hint,
      "idle",
      fmt::format("{}{} gap{} of 1 ms or more, {} in all ({:.0f} % of the device time), the longest {}; most "
                  "of it: {}",
                  more ? "at least " : "", human_count(count), count == 1 ? "" : "s",
                  human_nanos(static_cast<Nanos>(total)), share * 100, human_nanos(static_cast<Nanos>(longest)), cause),
      fix_of(static_cast<IdleCause>(most - causes.begin())),
      {{"threshold_ns", number(kLongNs)},
       {"count", number(count)},
       {"total_ns", number(total)},
       {"longest_ns", number(longest)},
       {"cause", cause},
       {"share", share},
       {"all_counted", !more}}};
  if (*most * 2 < total)
    finding.evidence.emplace_back("cause_share", static_cast<double>(*most) / static_cast<double>(total));
  if (profiler) finding.evidence.emplace_back("left_out_profiler_ns", number(profiler));
  finding.gain_ns = total;
  found.push_back(std::move(finding));
}

}  // namespace

extern constexpr FindingRule idle_gaps_rule = {
    .findings = {{"idle-gaps", "single times of 1 ms or more in which a device had nothing to do"}},
    .needs = {Need::Calls, Need::Device},
    .find = find_idle_gaps,
};

}  // namespace gputrace
