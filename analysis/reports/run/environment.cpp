// Environment: clocks, power, temperature of the devices, and how long their clocks were held down, by reason.
#include "analysis/reports/section_report.h"
#include "analysis/run/device_time.h"
#include "analysis/run/devices.h"

namespace gputrace {
namespace {

const char* reason_name(unsigned limit) {
  switch (static_cast<ClockLimit>(limit)) {
    case ClockLimit::Idle:
      return "clocks low: idle";
    case ClockLimit::UserDefined:
      return "clocks low: set by the user";
    case ClockLimit::PowerCap:
      return "clocks low: power cap";
    case ClockLimit::Slowdown:
      return "clocks low: slowdown (heat, power brake)";
    case ClockLimit::Unknown:
      return "clocks low: unknown reason";
  }
  return "";
}

void fill_environment(const LoadedRun& run, Table& table) {
  const DeviceMap devices(run);
  for (std::size_t p = 0; p < run.processes.size(); ++p) {
    const ProcessTrace& process = run.processes[p];
    for (const DeviceEnvironmentTimes& each : process.device.environment) {
      const Value device = devices.number(p, each.device);
      const auto pid = static_cast<i64>(process.who.pid);
      const auto quantity = [&](const char* what, const SampledQuantity& value, double scale) {
        if (value.count == 0) return;
        table.rows.push_back({device,
                              std::string(what),
                              value.min * scale,
                              value.mean() * scale,
                              value.max * scale,
                              value.limit ? Value(value.limit * scale) : Value(),
                              {},
                              number(value.count),
                              {},
                              pid});
      };
      quantity("SM clock, MHz", each.sm_clock, 1);
      quantity("memory clock, MHz", each.memory_clock, 1);
      quantity("power, W", each.power, 1e-3);
      quantity("temperature, C", each.temperature, 1);
      quantity("fan, %", each.fan, 1);
      for (unsigned i = 0; i < kClockLimits; ++i) {
        const auto share = ratio(each.limited_ns[i], each.clocked_ns);
        if (each.limited_ns[i] == 0 || !share) continue;
        table.rows.push_back({device,
                              std::string(reason_name(i)),
                              {},
                              {},
                              {},
                              {},
                              *share,
                              number(each.sm_clock.count),
                              number(each.limited_ns[i]),
                              pid});
      }
    }
  }
}

}  // namespace

extern constexpr SectionReport environment_report = {
    .section = "environment",
    .title = "Clocks, power and temperature of the devices",
    .answers =
        "device: SM and memory clock, power, temperature, fan: least, mean, largest of the samples; the share of time "
        "in which clocks were low, by reason",
    .shown = Shown::Filled,
    .needs = {Need::Calls, Need::Environment},
    .columns = {{"device", Unit::None},
                {"what", Unit::Text},
                {"min", Unit::None},
                {"mean", Unit::None},
                {"max", Unit::None},
                {"limit", Unit::None},
                {"share", Unit::Ratio},
                {"samples", Unit::Count},
                extra({"time_ns", Unit::Nanos, Hint::Detail}),
                extra({"pid", Unit::None, Hint::Detail})},
    .notes =
        {"sampled by CUPTI at a rate of its own; mean = over samples; share = of the time from the first to the last "
         "clock "
         "sample in which that reason held (a sample holds until the next; several reasons may hold at once)"},
    .fill = fill_environment,
};

}  // namespace gputrace
