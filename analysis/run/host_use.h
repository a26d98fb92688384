// What a process's file calls and waits came to, by where they were made: what a finding says of the time in which its device had nothing to
// do. What was counted (`io`, `waits`) are sums of the whole run; calls and waits that were told without a line are in none that asks for
// one. What samples found (wait_for_others) is of that idle time alone.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "analysis/facts/facts.h"
#include "analysis/run/sites.h"

namespace gputrace {

// Whether it reads data or asks for a file that may be read.
bool reads(FileCall call);
// A file, and none of those that a program is made of: what it imports meanwhile is no input.
bool is_data(const std::string& path);

struct FilesUsed {
  u64 count = 0, bytes = 0, total_ns = 0;
  // The file and call that took most of it.
  std::string path;
  FileCall call = FileCall::Read;
  u64 most_ns = 0;
};

// By the innermost frame, and where it stands (site_name).
FilesUsed files_used_at(const ProcessTrace& process, const std::string& site);
// What one thread waited for longest, at one line, or anywhere for Python's lock: whoever holds that keeps it from every line.
struct LongWait {
  WaitFor what = WaitFor::Condition;
  u64 count = 0, total_ns = 0;
  std::string site;  // empty: at several lines
};
std::optional<LongWait> longest_wait_at(const ProcessTrace& process, i32 tid, const std::string& site);

// Waiting for another thread, process or machine, as samples found it in the time in which devices had nothing to do because of the host:
// within a function of Python's standard library that waits. Not for the batches of PyTorch's loader, which `input` tells. A wait that C
// code makes at once under the program's own line is not seen to be one.
struct WaitForOthers {
  u64 total_ns = 0;
  // The line and the function that it called where most of it was: "queue.py Queue.get".
  std::string site, function;
};
WaitForOthers wait_for_others(const ProcessTrace& process);

// Reading of the program's own data within a DataLoader that loads in the thread that asks it, and by its workers.
FilesUsed read_by_loop(const ProcessTrace& process);
FilesUsed read_by_workers(const ProcessTrace& process);

// The bytes of such data that a function's calls read, those of functions that it called included, by its name as input-ops has it.
std::map<std::string, u64> bytes_by_loading_function(const LoadedRun& run, const FileNames& names);

}  // namespace gputrace
