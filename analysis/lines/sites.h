// Sites: the lines of the program from which CUDA was called. Of a stack this is the innermost frame that is the program's own,
// not a framework's or the standard library's: the line that its author can change. Where there is none (a command that was installed,
// an engine in a process of its own) it is that of the package that runs.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analysis/facts/facts.h"
#include "analysis/lines/named_amounts.h"
#include "analysis/table/table.h"

namespace gputrace {

using SourceFrames = std::vector<SourceFrame>;

// "train.py" of "/home/me/train.py".
std::string file_alone(const std::string& file);

// "torch/optim/sgd.py" of "…/site-packages/torch/optim/sgd.py"; empty: of no installed package. A part of `file`.
std::string_view within_packages(std::string_view file);
// The same of a frame's, be its package where its path does not tell (packages.h).
std::string_view within_packages(const SourceFrame& frame);

// Whether a file belongs to an installed package, to the standard library or to the interpreter itself, or was written by
// PyTorch's compiler.
bool is_library_file(const SourceFrame& frame);

// "/usr/lib/python3.11/threading.py": a digit follows, so that a project called python3-tools is no library.
bool in_standard_library(const std::string& file);

// Whether it is of a package that calls the device for others: which of its functions did says less than who called them.
bool is_framework_file(const SourceFrame& frame);

// Where a process that multiprocessing made begins, whichever way (fork, spawn, forkserver): what lies outside of that frame is the maker's,
// or what the interpreter was given to run.
bool begins_process(const SourceFrame& frame);

// The index of the frame that stands for a stack in reports: the innermost of the program's own, else that of an installed package which
// is no framework, else the innermost; 0: none is known. In a process that multiprocessing made only its own frames count, not those that
// it was forked from.
u32 own_frame(const SourceFrames& frames, u32 stack);
// That of the program's own alone; 0: none is in the stack.
u32 innermost_own(const SourceFrames& frames, u32 stack);

// File names as reports show them: the last part where no other file of the run has the same, else the whole path; of a package
// from its name on, of the standard library from its folder on.
class FileNames {
 public:
  explicit FileNames(const LoadedRun& run);
  explicit FileNames(const ProcessTrace& process) { add(process); }
  std::string of(const std::string& file) const;

 private:
  void add(const ProcessTrace& process);
  void add(const SourceFrames& frames);

  std::map<std::string, std::set<std::string>> files_;  // by the last part
  std::map<std::string, u16> packages_;                 // SourceFrame::package, of those that have it
};

// "train.py:88 step". Empty: not known.
std::string site_name(const SourceFrames& frames, u32 frame, const FileNames& names);

// The same of the frame that stands for an origin's stack.
std::string site_of_origin(const SourceLines& lines, u32 origin, const FileNames& names);

// The same for many of one process's origins, of which each comes often: a stack is gone through once. What it is made of
// outlives it.
class OriginSites {
 public:
  OriginSites(const SourceLines& lines, const FileNames& names) : lines_(lines), names_(names) {}
  const std::string& of(u32 origin);

 private:
  const SourceLines& lines_;
  const FileNames& names_;
  std::unordered_map<u32, std::string> known_;
};

// Whether graphs were replayed whose nodes are known: what they ran then belongs to what captured it.
bool replays_graphs(const LoadedRun& run);

// The innermost operation of a framework that was under way; empty: none is known.
std::string operation_of_origin(const SourceLines& lines, u32 origin);
// The same of what allocates: by which operation memory was wanted. Where one of PyTorch's that only takes memory (aten::empty_strided) was
// called by another (aten::clone), that other one.
std::string allocation_of_origin(const SourceLines& lines, u32 origin);

// Fewer samples say nothing of how long.
inline constexpr u64 kFewSamples = 5;
// How the idle time of the devices that the host made before launches of one origin is shared out among lines, by what samples
// found; the shares sum to 1. Empty: too few found anything.
struct SampledShare {
  std::string site;
  double share = 0;
  u64 samples = 0;
};
std::vector<SampledShare> sampled_shares(const ProcessTrace& process, u32 origin, const FileNames& names);

// Adds them by line.
void add_sites(const ProcessTrace& process, const OriginAmounts& amounts, const FileNames& names, NamedAmounts& sites);

// The line of one process with most of it; empty: none is known (NamedAmounts::most).
std::string site_of_most(const ProcessTrace& process, const OriginAmounts& amounts);

// The line of one process that launches most; empty: none is known.
std::string site_of_launches(const ProcessTrace& process);

// What the calls of one site came to, over all processes of a run.
struct SiteSum {
  std::string site;  // empty: no line is known
  bool native = false;
  StackTotals totals;
  StackDeviceTimes times;
  u64 replayed_kernels = 0;  // run by replays of graphs, captured from here
  std::string within;        // function of an installed package that holds most of its time; empty: within.h
};
std::vector<SiteSum> sites_of(const LoadedRun& run);

}  // namespace gputrace
