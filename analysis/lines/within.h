// Which function of an installed package a line of the program spends its time in: of "trainer.train()" the line alone says little,
// where all of the run is in there.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "analysis/lines/sites.h"

namespace gputrace {

struct Within {
  // "trainer.py Trainer.training_step"; empty: none holds half, or the line calls no package but frameworks.
  std::string function;
  double share = 0;  // of all of the line's
};

// The pauses of hosts by the call that ended them.
class PausesBefore {
 public:
  struct Pause {
    u32 after = 0;  // origin of the call behind which it lay
    u64 length_ns = 0;
  };
  explicit PausesBefore(const SourceLines& lines);
  const std::vector<Pause>& of(u32 origin) const;

 private:
  std::map<u32, std::vector<Pause>> of_;
};

// Of amounts by stack, those of each site by the functions between its line and the innermost frame.
class FunctionsWithin {
 public:
  explicit FunctionsWithin(const FileNames& names) : names_(names) {}
  // `stack`: place of its innermost frame.
  void add(const SourceFrames& frames, u32 stack, u64 amount);
  void add(const SourceLines& lines, u32 origin, u64 amount);
  // Time of the host between two calls, on the line of the later one: within what both were in.
  void add_between(const SourceLines& lines, u32 after, u32 before, u64 amount);
  // What hosts did between two calls before those of an origin: where samples found it, if these are enough to tell its lines, else between
  // the two calls.
  void add_host(const ProcessTrace& process, u32 origin, const PausesBefore& pauses, u64 amount);
  // The innermost function that holds at least half of the site's amount, and lies in a package that is no framework.
  Within of(const std::string& site) const;

 private:
  struct Path {
    std::vector<u32> functions;  // from the line on inward
    u64 amount = 0;
  };
  struct Function {
    std::string name;
    bool told = false;
  };
  u32 number_of(const SourceFrame& frame);
  std::vector<u32> numbers_of(const SourceFrames& frames, u32 stack, u32 end);

  const FileNames& names_;
  std::map<std::pair<std::string, std::string>, u32> numbers_;  // by file and function
  std::vector<Function> functions_;
  std::map<std::string, std::vector<Path>> paths_;  // by site
};

// Goes on with what a finding says of its line: "; 78 % of that within trainer.py Trainer.training_step", if there is something to say.
void say_within(const Within& within, Finding& finding, const char* before = "; ", const char* after = "");

}  // namespace gputrace
