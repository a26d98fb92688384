#include "analysis/events/run_clock.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

namespace gputrace {
namespace {

struct Records {
  Nanos first = 0, last = 0;  // 0: it has none
};

Records records_of(const TraceReader& reader) {
  Records found;
  for (const RecordChunk& chunk : reader.record_chunks()) {
    if (reader.threads()[chunk.thread].tid == 0 || chunk.begin == 0) continue;
    const Nanos first = reader.clock().nanos(chunk.begin);
    const Nanos last = reader.clock().nanos(std::max(chunk.begin, chunk.end));
    if (found.first == 0 || first < found.first) found.first = first;
    found.last = std::max(found.last, last);
  }
  return found;
}

}  // namespace

RunClock clock_of_run(const LoadRequest& request) {
  struct Own {
    Records records;
    Nanos realtime = 0;
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
    const Records records = records_of(reader);
    if (records.first) processes.push_back({records, reader.clock().realtime(records.first)});
  }
  for (const Own& own : processes) {
    const Nanos shift = clock.shared ? 0 : own.realtime - own.records.first;
    const TimeSpan span{own.records.first + shift, own.records.last + shift};
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
  const Nanos first = records_of(reader).first;
  if (first) process.realtime = reader.clock().realtime(first);
  process.shift = clock.shared || first == 0 ? 0 : process.realtime - first;
  process.anchor = first ? first + process.shift : 0;
  return process;
}

}  // namespace gputrace
