// Who was traced: one row per process.
#include <cstdlib>
#include <string_view>
#include <utility>

#include "analysis/lines/sites.h"
#include "analysis/reports/section_report.h"
#include "analysis/run/program.h"

namespace gputrace {
namespace {

Value version(i32 number) {
  if (number <= 0) return {};
  return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}

// The toolkit that CUPTI came with, from what cuptiGetVersion answers (cupti_version.h).
Value cupti_version(u32 number) {
  if (number == 0) return {};
  if (number >= 100000) return std::to_string(number / 10000) + "." + std::to_string(number / 100 % 100);
  static constexpr std::pair<u32, const char*> kToolkits[] = {{18, "11.8"}, {19, "12.0"}, {20, "12.2"}, {21, "12.3"},
                                                              {22, "12.4"}, {23, "12.5"}, {24, "12.6"}, {26, "12.8"},
                                                              {27, "12.9"}, {28, "12.9"}};
  for (const auto& [api, toolkit] : kToolkits) {
    if (api == number) return std::string(toolkit);
  }
  return "API " + std::to_string(number);
}

void fill_run(const LoadedRun& run, Table& table) {
  for (const ProcessTrace& process : run.processes) {
    const ProcessIdentity& who = process.who;
    const std::string name = file_alone(who.executable);
    char* rest = nullptr;
    const long long rank = std::strtoll(who.rank.c_str(), &rest, 10);
    const Value rank_value = who.rank.empty() ? Value() : *rest ? Value(who.rank) : Value(static_cast<i64>(rank));
    const bool any = process.end != 0;
    table.rows.push_back({text_or_null(who.host),
                          static_cast<i64>(who.pid),
                          rank_value,
                          text_or_null(name),
                          text_or_null(who.command),
                          any ? Value(process.begin) : Value(),
                          any ? Value(process.end) : Value(),
                          who.end_reason,
                          who.device_count < 0 ? Value() : Value(static_cast<i64>(who.device_count)),
                          version(who.driver_version),
                          version(who.runtime_version),
                          cupti_version(process.device.version),
                          text_or_null(who.gputrace_version),
                          number(process.records),
                          process.first_realtime ? Value(process.first_realtime) : Value(),
                          text_or_null(who.run),
                          text_or_null(who.job),
                          text_or_null(who.file),
                          number(who.file_bytes),
                          process.clock_error >= 0 ? Value(process.clock_error) : Value(),
                          text_or_null(program_name(process))});
  }
}

}  // namespace

extern constexpr SectionReport run_report = {
    .section = "run",
    .title = "Processes",
    .answers = "processes: command, rank, how they ended",
    .shown = Shown::OnDemand,
    .needs = {},
    .columns = {{"host", Unit::Text},
                {"pid", Unit::None},
                {"rank", Unit::Text},
                {"executable", Unit::Text},
                {"command", Unit::Text, Hint::Name},
                {"begin_ns", Unit::Nanos, Hint::Detail},
                {"end_ns", Unit::Nanos, Hint::Detail},
                {"end_reason", Unit::Text},
                {"devices", Unit::Count},
                {"driver", Unit::Text},
                {"runtime", Unit::Text},
                {"cupti", Unit::Text, Hint::Detail},
                {"gputrace", Unit::Text},
                extra({"records", Unit::Count}),
                extra({"begin_realtime_ns", Unit::Nanos, Hint::Detail}),
                extra({"run", Unit::Text, Hint::Detail}),
                extra({"job", Unit::Text, Hint::Detail}),
                extra({"file", Unit::Text, Hint::Detail}),
                extra({"file_bytes", Unit::Bytes, Hint::Detail}),
                extra({"clock_error_ns", Unit::Nanos, Hint::Detail}),
                extra({"program", Unit::Text, Hint::Detail})},
    .notes =
        {"begin, end = CLOCK_MONOTONIC of the host, first and last recorded call; begin_realtime = the wall clock at "
         "begin; runtime: - where it is linked in statically; program: of an interpreter its script or module"},
    .fill = fill_run,
    .of_all_devices = true,
};

}  // namespace gputrace
