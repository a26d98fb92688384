#include "analysis/run/host_use.h"

#include <algorithm>
#include <map>
#include <set>

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
