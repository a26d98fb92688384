#include "analysis/kernels/kernel_categories.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "analysis/kernels/kernel_rows.h"
#include "analysis/words/human.h"

namespace gputrace {
namespace {

template <typename Items>
void most_expensive_first(Items& items) {
  std::stable_sort(items.begin(), items.end(), [](const auto& a, const auto& b) {
    return std::tie(a.total_ns, a.executions) > std::tie(b.total_ns, b.executions);
  });
}

}  // namespace

std::vector<CategorizedKernel> categorized_kernels(const LoadedRun& run) {
  struct Entry {
    CategorizedKernel kernel;
    std::map<std::tuple<std::string, std::string, u64>, CategorizedKernel::Shape> shapes;
  };
  // One kernel may be launched by a library in one place and by the program in another: the rule tells them apart.
  std::map<std::pair<std::string, std::string>, Entry> entries;
  for (const ProcessTrace& process : run.processes) {
    for (const KernelLaunches& group : process.kernels) {
      const u64 executions = group.executions();
      if ((executions == 0 && !group.unjoined) || group.shape.function == kNone) continue;
      const Function& function = process.functions[group.shape.function];
      const std::string symbol = function.symbol.empty() ? display_name(function) : function.symbol;
      CategoryChoice choice = categorize(name_of(function), evidence_of(function));
      Entry& entry = entries[{symbol, choice.rule}];
      if (entry.kernel.symbol.empty()) {
        entry.kernel.symbol = symbol;
        entry.kernel.name = name_of(function).brief;
        entry.kernel.choice = std::move(choice);
      }
      const std::string grid = triple(group.shape.grid), block = triple(group.shape.block);
      CategorizedKernel::Shape& shape = entry.shapes[{grid, block, group.shape.dynamic_shared}];
      shape.grid = grid, shape.block = block, shape.dynamic_shared = group.shape.dynamic_shared;
      shape.executions += executions, shape.total_ns += group.times.durations.sum();
      entry.kernel.executions += executions, entry.kernel.total_ns += group.times.durations.sum();
    }
  }
  std::vector<CategorizedKernel> kernels;
  for (auto& [key, entry] : entries) {
    for (auto& [shape_key, shape] : entry.shapes) entry.kernel.shapes.push_back(std::move(shape));
    most_expensive_first(entry.kernel.shapes);
    kernels.push_back(std::move(entry.kernel));
  }
  most_expensive_first(kernels);
  return kernels;
}

}  // namespace gputrace
