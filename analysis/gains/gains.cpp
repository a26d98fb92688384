#include "analysis/gains/gains.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analysis/lines/sites.h"
#include "analysis/run/quality.h"
#include "analysis/words/human.h"

namespace gputrace {
namespace {

const DeviceTimes* main_device(const ProcessTrace& process) {
  const DeviceTimes* found = nullptr;
  for (const DeviceTimes& device : process.device.devices) {
    if (device.span_ns() != 0 && (!found || device.busy_ns > found->busy_ns)) found = &device;
  }
  return found;
}

// Of the windows, for the run.
u64 scaled(const GainFacts& gains, u64 length) {
  if (gains.windows <= 1 || gains.operations == 0) return length;
  const double factor = static_cast<double>(gains.operations_of_run) / static_cast<double>(gains.operations);
  return static_cast<u64>(static_cast<double>(length) * factor);
}

// A gain below it may be the model's.
u64 error_of(const GainFacts& gains) {
  const u64 a = gains.replayed_ns, b = gains.measured_ns;
  return scaled(gains, 2 * (a > b ? a - b : b - a));
}

}  // namespace

u64 span_of(const ProcessTrace& process) {
  const DeviceTimes* device = main_device(process);
  return device ? device->span_ns() : 0;
}

bool misses_records(const ProcessTrace& process) {
  return static_cast<double>(process.dropped) > kUnknownShare * static_cast<double>(process.seen);
}

bool is_unsure(const DeviceTimes& device) {
  const double unknown = static_cast<double>(device.unknown_ns);
  return unknown > kUnknownShare * static_cast<double>(device.span_ns()) &&
         unknown > kUnknownOfIdle * static_cast<double>(device.idle_ns);
}

bool is_busy(const DeviceTimes& device) {
  return static_cast<double>(device.busy_ns) >= kBusyShare * static_cast<double>(device.span_ns()) || is_unsure(device);
}

bool is_busy(const ProcessTrace& process) {
  if (misses_records(process)) return true;
  const DeviceTimes* device = main_device(process);
  return device && is_busy(*device);
}

IdleShare idle_of(const ProcessTrace& process, IdleCause cause, bool (*wanted)(const std::string& call)) {
  IdleShare share;
  std::map<u16, const std::string*> names;
  for (const CallFacts& call : process.calls) names[call.id] = &call.name;
  std::map<std::string, u64> by_call;
  for (const DeviceTimes& device : process.device.devices) {
    const IdleSum& all = device.causes[static_cast<unsigned>(cause)];
    if (!wanted) share.count += all.count, share.total_ns += all.total_ns;
    for (const IdleByCall& each : device.causes_by_call) {
      const auto name = names.find(each.call);
      if (each.cause != cause || name == names.end()) continue;
      if (wanted && !wanted(*name->second)) continue;
      if (wanted) share.count += each.sum.count, share.total_ns += each.sum.total_ns;
      by_call[*name->second] += each.sum.total_ns;
    }
  }
  u64 most = 0;
  for (const auto& [name, length] : by_call) {
    if (length > most) most = length, share.call = name;
  }
  return share;
}

IdleSite site_of_idle(const ProcessTrace& process, IdleCause cause, bool in_long_gaps) {
  std::map<u32, std::pair<Nanos, Nanos>> by_origin;  // of all of the longest gaps, and of the long ones among them
  for (const DeviceTimes& device : process.device.devices) {
    for (const IdleGap& gap : device.longest) {
      if (in_long_gaps && gap.length() < IdleSite::kLongGap) continue;
      const Nanos part = gap.parts[static_cast<unsigned>(cause)];
      by_origin[gap.origin].first += part;
      if (gap.length() >= IdleSite::kLongGap) by_origin[gap.origin].second += part;
    }
  }
  const FileNames names(process);
  const PausesBefore pauses(process.lines);
  struct At {
    Nanos longest = 0, sampled = 0;  // of the gaps that are kept; the part that samples found
    u64 host = 0, in_long = 0;
  };
  std::map<std::string, At> by_site;
  FunctionsWithin within(names);
  for (const auto& [origin, lengths] : by_origin) {
    const auto& [length, in_long] = lengths;
    if (cause != IdleCause::Host) {
      by_site[site_of_origin(process.lines, origin, names)].longest += length;
      within.add(process.lines, origin, static_cast<u64>(length));
      continue;
    }
    auto shares = sampled_shares(process, origin, names);
    within.add_host(process, origin, pauses, static_cast<u64>(length));
    if (shares.empty()) shares.push_back({site_of_origin(process.lines, origin, names), 1, 0});
    const u64 host = origin < process.lines.times.size() ? process.lines.times[origin].host_ns : 0;
    for (const SampledShare& share : shares) {
      At& at = by_site[share.site];
      const auto part = static_cast<Nanos>(static_cast<double>(length) * share.share);
      at.longest += part;
      at.sampled += share.samples > 0 ? part : 0;
      at.host += static_cast<u64>(static_cast<double>(host) * share.share);
      at.in_long += static_cast<u64>(static_cast<double>(in_long) * share.share);
    }
  }
  const auto most = std::max_element(by_site.begin(), by_site.end(),
                                     [](const auto& a, const auto& b) { return a.second.longest < b.second.longest; });
  if (most == by_site.end() || most->second.longest == 0) return {};
  const At& at = most->second;
  std::vector<std::pair<std::string, u64>> further;
  for (const auto& [site, there] : by_site) {
    if (site != most->first && !site.empty() && there.host != 0) further.emplace_back(site, there.host);
  }
  std::stable_sort(further.begin(), further.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  if (further.size() > IdleSite::kFurther) further.resize(IdleSite::kFurther);
  return {most->first, within.of(most->first), at.host, at.in_long, 2 * at.sampled > at.longest, std::move(further)};
}

PausedLines lines_of_pauses(const ProcessTrace& process) {
  const FileNames names(process);
  std::map<std::pair<std::string, std::string>, u64> by_lines;
  for (const auto& [pair, length] : process.lines.pauses.of) {
    const auto after = static_cast<u32>(pair >> 32), before = static_cast<u32>(pair);
    by_lines[{site_of_origin(process.lines, after, names), site_of_origin(process.lines, before, names)}] += length;
  }
  PausedLines most;
  for (const auto& [lines, length] : by_lines) {
    if (length > most.length_ns) most = {lines.first, lines.second, length};
  }
  return most;
}

SiteShare site_of_launch_gaps(const ProcessTrace& process) {
  const FileNames names(process);
  NamedAmounts sites;
  FunctionsWithin within(names);
  for (u32 origin = 0; origin < process.lines.times.size(); ++origin) {
    const u64 length = process.lines.times[origin].launch_ns;
    if (length == 0) continue;
    sites.add(site_of_origin(process.lines, origin, names), length);
    within.add(process.lines, origin, length);
  }
  const std::string worst = sites.most();
  if (worst.empty()) return {};
  return {worst, sites.share_of(worst), within.of(worst)};
}

bool is_async_call(const std::string& call) { return call.find("Async") != std::string::npos; }
bool is_blocking_call(const std::string& call) { return !is_async_call(call) && !is_memset_call(call); }
bool is_memset_call(const std::string& call) { return call.find("Memset") != std::string::npos; }

std::optional<u64> gain_of(const ProcessTrace& process, WhatIf what) {
  if (!process.gains.replayed()) return {};
  return scaled(process.gains, process.gains.of(what).single_ns);
}

std::optional<Severity> severity_of(const ProcessTrace& process, u64 gain) {
  const double share = static_cast<double>(gain), span = static_cast<double>(span_of(process));
  if (span <= 0 || share < kHintShare * span) return {};
  if (share >= kProblemShare * span) return Severity::Problem;
  return share >= kWarningShare * span ? Severity::Warning : Severity::Hint;
}

void set_gain(Finding& finding, const ProcessTrace& process, WhatIf what) {
  const GainFacts& gains = process.gains;
  if (!gains.replayed()) {
    if (!gains.why_not.empty()) finding.evidence.emplace_back("no_gain", gains.why_not);
    return;
  }
  const u64 gain = scaled(gains, gains.of(what).single_ns);
  if (gain <= error_of(gains)) {
    if (error_of(gains))
      finding.text += fmt::format("; worth less than {}", human_nanos(static_cast<Nanos>(error_of(gains))));
  } else {
    finding.gain_ns = gain;
  }
  finding.evidence.emplace_back("gain_ns", number(finding.gain_ns));
  finding.evidence.emplace_back("added_gain_ns", number(scaled(gains, gains.of(what).added_ns)));
  finding.evidence.emplace_back("model_error_ratio", gains.model_error_ratio());
  if (gains.windows > 1) {
    finding.evidence.emplace_back("replayed_operations", number(gains.operations));
    finding.evidence.emplace_back("operations", number(gains.operations_of_run));
  }
}

bool speeds_up(Finding& finding, const ProcessTrace& process, WhatIf what) {
  finding.severity = Severity::Hint;
  if (const std::optional<u64> gain = gain_of(process, what)) {
    const auto severity = severity_of(process, *gain);
    if (!severity) return false;
    finding.severity = *severity;
  }
  set_gain(finding, process, what);
  return true;
}

bool costs(Finding& finding, const ProcessTrace& process, WhatIf what) {
  finding.severity = Severity::Hint;
  const std::optional<u64> gain = gain_of(process, what);
  if (gain) {
    const auto severity = severity_of(process, *gain);
    if (!severity || is_busy(process)) return false;
    finding.severity = *severity;
  } else if (is_busy(process)) {
    return false;
  }
  set_gain(finding, process, what);
  return true;
}

void say_whose(Finding& finding, const ProcessTrace& process, u64 processes) {
  finding.evidence.emplace_back("processes", number(processes));
  const std::string name = name_of(process);
  if (finding.text.rfind(name, 0) == 0) return;
  finding.text = name + (processes > 1 ? ", worst of " + human_count(processes) : "") + ": " + finding.text;
}

}  // namespace gputrace
