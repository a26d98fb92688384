// Streams as the devices saw them: how busy, and how far the host was ahead.
#include <cstdio>

#include "analysis/reports/section_report.h"
#include "analysis/run/device_time.h"
#include "analysis/run/devices.h"

namespace gputrace {
namespace {

void fill_streams(const LoadedRun& run, Table& table) {
  const DeviceMap devices(run);
  for (std::size_t p = 0; p < run.processes.size(); ++p) {
    const ProcessTrace& process = run.processes[p];
    for (const StreamTimes& stream : process.device.streams) {
      if (stream.operations == 0) continue;
      const u64 span = static_cast<u64>(stream.last - stream.first);
      const auto busy = ratio(stream.busy_ns, span);
      const auto depth = ratio(stream.queue.waited_ns(), stream.queue.span_ns());
      const auto empty = ratio(stream.queue.time_ns[0], stream.queue.span_ns());
      char handle[24] = "";
      if (stream.handle) std::snprintf(handle, sizeof handle, "0x%llx", static_cast<unsigned long long>(stream.handle));
      table.rows.push_back(
          {devices.number(p, stream.device), static_cast<i64>(stream.id), number(stream.operations),
           number(stream.busy_ns), busy ? Value(*busy) : Value(), depth ? Value(*depth) : Value(),
           stream.joined ? number(static_cast<u64>(stream.queue.deepest)) : Value(), empty ? Value(*empty) : Value(),
           stream.queue.span_ns() ? number(stream.queue.full_ns()) : Value(), number(span), number(stream.joined),
           stream.handle ? Value(std::string(handle)) : Value(), static_cast<i64>(process.who.pid)});
    }
  }
  sort_table(table, "busy_ns");
}

}  // namespace

extern constexpr SectionReport streams_report = {
    .section = "streams",
    .title = "Streams, by the time that they were busy",
    .answers =
        "stream: operations, busy time, its launch queue (operations that were launched and had not started): mean, "
        "deepest, share of time empty, time at 1024 or more",
    .shown = Shown::OnDemand,
    .needs = {Need::Calls, Need::Device},
    .columns = {{"device", Unit::None},
                {"stream", Unit::None},
                {"operations", Unit::Count},
                {"busy_ns", Unit::Nanos},
                extra({"busy_ratio", Unit::Ratio}),
                {"queue_mean", Unit::None},
                {"queue_deepest", Unit::Count},
                extra({"queue_empty_ratio", Unit::Ratio}),
                extra({"queue_full_ns", Unit::Nanos}),
                extra({"span_ns", Unit::Nanos}),
                extra({"joined", Unit::Count, Hint::Detail}),
                extra({"handle", Unit::Text, Hint::Detail}),
                extra({"pid", Unit::None, Hint::Detail})},
    .notes =
        {"stream = CUPTI's number; busy_ratio = of the span from its first to its last operation",
         "queue = operations that were launched and had not started, from the first launch to the last start: its "
         "mean, "
         "the "
         "most there were, the share of that time in which none waited, the time in which 1024 or more did (the launch "
         "queue was full); over time: sections queue and queue-timeline"},
    .fill = fill_streams,
};

}  // namespace gputrace
