// What every reader of the numbers must know: damage, calls that never returned, options that were not understood,
// notes of the collection.
#include <cstdio>
#include <set>
#include <string>

#include "analysis/facts/asked_for.h"
#include "analysis/reports/section_report.h"
#include "analysis/run/quality.h"

namespace gputrace {

namespace {

const char* loss_reason(std::size_t reason) {
  switch (static_cast<DeviceLossReason>(reason)) {
    case DeviceLossReason::CuptiDropped:
      return "dropped by CUPTI";
    case DeviceLossReason::ZeroTime:
      return "without a start or an end";
    case DeviceLossReason::Impossible:
      return "with impossible times";
    case DeviceLossReason::NoBuffer:
      return "for which no buffer was free";
    case DeviceLossReason::RingFull:
      return "that the sidecar did not drain in time";
    case DeviceLossReason::Unknown:
      return "that could not be read";
    case DeviceLossReason::Unfinished:
      return "of what had not ended when the program did";
  }
  return "lost for a reason that this version does not know";
}

const char* state_name(DeviceCollection state) {
  switch (state) {
    case DeviceCollection::Never:
      return "not collected";
    case DeviceCollection::On:
      return "on";
    case DeviceCollection::Paused:
      return "paused";
    case DeviceCollection::Yielded:
      return "left to another client";
    case DeviceCollection::Failed:
      return "failed";
    case DeviceCollection::Ended:
      return "ended";
  }
  return "changed";
}

std::string join_text(const JoinCounts& join) {
  std::string text =
      std::to_string(join.operations) + " device operations joined to their calls: " + std::to_string(join.by_key) +
      " by correlation id, " + std::to_string(join.by_order) + " by order, " + std::to_string(join.not_joined) + " not";
  if (join.calls_unanswered + join.calls_forgotten)
    text += "; " + std::to_string(join.calls_unanswered + join.calls_forgotten) + " calls have no device record";
  if (const u64 doubtful = join.in_doubt())
    text += "; which ones is not known: " + std::to_string(doubtful) +
            " joined by order would fit the next call as well, and may be their neighbour's";
  if (join.nodes_in_doubt)
    text += "; " + std::to_string(join.nodes_in_doubt) +
            " kernels of graphs could be of several functions of their name: their times stand apart, without launches";
  if (join.key_mismatch)
    text += "; " + std::to_string(join.key_mismatch) + " correlation ids led to a call of something else";
  return text;
}

template <typename Note>
void device_notes(const ProcessTrace& process, const Note& note) {
  const DeviceActivity& device = process.device;
  for (const DeviceStateChange& change : device.states) {
    if (change.state == DeviceCollection::Ended && change.reason.empty()) continue;
    note("device", std::string(state_name(change.state)) + (change.reason.empty() ? "" : ": " + change.reason));
  }
  if (!device.collected) return;
  note("join", join_text(device.join));
  for (std::size_t i = 0; i < device.lost.size(); ++i) {
    if (device.lost[i]) note("device-loss", std::to_string(device.lost[i]) + " device records " + loss_reason(i));
  }
  const DeviceClockFacts& clock = device.clock;
  if (clock.error < 0) {
    note("clock", "the device's clock was never read beside ours: device times are on a clock of their own");
  } else {
    std::string text = "device times are CLOCK_MONOTONIC within " + std::to_string(clock.error) + " ns, from " +
                       std::to_string(clock.anchors) + " readings of both clocks";
    if (clock.steps)
      text += "; the device's clock jumped " + std::to_string(clock.steps) + " times, by " +
              std::to_string(clock.largest_step) +
              " ns at most: times between the readings around a jump may be off by it";
    if (clock.noise)
      text += "; operations of one stream overlap by up to " + std::to_string(clock.noise) +
              " ns: so far stamps are off, which is in it";
    if (clock.restarts) text += "; it was set back " + std::to_string(clock.restarts) + " times";
    note("clock", text);
  }
  if (device.join.before_call)
    note("clock", std::to_string(device.join.before_call) +
                      " operations start before their call by more than that: their times are shown as they came");
  u64 unknown = 0, gaps = 0;
  for (const DeviceTimes& times : device.devices) unknown += times.unknown_ns, gaps += times.unknown_gaps;
  if (gaps)
    note("device-loss", std::to_string(gaps) + " gaps, " + std::to_string(unknown) +
                            " ns in all, lie beside operations that have no record: neither idle nor busy for certain, "
                            "left out of idle time and its causes");
  if (device.join.late)
    note("device", std::to_string(device.join.late) +
                       " operations came after later ones had been counted: what lies before those is missing from "
                       "busy time");
}

// Launched kernels of which no machine code is known, where it was collected.
std::string without_code(const ProcessTrace& process) {
  if (!asked_for(process, collect::kCode).value_or(false)) return {};
  std::set<u32> launched, without;
  for (const KernelLaunches& kernel : process.kernels) {
    if (kernel.shape.function >= process.functions.size()) continue;
    launched.insert(kernel.shape.function);
    if (process.functions[kernel.shape.function].code.empty()) without.insert(kernel.shape.function);
  }
  if (without.empty()) return {};
  return "machine code: it is not known of " + std::to_string(without.size()) + " of " +
         std::to_string(launched.size()) + " launched kernels";
}

void fill_quality_notes(const LoadedRun& run, Table& table) {
  for (const std::string& unread : run.unread) table.rows.push_back({"file", "not read: " + unread, {}});
  for (const ProcessTrace& process : run.processes) {
    const Value pid = static_cast<i64>(process.who.pid);
    const std::string name = run.processes.size() > 1 ? name_of(process) + ": " : "";
    const auto note = [&](const char* what, const std::string& text) {
      table.rows.push_back({std::string(what), name + text, pid});
    };
    for (const std::string& damage : process.damage) note("damage", damage);
    for (const OpenCall& open : process.in_flight) {
      char argument[32];
      std::snprintf(argument, sizeof argument, "0x%llx", static_cast<unsigned long long>(open.argument));
      const char* verb = process.who.died ? "died inside " : "had not returned from ";
      note("in-flight", verb + open.call + " (thread " + std::to_string(open.tid) + ", argument " + argument +
                            (open.depth ? ", nested in another call" : "") + ")");
    }
    if (!process.who.ended)
      note("end", "the trace has no end: the process still runs, or its sidecar was killed, or the file was cut");
    if (!process.counters_exact)
      note("counters", "the last counters are missing; dropped records are not known after them");
    if (process.unknown_records) {
      note("records", std::to_string(process.unknown_records) +
                          " records are of types that this version does not know (newer writer); they were skipped");
    }
    device_notes(process, note);
    for (const std::string& warning : process.warnings) note("option", warning);
    for (const std::string& text : process.code_coverage.sentences()) note("code", text);
    if (const std::string text = without_code(process); !text.empty()) note("code", text);
    for (const std::string& text : process.notes) note("note", text);
  }
}

}  // namespace

extern constexpr SectionReport quality_notes_report = {
    .section = "quality-notes",
    .title = "About the data",
    .answers = "what every reader of the numbers should know",
    .shown = Shown::Filled,
    .needs = {},
    .columns = {{"what", Unit::Text}, {"text", Unit::Text, Hint::Prose}, extra({"pid", Unit::None, Hint::Detail})},
    .fill = fill_quality_notes,
    .of_all_devices = true,
};

}  // namespace gputrace
