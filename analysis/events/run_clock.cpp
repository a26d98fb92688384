#include "analysis/events/run_clock.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

namespace gputrace {
RunClock clock_of_run(const LoadRequest& request) {
  struct Own {
    TimeSpan records;
    Nanos realtime = 0;  // of the first of them
  };
  std::vector<Own> processes;
  std::optional<std::array<u8, 16>> boot;
  RunClock clock;
  for (const std::string& file : request.files) {
    const auto opened = TraceReader::open(file);
    if (!opened) continue;
    const TraceReader& reader = opened.value();
    std::array<u8, 16> own;
    std::memcpy(own.data(), reader.header().boot_id, own.size());
    clock.shared = clock.shared && boot.value_or(own) == own;
    boot = own;
    if (const auto records = span_of_records(reader))
      processes.push_back({*records, reader.clock().realtime(records->from)});
  }
  for (const Own& own : processes) {
    const Nanos shift = clock.shared ? 0 : own.realtime - own.records.from;
    const TimeSpan span{own.records.from + shift, own.records.to + shift};
    const bool first = &own == processes.data();
    clock.likely.from = first ? span.from : std::min(clock.likely.from, span.from);
    clock.likely.to = first ? span.to : std::max(clock.likely.to, span.to);
  }
  return clock;
}

ExportProcess export_process(u32 number, const TraceReader& reader, const ProcessIdentity& who, const RunClock& clock) {
  ExportProcess process;
  process.number = number;
  process.who = &who;
  for (const ThreadInfo& thread : reader.threads()) process.threads.push_back({thread.tid, thread.name});
  const auto records = span_of_records(reader);
  if (!records) return process;
  process.realtime = reader.clock().realtime(records->from);
  process.shift = clock.shared ? 0 : process.realtime - records->from;
  process.anchor = records->from + process.shift;
  return process;
}

}  // namespace gputrace
