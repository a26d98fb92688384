#include "analysis/lines/sites.h"

#include <algorithm>
#include <cstring>

#include "analysis/lines/within.h"

namespace gputrace {
namespace {

constexpr std::string_view kStandardLibrary = "/lib/python3.";

bool in_packages(const std::string& file) { return !within_packages(file).empty(); }

// A module that Inductor wrote: "c" and 51 digits to the base of 32 ("/tmp/torchinductor_USER/3w/c3w….py").
bool is_of_inductor(const std::string& file) {
  constexpr std::size_t kName = 52;
  const std::string name = file_alone(file);
  return name.size() == kName + 3 && name[0] == 'c' && name.ends_with(".py") &&
         std::all_of(name.begin(), name.begin() + kName,
                     [](char c) { return (c >= 'a' && c <= 'z') || (c >= '2' && c <= '7'); });
}

// What a library makes and runs itself ("<string>": Triton's launchers); that of `python -c` is called by nobody.
bool is_made_by_library(const SourceFrames& frames, const SourceFrame& frame) {
  return frame.file == "<string>" && frame.parent != 0 && frame.parent < frames.size() &&
         is_library_file(frames[frame.parent]);
}

void add(SiteSum& sum, const SourceLines& lines, u32 origin) {
  if (origin < lines.totals.size()) {
    const StackTotals& more = lines.totals[origin];
    sum.totals.calls += more.calls;
    sum.totals.launches += more.launches;
    sum.totals.wait_ns += more.wait_ns;
    sum.totals.copy_bytes += more.copy_bytes;
    sum.totals.allocated_bytes += more.allocated_bytes;
  }
  if (origin < lines.times.size()) {
    sum.times.device_ns += lines.times[origin].device_ns;
    sum.times.idle_ns += lines.times[origin].idle_ns;
  }
}

std::vector<SampledShare> shares_of(const std::map<std::string, u64>& found) {
  u64 all = 0;
  std::vector<SampledShare> shares;
  for (const auto& [site, count] : found) all += count;
  if (all < kFewSamples) return shares;
  for (const auto& [site, count] : found)
    shares.push_back({site, static_cast<double>(count) / static_cast<double>(all), count});
  std::stable_sort(shares.begin(), shares.end(), [](const auto& a, const auto& b) { return a.samples > b.samples; });
  return shares;
}

// What the host made the devices wait goes to the lines at which it was found meanwhile.
void move_to_sampled(const ProcessTrace& process, u32 origin, const FileNames& names, SiteSum& own,
                     std::map<std::string, SiteSum>& sums) {
  if (origin >= process.lines.times.size()) return;
  const u64 moved = process.lines.times[origin].host_ns;
  if (moved == 0) return;
  u64 rest = moved;
  const auto shares = sampled_shares(process, origin, names);
  if (shares.empty()) return;
  own.times.idle_ns -= std::min(own.times.idle_ns, moved);
  for (const SampledShare& share : shares) {
    const u64 part = std::min(rest, static_cast<u64>(static_cast<double>(moved) * share.share));
    sums[share.site].times.idle_ns += part;
    rest -= part;
  }
  sums[shares.front().site].times.idle_ns += rest;
}

// A command that an installer wrote, to call a package: "/venv/bin/whisper". Such files have some ten lines, and no ending.
bool is_installed_command(const SourceFrame& frame) {
  constexpr u32 kLongest = 12;
  const std::size_t name = frame.file.rfind("/bin/");
  return frame.parent == 0 && frame.line <= kLongest && frame.function == "<module>" && name != std::string::npos &&
         frame.file.find_first_of("./", name + 5) == std::string::npos;
}

// By which PyTorch hands an operation on a tensor of a class of the program's own (or under a mode of it) through to itself: whose operation
// it is, its caller knows.
bool hands_through(const SourceFrame& frame) {
  return frame.function.ends_with("__torch_function__") || frame.function.ends_with("__torch_dispatch__");
}

// The frames of a stack that may stand for it; 0: none.
struct Candidates {
  u32 own = 0;  // the innermost of the program's own, but for what hands through where that is called by others of them
  u32 package = 0;  // the innermost of an installed package that is no framework, if it lies within `own`
};

Candidates candidates_of(const SourceFrames& frames, u32 stack) {
  Candidates found;
  for (u32 frame = stack; frame != 0 && frame < frames.size(); frame = frames[frame].parent) {
    const SourceFrame& is = frames[frame];
    const bool library = is.library || is_library_file(is);
    if (!library && !is_made_by_library(frames, is)) {
      if (found.own == 0 || !hands_through(is)) found.own = frame;
      if (!hands_through(is)) break;
    }
    if (library && begins_process(is)) break;
    if (found.package == 0 && !is.native && !within_packages(is).empty() && !is_framework_file(is))
      found.package = frame;
  }
  return found;
}

bool is_empty(const SiteSum& sum) {
  return sum.totals.calls == 0 && sum.times.device_ns == 0 && sum.times.idle_ns == 0 && sum.replayed_kernels == 0;
}

}  // namespace

std::string file_alone(const std::string& file) { return file.substr(file.rfind('/') + 1); }

std::string_view within_packages(std::string_view file) {
  constexpr std::string_view kFolders = "-packages/", kKinds[] = {"/site", "/dist"};
  std::string_view within, rest = file;  // memmem: each frame's file is asked, and rfind() compares at every character
  while (const void* const found = memmem(rest.data(), rest.size(), kFolders.data(), kFolders.size())) {
    const std::size_t at = static_cast<std::size_t>(static_cast<const char*>(found) - file.data());
    rest = file.substr(at + kFolders.size());
    if (file.substr(0, at).ends_with(kKinds[0]) || file.substr(0, at).ends_with(kKinds[1])) within = rest;
  }
  return within;
}

bool in_standard_library(const std::string& file) {
  const std::size_t at = file.find(kStandardLibrary), digit = at + kStandardLibrary.size();
  return at != std::string::npos && digit < file.size() && file[digit] >= '0' && file[digit] <= '9' &&
         !in_packages(file);
}

std::string_view within_packages(const SourceFrame& frame) {
  if (frame.package != 0) return std::string_view(frame.file).substr(frame.package);
  return within_packages(std::string_view(frame.file));
}

bool is_library_file(const SourceFrame& frame) {
  return !within_packages(frame).empty() || in_standard_library(frame.file) || frame.file.starts_with("<frozen ") ||
         is_of_inductor(frame.file);
}

bool is_framework_file(const SourceFrame& frame) {
  static constexpr std::string_view kFrameworks[] = {"torch", "functorch", "triton", "jax",   "jaxlib",    "tensorflow",
                                                     "numpy", "cupy",      "cupyx",  "numba", "numba_cuda"};
  const std::string_view within = within_packages(frame);
  return std::find(std::begin(kFrameworks), std::end(kFrameworks), within.substr(0, within.find('/'))) !=
         std::end(kFrameworks);
}

bool begins_process(const SourceFrame& frame) {
  return frame.file.ends_with("/process.py") && frame.function.ends_with("_bootstrap");
}

u32 own_frame(const SourceFrames& frames, u32 stack) {
  const Candidates found = candidates_of(frames, stack);
  if (found.own != 0 && !(found.package != 0 && is_installed_command(frames[found.own]))) return found.own;
  if (found.package != 0) return found.package;
  return stack < frames.size() ? stack : 0;
}

u32 innermost_own(const SourceFrames& frames, u32 stack) { return candidates_of(frames, stack).own; }

FileNames::FileNames(const LoadedRun& run) {
  for (const ProcessTrace& process : run.processes) add(process);
}

void FileNames::add(const ProcessTrace& process) {
  add(process.lines.frames);
  add(process.samples.frames);
}

void FileNames::add(const SourceFrames& frames) {
  for (const SourceFrame& frame : frames) {
    files_[file_alone(frame.file)].insert(frame.file);
    if (frame.package != 0) packages_[frame.file] = frame.package;
  }
}

std::string FileNames::of(const std::string& file) const {
  const std::string name = file_alone(file);
  const auto known = files_.find(name);
  if (known == files_.end() || known->second.size() <= 1) return name;
  if (const auto package = packages_.find(file); package != packages_.end()) return file.substr(package->second);
  if (const std::string_view within = within_packages(file); !within.empty()) return std::string(within);
  return in_standard_library(file)
             ? file.substr(file.find('/', file.find(kStandardLibrary) + kStandardLibrary.size()) + 1)
             : file;
}

std::string site_name(const SourceFrames& frames, u32 frame, const FileNames& names) {
  if (frame == 0 || frame >= frames.size()) return "";
  const SourceFrame& is = frames[frame];
  std::string file = names.of(is.file);
  if (is.line != 0) file += ":" + std::to_string(is.line);
  return file + " " + is.function;
}

std::string site_of_origin(const SourceLines& lines, u32 origin, const FileNames& names) {
  if (origin >= lines.origins.size()) return "";
  return site_name(lines.frames, own_frame(lines.frames, lines.origins[origin].frame), names);
}

const std::string& OriginSites::of(u32 origin) {
  const auto [known, is_new] = known_.try_emplace(origin);
  if (is_new) known->second = site_of_origin(lines_, origin, names_);
  return known->second;
}

bool replays_graphs(const LoadedRun& run) {
  return std::any_of(run.processes.begin(), run.processes.end(), [](const ProcessTrace& process) {
    return std::any_of(process.graphs.begin(), process.graphs.end(),
                       [](const Graph& graph) { return graph.launches && !graph.unreadable; });
  });
}

std::string operation_of_origin(const SourceLines& lines, u32 origin) {
  const u32 frame = origin < lines.origins.size() ? lines.origins[origin].operation : 0;
  return frame < lines.frames.size() ? lines.frames[frame].function : "";
}

std::string allocation_of_origin(const SourceLines& lines, u32 origin) {
  const SourceFrames& frames = lines.frames;
  const u32 innermost = origin < lines.origins.size() ? lines.origins[origin].operation : 0;
  for (u32 frame = innermost; frame != 0 && frame < frames.size(); frame = frames[frame].parent) {
    const std::string& name = frames[frame].function;
    const bool only_takes =
        name.starts_with("aten::empty") || name.starts_with("aten::new_empty") || name.starts_with("aten::resize_");
    if (!only_takes && name.starts_with("aten::")) return name;
    if (!only_takes) break;  // a mark, or a function of the backward pass
  }
  return operation_of_origin(lines, origin);
}

void add_sites(const ProcessTrace& process, const OriginAmounts& amounts, const FileNames& names, NamedAmounts& sites) {
  for (const auto& [origin, amount] : amounts.of) sites.add(site_of_origin(process.lines, origin, names), amount);
}

std::string site_of_most(const ProcessTrace& process, const OriginAmounts& amounts) {
  NamedAmounts sites;
  add_sites(process, amounts, FileNames(process), sites);
  return sites.most();
}

std::string site_of_launches(const ProcessTrace& process) {
  OriginAmounts launches;
  for (u32 origin = 0; origin < process.lines.totals.size(); ++origin) {
    if (process.lines.totals[origin].launches != 0) launches.add(origin, process.lines.totals[origin].launches);
  }
  return site_of_most(process, launches);
}

std::vector<SampledShare> sampled_shares(const ProcessTrace& process, u32 origin, const FileNames& names) {
  std::map<std::string, u64> found;
  const SourceFrames& frames = process.samples.frames;
  // A thread that PyTorch made for the backward pass is in none of the program's lines, but works for one, as do the innermost frames of a
  // stack that is too deep to be read whole.
  const auto& lines = process.lines;
  const bool works_for_one =
      origin < lines.origins.size() && innermost_own(lines.frames, lines.origins[origin].frame) != 0;
  for (const IdleLine& line : process.samples.idle) {
    if (line.origin != origin || line.of != LineOf::Caller) continue;
    const bool of_origin = works_for_one && innermost_own(frames, line.frame) == 0;
    found[of_origin ? site_of_origin(lines, origin, names) : site_name(frames, own_frame(frames, line.frame), names)] +=
        line.count;
  }
  return shares_of(found);
}

std::vector<SiteSum> sites_of(const LoadedRun& run) {
  const FileNames names(run);
  std::map<std::string, SiteSum> sums;
  FunctionsWithin within(names);
  for (const ProcessTrace& process : run.processes) {
    const SourceLines& lines = process.lines;
    const PausesBefore pauses(lines);
    for (u32 number = 0; number < lines.origins.size(); ++number) {
      const u32 frame = own_frame(lines.frames, lines.origins[number].frame);
      SiteSum& own = sums[site_name(lines.frames, frame, names)];
      own.native = frame < lines.frames.size() && lines.frames[frame].native;
      add(own, lines, number);
      if (number < lines.times.size()) {
        const StackDeviceTimes& times = lines.times[number];
        within.add(lines, number, times.device_ns + times.idle_ns - std::min(times.idle_ns, times.host_ns));
        if (times.host_ns != 0) within.add_host(process, number, pauses, times.host_ns);
      }
      move_to_sampled(process, number, names, own, sums);
    }
    for (const KernelOrigin& pair : lines.replayed) {
      if (pair.origin >= lines.origins.size()) continue;
      const u32 frame = own_frame(lines.frames, lines.origins[pair.origin].frame);
      sums[site_name(lines.frames, frame, names)].replayed_kernels += pair.executions;
    }
  }
  std::vector<SiteSum> sites;
  while (!sums.empty()) {
    auto first = sums.extract(sums.begin());
    if (is_empty(first.mapped())) continue;
    first.mapped().site = std::move(first.key());
    first.mapped().within = within.of(first.mapped().site).function;
    sites.push_back(std::move(first.mapped()));
  }
  return sites;
}

}  // namespace gputrace
