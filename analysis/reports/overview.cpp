// Overview: single numbers, each with what it is counted over, or why it is not known.
#include <algorithm>

#include "analysis/device_memory.h"
#include "analysis/reports/list.h"

namespace gputrace {
namespace {

struct Sums {
  u64 launches = 0, kernels = 0, copies = 0, copy_bytes = 0, calls = 0, errors = 0, api_self_ns = 0, peak_memory = 0;
  bool memory_seen = false, graphs_unread = false;
};

Sums add_up(const LoadedTrace& trace) {
  Sums sums;
  for (const ProcessTrace& process : trace.processes) {
    sums.launches += process.plain_launches + process.graph_launches;
    for (const KernelLaunches& group : process.kernels) sums.kernels += group.plain + group.in_graphs;
    for (const CopyGroup& group : process.copies) {
      if (group.kind == TransferKind::Memset) continue;
      sums.copies += group.count;
      sums.copy_bytes += group.bytes;
    }
    for (const CallFacts& call : process.calls) {
      sums.calls += call.calls;
      sums.errors += call.errors;
      sums.api_self_ns += call.self_ns;
    }
    for (const Graph& graph : process.graphs)
      sums.graphs_unread = sums.graphs_unread || (graph.unreadable && graph.launches);
  }
  for (const DeviceMemoryTotal& memory : device_memory(trace)) {
    sums.peak_memory = std::max(sums.peak_memory, memory.peak_bytes);
    sums.memory_seen = true;
  }
  return sums;
}

}  // namespace

Table overview_report(const LoadedTrace& trace) {
  Table table;
  table.section = "overview";
  table.title = "Overview";
  table.columns = {
      {"metric", Unit::Text}, {"value", Unit::None}, {"unit", Unit::Text}, {"note", Unit::Text, Hint::Name}};
  const Sums sums = add_up(trace);
  const auto add = [&table](const char* metric, Value value, Unit unit, std::string note) {
    table.rows.push_back({std::string(metric), std::move(value), std::string(unit_name(unit)), std::move(note)});
  };
  const auto unknown = [&add](const char* metric, Unit unit, const char* why) { add(metric, {}, unit, why); };
  const char* const needs_timing = "needs device timing: not collected in this version";
  const char* const needs_steps = "needs steps: not found in this version";
  const std::size_t devices = DeviceMap(trace).entries().size();
  const bool any = trace.wall_end > trace.wall_begin;
  add("wall_ns", any ? Value(trace.wall_end - trace.wall_begin) : Value(), Unit::Nanos,
      any ? "first to last record, all processes" : "no calls were recorded");
  add("processes", number(static_cast<u64>(trace.processes.size())), Unit::Count, "");
  add("devices", number(static_cast<u64>(devices)), Unit::Count, "in use");
  add("launches", number(sums.launches), Unit::Count, "plain launch calls outside captures + graph launches");
  add("kernels", number(sums.kernels), Unit::Count,
      sums.graphs_unread ? "executions; kernels of graphs that could not be read are missing"
                         : "executions: plain launches + graph nodes x replays");
  unknown("gpu_busy_ratio", Unit::Ratio, needs_timing);
  unknown("gpu_idle_ratio", Unit::Ratio, needs_timing);
  unknown("launch_bound_ratio", Unit::Ratio, needs_timing);
  unknown("tensor_core_time_ratio", Unit::Ratio, needs_timing);
  unknown("steps", Unit::Count, needs_steps);
  unknown("step_mean_ns", Unit::Nanos, needs_steps);
  unknown("step_median_ns", Unit::Nanos, needs_steps);
  unknown("step_p99_ns", Unit::Nanos, needs_steps);
  unknown("time_16bit_ratio", Unit::Ratio, needs_timing);
  unknown("time_32bit_ratio", Unit::Ratio, needs_timing);
  add("copies", number(sums.copies), Unit::Count, "executed, those of graphs included, memsets not");
  add("copy_bytes", number(sums.copy_bytes), Unit::Bytes, "");
  add("peak_memory_bytes", number(sums.peak_memory), Unit::Bytes, "of the fullest device, all processes");
  unknown("overhead_ratio", Unit::Ratio, "not measured in this version");
  add("calls", number(sums.calls), Unit::Count, "intercepted, every level");
  add("errors", number(sums.errors), Unit::Count, "calls that returned an error");
  add("api_ns", number(sums.api_self_ns), Unit::Nanos, "host time in CUDA calls, summed over threads");
  return table;
}

}  // namespace gputrace
