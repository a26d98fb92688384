#include "analysis/lines/within.h"

#include <fmt/format.h>

#include <algorithm>

namespace gputrace {
namespace {

// Functions that say something: not the framework's, the standard library's, what is made while the program runs, nor what a decorator puts
// around them.
bool is_told(const SourceFrame& frame) {
  return !frame.native && !within_packages(frame).empty() && !is_framework_file(frame) &&
         frame.function.find("<locals>") == std::string::npos;
}

}  // namespace

u32 FunctionsWithin::number_of(const SourceFrame& frame) {
  const auto [at, fresh] = numbers_.try_emplace({frame.file, frame.function}, static_cast<u32>(functions_.size()));
  if (fresh) functions_.push_back({names_.of(frame.file) + " " + frame.function, is_told(frame)});
  return at->second;
}

// From the outermost on inward; without `end` and what lies outside of it.
std::vector<u32> FunctionsWithin::numbers_of(const SourceFrames& frames, u32 stack, u32 end) {
  std::vector<u32> numbers;
  for (u32 frame = stack; frame != end && frame != 0; frame = frames[frame].parent)
    numbers.push_back(number_of(frames[frame]));
  std::reverse(numbers.begin(), numbers.end());
  return numbers;
}

void FunctionsWithin::add(const SourceFrames& frames, u32 stack, u64 amount) {
  const u32 own = own_frame(frames, stack);
  if (own == 0 || amount == 0) return;
  paths_[site_name(frames, own, names_)].push_back({numbers_of(frames, stack, own), amount});
}

void FunctionsWithin::add(const SourceLines& lines, u32 origin, u64 amount) {
  if (origin < lines.origins.size()) add(lines.frames, lines.origins[origin].frame, amount);
}

void FunctionsWithin::add_between(const SourceLines& lines, u32 after, u32 before, u64 amount) {
  if (std::max(after, before) >= lines.origins.size() || amount == 0) return;
  const u32 stack = lines.origins[before].frame, own = own_frame(lines.frames, stack);
  if (own == 0) return;
  const std::vector<u32> left = numbers_of(lines.frames, lines.origins[after].frame, 0);
  std::vector<u32> inside = numbers_of(lines.frames, stack, 0);
  const auto outer = static_cast<std::ptrdiff_t>(inside.size() - numbers_of(lines.frames, stack, own).size());
  const auto parted = std::mismatch(inside.begin(), inside.end(), left.begin(), left.end()).first;
  inside.erase(std::max(parted, inside.begin() + outer), inside.end());
  inside.erase(inside.begin(), inside.begin() + outer);
  paths_[site_name(lines.frames, own, names_)].push_back({std::move(inside), amount});
}

void FunctionsWithin::add_host(const ProcessTrace& process, u32 origin, const PausesBefore& pauses, u64 amount) {
  const auto part_of = [amount](u64 part, u64 all) {
    return static_cast<u64>(static_cast<double>(amount) * static_cast<double>(part) / static_cast<double>(all));
  };
  const auto counts = [&](const IdleLine& line) { return line.origin == origin && line.of == LineOf::Caller; };
  u64 samples = 0;
  for (const IdleLine& line : process.samples.idle) samples += counts(line) ? line.count : 0;
  if (samples >= kFewSamples) {
    for (const IdleLine& line : process.samples.idle) {
      if (counts(line)) add(process.samples.frames, line.frame, part_of(line.count, samples));
    }
    return;
  }
  const std::vector<PausesBefore::Pause>& of_origin = pauses.of(origin);
  u64 all = 0;
  for (const PausesBefore::Pause& pause : of_origin) all += pause.length_ns;
  if (all == 0) return add(process.lines, origin, amount);
  for (const PausesBefore::Pause& pause : of_origin)
    add_between(process.lines, pause.after, origin, part_of(pause.length_ns, all));
}

PausesBefore::PausesBefore(const SourceLines& lines) {
  for (const auto& [pair, length] : lines.pauses.of)
    of_[static_cast<u32>(pair)].push_back({static_cast<u32>(pair >> 32), length});
}

const std::vector<PausesBefore::Pause>& PausesBefore::of(u32 origin) const {
  static const std::vector<Pause> kNone;
  const auto known = of_.find(origin);
  return known == of_.end() ? kNone : known->second;
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

void say_within(const Within& within, Finding& finding, const char* before, const char* after) {
  if (within.function.empty()) return;
  finding.text += fmt::format("{}{:.0f} % of that within {}{}", before, within.share * 100, within.function, after);
  finding.evidence.emplace_back("within", within.function);
  finding.evidence.emplace_back("within_share", within.share);
}

}  // namespace gputrace
