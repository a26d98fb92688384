// What the first screen reads from a report's tables, in words where it needs no layout.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/table/table.h"

namespace gputrace {

// A metric of the overview: its value (null: not known) and its note.
struct Metric {
  Value value;
  std::string note;
};
Metric metric_of(const Report& report, const char* name);

// "4.433 s", "4 min 12 s", "3 h 02 min".
std::string human_duration(Nanos nanos);

// "train.py · 8 processes on 2 hosts · 8 x NVIDIA H100 · CUDA 13.0 · 4 min 12 s", its parts.
std::vector<std::string> headline(const Report& report);

// Where the devices' time went, in the order in which it is shown; shares of the span, which sum to 1. Idle is what the program is to blame
// for, as findings have it: what tracing itself held up is a part of its own.
struct TimePart {
  const char* name;
  double share;
};
std::vector<TimePart> device_time_parts(const Report& report);

// Why they were idle, but for tracing: "host 89.6 %", shares of the span, largest first.
std::vector<std::pair<std::string, double>> idle_parts(const Report& report);

// Where most of the run lies before the loop: its phases, "start-up 72.0 %", shares of the process's time, largest first; and the line at
// which the device waited longest, where that was longer than the loop, so that it lies outside of it (of one process and device alone).
struct LongStart {
  std::vector<std::pair<std::string, double>> phases;  // empty: most of the run is no start-up, or there is no loop
  Nanos whole = 0;
  std::string idle_at;  // "7.842 s at train.py:12 main"; empty: none that is a good part of it
};
LongStart long_start(const Report& report);

// Where the time of a mean step went: "input 49.4 %", shares of its length, largest first. Empty: steps are not known, or not divided.
std::vector<std::pair<std::string, double>> step_parts(const Report& report);

// ", of rank 0": of several processes whose steps are told; empty: of the only one.
std::string whose_steps(const Report& report);

// "; 271.0 ms of 390.0 ms lie between them": of the loop, what no step tells of. Empty: hardly anything.
std::string between_steps(const Report& report);
// "; 218 more on 3 other threads at the same time", or nothing.
std::string steps_of_others(const Report& report);

// What the devices did most: operations of a framework where those account for most of the device's time, else kernels,
// each name once.
struct Heavy {
  std::string name, detail;  // detail: the line of an operation, the tensor cores of a kernel
  std::optional<i64> total_ns, count;
  std::optional<double> share;
};
struct Heaviest {
  bool operations = false;
  bool timed = false;  // else by executions
  std::vector<Heavy> rows;
  std::size_t all = 0;  // of how many
};
Heaviest heaviest(const Report& report, std::size_t most);

// An option that was not understood: said among the notes, since what follows is not what was asked for.
bool is_of_options(const Finding& finding);
// The others in the order of the screen: what all numbers rest on, then by gain; those that tell of a change that another one has told of (the
// same gain of the same process: launch-bound, graph-candidates, short-kernels) come behind the others.
std::vector<const Finding*> findings_by_gain(const Report& report);

// The device that had nothing to do for longest because the program waited for what comes from outside, as `idle-gaps` tells it.
struct Outside {
  u64 waits_ns = 0;  // 0: there is none
  u64 span_ns = 0;
  i64 device = 0;
  std::string at;  // "queue.py Queue.get, at server.py:22"
};
Outside most_from_outside(const Report& report);

// "10,960 records, 0 dropped, complete", and what follows from it.
std::string trace_line(const Report& report);

}  // namespace gputrace
