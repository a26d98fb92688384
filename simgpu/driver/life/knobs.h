// SIMGPU_* variables, read once at the first call. What cannot be parsed keeps its default.
#pragma once

#include <atomic>
#include <cstdint>
#include <regex>
#include <string>
#include <vector>

#include "simgpu/driver/life/clock.h"

namespace simgpu {

// One CALL:N:VALUE of SIMGPU_ERROR, SIMGPU_ABORT_AT, SIMGPU_HANG or SIMGPU_ERRNO.
struct Fault {
  enum class Kind { error, abort, hang, set_errno };
  Kind kind;
  std::string call;  // documented name
  uint64_t at;       // from 1
  int64_t value;
  mutable std::atomic<uint64_t> seen{0};

  Fault(Kind k, std::string c, uint64_t n, int64_t v) : kind(k), call(std::move(c)), at(n), value(v) {}
  Fault(const Fault& o) : kind(o.kind), call(o.call), at(o.at), value(o.value) {}
};

struct KernelTimeRule {
  std::regex symbol;
  Nanos duration;
};

struct Knobs {
  int devices = 1;
  int sms = 132;
  int cc_major = 9;
  int cc_minor = 0;
  uint64_t memory = 80ull << 30;
  std::string name;
  int driver = 13000;
  std::vector<KernelTimeRule> kernel_time;
  Nanos launch_latency = 5'000;
  Nanos call_time = 2'000;
  Nanos graph_node_latency = 0;  // from the end of a node to the start of those that depend on it
  int queue = 0;                 // launches that a stream holds before the next one blocks; 0: without limit
  double copy_bandwidth = 50.0 * (1ull << 30);  // bytes/s of one copy engine
  std::string truth;                            // empty: off
  bool truth_calls = false;
  std::vector<Fault> faults;
};

const Knobs& knobs();

// "10us" "1.5ms" "3" (seconds) → ns; "80G" (binary) → bytes. False: not such a thing, `out` untouched.
bool parse_duration(const std::string& text, Nanos* out);
bool parse_size(const std::string& text, double* out);

}  // namespace simgpu
