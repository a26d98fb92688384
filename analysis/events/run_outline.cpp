#include "analysis/events/run_outline.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "analysis/read/identity.h"
#include "analysis/run/communicator_ranks.h"
#include "trace/record.h"

namespace gputrace {
namespace {

// Who it is, and, where no launcher said which rank and there are others, what communicators it made.
ProcessTrace member_of_run(const TraceReader& reader, bool has_others) {
  ProcessTrace process;
  read_identity(reader, process);
  if (!process.who.rank.empty() || !has_others) return process;
  ChunkBuffer buffer;
  for (const RecordChunk& chunk : reader.record_chunks()) {
    if (reader.threads()[chunk.thread].slot != 0) continue;  // definitions
    const auto records = reader.decode(chunk, buffer);
    if (!records) continue;
    for (const RecordHeader& record : records.value()) {
      if (record.type != static_cast<u16>(RecordType::Communicator)) continue;
      const auto made = decode<Communicator>(record);
      process.library.communicators.push_back({made.communicator, made.id_hash, made.rank, made.ranks, made.device});
    }
  }
  return process;
}

}  // namespace

RunOutline outline_of_run(const LoadRequest& request) {
  std::vector<ProcessTrace> members(request.files.size());
  struct Own {
    TimeSpan records;
    Nanos realtime = 0;  // of the first of them
  };
  std::vector<Own> processes;
  std::optional<std::array<u8, 16>> boot;
  RunOutline outline;
  RunClock& clock = outline.clock;
  for (std::size_t i = 0; i < request.files.size(); ++i) {
    const auto opened = TraceReader::open(request.files[i]);
    if (!opened) continue;
    const TraceReader& reader = opened.value();
    members[i] = member_of_run(reader, members.size() > 1);
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
  take_ranks_of_communicators(members);
  for (const ProcessTrace& member : members) outline.ranks.push_back(member.who.rank);
  return outline;
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
