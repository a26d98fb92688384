#include "cli/run/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "analysis/findings/findings.h"
#include "analysis/load.h"
#include "analysis/report.h"
#include "analysis/run/quality.h"
#include "analysis/words/human.h"
#include "analysis/words/safe_text.h"
#include "cli/places.h"

namespace gputrace {
namespace {

constexpr u64 kMostBytes =
    512u << 20;  // larger traces are not read through at the end of a run: their size is all that is said

struct Sizes {
  u64 bytes = 0, processes = 0, records = 0, dropped = 0;
};

Sizes sizes_of(const LoadedRun& run) {
  Sizes sizes;
  for (const ProcessTrace& process : run.processes) {
    ++sizes.processes;
    sizes.bytes += process.who.file_bytes;
    sizes.records += process.records;
    sizes.dropped += process.dropped;
  }
  return sizes;
}

// "kernels  4,000 executions by 120 calls, most time in flash_fwd (1.2 s, 45 % of kernel time)".
std::string kernels_line(const LoadedRun& run) {
  const Report report = make_report(run, {{"overview", "kernels"}, {}, "", 0});
  const Table* overview = report.table("overview");
  const Table* kernels = report.table("kernels");
  if (!overview || !kernels || kernels->rows.empty()) return "";
  u64 launches = 0, executions = 0;
  for (const Row& row : overview->rows) {
    const std::string metric = std::get<std::string>(row[0]);
    const auto* value = std::get_if<i64>(&row[1]);
    if (metric == "launches" && value) launches = static_cast<u64>(*value);
    if (metric == "kernels" && value) executions = static_cast<u64>(*value);
  }
  const Row& top = kernels->rows.front();
  const auto at = [&](const char* column) { return top[static_cast<std::size_t>(kernels->column(column))]; };
  const std::string name = shorten(human(at("name"), Unit::Text), 60, "...");
  const std::string counts =
      fmt::format("  kernels     {} by {}; ", counted(executions, "execution"), counted(launches, "launch call"));
  if (is_null(at("share")))
    return counts + fmt::format("most often {} ({})\n", name, human(at("launches"), Unit::Count));
  return counts + fmt::format("most time in {} ({}, {} of kernel time)\n", name, human(at("total_ns"), Unit::Nanos),
                              human(at("share"), Unit::Ratio));
}

std::string calls_line(const LoadedRun& run) {
  u64 calls = 0, errors = 0, self = 0;
  for (const ProcessTrace& process : run.processes) {
    for (const CallFacts& call : process.calls) {
      calls += call.calls;
      errors += call.errors;
      self += call.self_ns;
    }
  }
  return fmt::format("  calls       {}, {} in them on the host, {}\n", counted(calls, "CUDA call"),
                     human_nanos(static_cast<Nanos>(self)), counted(errors, "error"));
}

// Windows that never opened, a line each.
std::string window_lines(const LoadedRun& run) {
  std::set<std::string> told;
  std::string text;
  for (const ProcessTrace& process : run.processes) {
    const std::string& why = process.who.never_open;
    if (!why.empty() && told.insert(why).second) text += fmt::format("  nothing was recorded: {}\n", safe_text(why));
  }
  return text;
}

std::string findings_lines(const LoadedRun& run) {
  const std::vector<Finding> findings = find_findings(run);
  if (findings.empty()) return "";
  std::string text = fmt::format("  look first  {}\n", safe_text(findings.front().text));
  if (findings.front().gain_ns)
    text += fmt::format("              worth up to {} of device time\n",
                        human_nanos(static_cast<Nanos>(findings.front().gain_ns)));
  if (!findings.front().fix.empty()) text += fmt::format("              fix: {}\n", safe_text(findings.front().fix));
  if (findings.size() > 1) text += fmt::format("              and {} more in the report\n", findings.size() - 1);
  return text;
}

}  // namespace

std::string verdict(const VerdictRequest& request) {
  LoadRequest load;
  load.files = request.files;
  u64 bytes = 0;
  for (const std::string& file : request.files) {
    const auto opened = TraceReader::open(file);
    if (opened) bytes += opened.value().file_size();
    if (bytes > kMostBytes) break;
  }
  const bool like_an_option = !request.shown.empty() && request.shown[0] == '-';
  const std::string next = fmt::format("\n  next:  {} {}\n", request.report_command,
                                       shell_word((like_an_option ? "./" : "") + request.shown));
  if (bytes > kMostBytes)
    return fmt::format("gputrace: {} files in {}, too large to sum up here\n{}", request.files.size(),
                       safe_text(request.shown), next);
  const auto run = load_run(load);
  if (!run) return fmt::format("gputrace: {}\n{}", safe_text(run.error().message), next);
  const Sizes sizes = sizes_of(run.value());
  return fmt::format("gputrace: {} process{}, {}, {}, {}, {} dropped; in {}\n", sizes.processes,
                     sizes.processes == 1 ? "" : "es", human_nanos(run.value().wall_end - run.value().wall_begin),
                     counted(sizes.records, "record"), human_bytes(sizes.bytes), human_count(sizes.dropped),
                     safe_text(request.shown)) +
         window_lines(run.value()) + kernels_line(run.value()) + calls_line(run.value()) + findings_lines(run.value()) +
         next;
}

}  // namespace gputrace
