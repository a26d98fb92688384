#include "analysis/lines/graph_breaks.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "analysis/lines/sites.h"

namespace gputrace {
namespace {

constexpr u64 kFewest = 16;  // launches: fewer are no loop

// Of "Model.torch_dynamo_resume_in_forward_at_12" 12.
std::optional<u32> broken_at(std::string_view function) {
  if (function.find("torch_dynamo_resume_in_") == std::string_view::npos) return {};
  const std::size_t at = function.rfind("_at_");
  if (at == std::string_view::npos) return {};
  u32 line = 0;
  const auto read = std::from_chars(function.data() + at + 4, function.data() + function.size(), line);
  return read.ec == std::errc() ? std::optional(line) : std::nullopt;
}

}  // namespace

std::vector<std::string> graph_breaks(const ProcessTrace& process) {
  const SourceLines& lines = process.lines;
  const FileNames names(process);
  std::map<std::string, u64> launches;  // behind each
  for (u32 origin = 0; origin < std::min(lines.origins.size(), lines.totals.size()); ++origin) {
    if (lines.totals[origin].launches == 0) continue;
    std::set<std::string> breaks;
    for (u32 frame = lines.origins[origin].frame; frame != 0 && frame < lines.frames.size();
         frame = lines.frames[frame].parent) {
      const SourceFrame& here = lines.frames[frame];
      if (const auto line = broken_at(here.function)) breaks.insert(names.of(here.file) + ":" + std::to_string(*line));
    }
    for (const std::string& each : breaks) launches[each] += lines.totals[origin].launches;
  }
  std::vector<std::pair<std::string, u64>> found;
  for (const auto& each : launches)
    if (each.second >= kFewest) found.push_back(each);
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<std::string> sites;
  for (const auto& each : found) sites.push_back(each.first);
  return sites;
}

}  // namespace gputrace
