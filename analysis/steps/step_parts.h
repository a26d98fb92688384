// Where the wall time of each step went: at each instant what ranks highest of all that went on (TensorFlow's profiler has the
// order), so the parts of a step sum to its length.
//
//   computing (16 bit, 32 bit, other) > copies to the host > on or between devices > waiting for the next batch > collectives
//   > unknown > launching > copies to the device > compiling and loading > the host's own work > nothing known
#pragma once

#include "analysis/facts/facts.h"

namespace gputrace {

// Where the host is more than a step ahead of the device, a step is what the device does for it: from the first operation that was
// launched in it to the first of the next. Otherwise nothing is changed.
void follow_device(const ProcessTrace& process, StepFacts& facts);

// Fills `host_busy_ns`; the log's events are in the order of their begins, and steps stay as they are.
void measure_host(const LoopLog& log, StepFacts& facts);

// Fills `parts` of the steps of a process whose activities are known; `not_divided` says why some have none.
void divide_steps(const ProcessTrace& process, StepFacts& facts);

}  // namespace gputrace
