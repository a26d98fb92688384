#include "analysis/run/quality.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <functional>
#include <map>
#include <numeric>
#include <set>

#include "analysis/run/device_time.h"
#include "analysis/run/program.h"
#include "analysis/run/runs.h"

namespace gputrace {

const char* drop_reason(DropReason reason) {
  switch (reason) {
    case DropReason::RingFull:
      return "ring full";
    case DropReason::NoSlot:
      return "no slot for the thread";
    case DropReason::Nested:
      return "call within a signal handler";
    case DropReason::NoSidecar:
      return "no sidecar drained";
    case DropReason::Overwritten:
      return "overwritten by newer ones";
    case DropReason::Disk:
      return "disk full or size limit";
    case DropReason::Lost:
      return "lost with the process or the file";
    case DropReason::UserGivenUp:
      return "after it gave up its user";
  }
  return "reason unknown";
}

std::string drop_reasons(const std::array<u64, kDropReasons>& dropped) {
  std::string text;
  for (u32 i = 0; i < kDropReasons; ++i) {
    if (dropped[i] == 0) continue;
    if (!text.empty()) text += ", ";
    text += std::string(drop_reason(static_cast<DropReason>(i))) + " " + std::to_string(dropped[i]);
  }
  return text;
}

std::string name_of(const ProcessTrace& process) {
  if (!process.who.rank.empty())
    return "rank " + process.who.rank +
           (process.who.restart ? " (restart " + std::to_string(process.who.restart) + ")" : "");
  return program_name(process) + " (pid " + std::to_string(process.who.pid) + ")";
}

bool was_told_to_end(const ProcessTrace& process) {
  const i32 signal = process.who.signal;
  return signal == SIGTERM || signal == SIGINT || signal == SIGHUP;
}

std::string failure_of(const ProcessTrace& process) {
  if (!process.who.failed) return "";
  return (process.who.died ? "; the program was ended by " : "; the program ") + process.who.end_reason;
}

namespace {

// Records that should have come; not what the process did not wait for.
u64 lost_of(const DeviceActivity& device) {
  return std::accumulate(device.lost.begin(), device.lost.end(), u64{0}) - device.unfinished();
}

// What limits the device's numbers, for all processes together.
void add_device_remarks(const LoadedRun& run, Coverage& coverage) {
  u64 lost = 0, operations = 0, unjoined = 0, doubtful = 0, late = 0;
  bool stopped = false;
  for (const ProcessTrace& process : run.processes) {
    const DeviceActivity& device = process.device;
    lost += lost_of(device);
    operations += device.join.operations;
    unjoined += device.join.not_joined;
    doubtful += device.join.in_doubt();
    late += device.join.late;
    stopped = stopped || device.incomplete;
  }
  const auto remark = [&](u64 count, const std::string& text) {
    if (count) coverage.remarks.push_back(std::to_string(count) + text);
  };
  remark(lost, " device records were lost or had no usable times: device times are lower bounds");
  remark(unjoined, " of " + std::to_string(operations) + " device operations could not be joined to their call");
  remark(
      doubtful,
      " device operations were joined by their order among alike calls, some of which have no record: their latencies "
      "and gaps may be a neighbour's");
  remark(late, " device operations came so late that busy and idle time may miss parts of them");
  if (stopped)
    coverage.remarks.push_back("device collection was not ended by the process: operations at the end may be missing");
}

bool written_to_its_end(const ProcessTrace& process) { return process.who.ended && process.damage.empty(); }

// Why the traces are not complete. A trace is complete only if nothing is missing of what was asked for.
void add_missing(const LoadedRun& run, Coverage& coverage) {
  u64 killed = 0, unwritten = 0, not_read = 0, unanswered = 0, lost = 0, unfinished = 0, not_ended = 0;
  std::string how;
  for (const ProcessTrace& process : run.processes) {
    const DeviceActivity& device = process.device;
    unwritten += !written_to_its_end(process);
    not_read += process.images_not_read;
    if (process.who.died && killed++ == 0) how = name_of(process) + ": " + process.who.end_reason;
    const u64 calls = device.join.calls_unanswered + device.join.calls_forgotten;
    if (device.collected) unanswered += calls - std::min(calls, device.unfinished());
    lost += lost_of(device);
    unfinished += device.unfinished();
    not_ended += device.incomplete;
  }
  const auto add = [&](u64 count, const std::string& text) {
    if (count) coverage.missing.push_back(text);
  };
  const auto of = [](u64 count, const char* one, const char* many) {
    return std::to_string(count) + " " + (count == 1 ? one : many);
  };
  add(coverage.dropped, of(coverage.dropped, "record was dropped", "records were dropped"));
  add(coverage.unknown_records, of(coverage.unknown_records, "record is", "records are") + " of unknown types");
  add(unwritten, of(unwritten, "trace was", "traces were") + " not written to the end, or damaged");
  add(not_read, "machine code of " + of(not_read, "image was", "images were") +
                    " not read yet: it is being read, or its reader was killed");
  add(killed, of(killed, "process was", "processes were") + " killed (" + how + ")");
  add(lost, of(lost, "device record was", "device records were") + " lost or had no usable time");
  add(unfinished,
      of(unfinished, "operation", "operations") +
          " had not ended when the program did (it does not synchronize at its end): nobody knows their times");
  add(unanswered, of(unanswered, "call has", "calls have") + " no device record");
  add(not_ended, "device collection was not ended by " + of(not_ended, "process", "processes"));
  add(run.unread.size(), of(run.unread.size(), "file was", "files were") + " not read");
}

// One directory may hold several runs: their numbers are added up, which is seldom what is wanted.
void add_runs(const LoadedRun& run, Coverage& coverage) {
  constexpr std::size_t kNamed = 4;
  std::set<std::string, std::greater<>> runs;  // named by the time of their begin
  for (const std::size_t first : runs_of(run.processes)) {
    if (const std::string& name = run.processes[first].who.run; !name.empty()) runs.insert(name);
  }
  if (runs.size() < 2) return;
  std::string names;
  std::size_t named = 0;
  for (const std::string& name : runs) {
    if (named++ == kNamed) break;
    names += (names.empty() ? "" : ", ") + name;
  }
  if (runs.size() > kNamed) names += " and older ones";
  coverage.remarks.push_back(std::to_string(runs.size()) + " runs are counted together (" + names +
                             "): --last reports the newest alone");
}

// A launcher that starts the ranks anew when one has failed.
void add_restarts(const LoadedRun& run, Coverage& coverage) {
  const std::vector<bool> anew = were_started_anew(run.processes);
  const auto before = static_cast<u64>(std::count(anew.begin(), anew.end(), true));
  if (before == 0) return;
  coverage.remarks.push_back(
      "the launcher started its ranks anew: " + std::to_string(before) +
      (before == 1 ? " process of before is counted too" : " processes of before are counted too"));
}

// What was recorded was a part of the run, by choice.
void add_windows(const LoadedRun& run, Coverage& coverage) {
  std::map<std::string, std::array<u64, 3>>
      windows;  // by its words: processes, of them without a call, without a launch
  for (const ProcessTrace& process : run.processes) {
    if (process.window.empty()) continue;
    auto& [all, silent, idle] = windows[process.window];
    ++all;
    silent += process.end == 0;
    idle += process.end != 0 && process.plain_launches + process.graph_launches == 0;
  }
  for (const auto& [words, counts] : windows) {
    const auto [all, silent, idle] = counts;
    std::string text = "a window was recorded (" + words + "): times, counts and rates are those of the window";
    const bool range = words.compare(0, 7, "capture") == 0;
    const std::string of = all == 1 ? "" : std::to_string(silent) + " of " + std::to_string(all) + " processes: ";
    if (silent)
      text += "; " + of +
              (range ? "nothing fell into it: no such range began, or no call was made in one"
                     : "nothing fell into it: the program made no call in that time");
    if (idle)
      text += "; " + (all == 1 ? std::string() : std::to_string(idle) + " of " + std::to_string(all) + " processes: ") +
              "nothing was launched in it";
    coverage.remarks.push_back(text);
  }
}

}  // namespace

bool ledger_has_holes(const LoadedRun& run) {
  return std::any_of(run.processes.begin(), run.processes.end(), [](const ProcessTrace& process) {
    const bool allocates = !process.pools.empty();
    return allocates && (process.dropped > 0 || !process.damage.empty());
  });
}

Coverage coverage_of(const LoadedRun& run) {
  Coverage coverage;
  coverage.processes = run.processes.size();
  bool device_known = false;
  const auto add = [&](const std::string& what, const std::string& why) {
    device_known = device_known || what == "device";
    for (const NotCollected& known : coverage.not_collected) {
      if (known.what == what && known.why == why) return;
    }
    coverage.not_collected.push_back({what, why});
  };
  u64 unsure = 0, unmatched = 0;
  bool inexact = false, incomplete_ledger = false;
  for (const ProcessTrace& process : run.processes) {
    coverage.records += process.records;
    coverage.dropped += process.dropped;
    coverage.unknown_records += process.unknown_records;
    coverage.truncated = coverage.truncated || !process.who.ended || !process.damage.empty();
    coverage.sources.push_back(process.who.file);
    for (const auto& [what, why] : process.not_collected) add(what, why);
    unsure += process.launches_unsure;
    unmatched += process.unmatched_frees;
    inexact = inexact || !process.counters_exact;
    if (!process.who.never_open.empty())
      coverage.remarks.push_back("nothing was recorded of " + name_of(process) + ": " + process.who.never_open);
    incomplete_ledger = incomplete_ledger || !process.ledger_complete;
  }
  if (device_collected(run)) coverage.device_timing = "cupti";
  if (const std::string why = why_no_device_times(run); !device_known && !why.empty()) add("device", why);
  add_runs(run, coverage);
  add_restarts(run, coverage);
  if (unsure)
    coverage.remarks.push_back(
        std::to_string(unsure) +
        " launches: whether their stream was capturing is not known; they are counted as launches");
  if (unmatched)
    coverage.remarks.push_back(std::to_string(unmatched) + " frees are of memory whose allocation is not in the trace");
  if (inexact)
    coverage.remarks.push_back(
        "the last counters of a process are missing: dropped records are a lower bound, and what it did after the last "
        "look at its counters is not known");
  if (ledger_has_holes(run)) coverage.remarks.push_back(kHolesInTheLedger);
  if (incomplete_ledger)
    coverage.remarks.push_back(std::string("allocations may be missing from the trace: ") +
                               (ledger_has_holes(run) ? "" : "memory sums are lower bounds, and ") +
                               "the memory kind of some copies is not known");
  add_windows(run, coverage);
  add_device_remarks(run, coverage);
  add_missing(run, coverage);
  for (const std::string& unread : run.unread) coverage.remarks.push_back("not read: " + unread);
  return coverage;
}

namespace {

struct QualityColumns {
  int thread, seen, stored, dropped, exact;
  bool there() const { return thread >= 0 && seen >= 0 && stored >= 0 && dropped >= 0 && exact >= 0; }
};

u64 count_in(const Row& row, int column) {
  const auto* count = std::get_if<i64>(&row[static_cast<std::size_t>(column)]);
  return count && *count > 0 ? static_cast<u64>(*count) : 0;
}

bool is_exact(const Row& row, int column) {
  const auto* exact = std::get_if<bool>(&row[static_cast<std::size_t>(column)]);
  return exact && *exact;
}

Row sum_of(const std::vector<Row>& rows, const QualityColumns& at, const char* what) {
  Row sum(rows.front().size());
  const auto cell = [&](int column) -> Value& { return sum[static_cast<std::size_t>(column)]; };
  for (const int column : {at.seen, at.stored, at.dropped}) {
    u64 all = 0;
    for (const Row& row : rows) all += count_in(row, column);
    cell(column) = number(all);
  }
  cell(at.thread) = "(" + std::to_string(rows.size()) + what;
  cell(at.exact) = std::all_of(rows.begin(), rows.end(), [&](const Row& row) { return is_exact(row, at.exact); });
  return sum;
}

}  // namespace

void fold_quality(Table& table, std::size_t most) {
  const QualityColumns at{table.column("thread"), table.column("seen"), table.column("stored"), table.column("dropped"),
                          table.column("exact")};
  if (table.rows.size() <= most || !at.there()) return;
  std::vector<Row> with_loss, without;
  for (Row& row : table.rows) {
    const bool lost = count_in(row, at.dropped) || !is_exact(row, at.exact);
    (lost ? with_loss : without).push_back(std::move(row));
  }
  std::stable_sort(with_loss.begin(), with_loss.end(),
                   [&](const Row& a, const Row& b) { return count_in(a, at.dropped) > count_in(b, at.dropped); });
  const auto kept = with_loss.begin() + static_cast<std::ptrdiff_t>(std::min(most, with_loss.size()));
  const std::vector<Row> rest(kept, with_loss.end());
  with_loss.erase(kept, with_loss.end());
  table.rows = std::move(with_loss);
  if (!rest.empty()) table.rows.push_back(sum_of(rest, at, " others with loss or inexact)"));
  if (!without.empty()) table.rows.push_back(sum_of(without, at, " others without loss)"));
}

}  // namespace gputrace
