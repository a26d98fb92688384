// Kernels that could use tensor cores and do not: by kernel, call and reason, with what they would gain at most.
#include <map>
#include <tuple>

#include "analysis/kernels/kernel_rows.h"
#include "analysis/kernels/tensor_cores.h"
#include "analysis/reports/section_report.h"
#include "analysis/run/device_time.h"

namespace gputrace {
namespace {

void fill_tensor_core_misses(const LoadedRun& run, Table& table) {
  struct Sum {
    u64 launches = 0, total_ns = 0;
    double gain_ns = 0;
    std::string precision;
  };
  std::map<std::tuple<std::string, std::string, std::string>, Sum> sums;
  for_each_judged(run, [&sums](const JudgedKernel& each) {
    const TensorCoreVerdict& verdict = each.verdict;
    if (verdict.used != false || verdict.eligible != true) return;
    const Function& function = each.process.functions[each.process.kernels[each.kernel].shape.function];
    Sum& sum = sums[{display_name(function), verdict.call, verdict.reason}];
    sum.launches += each.executions;
    sum.total_ns += each.nanos;
    sum.gain_ns += static_cast<double>(each.nanos) * verdict.gain;
    sum.precision = verdict.precision;
  });
  const bool timed = device_collected(run);
  for (const auto& [key, sum] : sums) {
    const bool known = timed && sum.total_ns > 0;
    table.rows.push_back({std::get<0>(key), text_or_null(std::get<1>(key)), text_or_null(std::get<2>(key)),
                          text_or_null(sum.precision), number(sum.launches), known ? number(sum.total_ns) : Value(),
                          known ? rounded(sum.gain_ns) : Value()});
  }
  if (!timed) table.notes.push_back("times are not known: " + why_no_device_times(run));
  sort_table(table, timed ? "gain_ns" : "launches");
}

}  // namespace

extern constexpr SectionReport tensor_core_misses_report = {
    .section = "tensor-core-misses",
    .title = "Could use tensor cores and do not",
    .answers =
        "kernels that could use tensor cores and do not: library call, reason (`math mode` `precision` `dimension` "
        "`alignment` `layout` `not told`), time, gain at most",
    .shown = Shown::Filled,
    .needs = {Need::Calls, Need::Code},
    .columns = {{"kernel", Unit::Text, Hint::Kernel},
                {"call", Unit::Text},
                {"reason", Unit::Text},
                extra({"precision", Unit::Text}),
                extra({"launches", Unit::Count}),
                {"total_ns", Unit::Nanos},
                {"gain_ns", Unit::Nanos}},
    .notes =
        {"gain = at most, for a kernel bound by arithmetic: its time x (1 - ordinary rate / matrix rate of the device, "
         "dense)",
         "reason: math mode = the call does not allow it (tf32, or pedantic); precision = it computes in fp32; "
         "dimension, "
         "alignment = sizes or leading dimensions are no multiples of 16 bytes; layout = 8-bit operands not transposed "
         "as "
         "needed"},
    .fill = fill_tensor_core_misses,
};

}  // namespace gputrace
