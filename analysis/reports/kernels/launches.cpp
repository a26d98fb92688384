// Launches: the calls that launch kernels, by kernel; plain launches that succeeded, outside captures.
#include <algorithm>
#include <map>

#include "analysis/kernels/kernel_rows.h"
#include "analysis/reports/section_report.h"
#include "analysis/run/device_time.h"

namespace gputrace {
namespace {

struct LaunchRow {
  std::string name;
  Distribution calls, latency, in_buffer, to_start;
  u64 to_queued_ns = 0, queue_ns = 0, gap_ns = 0, short_kernels = 0, blocked = 0, blocked_ns = 0;
};

std::vector<LaunchRow> collect_launches(const LoadedRun& run) {
  std::map<std::string, LaunchRow> rows;
  for (const ProcessTrace& process : run.processes) {
    for (const Function& function : process.functions) {
      if (function.launch_calls.count() == 0) continue;
      LaunchRow& row = rows[display_name(function)];
      row.calls.merge(function.launch_calls);
      row.latency.merge(function.waits.latency);
      row.in_buffer.merge(function.waits.in_buffer);
      row.to_start.merge(function.waits.to_start);
      row.to_queued_ns += function.waits.to_queued_ns;
      row.queue_ns += function.waits.queue_ns;
      row.gap_ns += function.waits.gap_ns;
      row.short_kernels += function.waits.short_kernels;
      row.blocked += function.waits.blocked;
      row.blocked_ns += function.waits.blocked_ns;
    }
  }
  std::vector<LaunchRow> sorted;
  for (auto& [name, row] : rows) {
    row.name = name;
    sorted.push_back(std::move(row));
  }
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.calls.count() > b.calls.count(); });
  return sorted;
}

// Why the latency stamps are missing, or what they are.
std::string note_on_stamps(const LoadedRun& run, u64 stamped, u64 joined) {
  if (stamped == 0) {
    for (const ProcessTrace& process : run.processes) {
      for (const auto& [what, why] : process.not_collected) {
        if (what == "latency") return "queued and submitted: " + why;
      }
    }
    return "queued and submitted: CUPTI told no such stamps";
  }
  return "queued = the launch was put into the command buffer; submitted = that buffer was given to the device; " +
         std::to_string(stamped) + " of " + std::to_string(joined) + " joined launches have these stamps";
}

void add_notes(const LoadedRun& run, Table& table) {
  if (!device_collected(run)) {
    table.notes.push_back("queue, latency, gap and short need device timing: " + why_no_device_times(run));
    return;
  }
  table.notes.push_back(
      "latency = call begin to kernel start; queue = call end to kernel start; gap = the part of that which the launch "
      "itself cost: from its call's end, or from the end of what the kernel waited for (stream, events), to its start; "
      "short = kernels shorter than their own launch call; blocked = calls above 50 us behind 512 waiting operations");
  u64 launches = 0, joined = 0, stamped = 0;
  Nanos error = 0;
  for (const ProcessTrace& process : run.processes) {
    for (const Function& function : process.functions) {
      launches += function.launch_calls.count();
      joined += function.waits.latency.count();
      stamped += function.waits.in_buffer.count();
    }
    error = std::max(error, process.device.clock.error);
  }
  if (joined < launches) {
    table.notes.push_back(std::to_string(joined) + " of " + std::to_string(launches) +
                          " launches were joined to their kernel: the times are over those");
  }
  table.notes.push_back(note_on_stamps(run, stamped, joined));
  if (error > 0) table.notes.push_back("host and device clocks are tied to within " + std::to_string(error) + " ns");
}

Row cells_of(const LaunchRow& row) {
  const u64 joined = row.latency.count(), stamped = row.in_buffer.count();
  const auto when_joined = [joined](u64 value) { return joined ? number(value) : Value(); };
  const auto when_stamped = [stamped](u64 value) { return stamped ? number(value) : Value(); };
  return {row.name,
          number(row.calls.count()),
          number(row.calls.mean()),
          when_joined(row.latency.mean()),
          mean(row.to_queued_ns, stamped),
          when_stamped(row.in_buffer.mean()),
          when_stamped(row.to_start.mean()),
          when_stamped(row.in_buffer.percentile(0.99)),
          when_stamped(row.to_start.percentile(0.99)),
          when_joined(stamped),
          mean(row.gap_ns, joined),
          when_joined(row.short_kernels),
          mean(row.queue_ns, joined),
          when_joined(row.latency.percentile(0.5)),
          when_joined(row.latency.percentile(0.99)),
          number(row.calls.percentile(0.99)),
          number(row.calls.sum()),
          when_joined(row.blocked),
          when_joined(joined),
          when_joined(row.blocked_ns)};
}

void fill_launches(const LoadedRun& run, Table& table) {
  table.sort = "launches";
  add_notes(run, table);
  const std::vector<LaunchRow> collected = collect_launches(run);
  const auto column = [&table](const char* key) -> Column& {
    return table.columns[static_cast<std::size_t>(table.column(key))];
  };
  // Who asked for the stamps wants to see them: behind the latency that they divide.
  if (std::any_of(collected.begin(), collected.end(), [](const auto& row) { return row.in_buffer.count(); })) {
    for (const char* key : {"call_to_queued_mean_ns", "queued_to_submitted_mean_ns", "submitted_to_start_mean_ns"})
      column(key).hint = Hint::Normal;
  }
  for (const LaunchRow& row : collected) {
    table.rows.push_back(cells_of(row));
    const auto approximate = [&column](const char* key) { column(key).approximate = true; };
    if (row.calls.approximate()) approximate("api_p99_ns");
    if (row.in_buffer.approximate())
      approximate("queued_to_submitted_p99_ns"), approximate("submitted_to_start_p99_ns");
    if (row.latency.approximate()) approximate("latency_median_ns"), approximate("latency_p99_ns");
  }
}

}  // namespace

extern constexpr SectionReport launches_report = {
    .section = "launches",
    .title = "Launch calls by kernel",
    .answers =
        "kernel: launches, time of the launch call, call to start (latency), call's end to start (queue), true launch "
        "gap, kernels shorter than their launch, calls that a full queue held back (`blocked`: above 50 us behind 512 "
        "waiting operations); with `latency` the way of a launch: call → queued (in the command buffer) → submitted "
        "(the buffer given to the device) → start, of the launches that have both stamps (`stamped`; launches of "
        "graphs have none)",
    .shown = Shown::Filled,
    .needs = {Need::Calls},
    .columns = {{"kernel", Unit::Text, Hint::Kernel},
                {"launches", Unit::Count},
                {"api_mean_ns", Unit::Nanos},
                {"latency_mean_ns", Unit::Nanos},
                extra({"call_to_queued_mean_ns", Unit::Nanos, Hint::Detail}),
                extra({"queued_to_submitted_mean_ns", Unit::Nanos, Hint::Detail}),
                extra({"submitted_to_start_mean_ns", Unit::Nanos, Hint::Detail}),
                extra({"queued_to_submitted_p99_ns", Unit::Nanos, Hint::Detail}),
                extra({"submitted_to_start_p99_ns", Unit::Nanos, Hint::Detail}),
                extra({"stamped", Unit::Count, Hint::Detail}),
                {"gap_mean_ns", Unit::Nanos},
                {"short", Unit::Count},
                {"queue_mean_ns", Unit::Nanos},
                {"latency_median_ns", Unit::Nanos},
                {"latency_p99_ns", Unit::Nanos},
                {"api_p99_ns", Unit::Nanos},
                extra({"api_total_ns", Unit::Nanos}),
                extra({"blocked", Unit::Count}),
                extra({"joined", Unit::Count, Hint::Detail}),
                extra({"blocked_ns", Unit::Nanos, Hint::Detail})},
    .notes = {"launches = plain launch calls that succeeded, outside captures; api = time in the call on the host"},
    .fill = fill_launches,
    .of_all_devices = true,
};

}  // namespace gputrace
