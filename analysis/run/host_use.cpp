#include "analysis/run/host_use.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <tuple>

#include "analysis/lines/callers_first.h"
#include "analysis/lines/loaders.h"
#include "analysis/run/input_ops.h"

namespace gputrace {
namespace {

// Of the frames of one process, each looked at once: where a stack's calls stand.
class SiteOfFrame {
 public:
  explicit SiteOfFrame(const ProcessTrace& process) : frames_(process.lines.frames), names_(process) {}
  const std::string& of(u32 frame) {
    const auto [known, is_new] = sites_.try_emplace(frame);
    if (is_new) known->second = site_name(frames_, own_frame(frames_, frame), names_);
    return known->second;
  }

 private:
  const SourceFrames& frames_;
  const FileNames names_;
  std::map<u32, std::string> sites_;
};

// Whether it is one of the standard library's in which a thread waits for another one, a process or a machine.
bool is_waiting(const SourceFrame& frame) {
  static const std::map<std::string_view, std::set<std::string_view>> kWaiting = {
      {"threading.py", {"wait", "wait_for", "acquire", "join", "_wait_for_tstate_lock"}},
      {"queue.py", {"get", "put"}},
      {"selectors.py", {"select"}},
      {"socket.py", {"readinto", "accept", "recv", "sendall"}},
      {"ssl.py", {"read", "recv", "recv_into"}},
      {"connection.py", {"wait", "poll", "recv", "_poll", "_recv", "accept"}},
      {"popen_fork.py", {"wait", "poll"}},
      {"subprocess.py", {"wait", "_wait", "_try_wait", "_communicate"}},
  };
  if (!in_standard_library(frame.file)) return false;
  const auto functions = kWaiting.find(std::string_view(frame.file).substr(frame.file.rfind('/') + 1));
  const std::string_view name = std::string_view(frame.function).substr(frame.function.rfind('.') + 1);
  return functions != kWaiting.end() && functions->second.contains(name);
}

// The thread that asked for gradients sleeps in these while autograd's own compute them: part of the loop's work, whichever thread it is in.
bool is_backward_pass(const SourceFrame& frame) {
  const std::string_view file = within_packages(frame);
  return file == "torch/autograd/graph.py" || file == "torch/autograd/__init__.py";
}

// What a look found the host waiting for; nothing: for none of them, or for what is told elsewhere.
std::optional<HostWait> kind_of_wait(const SourceFrames& frames, const LoaderStacks& loaders, const IdleLine& line) {
  if (line.waits == WaitFor::InterpreterLock) return HostWait::InterpreterLock;
  if (is_backward_pass(frames[line.frame])) return std::nullopt;
  const std::optional<HostWait> others =
      loaders.asked(line.frame).empty() ? std::optional(HostWait::Others) : std::nullopt;
  if (is_waiting(frames[line.frame])) return others;
  switch (line.waits.value_or(WaitFor::Kernel)) {
    case WaitFor::Sleep:
      return HostWait::Sleep;
    case WaitFor::File:
    case WaitFor::Page:
      return HostWait::Files;
    case WaitFor::Kernel:
      return std::nullopt;
    default:
      return others;
  }
}

// The function that waits, where it is not the program's own: of the standard library the one that others called.
std::string waiting_function(const SourceFrames& frames, u32 stack, u32 own, const FileNames& names) {
  if (stack == own) return "";
  u32 found = stack;
  for (u32 frame = stack; frame != 0 && in_standard_library(frames[frame].file); frame = frames[frame].parent)
    found = frame;
  return names.of(frames[found].file) + " " + frames[found].function;
}

template <typename Wanted>
FilesUsed files_used(const ProcessTrace& process, Wanted&& wanted) {
  FilesUsed sum;
  std::map<std::pair<u32, FileCall>, u64> times;
  for (const FileUses& uses : process.samples.files) {
    if (!wanted(uses)) continue;
    sum.count += uses.count, sum.bytes += uses.bytes, sum.total_ns += uses.total_ns;
    times[{uses.path, uses.call}] += uses.total_ns;
  }
  for (const auto& [what, time] : times) {
    if (time <= sum.most_ns) continue;
    sum.most_ns = time;
    sum.path = process.samples.paths[what.first], sum.call = what.second;
  }
  return sum;
}

bool reads_data(const ProcessTrace& process, const FileUses& uses) {
  return reads(uses.call) && is_data(process.samples.paths[uses.path]);
}

// Visits, as visit(line, ns), what looks found of callers while devices waited for the host, with what of that time each stands for.
template <typename Visit>
void for_each_idle_line(const ProcessTrace& process, Visit&& visit) {
  std::map<u32, u64> of_origin;  // looks
  for (const IdleLine& line : process.samples.idle)
    of_origin[line.origin] += line.of == LineOf::Caller ? line.count : 0;
  for (const IdleLine& line : process.samples.idle) {
    const u64 all = of_origin[line.origin];
    if (line.of != LineOf::Caller || all < kFewSamples || line.origin >= process.lines.times.size()) continue;
    const auto host = static_cast<double>(process.lines.times[line.origin].host_ns);
    visit(line, static_cast<u64>(host * static_cast<double>(line.count) / static_cast<double>(all)));
  }
}

// Whether a thread that sleeps for that may have something for others when it wakes; one that waits for a lock has not.
bool brings_something(std::optional<WaitFor> waits) {
  return waits == WaitFor::Sleep || waits == WaitFor::File || waits == WaitFor::Page || waits == WaitFor::Socket;
}

std::optional<BatchMaking> making_by(const ProcessTrace& process, LineOf makers) {
  const SourceFrames& frames = process.samples.frames;
  const bool is_caller = makers == LineOf::Caller;
  const LoaderFrames loaders(frames, is_caller                       ? LoaderFrames::Of::OwnThread
                                     : makers == LineOf::OtherThread ? LoaderFrames::Of::OtherThread
                                                                     : LoaderFrames::Of::Workers);
  const FileNames names(process);
  const LoaderStacks stacks(frames);
  BatchMaking making;
  making.by = makers;
  u64 asleep = 0, at_lines = 0;
  std::map<WaitFor, u64> waits;
  std::map<std::string, u64> lines;
  for (const IdleLine& line : process.samples.idle) {
    if (line.of != makers) continue;
    const std::vector<u32> within = loaders.within(line.frame);
    if (within.empty()) continue;
    const u32 own = makers == LineOf::Worker ? innermost_own(frames, line.frame) : own_frame(frames, line.frame);
    const auto is_within = [&](u32 frame) { return std::find(within.begin(), within.end(), frame) != within.end(); };
    // A thread of tf.data's that asks Keras' enqueuer waits for what others make.
    const bool asks = makers == LineOf::OtherThread && stacks.makes(line.frame) && !stacks.asked(line.frame).empty();
    if (asks && !is_within(innermost_own(frames, line.frame))) continue;
    making.samples += line.count;
    if (!is_caller) making.loader = stacks.maker(line.frame);
    if (line.waits) asleep += line.count, waits[*line.waits] += line.count;
    if (!is_within(own)) continue;
    at_lines += line.count;
    lines[site_name(frames, own, names)] += line.count;
  }
  if (making.samples < kFewSamples) return {};
  const auto fewer = [](const auto& a, const auto& b) { return a.second < b.second; };
  if (const auto most = std::max_element(lines.begin(), lines.end(), fewer); most != lines.end()) {
    making.site = most->first;
    making.site_share = static_cast<double>(most->second) / static_cast<double>(at_lines);
  }
  making.asleep_share = static_cast<double>(asleep) / static_cast<double>(making.samples);
  if (!waits.empty()) making.asleep_for = std::max_element(waits.begin(), waits.end(), fewer)->first;
  return making;
}

}  // namespace

bool reads(FileCall call) {
  switch (call) {
    case FileCall::Read:
    case FileCall::Pread:
    case FileCall::Readv:
    case FileCall::Preadv:
    case FileCall::Fread:
    case FileCall::Open:
    case FileCall::Fopen:
      return true;
    default:
      return false;
  }
}

bool is_data(const std::string& path) {
  return path.starts_with('/') && !path.ends_with(".py") && !path.ends_with(".pyc") && !path.ends_with(".so");
}

FilesUsed files_used_at(const ProcessTrace& process, const std::string& site) {
  SiteOfFrame sites(process);
  return files_used(process, [&](const FileUses& uses) {
    return uses.process == 0 && uses.frame != 0 && !site.empty() && sites.of(uses.frame) == site;
  });
}

std::optional<LongWait> longest_wait_at(const ProcessTrace& process, i32 tid, const std::string& site) {
  SiteOfFrame sites(process);
  std::map<WaitFor, LongWait> waits;
  for (const WaitUses& uses : process.samples.waits) {
    if (uses.process != 0 || uses.tid != tid) continue;
    const bool is_python = uses.what == WaitFor::InterpreterLock;
    const bool here = uses.frame != 0 && !site.empty() && sites.of(uses.frame) == site;
    if (!is_python && !here) continue;
    LongWait& sum = waits[uses.what];
    sum.what = uses.what, sum.count += uses.count, sum.total_ns += uses.total_ns;
    if (!is_python) sum.site = site;
  }
  std::optional<LongWait> longest;
  for (const auto& [what, sum] : waits) {
    if (sum.total_ns > (longest ? longest->total_ns : 0)) longest = sum;
  }
  return longest;
}

SampledWaits sampled_waits(const ProcessTrace& process) {
  const SourceFrames& frames = process.samples.frames;
  const FileNames names(process);
  const LoaderStacks loaders(frames);
  SampledWaits waits;
  std::array<std::map<std::pair<std::string, std::string>, u64>, std::tuple_size_v<decltype(waits.kinds)>> places;
  for_each_idle_line(process, [&](const IdleLine& line, u64 part) {
    const auto kind = kind_of_wait(frames, loaders, line);
    if (!kind) return;
    const u32 own = own_frame(frames, line.frame);
    const auto at = static_cast<std::size_t>(*kind);
    places[at][{site_name(frames, own, names), waiting_function(frames, line.frame, own, names)}] += part;
    waits.kinds[at].total_ns += part;
    if (is_framework_file(frames[line.frame])) waits.kinds[at].in_framework_ns += part;
  });
  for (std::size_t i = 0; i < places.size(); ++i) {
    const auto most = std::max_element(places[i].begin(), places[i].end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    if (most != places[i].end()) std::tie(waits.kinds[i].site, waits.kinds[i].function) = most->first;
  }
  return waits;
}

u64 loader_starts(const ProcessTrace& process) {
  const SourceFrames& frames = process.samples.frames;
  const std::vector<bool> within = frames_within(frames, starts_or_ends_workers);
  u64 spent = 0;
  for_each_idle_line(process, [&](const IdleLine& line, u64 part) { spent += within[line.frame] ? part : 0; });
  return spent;
}

std::optional<SampledShare> work_of_others(const ProcessTrace& process, LineOf others, bool asleep_too) {
  const SourceFrames& frames = process.samples.frames;
  const FileNames names(process);
  u64 all = 0;
  std::map<std::string, u64> lines;
  for (const IdleLine& line : process.samples.idle) {
    // One that was just woken is awake in the function that waited.
    const bool is_at_work = line.ran ? !is_waiting(frames[line.frame]) : asleep_too && brings_something(line.waits);
    const bool is_of = line.of == others || (others == LineOf::OtherThread && line.of == LineOf::Peer);
    const bool works = is_of && is_at_work;
    const u32 own = !works                     ? 0
                    : others == LineOf::Worker ? innermost_own(frames, line.frame)
                                               : own_frame(frames, line.frame);
    if (own != 0) all += line.count, lines[site_name(frames, own, names)] += line.count;
  }
  if (all < kFewSamples) return {};
  const auto most =
      std::max_element(lines.begin(), lines.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return SampledShare{most->first, static_cast<double>(most->second) / static_cast<double>(all), most->second};
}

std::optional<BatchMaking> batch_making(const ProcessTrace& process) {
  if (!loader_processes(process).empty()) return making_by(process, LineOf::Worker);
  auto beside = making_by(process, LineOf::OtherThread);
  if (beside && !beside->loader.empty()) return beside;
  auto own = making_by(process, LineOf::Caller);
  return own ? own : beside;  // threads that load ahead, of a loop that loads nothing itself
}

i32 thread_of_host_time(const ProcessTrace& process, const DeviceTimes& device) {
  std::map<u32, Nanos> by_thread;
  for (const IdleGap& gap : device.longest) by_thread[gap.thread] += gap.parts[static_cast<unsigned>(IdleCause::Host)];
  const auto most = std::max_element(by_thread.begin(), by_thread.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == by_thread.end() || most->first >= process.threads.size() ? 0 : process.threads[most->first].tid;
}

FilesUsed read_by_loop(const ProcessTrace& process) {
  const LoaderFrames loaders(process.lines.frames);
  return files_used(process, [&](const FileUses& uses) {
    return uses.process == 0 && reads_data(process, uses) && !loaders.within(uses.frame).empty();
  });
}

FilesUsed read_by_workers(const ProcessTrace& process) {
  const std::map<i32, u64> loaders = loader_processes(process);
  return files_used(process,
                    [&](const FileUses& uses) { return loaders.contains(uses.process) && reads_data(process, uses); });
}

std::map<std::string, u64> bytes_by_loading_function(const LoadedRun& run, const FileNames& names) {
  std::map<std::string, u64> bytes;
  std::set<std::string> counted;  // a function that calls itself counts once
  for (const ProcessTrace& process : run.processes) {
    const SourceFrames& frames = process.lines.frames;
    std::map<u32, u64> by_frame;
    for (const FileUses& uses : process.samples.files) {
      if (uses.process == 0 && uses.frame != 0 && reads_data(process, uses)) by_frame[uses.frame] += uses.bytes;
    }
    const LoaderFrames loaders(frames);
    for (const auto& [innermost, read] : by_frame) {
      counted.clear();
      for (const u32 frame : loaders.within(innermost)) {
        std::string name = names.of(frames[frame].file) + " " + frames[frame].function;
        if (counted.insert(name).second) bytes[std::move(name)] += read;
      }
    }
  }
  return bytes;
}

}  // namespace gputrace
