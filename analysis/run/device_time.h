// Device time over all processes, for reports: sums, ratios with their denominators, and why there is none.
#pragma once

#include <optional>
#include <string>

#include "analysis/facts/facts.h"

namespace gputrace {

// Device records were collected in any of the processes.
bool device_collected(const LoadedRun& run);
// Why (part of) the device times are missing, in a sentence without a full stop; empty: nothing is missing that we know
// of.
std::string why_no_device_times(const LoadedRun& run);

// Why there are no clocks, power and temperature; empty: there are some.
std::string why_no_environment(const LoadedRun& run);

struct DeviceTotals {
  u64 devices = 0;  // (process, device) pairs with activity
  u64 span_ns = 0;  // sum of their spans: the denominator of device ratios
  u64 busy_ns = 0, idle_ns = 0, unknown_ns = 0, compute_ns = 0, collective_ns = 0, copy_ns = 0,
      exposed_collective_ns = 0, exposed_copy_ns = 0, launch_idle_ns = 0;
  u64 kernel_ns = 0;   // sum over executions: the denominator of `share`
  u64 kernels = 0;     // executions that the device reported
  u64 operations = 0;  // kernels, copies, memsets and graph replays that the devices reported
  u64 untold = 0;      // calls that gave work to a device of which nothing was reported
  u64 overhead_ns = 0;
  bool overhead_known = false;
  u64 clocked_ns = 0, held_down_ns = 0;  // as DeviceEnvironmentTimes, over devices
  bool shared_device = false;            // a device that several processes used: their times are added, not united

  // More than 1 % of the span, or more than 10 % of the operations: too little is known for ratios of the span.
  bool too_little() const { return unknown_ns > span_ns / 100 || untold > (untold + operations) / 10; }
};
DeviceTotals device_totals(const LoadedRun& run);

// part / whole, or nothing where whole is 0.
std::optional<double> ratio(u64 part, u64 whole);

}  // namespace gputrace
