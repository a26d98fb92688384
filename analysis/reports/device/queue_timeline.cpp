// The depth of each stream's launch queue over time, in at most 128 intervals a stream.
#include "analysis/reports/section_report.h"
#include "analysis/run/devices.h"

namespace gputrace {
namespace {

void fill_queue_timeline(const LoadedRun& run, Table& table) {
  const DeviceMap devices(run);
  for (std::size_t p = 0; p < run.processes.size(); ++p) {
    const ProcessTrace& process = run.processes[p];
    for (const StreamTimes& stream : process.device.streams) {
      const DepthCourse& course = stream.queue.course;
      for (std::size_t i = 0; i < course.size(); ++i) {
        const Nanos length = course.bin_end(i) - course.bin_begin(i);
        if (length == 0) continue;
        const double mean = static_cast<double>(course.bin(i).area) / static_cast<double>(length);
        table.rows.push_back({course.bin_begin(i), length, devices.number(p, stream.device),
                              static_cast<i64>(stream.id), mean, number(static_cast<u64>(course.bin(i).deepest)),
                              static_cast<i64>(process.who.pid)});
      }
    }
  }
}

}  // namespace

extern constexpr SectionReport queue_timeline_report = {
    .section = "queue-timeline",
    .title = "Launch queues of the streams over time",
    .answers = "each stream's launch queue over time, in at most 128 intervals",
    .shown = Shown::OnDemand,
    .needs = {Need::Calls, Need::Device},
    .columns = {{"at_ns", Unit::Nanos},
                {"duration_ns", Unit::Nanos},
                {"device", Unit::None},
                {"stream", Unit::None},
                {"mean", Unit::None},
                {"deepest", Unit::Count},
                extra({"pid", Unit::None, Hint::Detail})},
    .notes = {"at = CLOCK_MONOTONIC, in text from the first record on; mean, deepest = operations that were launched "
              "and had "
              "not started"},
    .fill = fill_queue_timeline,
};

}  // namespace gputrace
