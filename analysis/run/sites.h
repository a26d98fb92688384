// Sites: the lines of the program from which CUDA was called. Of a stack this is the innermost frame that is the program's own,
// not a framework's or the standard library's: the line that its author can change.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "analysis/facts/facts.h"

namespace gputrace {

// Whether a file belongs to an installed package, to the standard library or to the interpreter itself.
bool is_library_file(const std::string& file);

// The index of the frame that stands for a stack in reports: the innermost of the program's own, else the innermost; 0: none is
// known.
u32 own_frame(const SourceLines& lines, u32 stack);

// File names as reports show them: the last part where no other file of the run has the same, else the whole path.
class FileNames {
 public:
  explicit FileNames(const LoadedRun& run);
  explicit FileNames(const ProcessTrace& process) { add(process); }
  std::string of(const std::string& file) const;

 private:
  void add(const ProcessTrace& process);

  std::map<std::string, std::set<std::string>> files_;  // by the last part
};

// "train.py:88 step". Empty: not known.
std::string site_name(const SourceLines& lines, u32 frame, const FileNames& names);

// The same of the frame that stands for an origin's stack.
std::string site_of_origin(const SourceLines& lines, u32 origin, const FileNames& names);

// What the calls of one site came to, over all processes of a run.
struct SiteSum {
  std::string site;  // empty: no line is known
  StackTotals totals;
  StackDeviceTimes times;
};
std::vector<SiteSum> sites_of(const LoadedRun& run);

}  // namespace gputrace
