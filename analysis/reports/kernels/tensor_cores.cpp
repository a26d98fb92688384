// Tensor cores: device time by kind of matrix instruction and input type; "none": kernels without any.
#include "analysis/kernels/tensor_cores.h"

#include <map>
#include <set>
#include <tuple>

#include "analysis/kernels/kernel_rows.h"
#include "analysis/reports/section_report.h"
#include "analysis/run/device_time.h"

namespace gputrace {
namespace {

struct PrecisionSum {
  std::set<std::pair<std::string, std::string>> kernels;  // module and name
  u64 launches = 0, total_ns = 0;
};

void fill_tensor_cores(const LoadedRun& run, Table& table) {
  using Key = std::tuple<int, std::string, std::string>;  // with, without, not known; kind; precision
  std::map<Key, PrecisionSum> sums;
  for_each_judged(run, [&sums](const JudgedKernel& each) {
    const Function& function = each.process.functions[each.process.kernels[each.kernel].shape.function];
    const TensorCoreVerdict& verdict = each.verdict;
    const int state = !verdict.used ? 2 : *verdict.used ? 0 : 1;
    PrecisionSum& sum = sums[{state, state == 1 ? "none" : verdict.kind, verdict.precision}];
    sum.kernels.emplace(image_key(each.process, function.module), display_name(function));
    sum.launches += each.executions;
    sum.total_ns += each.nanos;
  });
  const bool timed = device_collected(run);
  const DeviceTotals totals = device_totals(run);
  for (const auto& [key, sum] : sums) {
    const auto share = timed ? ratio(sum.total_ns, totals.kernel_ns) : std::nullopt;
    table.rows.push_back({text_or_null(std::get<1>(key)), text_or_null(std::get<2>(key)),
                          number(static_cast<u64>(sum.kernels.size())), number(sum.launches),
                          timed ? number(sum.total_ns) : Value(), share ? Value(*share) : Value()});
  }
  if (const std::string why = why_no_code(run); !why.empty()) table.notes.push_back("kinds are not told: " + why);
  if (!timed) table.notes.push_back("times are not known: " + why_no_device_times(run));
  sort_table(table, timed ? "total_ns" : "launches");
}

}  // namespace

extern constexpr SectionReport tensor_cores_report = {
    .section = "tensor-cores",
    .title = "Tensor cores: time by matrix instruction and input type",
    .answers = "device time by kind of matrix instruction (`none`: without any; empty: code not known) and input type",
    .shown = Shown::Filled,
    .needs = {Need::Calls, Need::Code},
    .columns = {{"kind", Unit::Text},
                {"precision", Unit::Text},
                {"kernels", Unit::Count},
                {"launches", Unit::Count},
                {"total_ns", Unit::Nanos},
                {"share", Unit::Ratio}},
    .notes = {"kind = matrix instructions in the kernel's machine code (\"none\": it has none; empty: its code is not "
              "known); "
              "an "
              "instruction that is there need not be executed"},
    .fill = fill_tensor_cores,
};

}  // namespace gputrace
