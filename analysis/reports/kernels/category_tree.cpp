// Category, under it its kernels, under each the shapes that it was launched in.
#include <algorithm>
#include <array>
#include <tuple>

#include "analysis/kernels/kernel_categories.h"
#include "analysis/reports/section_report.h"
#include "analysis/run/device_time.h"

namespace gputrace {
namespace {

struct Branch {
  u64 executions = 0, total_ns = 0;
  std::vector<const CategorizedKernel*> kernels;
};

std::string shape_text(const CategorizedKernel::Shape& shape) {
  std::string text = "grid " + shape.grid + "  block " + shape.block;
  if (shape.dynamic_shared) text += "  dynamic shared " + std::to_string(shape.dynamic_shared) + " B";
  return text;
}

void fill_category_tree(const LoadedRun& run, Table& table) {
  const bool timed = device_collected(run);
  if (!timed) table.notes.push_back("times are not known: " + why_no_device_times(run));
  const auto kernels = categorized_kernels(run);
  std::array<Branch, kCategories> branches;
  u64 total = 0;
  for (const CategorizedKernel& kernel : kernels) {
    Branch& branch = branches[static_cast<std::size_t>(kernel.choice.category)];
    branch.executions += kernel.executions, branch.total_ns += kernel.total_ns, total += kernel.total_ns;
    branch.kernels.push_back(&kernel);
  }
  const auto add = [&](i64 level, std::string what, u64 ns, u64 executions, Value rule, Value symbol) {
    const auto share = ratio(ns, total);
    table.rows.push_back({std::move(what), timed ? number(ns) : Value(), timed && share ? Value(*share) : Value(),
                          number(executions), std::move(rule), level, std::move(symbol)});
  };
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < branches.size(); ++i) {
    if (branches[i].executions) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const Branch &left = branches[a], &right = branches[b];
    return std::tie(left.total_ns, left.executions) > std::tie(right.total_ns, right.executions);
  });
  for (const std::size_t i : order) {
    add(0, category_name(static_cast<Category>(i)), branches[i].total_ns, branches[i].executions, {}, {});
    for (const CategorizedKernel* kernel : branches[i].kernels) {
      add(1, kernel->name, kernel->total_ns, kernel->executions, kernel->choice.rule, kernel->symbol);
      for (const auto& shape : kernel->shapes) add(2, shape_text(shape), shape.total_ns, shape.executions, {}, {});
    }
  }
}

}  // namespace

extern constexpr SectionReport category_tree_report = {
    .section = "category-tree",
    .title = "Kind of work, kernel, launch shape",
    .answers = "category, under it its kernels, under each its launch shapes",
    .shown = Shown::OnDemand,
    .needs = {Need::Calls},
    .columns = {{"what", Unit::Text, Hint::Tree},
                {"total_ns", Unit::Nanos},
                {"share", Unit::Ratio},
                {"launches", Unit::Count},
                {"rule", Unit::Text, Hint::Prose},
                {"level", Unit::None, Hint::Detail},
                {"symbol", Unit::Text, Hint::Detail}},
    .notes = {"share = of the time of all kernels; launches = executions"},
    .fill = fill_category_tree,
};

}  // namespace gputrace
