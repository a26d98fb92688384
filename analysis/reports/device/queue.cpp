// Launch queues: how long each stream had how many operations waiting, and what launching cost then.
#include "analysis/reports/section_report.h"
#include "analysis/run/device_time.h"
#include "analysis/run/devices.h"

namespace gputrace {
namespace {

std::string depths(unsigned number) {
  const u32 first = depth_class_begin(number), last = depth_class_begin(number + 1) - 1;
  if (number + 1 == kDepthClasses) return std::to_string(first) + " and more";
  return first == last || number == 0 ? std::to_string(first) : std::to_string(first) + "-" + std::to_string(last);
}

void fill_queue(const LoadedRun& run, Table& table) {
  const DeviceMap devices(run);
  for (std::size_t p = 0; p < run.processes.size(); ++p) {
    const ProcessTrace& process = run.processes[p];
    for (const StreamTimes& stream : process.device.streams) {
      const QueueDepth& queue = stream.queue;
      for (unsigned i = 0; i < kDepthClasses; ++i) {
        if (queue.time_ns[i] == 0 && queue.calls[i] == 0) continue;
        const auto share = ratio(queue.time_ns[i], queue.span_ns());
        const u64 calls = queue.calls[i];
        table.rows.push_back({devices.number(p, stream.device), static_cast<i64>(stream.id), depths(i),
                              number(queue.time_ns[i]), share ? Value(*share) : Value(), number(calls),
                              mean(queue.calls_ns[i], calls), number(queue.calls_ns[i]),
                              number(static_cast<u64>(depth_class_begin(i))), static_cast<i64>(process.who.pid)});
      }
    }
  }
}

}  // namespace

extern constexpr SectionReport queue_report = {
    .section = "queue",
    .title = "Launch queues of the streams: time by depth",
    .answers =
        "each stream's launch queue by depth (0, 1, 2-3, 4-7, …): how long, and what launch calls cost that found it "
        "so",
    .shown = Shown::OnDemand,
    .needs = {Need::Calls, Need::Device},
    .columns = {{"device", Unit::None},
                {"stream", Unit::None},
                {"queued", Unit::Text},
                {"time_ns", Unit::Nanos},
                {"share", Unit::Ratio},
                {"calls", Unit::Count},
                {"api_mean_ns", Unit::Nanos},
                extra({"api_total_ns", Unit::Nanos}),
                extra({"queued_from", Unit::Count, Hint::Detail}),
                extra({"pid", Unit::None, Hint::Detail})},
    .notes = {"queued = operations of the stream that were launched and had not started; share = of the time from the "
              "stream's "
              "first launch to its last start; calls = launches, copies, memsets that found so many; api = host time "
              "in those "
              "calls: where it rises with the depth, the queue holds the host back"},
    .fill = fill_queue,
};

}  // namespace gputrace
