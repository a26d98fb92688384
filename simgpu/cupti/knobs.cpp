#include "simgpu/cupti/knobs.h"

#include <cstdlib>
#include <string_view>
#include <vector>

#include "simgpu/driver/life/knobs.h"

namespace simgpu::cupti {

namespace {

std::vector<std::string> items_of(const char* variable) {
  std::vector<std::string> items;
  const char* value = std::getenv(variable);
  for (std::string_view rest = value != nullptr ? value : ""; !rest.empty();) {
    const size_t end = std::min(rest.find(','), rest.size());
    if (end > 0) items.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return items;
}

// "key=value": true and the value; a bare word has the empty value.
bool is(const std::string& item, const char* key, std::string* value) {
  const size_t equals = std::min(item.find('='), item.size());
  if (item.compare(0, equals, key) != 0) return false;
  *value = equals < item.size() ? item.substr(equals + 1) : "";
  return true;
}

uint64_t number(const std::string& text) { return std::strtoull(text.c_str(), nullptr, 10); }

void parse_error(Knobs& knobs, const std::string& text) {
  const size_t first = text.find(':');
  const size_t second = first == std::string::npos ? first : text.find(':', first + 1);
  if (second == std::string::npos) return;
  const uint64_t at = number(text.substr(first + 1));
  const int code = std::atoi(text.c_str() + second + 1);
  if (at > 0 && code != 0) knobs.errors.emplace_back(text.substr(0, first), at, code);
}

void parse_slow(Knobs& knobs, const std::string& text) {
  const size_t colon = text.find(':');
  Nanos time = 0;
  if (colon == std::string::npos || !parse_duration(text.substr(colon + 1), &time)) return;
  knobs.slow.push_back({text.substr(0, colon), time});
}

void parse_cupti(Knobs& knobs) {
  for (const std::string& item : items_of("SIMGPU_CUPTI")) {
    std::string value;
    double bytes = 0;
    if (is(item, "off", &value)) knobs.off = true;
    if (is(item, "busy", &value)) knobs.busy = true;
    if (is(item, "late", &value)) knobs.late = true;
    if (is(item, "api", &value)) knobs.separate_api_ids = value == "separate";
    if (is(item, "drop", &value)) knobs.drop_every = number(value);
    if (is(item, "zero", &value)) knobs.zero_every = number(value);
    if (is(item, "layout", &value)) knobs.layout = value;
    if (is(item, "error", &value)) parse_error(knobs, value);
    if (is(item, "slow", &value)) parse_slow(knobs, value);
    if (is(item, "buffer", &value) && parse_size(value, &bytes) && bytes >= 1)
      knobs.device_buffer_bytes = static_cast<uint64_t>(bytes);
  }
}

// 1ms@2s, -1ms@2s
void parse_step(Knobs& knobs, std::string text) {
  const bool back = !text.empty() && text[0] == '-';
  if (back) text.erase(0, 1);
  const size_t at = text.find('@');
  Nanos step = 0;
  if (at == std::string::npos || !parse_duration(text.substr(0, at), &step) ||
      !parse_duration(text.substr(at + 1), &knobs.step_at)) {
    return;
  }
  knobs.step = back ? -static_cast<int64_t>(step) : static_cast<int64_t>(step);
}

void parse_clock(Knobs& knobs) {
  for (const std::string& item : items_of("SIMGPU_CLOCK")) {
    std::string value;
    if (is(item, "monotonic", &value)) knobs.monotonic = true;
    if (is(item, "skew", &value)) knobs.skew = std::strtod(value.c_str(), nullptr) * 1e-6;
    if (is(item, "jitter", &value)) parse_duration(value, &knobs.jitter);
    if (is(item, "wrap", &value)) parse_duration(value, &knobs.wrap);
    if (is(item, "step", &value)) parse_step(knobs, value);
  }
}

Knobs* read_knobs() {
  auto* knobs = new Knobs;  // never destroyed: threads may outlive static destructors
  parse_cupti(*knobs);
  parse_clock(*knobs);
  return knobs;
}

}  // namespace

Knobs& knobs() {
  static Knobs* const kKnobs = read_knobs();
  return *kKnobs;
}

}  // namespace simgpu::cupti
