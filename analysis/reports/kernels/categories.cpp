// Kernels by the kind of work they do, with the rule that decided.
#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "analysis/kernels/kernel_categories.h"
#include "analysis/reports/section_report.h"
#include "analysis/run/device_time.h"

namespace gputrace {
namespace {

struct CategorySum {
  u64 launches = 0, total_ns = 0;
  std::set<std::string> kernels;
  std::map<std::string, std::pair<u64, u64>> rules;  // rule → time, launches
};

// The rule behind most of the time (of the launches, where there are no times), and how many others there are.
std::string deciding(const CategorySum& sum) {
  const auto most = std::max_element(sum.rules.begin(), sum.rules.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  std::string text = most->first;
  if (sum.rules.size() > 1) text += " (and " + std::to_string(sum.rules.size() - 1) + " more)";
  return text;
}

void fill_categories(const LoadedRun& run, Table& table) {
  const bool timed = device_collected(run);
  if (!timed) table.notes.push_back("times are not known: " + why_no_device_times(run));
  std::array<CategorySum, kCategories> sums;
  u64 total = 0;
  for (const CategorizedKernel& kernel : categorized_kernels(run)) {
    CategorySum& sum = sums[static_cast<std::size_t>(kernel.choice.category)];
    auto& rule = sum.rules[kernel.choice.rule];
    sum.kernels.insert(kernel.symbol);
    for (const auto& shape : kernel.shapes) {
      sum.launches += shape.executions, sum.total_ns += shape.total_ns, total += shape.total_ns;
      rule.first += shape.total_ns, rule.second += shape.executions;
    }
  }
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const CategorySum& sum = sums[i];
    if (sum.launches == 0) continue;
    const auto share = ratio(sum.total_ns, total);
    table.rows.push_back({std::string(category_name(static_cast<Category>(i))), timed ? number(sum.total_ns) : Value(),
                          timed && share ? Value(*share) : Value(), number(sum.launches),
                          number(static_cast<u64>(sum.kernels.size())), deciding(sum)});
  }
  sort_table(table, "launches");
  if (timed) sort_table(table, "total_ns");
  table.sort = timed ? "total_ns" : "launches";
}

}  // namespace

extern constexpr SectionReport categories_report = {
    .section = "categories",
    .title = "Kernels by kind of work",
    .answers =
        "gemm, convolution, attention, normalization/reduction, elementwise, copy, collective, sort/scan, random, "
        "other: time, share, the rule that decided",
    .shown = Shown::Filled,
    .needs = {Need::Calls},
    .columns = {{"category", Unit::Text},
                {"total_ns", Unit::Nanos},
                {"share", Unit::Ratio},
                {"launches", Unit::Count},
                {"kernels", Unit::Count},
                {"rule", Unit::Text, Hint::Prose}},
    .notes = {"launches = executions; kernels = different names; rule = why the most expensive ones of a category are "
              "in it; "
              "kernel by kernel in --section category-tree"},
    .fill = fill_categories,
};

}  // namespace gputrace
