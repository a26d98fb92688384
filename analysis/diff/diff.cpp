#include "analysis/diff/diff.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/words/human.h"

namespace gputrace {
namespace {

// A section whose rows are matched by one column (or two), and summed.
struct Matched {
  const char* section;
  const char* title;
  const char* key;
  const char* second;  // nullptr: none
  const char* total;
  const char* count;
  Hint hint;
};
constexpr Matched kMatched[] = {
    {"kernels", "Kernels", "kernel", nullptr, "total_ns", "launches", Hint::Kernel},
    {"ops", "Operations, by the device time of what they launched themselves", "op", nullptr, "device_self_ns", "count",
     Hint::Name},
    {"idle-causes", "Idle time by cause", "cause", nullptr, "total_ns", "count", Hint::Normal},
    {"sites", "Lines of the program, by device time", "site", nullptr, "device_total_ns", "launches", Hint::Site},
    {"api", "CUDA calls, by their own time on the host", "call", "level", "self_ns", "calls", Hint::Name},
};

struct Sum {
  std::optional<double> total, count;
};
void add(std::optional<double>& sum, const Value& value) {
  if (const auto number = number_of(value)) sum = sum.value_or(0) + *number;
}

std::map<std::pair<std::string, std::string>, Sum> sums_of(const Table* table, const Matched& how) {
  std::map<std::pair<std::string, std::string>, Sum> sums;
  for (std::size_t i = 0; table && i < table->rows.size(); ++i) {
    const Row& row = table->rows[i];
    const Value& key = cell_of(*table, row, how.key);
    if (is_null(key)) continue;
    Sum& sum = sums[{human(key, Unit::Text), how.second ? human(cell_of(*table, row, how.second), Unit::Text) : ""}];
    add(sum.total, cell_of(*table, row, how.total));
    add(sum.count, cell_of(*table, row, how.count));
  }
  return sums;
}

std::optional<double> metric(const Report& report, const char* name) {
  const Table* overview = report.table("overview");
  for (std::size_t i = 0; overview && i < overview->rows.size(); ++i) {
    const Value& key = cell_of(*overview, overview->rows[i], "metric");
    if (const auto* text = std::get_if<std::string>(&key); text && *text == name)
      return number_of(cell_of(*overview, overview->rows[i], "value"));
  }
  return std::nullopt;
}

// The lengths of the steps that count in the overview's median, in order.
std::vector<double> counted_steps(const Report& report) {
  std::vector<double> lengths;
  const Table* steps = report.table("steps");
  for (std::size_t i = 0; steps && i < steps->rows.size(); ++i) {
    const auto* const counted = std::get_if<bool>(&cell_of(*steps, steps->rows[i], "counted"));
    if (counted && !*counted) continue;
    if (const auto length = number_of(cell_of(*steps, steps->rows[i], "duration_ns"))) lengths.push_back(*length);
  }
  std::sort(lengths.begin(), lengths.end());
  return lengths;
}

// All of them: sums of a run hold the steps that do not count too.
double number_of_steps(const Report& report) {
  const Table* steps = report.table("steps");
  return steps ? static_cast<double>(std::max<std::size_t>(steps->rows.size(), steps->total_rows)) : 0;
}

// The nearest rank, as in the overview.
double quantile(const std::vector<double>& sorted, double part) {
  const double rank = std::ceil(part * static_cast<double>(sorted.size()));
  return sorted[static_cast<std::size_t>(std::max(1.0, rank)) - 1];
}

// Of a median, from the quartiles: outliers, of which steps have many, do not widen it.
double standard_error(const std::vector<double>& sorted) {
  const double sigma = (quantile(sorted, 0.75) - quantile(sorted, 0.25)) / 1.349;
  return 1.2533 * sigma / std::sqrt(static_cast<double>(sorted.size()));
}

Change change_of(const Report& a, const Report& b) {
  constexpr std::size_t kLeast = 3;
  Change change;
  const std::vector<double> steps_a = counted_steps(a), steps_b = counted_steps(b);
  if (steps_a.size() >= kLeast && steps_b.size() >= kLeast) {
    change.what = "step";
    change.a_ns = quantile(steps_a, 0.5), change.b_ns = quantile(steps_b, 0.5);
    const double error_a = standard_error(steps_a), error_b = standard_error(steps_b);
    change.error_ns = std::sqrt(error_a * error_a + error_b * error_b);
    return change;
  }
  for (const auto& [what, key] : {std::pair{"device span", "device_span_ns"}, std::pair{"wall", "wall_ns"}}) {
    const auto length_a = metric(a, key), length_b = metric(b, key);
    if (!length_a || !length_b) continue;
    change.what = what;
    change.a_ns = *length_a, change.b_ns = *length_b;
    return change;
  }
  return change;
}

Value whole(std::optional<double> value, double divisor) {
  if (!value) return {};
  return rounded(*value / divisor);
}

struct Sides {
  std::optional<Sum> a, b;  // nothing: the run has no such row
};

// Nothing: the times of one side are not known.
std::optional<double> change_of(const Sides& sides, double steps_a, double steps_b) {
  if ((sides.a && !sides.a->total) || (sides.b && !sides.b->total)) return std::nullopt;
  return (sides.b ? *sides.b->total / steps_b : 0) - (sides.a ? *sides.a->total / steps_a : 0);
}

Value ratio_of(const Sides& sides, std::optional<double> change, double steps_a) {
  if (!change || !sides.a || !sides.b || *sides.a->total <= 0) return {};
  return *change / (*sides.a->total / steps_a);
}

const char* state_of(const Sides& sides) { return !sides.a ? "new" : !sides.b ? "gone" : "both"; }

Table matched_table(const Report& a, const Report& b, const Matched& how, double steps_a, double steps_b) {
  Table table;
  table.section = how.section;
  table.title = std::string(how.title) + (steps_a != 1 || steps_b != 1 ? ", a step" : "");
  table.columns = {{how.key, Unit::Text, how.hint}};
  if (how.second) table.columns.push_back({how.second, Unit::Text});
  for (const auto& [key, unit] :
       {std::pair{"a_total_ns", Unit::Nanos}, std::pair{"b_total_ns", Unit::Nanos}, std::pair{"change_ns", Unit::Nanos},
        std::pair{"change_ratio", Unit::Ratio}, std::pair{"a_count", Unit::Count}, std::pair{"b_count", Unit::Count}})
    table.columns.push_back({key, unit});
  table.columns.push_back({"state", Unit::Text});
  std::map<std::pair<std::string, std::string>, Sides> both;
  for (const auto& [key, sum] : sums_of(a.table(how.section), how)) both[key].a = sum;
  for (const auto& [key, sum] : sums_of(b.table(how.section), how)) both[key].b = sum;
  std::vector<std::pair<double, Row>> rows;
  for (const auto& [key, sides] : both) {
    const std::optional<double> change = change_of(sides, steps_a, steps_b);
    const auto total = [](const std::optional<Sum>& side) { return side ? side->total : std::nullopt; };
    const auto count = [](const std::optional<Sum>& side) { return side ? side->count : std::nullopt; };
    Row row = {whole(total(sides.a), steps_a),   whole(total(sides.b), steps_b), whole(change, 1),
               ratio_of(sides, change, steps_a), whole(count(sides.a), steps_a), whole(count(sides.b), steps_b),
               std::string(state_of(sides))};
    if (how.second) row.insert(row.begin(), Value(key.second));
    row.insert(row.begin(), Value(key.first));
    rows.emplace_back(change ? std::fabs(*change) : 0, std::move(row));
  }
  std::stable_sort(rows.begin(), rows.end(), [](const auto& x, const auto& y) { return x.first > y.first; });
  for (auto& [size, row] : rows) table.rows.push_back(std::move(row));
  table.notes = {"a, b = the first run and the second; change = b - a; the largest changes come first"};
  return table;
}

// Two numbers of the runs, their ratio where both are known.
Row summary_row(const std::string& name, std::optional<double> from, std::optional<double> to, Unit unit) {
  const auto cell = [unit](std::optional<double> value) -> Value {
    if (!value) return {};
    if (unit == Unit::Ratio) return *value;
    return rounded(*value);
  };
  Value ratio;
  if (from && to && *from > 0 && unit != Unit::Ratio) ratio = *to / *from - 1;
  return {name, cell(from), cell(to), ratio, std::string(unit_name(unit))};
}

Table summary_table(const Report& a, const Report& b, const Change& change) {
  Table table;
  table.section = "summary";
  table.title = "Both runs";
  table.columns = {{"what", Unit::Text},
                   {"a", Unit::None},
                   {"b", Unit::None},
                   {"change_ratio", Unit::Ratio},
                   {"unit", Unit::Text, Hint::Detail}};
  const auto add_row = [&table](const char* name, std::optional<double> from, std::optional<double> to, Unit unit) {
    if (from || to) table.rows.push_back(summary_row(name, from, to, unit));
  };
  if (change.what == "step") add_row("step_median_ns", change.a_ns, change.b_ns, Unit::Nanos);
  for (const auto& [name, unit] :
       {std::pair{"wall_ns", Unit::Nanos}, std::pair{"device_span_ns", Unit::Nanos},
        std::pair{"gpu_busy_ratio", Unit::Ratio}, std::pair{"compute_ns", Unit::Nanos},
        std::pair{"exposed_collective_ns", Unit::Nanos}, std::pair{"exposed_copy_ns", Unit::Nanos},
        std::pair{"idle_ns", Unit::Nanos}, std::pair{"kernel_ns", Unit::Nanos}, std::pair{"steps", Unit::Count},
        std::pair{"launches", Unit::Count}, std::pair{"kernels", Unit::Count}, std::pair{"copies", Unit::Count},
        std::pair{"copy_bytes", Unit::Bytes}, std::pair{"peak_memory_bytes", Unit::Bytes}})
    add_row(name, metric(a, name), metric(b, name), unit);
  return table;
}

// What a finding says before it says why: all of it is in that run's own report.
std::string summary_of(const std::string& text) { return text.substr(0, std::min(text.find(": "), text.find("; "))); }

Table findings_table(const Report& a, const Report& b) {
  Table table;
  table.section = "findings";
  table.title = "Findings";
  table.columns = {{"state", Unit::Text},
                   {"finding", Unit::Text},
                   {"site", Unit::Text, Hint::Site},
                   {"a_gain_ns", Unit::Nanos},
                   {"b_gain_ns", Unit::Nanos},
                   {"text", Unit::Text, Hint::Detail},
                   {"summary", Unit::Text, Hint::Prose}};
  std::map<std::pair<std::string, std::string>, std::pair<const Finding*, const Finding*>> both;
  for (const Finding& finding : a.findings) both[{finding.id, finding.site}].first = &finding;
  for (const Finding& finding : b.findings) both[{finding.id, finding.site}].second = &finding;
  const auto gain = [](const Finding* finding) -> Value {
    if (!finding || finding->gain_ns == 0) return {};
    return number(finding->gain_ns);
  };
  const auto larger = [](const auto& found) {
    return std::max(found.first ? found.first->gain_ns : 0, found.second ? found.second->gain_ns : 0);
  };
  std::vector<decltype(both)::const_iterator> by_gain;
  for (auto each = both.cbegin(); each != both.cend(); ++each) by_gain.push_back(each);
  std::stable_sort(by_gain.begin(), by_gain.end(),
                   [&](const auto& x, const auto& y) { return larger(x->second) > larger(y->second); });
  for (const char* state : {"gone", "new", "both"}) {
    for (const auto& each : by_gain) {
      const auto& [in_a, in_b] = each->second;
      if (std::string(state) != (!in_b ? "gone" : !in_a ? "new" : "both")) continue;
      const auto& [id, at] = each->first;
      const std::string& text = (in_b ? in_b : in_a)->text;
      table.rows.push_back({std::string(state), id, text_or_null(at), gain(in_a), gain(in_b), text, summary_of(text)});
    }
  }
  return table;
}

// What neither has, for one reason, is said once.
void add_absent(const std::string& name, const NotCollected& entry, std::vector<NotCollected>& both) {
  for (NotCollected& known : both) {
    if (known.what == entry.what && known.why == "A: " + entry.why) {
      known.why = entry.why;
      return;
    }
  }
  both.push_back({entry.what, name + ": " + entry.why});
}

void add_coverage(const char* which, const Coverage& of, Coverage& both) {
  both.processes += of.processes;
  both.records += of.records;
  both.dropped += of.dropped;
  both.unknown_records += of.unknown_records;
  both.truncated = both.truncated || of.truncated;
  if (of.device_timing != "none") both.device_timing = of.device_timing;
  const std::string prefix = std::string(which) + ": ";
  for (const std::string& clause : of.missing) both.missing.push_back(prefix + clause);
  for (const std::string& remark : of.remarks) both.remarks.push_back(prefix + remark);
  for (const std::string& source : of.sources) both.sources.push_back(source);
  for (const NotCollected& entry : of.not_collected) add_absent(which, entry, both.not_collected);
}

}  // namespace

bool Change::told() const { return !what.empty() && (!error_ns || std::fabs(b_ns - a_ns) > 2 * *error_ns); }

const std::vector<std::string>& sections_for_diff() {
  static const std::vector<std::string> kSections = {"overview", "steps", "run",         "devices", "kernels",
                                                     "ops",      "sites", "idle-causes", "api"};
  return kSections;
}

Diff diff_of(const Report& a, const Report& b) {
  Diff diff;
  diff.change = change_of(a, b);
  diff.per_step = diff.change.what == "step";
  const double steps_a = diff.per_step ? number_of_steps(a) : 1, steps_b = diff.per_step ? number_of_steps(b) : 1;
  Report& report = diff.report;
  add_coverage("A", a.coverage, report.coverage);
  add_coverage("B", b.coverage, report.coverage);
  report.tables.push_back(summary_table(a, b, diff.change));
  report.tables.push_back(findings_table(a, b));
  for (const Matched& how : kMatched) {
    if (a.table(how.section) || b.table(how.section))
      report.tables.push_back(matched_table(a, b, how, steps_a, steps_b));
  }
  return diff;
}

}  // namespace gputrace
