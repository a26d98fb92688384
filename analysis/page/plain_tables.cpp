#include <algorithm>

#include "analysis/page/page.h"
#include "analysis/words/human.h"

namespace gputrace {
namespace {

void coverage_lines(std::string& out, const Coverage& coverage) {
  const bool whole = coverage.missing.empty() && !coverage.truncated && coverage.dropped == 0;
  out += "<p><strong>" + std::string(whole ? "Complete" : "Incomplete") +
         "</strong>: " + counted(coverage.processes, "process") + ", " + counted(coverage.records, "record") + ", " +
         human_count(coverage.dropped) + " dropped</p>\n";
  for (const std::string& line : coverage.missing) out += "<p>" + as_html(line) + "</p>\n";
  for (const std::string& line : coverage.remarks) out += "<p>" + as_html(line) + "</p>\n";
  for (const auto& [what, why] : coverage.not_collected)
    out += "<p>not collected: " + as_html(what) + ": " + as_html(why) + "</p>\n";
}

void finding_lines(std::string& out, const std::vector<Finding>& findings) {
  if (findings.empty()) return;
  out += "<h2>Findings</h2>\n<ol>\n";
  for (const Finding& finding : findings) {
    out += "<li><strong>" + std::string(severity_name(finding.severity)) + "</strong> " + as_html(finding.text);
    if (finding.gain_ns)
      out += ", worth up to " + as_html(human_nanos(static_cast<Nanos>(finding.gain_ns))) + " of device time";
    if (!finding.site.empty()) out += ", at <code>" + as_html(finding.site) + "</code>";
    if (!finding.fix.empty()) out += ". " + as_html(finding.fix);
    out += "</li>\n";
  }
  out += "</ol>\n";
}

// In a table of single numbers each row has its own unit.
Unit unit_of(const Table& table, const Row& row, std::size_t column) {
  const int at = table.columns[column].key == "value" ? table.column("unit") : -1;
  const auto* own = at < 0 ? nullptr : std::get_if<std::string>(&row[static_cast<std::size_t>(at)]);
  for (const Unit unit : {Unit::Nanos, Unit::Bytes, Unit::Count, Unit::Ratio, Unit::BytesPerSecond}) {
    if (own && *own == unit_name(unit)) return unit;
  }
  return table.columns[column].unit;
}

void table_lines(std::string& out, const Table& table, std::size_t most) {
  std::vector<std::size_t> shown;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    if (table.columns[c].hint != Hint::Detail) shown.push_back(c);
  }
  out += "<h2>" + as_html(table.title) + "</h2>\n<table>\n<thead><tr>";
  for (const std::size_t c : shown) out += "<th scope=\"col\">" + as_html(table.columns[c].key) + "</th>";
  out += "</tr></thead>\n<tbody>\n";
  const std::size_t rows = std::min(most, table.rows.size());
  for (std::size_t r = 0; r < rows; ++r) {
    out += "<tr>";
    for (const std::size_t c : shown)
      out += "<td>" + as_html(human(table.rows[r][c], unit_of(table, table.rows[r], c))) + "</td>";
    out += "</tr>\n";
  }
  out += "</tbody>\n</table>\n";
  const std::size_t all = table.total_rows ? table.total_rows : table.rows.size();
  if (rows < all)
    out +=
        "<p>" + human_count(all - rows) + " more rows: gputrace report --section " + as_html(table.section) + "</p>\n";
  for (const std::string& note : table.notes) out += "<p>" + as_html(note) + "</p>\n";
}

}  // namespace

std::string plain_tables(const Report& report, std::size_t rows) {
  std::string out = "<h1>gputrace</h1>\n";
  coverage_lines(out, report.coverage);
  finding_lines(out, report.findings);
  for (const Table& table : report.tables) table_lines(out, table, rows);
  return out;
}

}  // namespace gputrace
