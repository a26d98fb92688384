// What a process's file calls and waits came to, by where they were made: what a finding says of the time in which its device had nothing to
// do. What was counted (`io`, `waits`) are sums of the whole run; calls and waits that were told without a line are in none that asks for
// one. What samples found (wait_for_others) is of that idle time alone.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>

#include "analysis/facts/facts.h"
#include "analysis/lines/sites.h"

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

// One kind of waiting, in the time in which devices had nothing to do because of the host.
struct SampledWait {
  u64 total_ns = 0;
  // The line where most of it was, and the function that it called there: "queue.py Queue.get"; empty: one without a line of its own.
  std::string site, function;
  u64 in_framework_ns =
      0;  // of it, within a function of a framework that calls the device: it waits for its own threads
};
// What the host waits for instead of working, as samples found it: within a function of Python's standard library that waits, or asleep in
// a call of the kernel, where the kernel tells which.
enum class HostWait : u8 {
  Others,  // another thread, process or machine; not the batches of a loader that is known, which `input` tells
  InterpreterLock,  // CPython's
  Sleep,            // until some time has gone by
  Files,            // reading and writing them, and memory that lies in one
};
struct SampledWaits {
  std::array<SampledWait, 4> kinds;  // by HostWait
  const SampledWait& of(HostWait kind) const { return kinds[static_cast<std::size_t>(kind)]; }
};
SampledWaits sampled_waits(const ProcessTrace& process);

// What of that time PyTorch's DataLoader takes to start its worker processes and to end them, as looks found it.
u64 loader_starts(const ProcessTrace& process);

// Where others of the program worked while devices had nothing to do because of the host: processes that it forked (LineOf::Worker), or other
// threads of its own, whether they call CUDA or not (LineOf::OtherThread). The line of the program's own where looks found them awake most
// often, and its share of those; nothing: too few looks did. `asleep_too`: or asleep until some time has gone by, or for what comes from a
// file or another machine.
std::optional<SampledShare> work_of_others(const ProcessTrace& process, LineOf others, bool asleep_too = false);

// What makes the batches that devices wait for, as looks found it meanwhile: the workers of PyTorch's loader, the loop within a loader
// that has none, threads of a loader (lines/loaders.h) that run the program's own functions, or threads that ask a loader ahead. Nothing: too few looks found it.
struct BatchMaking {
  LineOf by = LineOf::Caller;
  std::string
      loader;  // whose threads or processes make them; empty: the loop's own, processes of PyTorch's, or threads that load ahead
  u64 samples = 0;
  // The line of the program's own where most looks found it, and their share of those that found such a line; empty: it was in packages alone.
  std::string site;
  double site_share = 0;
  // The share of the looks that found it asleep, and what for most often.
  double asleep_share = 0;
  WaitFor asleep_for = WaitFor::File;
};
std::optional<BatchMaking> batch_making(const ProcessTrace& process);

// The thread that launched what ended the gaps with most of the host's work; 0: not known.
i32 thread_of_host_time(const ProcessTrace& process, const DeviceTimes& device);

// Reading of the program's own data within a DataLoader that loads in the thread that asks it, and by its workers.
FilesUsed read_by_loop(const ProcessTrace& process);
FilesUsed read_by_workers(const ProcessTrace& process);

// The bytes of such data that a function's calls read, those of functions that it called included, by its name as input-ops has it.
std::map<std::string, u64> bytes_by_loading_function(const LoadedRun& run, const FileNames& names);

}  // namespace gputrace
