#include "simgpu/driver/life/knobs.h"

#include <cmath>
#include <cstdlib>
#include <cstring>

namespace simgpu {

namespace {

const char* variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  size_t begin = 0;
  while (begin <= text.size()) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    if (end > begin) parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

// Digits with an optional fraction at the start of `text`; `rest` is what follows.
bool parse_number(const std::string& text, double* value, std::string* rest) {
  char* end = nullptr;
  *value = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || !std::isfinite(*value) || *value < 0) return false;
  *rest = end;
  return true;
}

void parse_integer(const char* name, int lowest, int highest, int* out) {
  const char* value = variable(name);
  if (value == nullptr) return;
  char* end = nullptr;
  const long number = std::strtol(value, &end, 10);
  if (*end == '\0' && number >= lowest && number <= highest) *out = static_cast<int>(number);
}

void parse_capability(Knobs& knobs) {
  const char* value = variable("SIMGPU_CC");
  if (value == nullptr) return;
  char* end = nullptr;
  const long major = std::strtol(value, &end, 10);
  long minor = 0;
  if (*end == '.') minor = std::strtol(end + 1, &end, 10);
  if (*end != '\0' || major < 3 || major > 99 || minor < 0 || minor > 9) return;
  knobs.cc_major = static_cast<int>(major);
  knobs.cc_minor = static_cast<int>(minor);
}

// REGEX=10us,REGEX=2ms. The last '=' of a rule parts it, so that a regex may contain one.
void parse_kernel_time(Knobs& knobs) {
  const char* value = variable("SIMGPU_KERNEL_TIME");
  if (value == nullptr) return;
  for (const std::string& rule : split(value, ',')) {
    const size_t equals = rule.rfind('=');
    Nanos duration = 0;
    if (equals == std::string::npos || !parse_duration(rule.substr(equals + 1), &duration)) continue;
    try {
      knobs.kernel_time.push_back({std::regex(rule.substr(0, equals), std::regex::ECMAScript), duration});
    } catch (const std::regex_error&) {
      continue;
    }
  }
}

// CALL:N[:VALUE],…
void parse_faults(Knobs& knobs, const char* name, Fault::Kind kind) {
  const char* value = variable(name);
  if (value == nullptr) return;
  for (const std::string& item : split(value, ',')) {
    const std::vector<std::string> parts = split(item, ':');
    const size_t wanted = kind == Fault::Kind::abort ? 2 : 3;
    if (parts.size() < wanted) continue;
    const uint64_t at = std::strtoull(parts[1].c_str(), nullptr, 10);
    const int64_t number = parts.size() > 2 ? std::strtoll(parts[2].c_str(), nullptr, 10) : 0;
    if (at > 0) knobs.faults.emplace_back(kind, parts[0], at, number);
  }
}

Knobs read_knobs() {
  Knobs knobs;
  parse_integer("SIMGPU_DEVICES", 0, 64, &knobs.devices);
  parse_integer("SIMGPU_SMS", 1, 4096, &knobs.sms);
  parse_integer("SIMGPU_DRIVER", 1000, 99999, &knobs.driver);
  parse_integer("SIMGPU_QUEUE", 0, 1 << 20, &knobs.queue);
  parse_capability(knobs);
  double number = 0;
  if (const char* v = variable("SIMGPU_MEMORY"); v != nullptr && parse_size(v, &number) && number >= 1) {
    knobs.memory = static_cast<uint64_t>(number);
  }
  if (const char* v = variable("SIMGPU_COPY_BANDWIDTH"); v != nullptr && parse_size(v, &number) && number >= 1) {
    knobs.copy_bandwidth = number;
  }
  knobs.name = "Simulated GPU";
  if (const char* v = variable("SIMGPU_NAME")) knobs.name = v;
  if (const char* v = variable("SIMGPU_LAUNCH_LATENCY")) parse_duration(v, &knobs.launch_latency);
  if (const char* v = variable("SIMGPU_CALL_TIME")) parse_duration(v, &knobs.call_time);
  if (const char* v = variable("SIMGPU_GRAPH_NODE_LATENCY")) parse_duration(v, &knobs.graph_node_latency);
  if (const char* v = variable("SIMGPU_TRUTH")) knobs.truth = v;
  if (const char* v = variable("SIMGPU_TRUTH_CALLS")) knobs.truth_calls = std::strcmp(v, "0") != 0;
  parse_kernel_time(knobs);
  parse_faults(knobs, "SIMGPU_ERROR", Fault::Kind::error);
  parse_faults(knobs, "SIMGPU_ABORT_AT", Fault::Kind::abort);
  parse_faults(knobs, "SIMGPU_HANG", Fault::Kind::hang);
  parse_faults(knobs, "SIMGPU_ERRNO", Fault::Kind::set_errno);
  return knobs;
}

}  // namespace

bool parse_duration(const std::string& text, Nanos* out) {
  double value = 0;
  std::string unit;
  if (!parse_number(text, &value, &unit)) return false;
  static constexpr struct {
    const char* unit;
    double nanos;
  } kUnits[] = {{"", 1e9}, {"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"m", 60e9}, {"h", 3600e9}};
  for (const auto& known : kUnits) {
    if (unit != known.unit || value * known.nanos > 9e18) continue;
    *out = static_cast<Nanos>(std::llround(value * known.nanos));
    return true;
  }
  return false;
}

bool parse_size(const std::string& text, double* out) {
  double value = 0;
  std::string unit;
  if (!parse_number(text, &value, &unit)) return false;
  static constexpr struct {
    const char* unit;
    int shift;
  } kUnits[] = {{"", 0}, {"K", 10}, {"M", 20}, {"G", 30}, {"T", 40}};
  for (const auto& known : kUnits) {
    if (unit != known.unit) continue;
    *out = std::ldexp(value, known.shift);
    return *out < 9e18;
  }
  return false;
}

const Knobs& knobs() {
  static const Knobs* const kKnobs = new Knobs(read_knobs());  // never destroyed: static destructors may call CUDA
  return *kKnobs;
}

}  // namespace simgpu
