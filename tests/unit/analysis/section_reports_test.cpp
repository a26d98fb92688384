// What reports say of themselves, held against what they make and against the interface that scripts hold on to.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>

#include "analysis/report.h"
#include "analysis/reports/list.h"

namespace gputrace {
namespace {

// The interface: every built section with its required columns. Only ever grows.
const std::map<std::string, std::set<std::string>> kInterface = {
    {"overview", {"metric", "value", "unit"}},
    {"phases", {"phase", "begin_ns", "duration_ns", "evidence"}},
    {"ranks",
     {"rank", "host", "device", "steps", "step_mean_ns", "compute_16_ns", "compute_32_ns", "compute_other_ns",
      "collective_ns", "input_ns", "launch_ns", "host_ns", "output_ns", "other_ns", "compilation_ns",
      "device_to_device_ns", "straggler_score"}},
    {"input", {"stage", "total_ns", "share"}},
    {"io", {"path", "call", "count", "bytes", "total_ns", "max_ns"}},
    {"waits", {"thread", "for", "site", "count", "total_ns"}},
    {"input-ops", {"op", "count", "total_ns", "self_ns", "share", "category", "bytes"}},
    {"threads", {"pid", "tid", "name", "role", "parent", "cpu_ns", "wait_ns", "calls"}},
    {"nvtx", {"range", "domain", "count", "total_ns", "mean_ns", "device_total_ns", "kernels"}},
    {"steps",
     {"step", "begin_ns", "duration_ns", "source", "confidence", "phase", "compute_16_ns", "compute_32_ns",
      "compute_other_ns", "input_ns", "launch_ns", "host_ns", "output_ns", "other_ns", "collective_ns",
      "compilation_ns", "device_to_device_ns"}},
    {"kernels",
     {"rank",
      "kernel",
      "symbol",
      "op",
      "device",
      "grid",
      "block",
      "registers",
      "static_shared_bytes",
      "dynamic_shared_bytes",
      "local_bytes",
      "occupancy",
      "tensor_core",
      "tensor_core_kind",
      "tensor_core_eligible",
      "precision",
      "launches",
      "total_ns",
      "mean_ns",
      "median_ns",
      "min_ns",
      "max_ns",
      "p99_ns",
      "share"}},
    {"launches",
     {"kernel", "launches", "api_mean_ns", "api_p99_ns", "queue_mean_ns", "latency_mean_ns", "latency_median_ns",
      "latency_p99_ns", "gap_mean_ns", "short"}},
    {"api", {"call", "level", "calls", "errors", "total_ns", "self_ns", "mean_ns", "p99_ns", "max_ns"}},
    {"copies", {"kind", "device", "memory", "async", "count", "bytes", "total_ns", "bandwidth", "site"}},
    {"memory",
     {"device", "pool", "allocations", "frees", "peak_bytes", "peak_at_ns", "live_at_end_bytes", "capacity_bytes",
      "fragmentation"}},
    {"memory-timeline", {"at_ns", "device", "allocated_bytes", "reserved_bytes"}},
    {"memory-peak", {"site", "op", "bytes", "requested_bytes", "count", "kind"}},
    {"memory-spans", {"device", "kind", "site", "op", "address", "bytes", "begin_ns", "end_ns", "duration_ns"}},
    {"sync", {"call", "site", "count", "total_ns", "gpu_idle_ns"}},
    {"graphs",
     {"graph", "nodes", "kernel_nodes", "instantiations", "updates", "launches", "api_mean_ns", "device_total_ns"}},
    {"jit", {"what", "image", "bytes", "count", "total_ns", "max_ns", "site"}},
    {"run",
     {"host", "pid", "rank", "executable", "command", "begin_ns", "end_ns", "end_reason", "devices", "driver",
      "runtime", "cupti", "gputrace"}},
    {"devices", {"host", "device", "name", "uuid", "sms", "capability", "memory_bytes"}},
    {"quality", {"pid", "tid", "seen", "stored", "dropped", "reason"}},
    {"quality-notes", {"what", "text"}},
    {"categories", {"category", "kernels", "launches", "total_ns", "share", "rule"}},
    {"category-tree", {"what", "level", "symbol", "total_ns", "share", "launches", "rule"}},
    {"tensor-cores", {"kind", "precision", "kernels", "launches", "total_ns", "share"}},
    {"tensor-core-misses", {"kernel", "call", "reason", "total_ns", "gain_ns"}},
    {"idle", {"device", "begin_ns", "duration_ns", "cause", "parts", "call", "site"}},
    {"idle-causes", {"cause", "count", "total_ns", "share"}},
    {"libs", {"library", "call", "shape", "dtype", "count", "flops", "total_ns", "flops_per_s", "peak_ratio"}},
    {"comm",
     {"communicator", "op", "dtype", "count", "bytes", "total_ns", "algo_bandwidth", "bus_bandwidth", "wait_ns",
      "transfer_ns", "exposed_ns"}},
    {"sites",
     {"allocated_bytes", "calls", "copy_bytes", "device_total_ns", "idle_ns", "language", "launches", "site",
      "wait_ns"}},
    {"ops",
     {"op", "path", "host_total_ns", "host_self_ns", "device_total_ns", "device_self_ns", "count", "share", "idle_ns",
      "tensor_core_ratio", "flops", "site"}},
    {"streams", {"device", "stream", "operations", "busy_ns", "queue_mean", "queue_deepest"}},
    {"queue", {"device", "stream", "queued", "time_ns", "share", "calls", "api_mean_ns"}},
    {"queue-timeline", {"at_ns", "duration_ns", "device", "stream", "mean", "deepest"}},
    {"environment", {"device", "what", "min", "mean", "max", "limit", "share", "samples"}}};

TEST(SectionReports, PromiseWhatTheInterfaceRequiresAndNothingElse) {
  std::map<std::string, std::set<std::string>> promised;
  for (const SectionReport* report : all_reports()) {
    for (const SectionColumn& column : report->columns) {
      if (column.promised) promised[report->section].insert(column.key);
    }
  }
  EXPECT_EQ(promised, kInterface);
}

TEST(SectionReports, MakeTheTableThatTheyDeclareAlsoWithoutData) {
  for (const SectionReport* report : all_reports()) {
    const Table table = (*report)(LoadedRun{});
    EXPECT_EQ(table.section, report->section);
    EXPECT_EQ(find_report(table.section), report);
    ASSERT_EQ(table.columns.size(), report->columns.size()) << report->section;
    std::set<std::string> keys;
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
      const SectionColumn& declared = report->columns.begin()[i];
      EXPECT_EQ(table.columns[i].key, declared.key) << report->section;
      EXPECT_EQ(table.columns[i].unit, declared.unit) << report->section << " " << declared.key;
      EXPECT_TRUE(keys.insert(declared.key).second) << report->section << " has two columns " << declared.key;
    }
  }
}

TEST(SectionReports, ARowThatDoesNotFitTheColumnsIsAnError) {
  SectionReport report = {
      .section = "two-columns",
      .title = "",
      .answers = "",
      .needs = {},
      .columns = {{"a"}, {"b", Unit::Count}},
      .fill = [](const LoadedRun&, Table& table) { table.rows.push_back({std::string("only one")}); },
  };
  EXPECT_THROW(report(LoadedRun{}), std::logic_error);
  report.fill = [](const LoadedRun&, Table& table) { table.rows.push_back({std::string("a"), number(u64{1})}); };
  EXPECT_EQ(report(LoadedRun{}).rows.size(), 1u);
}

std::string why_absent(const Report& report, const std::string& section) {
  for (const NotCollected& entry : report.coverage.not_collected) {
    if (entry.what == section) return entry.why;
  }
  return "";
}

// One process, of which nothing is known but what was asked for.
LoadedRun asked_for_parts(const std::string& collect) {
  LoadedRun run;
  run.processes.emplace_back().options["collect"] = collect;
  return run;
}

TEST(SectionReports, AreThereOrNamedWithTheReason) {
  for (const char* collect : {"nvtx", "api", "api,code", "api,device,libs,environment"}) {
    const LoadedRun run = asked_for_parts(collect);
    const Report made = make_report(run, {});
    for (const SectionReport* report : all_reports()) {
      const auto why = why_not_met(report->needs, run);
      EXPECT_EQ(made.table(report->section) == nullptr, why.has_value()) << collect << ": " << report->section;
      EXPECT_EQ(why_absent(made, report->section), why.value_or("")) << collect << ": " << report->section;
    }
  }
}

TEST(SectionReports, AreAbsentForTheFirstNeedThatIsNotMet) {
  const Report nothing = make_report(asked_for_parts("nvtx"), {});
  EXPECT_EQ(why_absent(nothing, "api"), "calls were not collected (GPUTRACE_COLLECT without api)");
  EXPECT_EQ(why_absent(nothing, "idle"), why_absent(nothing, "api"));
  EXPECT_EQ(why_absent(nothing, "overview"), "");
  const Report calls = make_report(asked_for_parts("api"), {});
  EXPECT_EQ(why_absent(calls, "api"), "");
  EXPECT_EQ(why_absent(calls, "idle"), "needs device timing: device timing was not collected");
  EXPECT_EQ(why_absent(calls, "environment"), why_absent(calls, "idle"));
  EXPECT_EQ(why_absent(calls, "tensor-cores"), "machine code was not collected (GPUTRACE_COLLECT without code)");
  EXPECT_EQ(why_absent(calls, "libs"), "calls of vendor libraries were not collected (GPUTRACE_COLLECT without libs)");
}

// What was asked for and could not be collected says why itself: not twice under one name.
TEST(SectionReports, AreNamedOnce) {
  LoadedRun run = asked_for_parts("api,libs");
  run.processes[0].not_collected.emplace_back("libs", "the library was linked statically");
  const Report report = make_report(run, {});
  EXPECT_EQ(why_absent(report, "libs"), "the library was linked statically");
  const auto& missing = report.coverage.not_collected;
  EXPECT_EQ(std::count_if(missing.begin(), missing.end(), [](const auto& entry) { return entry.what == "libs"; }), 1);
}

}  // namespace
}  // namespace gputrace
