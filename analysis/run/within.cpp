#include "analysis/run/within.h"

#include <fmt/format.h>

#include <algorithm>

namespace gputrace {
namespace {

// They call the device; which of their functions did says less than who called them.
bool is_of_framework(const std::string& file) {
  static constexpr const char* kFrameworks[] = {"torch",      "functorch", "triton", "jax",  "jaxlib",
                                                "tensorflow", "numpy",     "cupy",   "numba"};
  for (const char* const packages : {"/site-packages/", "/dist-packages/"}) {
    const std::size_t at = file.rfind(packages);
    if (at == std::string::npos) continue;
    const std::size_t name = at + std::string_view(packages).size();
    const std::string package = file.substr(name, file.find('/', name) - name);
    return std::find(std::begin(kFrameworks), std::end(kFrameworks), package) != std::end(kFrameworks);
  }
  return true;  // the standard library, and what is made while the program runs
}

}  // namespace

u32 FunctionsWithin::number_of(const SourceFrame& frame) {
  const auto [at, fresh] = numbers_.try_emplace({frame.file, frame.function}, static_cast<u32>(functions_.size()));
  if (fresh)
    functions_.push_back({names_.of(frame.file) + " " + frame.function, !frame.native && !is_of_framework(frame.file)});
  return at->second;
}

void FunctionsWithin::add(const SourceFrames& frames, u32 stack, u64 amount) {
  const u32 own = own_frame(frames, stack);
  if (own == 0 || amount == 0) return;
  Path path{{}, amount};
  for (u32 frame = stack; frame != own && frame != 0; frame = frames[frame].parent)
    path.functions.push_back(number_of(frames[frame]));
  std::reverse(path.functions.begin(), path.functions.end());
  paths_[site_name(frames, own, names_)].push_back(std::move(path));
}

void FunctionsWithin::add(const SourceLines& lines, u32 origin, u64 amount) {
  if (origin < lines.origins.size()) add(lines.frames, lines.origins[origin].frame, amount);
}

Within FunctionsWithin::of(const std::string& site) const {
  const auto of_site = paths_.find(site);
  if (of_site == paths_.end()) return {};
  std::vector<const Path*> inside;
  u64 all = 0;
  for (const Path& path : of_site->second) inside.push_back(&path), all += path.amount;
  Within found;
  for (std::size_t depth = 0;; ++depth) {
    std::map<u32, u64> amounts;
    std::erase_if(inside, [&](const Path* path) { return path->functions.size() <= depth; });
    for (const Path* path : inside) amounts[path->functions[depth]] += path->amount;
    const auto most = std::max_element(amounts.begin(), amounts.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    if (most == amounts.end() || 2 * most->second < all) return found;
    const Function& function = functions_[most->first];
    if (function.told) found = {function.name, static_cast<double>(most->second) / static_cast<double>(all)};
    std::erase_if(inside, [&](const Path* path) { return path->functions[depth] != most->first; });
  }
}

void say_within(const Within& within, Finding& finding) {
  if (within.function.empty()) return;
  finding.text += fmt::format("; {:.0f} % of that within {}", within.share * 100, within.function);
  finding.evidence.emplace_back("within", within.function);
  finding.evidence.emplace_back("within_share", within.share);
}

}  // namespace gputrace
