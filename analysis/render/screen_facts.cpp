#include "analysis/render/screen_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "analysis/words/human.h"
#include "analysis/words/safe_text.h"

namespace gputrace {
namespace {

std::string text_of(const Value& value) {
  const auto* text = std::get_if<std::string>(&value);
  return text ? *text : std::string();
}

// "train.py", "train.py, loader.py", "train.py and 3 others": what has most processes first, and of as many what did most.
std::string programs(const Table& run) {
  using Size = std::pair<std::size_t, double>;
  std::map<std::string, Size> counts;
  for (const Row& row : run.rows) {
    const std::string program = text_of(cell_of(run, row, "program"));
    Size& size = counts[program.empty() ? "unnamed" : program];
    ++size.first, size.second += number_of(cell_of(run, row, "records")).value_or(0);
  }
  std::vector<std::pair<std::string, Size>> names(counts.begin(), counts.end());
  std::stable_sort(names.begin(), names.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  if (names.empty()) return "";
  if (names.size() == 1) return names[0].first;
  if (names.size() == 2) return names[0].first + ", " + names[1].first;
  return names[0].first + " and " + std::to_string(names.size() - 1) + " others";
}

std::string processes(const Table& run, u64 count) {
  std::set<std::string> hosts, ranks;
  for (const Row& row : run.rows) {
    if (const std::string host = text_of(cell_of(run, row, "host")); !host.empty()) hosts.insert(host);
    if (const Value& rank = cell_of(run, row, "rank"); !is_null(rank)) ranks.insert(human(rank, Unit::Text));
  }
  std::string words = human_count(count) + (count == 1 ? " process" : " processes");
  if (ranks.size() > 1 && ranks.size() == count) words = human_count(count) + " ranks";
  if (hosts.size() > 1) words += " on " + std::to_string(hosts.size()) + " hosts";
  return words;
}

// "exited 1", "2 of 4 exited 1, 1 signal 9"; empty: nothing that was seen is out of the ordinary. One that vanished is told with the trace.
std::string ends(const Table& run, u64 count) {
  std::map<std::string, std::size_t> failed;
  for (const Row& row : run.rows) {
    const std::string reason = text_of(cell_of(run, row, "end_reason"));
    if (reason.rfind("exited ", 0) == 0 || reason.rfind("signal ", 0) == 0) ++failed[reason];
  }
  std::string words;
  for (const auto& [reason, processes] : failed) {
    words += words.empty() ? "" : ", ";
    if (count > 1) words += human_count(processes) + (words.empty() ? " of " + human_count(count) : "") + " ";
    words += reason;
  }
  return words;
}

// "8 x NVIDIA H100 80GB HBM3".
std::string device_names(const Table& devices) {
  std::map<std::string, std::size_t> counts;
  for (const Row& row : devices.rows) {
    const std::string name = text_of(cell_of(devices, row, "name"));
    ++counts[name.empty() ? "a device without a name" : name];
  }
  std::string words;
  for (const auto& [name, count] : counts)
    words += (words.empty() ? "" : ", ") + (count > 1 ? std::to_string(count) + " x " : std::string()) + name;
  return words;
}

// The toolkit that the program uses; the driver's where it is linked in statically.
std::string cuda_version(const Table& run) {
  std::set<std::string> runtimes, drivers;
  for (const Row& row : run.rows) {
    if (const std::string runtime = text_of(cell_of(run, row, "runtime")); !runtime.empty()) runtimes.insert(runtime);
    if (const std::string driver = text_of(cell_of(run, row, "driver")); !driver.empty()) drivers.insert(driver);
  }
  if (runtimes.size() == 1) return "CUDA " + *runtimes.begin();
  if (runtimes.empty() && drivers.size() == 1) return "driver for CUDA " + *drivers.begin();
  return "";
}

void add_kernels(const Table& table, Heaviest& found) {
  std::map<std::string, std::size_t> known;
  for (const Row& row : table.rows) {
    const Value& whole = cell_of(table, row, "kernel");
    const Value& shown = cell_of(table, row, "name");
    const std::string key = human(is_null(whole) ? shown : whole, Unit::Text);
    const auto [at, fresh] = known.emplace(key, found.rows.size());
    if (fresh) {
      Heavy& heavy = found.rows.emplace_back();
      heavy.name = human(shown, Unit::Text);
      const std::string kind = text_of(cell_of(table, row, "tensor_core_kind")),
                        precision = text_of(cell_of(table, row, "precision"));
      heavy.detail = kind;
      if (!kind.empty() && !precision.empty()) heavy.detail += ' ';
      heavy.detail += precision;
    }
    Heavy& heavy = found.rows[at->second];
    const auto add = [&](std::optional<i64>& sum, const char* column) {
      if (const auto* value = std::get_if<i64>(&cell_of(table, row, column))) sum = sum.value_or(0) + *value;
    };
    add(heavy.total_ns, "total_ns");
    add(heavy.count, "launches");
    if (const auto share = number_of(cell_of(table, row, "share"))) heavy.share = heavy.share.value_or(0) + *share;
  }
}

// By name, wherever in others it was called, but where it ran nothing on a device: on the host's tensors, of those that load data, say.
void add_operations(const Table& table, Heaviest& found) {
  std::map<std::string, std::size_t> known;
  for (const Row& row : table.rows) {
    const auto* const device = std::get_if<i64>(&cell_of(table, row, "device_self_ns"));
    if (device && *device == 0) continue;
    const std::string name = human(cell_of(table, row, "op"), Unit::Text);
    const auto [at, fresh] = known.emplace(name, found.rows.size());
    if (fresh) {
      found.rows.emplace_back().name = name;
      found.rows.back().detail = text_of(cell_of(table, row, "site"));
    }
    Heavy& heavy = found.rows[at->second];
    const auto add = [&](std::optional<i64>& sum, const char* column) {
      if (const auto* value = std::get_if<i64>(&cell_of(table, row, column))) sum = sum.value_or(0) + *value;
    };
    add(heavy.total_ns, "device_self_ns");
    add(heavy.count, "count");
    if (const auto share = number_of(cell_of(table, row, "share"))) heavy.share = heavy.share.value_or(0) + *share;
  }
}

void order(Heaviest& found, std::size_t most) {
  found.timed = std::any_of(found.rows.begin(), found.rows.end(), [](const Heavy& row) { return row.total_ns; });
  std::stable_sort(found.rows.begin(), found.rows.end(), [&found](const Heavy& a, const Heavy& b) {
    return found.timed ? a.total_ns.value_or(0) > b.total_ns.value_or(0) : a.count.value_or(0) > b.count.value_or(0);
  });
  found.all = found.rows.size();
  if (found.rows.size() > most) found.rows.resize(most);
}

constexpr const char* kTracing = "profiler";  // the cause, in the table's word

// Shares of the span: each cause of idle time, tracing's among them.
std::vector<std::pair<std::string, double>> all_idle_parts(const Report& report, double span) {
  const double idle = number_of(metric_of(report, "idle_ns").value).value_or(0) / span;
  std::vector<std::pair<std::string, double>> parts;
  const Table* causes = report.table("idle-causes");
  for (std::size_t i = 0; causes && i < causes->rows.size(); ++i) {
    const auto share = number_of(cell_of(*causes, causes->rows[i], "share"));
    if (share) parts.emplace_back(text_of(cell_of(*causes, causes->rows[i], "cause")), *share * idle);
  }
  return parts;
}

}  // namespace

Metric metric_of(const Report& report, const char* name) {
  const Table* overview = report.table("overview");
  for (std::size_t i = 0; overview && i < overview->rows.size(); ++i) {
    const Row& row = overview->rows[i];
    if (text_of(cell_of(*overview, row, "metric")) == name)
      return {cell_of(*overview, row, "value"), text_of(cell_of(*overview, row, "note"))};
  }
  return {};
}

std::string human_duration(Nanos nanos) {
  const i64 seconds = nanos / 1'000'000'000;
  if (seconds < 120) return human_nanos(nanos);
  if (seconds < 7200) return fmt::format("{} min {:02} s", seconds / 60, seconds % 60);
  return fmt::format("{} h {:02} min", seconds / 3600, seconds / 60 % 60);
}

std::vector<std::string> headline(const Report& report) {
  std::vector<std::string> parts;
  const auto add = [&parts](const std::string& part) {
    if (!part.empty()) parts.push_back(safe_text(part));
  };
  const Table none;
  const Table* run = report.table("run");
  const Table* devices = report.table("devices");
  add(programs(run ? *run : none));
  add(processes(run ? *run : none, report.coverage.processes));
  add(device_names(devices ? *devices : none));
  add(cuda_version(run ? *run : none));
  const Value wall = metric_of(report, "wall_ns").value;
  add(is_null(wall) ? "" : human_duration(std::get<i64>(wall)));
  add(ends(run ? *run : none, report.coverage.processes));
  return parts;
}

std::vector<TimePart> device_time_parts(const Report& report) {
  const auto span = number_of(metric_of(report, "device_span_ns").value);
  if (!span || *span <= 0) return {};
  double traced = 0;
  for (const auto& [cause, share] : all_idle_parts(report, *span)) {
    if (cause == kTracing) traced += share;
  }
  std::vector<TimePart> parts;
  for (const auto& [name, metric] :
       {std::pair{"compute", "compute_ns"}, std::pair{"collectives", "exposed_collective_ns"},
        std::pair{"copies", "exposed_copy_ns"}, std::pair{"idle", "idle_ns"}, std::pair{"unknown", "unknown_ns"}})
    parts.push_back({name, number_of(metric_of(report, metric).value).value_or(0) / *span});
  TimePart& idle = parts[3];
  idle.share = std::max(0.0, idle.share - traced);
  parts.insert(parts.begin() + 4, {"tracing", traced});
  return parts;
}

std::vector<std::pair<std::string, double>> idle_parts(const Report& report) {
  const auto span = number_of(metric_of(report, "device_span_ns").value);
  if (!span || *span <= 0) return {};
  auto parts = all_idle_parts(report, *span);
  std::erase_if(parts, [](const auto& part) { return part.first == kTracing; });
  std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  return parts;
}

std::string whose_steps(const Report& report) {
  const Metric pid = metric_of(report, "steps_pid");
  return is_null(pid.value) ? std::string() : ", of " + safe_text(pid.note);
}

std::string steps_of_others(const Report& report) {
  const Metric others = metric_of(report, "turns_of_other_threads");
  if (is_null(others.value)) return {};
  return "; " + human(others.value, Unit::Count) + " more " + others.note;
}

std::string between_steps(const Report& report) {
  constexpr double kLeast = 0.05;  // of the loop
  const Value loop = metric_of(report, "loop_ns").value, between = metric_of(report, "between_steps_ns").value;
  const double whole = number_of(loop).value_or(0), part = number_of(between).value_or(0);
  if (whole <= 0 || part < kLeast * whole) return {};
  return "; " + human(between, Unit::Nanos) + " of " + human(loop, Unit::Nanos) + " lie between them";
}

LongStart long_start(const Report& report) {
  constexpr double kMost = 0.5, kGoodPart = 0.1;
  LongStart found;
  const Table* phases = report.table("phases");
  const double loop = number_of(metric_of(report, "loop_ns").value).value_or(0);
  if (!phases || loop <= 0) return found;
  const Value pid = metric_of(report, "steps_pid").value;
  std::map<std::string, double> lengths;
  double whole = 0;
  for (const Row& row : phases->rows) {
    const Value own = cell_of(*phases, row, "pid");
    if (!is_null(pid) && own != pid) continue;  // null: there is one process
    const double length = number_of(cell_of(*phases, row, "duration_ns")).value_or(0);
    lengths[text_of(cell_of(*phases, row, "phase"))] += length;
    whole += length;
  }
  if (lengths["start-up"] < kMost * whole || whole <= 0) return found;
  for (const auto& [phase, length] : lengths) found.phases.emplace_back(phase, length / whole);
  std::stable_sort(found.phases.begin(), found.phases.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  found.whole = static_cast<Nanos>(whole);
  // What lines have is the sum of all processes and devices.
  const bool of_one = is_null(pid) && number_of(metric_of(report, "devices").value).value_or(1) <= 1;
  double most = 0;
  std::string at;
  const Table* sites = of_one ? report.table("sites") : nullptr;
  for (std::size_t i = 0; sites && i < sites->rows.size(); ++i) {
    const double idle = number_of(cell_of(*sites, sites->rows[i], "idle_ns")).value_or(0);
    if (idle > most) most = idle, at = text_of(cell_of(*sites, sites->rows[i], "site"));
  }
  if (most > loop && most >= kGoodPart * whole && !at.empty())
    found.idle_at = human_nanos(static_cast<Nanos>(most)) + " at " + at;
  return found;
}

std::vector<std::pair<std::string, double>> step_parts(const Report& report) {
  const auto mean = number_of(metric_of(report, "step_mean_ns").value);
  std::vector<std::pair<std::string, double>> parts;
  if (!mean || *mean <= 0) return parts;
  double compute = 0;
  const Table* overview = report.table("overview");
  for (const Row& row : overview->rows) {
    const std::string metric = text_of(cell_of(*overview, row, "metric"));
    if (metric.size() < 9 || metric.rfind("step_", 0) != 0 || metric.compare(metric.size() - 3, 3, "_ns") != 0)
      continue;
    const std::string name = metric.substr(5, metric.size() - 8);
    if (name == "mean" || name == "median" || name == "p99") continue;
    const double share = number_of(cell_of(*overview, row, "value")).value_or(0) / *mean;
    const bool computes = name.rfind("compute_", 0) == 0;
    if (computes) compute += share;
    if (!computes && share > 0) parts.emplace_back(name == "device_to_device" ? "copies on the device" : name, share);
  }
  if (compute > 0) parts.emplace_back("compute", compute);
  std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  return parts;
}

Heaviest heaviest(const Report& report, std::size_t most) {
  constexpr double kMostOfIt = 0.5;
  Heaviest found;
  double explained = 0;
  if (const Table* ops = report.table("ops")) {
    add_operations(*ops, found);
    for (const Heavy& row : found.rows) explained += row.share.value_or(0);
  }
  found.operations = explained > kMostOfIt;
  if (!found.operations) {
    found.rows.clear();
    if (const Table* kernels = report.table("kernels")) add_kernels(*kernels, found);
  }
  order(found, most);
  return found;
}

bool is_of_options(const Finding& finding) { return finding.id == "option"; }

std::vector<const Finding*> findings_by_gain(const Report& report) {
  std::vector<const Finding*> findings;
  for (const Finding& finding : report.findings) {
    if (!is_of_options(finding)) findings.push_back(&finding);
  }
  const auto doubts_all = [](const Finding* finding) {
    return finding->severity == Severity::Problem && finding->section.compare(0, 7, "quality") == 0;
  };
  std::stable_sort(findings.begin(), findings.end(), [&](const Finding* a, const Finding* b) {
    if (a->ended_it != b->ended_it) return a->ended_it;
    if (doubts_all(a) != doubts_all(b)) return doubts_all(a);
    return a->gain_ns > b->gain_ns;
  });
  std::set<std::pair<u64, std::string>> told;
  std::vector<const Finding*> first, again;
  for (const Finding* finding : findings) {
    const bool is_new = finding->gain_ns == 0 ||
                        told.insert({finding->gain_ns, human(evidence_of(*finding, "pid"), Unit::Text)}).second;
    (is_new ? first : again).push_back(finding);
  }
  first.insert(first.end(), again.begin(), again.end());
  return first;
}

Outside most_from_outside(const Report& report) {
  Outside most;
  for (const Finding& finding : report.findings) {
    const auto told = [&](const char* key) { return evidence_of(finding, key); };
    const auto count = [&](const char* key) { return static_cast<u64>(number_of(told(key)).value_or(0)); };
    if (finding.id != "idle-gaps" || count("outside_ns") <= most.waits_ns) continue;
    const std::string function = text_of(told("waits_in")), line = text_of(told("waits_at"));
    most = {count("outside_ns"), count("span_ns"), static_cast<i64>(count("device")),
            fmt::format("{}at {}", function.empty() ? "" : function + ", ", line)};
  }
  return most;
}

std::string trace_line(const Report& report) {
  const Coverage& coverage = report.coverage;
  std::string line =
      fmt::format("{}, {} dropped, ", counted(coverage.records, "record"), human_count(coverage.dropped));
  if (!coverage.missing.empty() || coverage.truncated) {
    line += "incomplete";
    const char* before = ": ";
    for (const std::string& clause : coverage.missing) line += before + clause, before = "; ";
    return line;
  }
  line += "complete";
  if (const auto overhead = number_of(metric_of(report, "overhead_ratio").value))
    line += fmt::format("; collecting took {:.1f} % of the run", *overhead * 100);
  return line;
}

}  // namespace gputrace
