#include "cli/read/report_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <regex>
#include <set>

#include "analysis/reports/list.h"

namespace gputrace {
namespace {

const std::vector<std::string> kReportFormats = {"text", "json", "csv", "html"};

// The keys of all sections' columns, each once.
std::vector<std::string> column_keys() {
  std::set<std::string> keys;
  for (const SectionReport* report : all_reports())
    for (const SectionColumn& column : report->columns) keys.insert(column.key);
  return {keys.begin(), keys.end()};
}

std::vector<Column> columns_of(const SectionReport& report) {
  std::vector<Column> columns;
  for (const SectionColumn& column : report.columns) columns.push_back({column.key, column.unit, column.hint});
  return columns;
}

bool asked_for(const ReportOptions& options, const char* section) {
  const auto& asked = options.sections;
  return asked.empty() || std::find(asked.begin(), asked.end(), section) != asked.end();
}

int check_sections(const ReportOptions& options) {
  for (const std::string& section : options.sections) {
    if (find_report(section) || section == kFindings) continue;
    return fail(kUsage, "unknown section '" + section + "'" + did_you_mean(section, section_names()));
  }
  if (options.format == "csv" && options.sections.size() != 1)
    return fail(kUsage, "csv is one section at a time: add --section NAME");
  return 0;
}

bool is_regex(const std::string& pattern) {
  try {
    const std::regex compiled(pattern);
    return true;
  } catch (const std::regex_error&) {
    return false;
  }
}

int check_times(const ReportOptions& options) {
  for (const auto& [name, value] : {std::pair{"--from", &options.from}, std::pair{"--to", &options.to}}) {
    if (!value->empty() && !parse_duration(*value)) {
      return fail(kUsage, std::string(name) + ": '" + *value +
                              "' is no duration: 500ms, 2s, 1m (ns us ms s m h; a bare number is seconds)");
    }
  }
  if (!options.from.empty() && !options.to.empty() && *parse_duration(options.from) >= *parse_duration(options.to))
    return fail(kUsage, "--from must be before --to");
  if (!options.steps.empty() && !parse_steps(options.steps))
    return fail(kUsage, "--steps: '" + options.steps + "' is none of A-B, A-, -B, A (numbers from 1)");
  if (!options.steps.empty() && (!options.from.empty() || !options.to.empty()))
    return fail(kUsage, "--steps and --from, --to exclude each other");
  if (!is_regex(options.step_range))
    return fail(kUsage, "--step-range: '" + options.step_range + "' is no regular expression");
  return 0;
}

// A column that no section has is a mistake; of a section that was asked for, so is one that it alone lacks.
int check_column(const ReportOptions& options, const char* option, const std::string& word) {
  std::vector<std::string> near;
  for (const SectionReport* report : all_reports()) {
    if (!asked_for(options, report->section)) continue;
    const std::vector<Column> columns = columns_of(*report);
    if (find_column(columns, word) >= 0) return 0;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      near.push_back(columns[i].key);
      near.push_back(heading_of(columns, i));
    }
  }
  return fail(kUsage, std::string(option) + ": no column '" + word + "'" +
                          (options.sections.empty() ? "" : " in these sections") + did_you_mean(word, near) +
                          (options.sections.empty() ? "" : " (--columns help lists them)"));
}

int check_conditions(ReportOptions& options) {
  for (const std::string& text : options.conditions) {
    const auto filter = parse_filter(text);
    if (!filter) return fail(kUsage, "--filter: " + filter.error().message);
    if (const int code = check_column(options, "--filter", filter.value().column)) return code;
    for (const SectionReport* report : all_reports()) {
      const std::vector<Column> columns = columns_of(*report);
      const int at = asked_for(options, report->section) ? find_column(columns, filter.value().column) : -1;
      if (at < 0) continue;
      if (const auto wrong = wrong_value(filter.value(), columns[static_cast<std::size_t>(at)]))
        return fail(kUsage, "--filter: " + *wrong);
    }
    options.filters.push_back(filter.value());
  }
  return 0;
}

}  // namespace

void add_options(OptionParser& parser, ReportOptions& options) {
  parser.paths(options.paths, "traces or directories of traces; none: the newest gputrace-* directory here");
  parser.flag("--all", options.all, "all sections, through a pager on a terminal; without it the first screen");
  std::string sections = "sections, by comma:";
  for (const std::string& name : section_names()) sections += " " + name;
  parser.comma_list("--section", options.sections, sections.c_str(), "S[,S]");
  parser.values("--section", section_names());
  parser.text("--format", options.format, "text, json, csv or html", "FORMAT");
  parser.values("--format", kReportFormats);
  parser.flag("--json", options.json, "the same as --format json");
  parser.text("--html", options.html, "write the page, one file that needs no network, to FILE", "FILE");
  parser.text("-o,--output", options.output, "write to FILE", "FILE");
  parser.number("--top", options.top, "rows of each table; 0: all", "N");
  parser.text("--sort", options.sort, "order by this column (key or heading), largest first", "COLUMN");
  parser.values("--sort", column_keys());
  parser.comma_list("--columns", options.columns, "these columns (keys or headings), in this order; help: list them",
                    "C[,C]");
  std::vector<std::string> columns = column_keys();
  columns.insert(columns.begin(), "help");
  parser.values("--columns", std::move(columns));
  parser.each("--filter", options.conditions,
              "only rows that agree: 'kernel~gemm', 'total_ns>=1ms', 'share>5%'; may be given again", "CONDITION");
  parser.flag("--wide", options.wide, "tables as wide as they are: names whole, every column");
  parser.text("--rank", options.rank, "only processes of this rank", "R");
  parser.number("--device", options.device, "only what this device did", "D");
  parser.text("--from", options.from, "leave out calls before T (after the first one: 500ms, 2s)", "T");
  parser.text("--to", options.to, "leave out calls from T on", "T");
  parser.text("--steps", options.steps, "only what happened in steps A to B, from 1 (5-9, 5-, -9, 5)", "A-B");
  parser.text("--step-range", options.step_range, "NVTX ranges whose name holds this regular expression are the steps",
              "REGEX");
  parser.flag("--last", options.last, "only the newest run");
  parser.flag("--strict", options.strict, "exit code 4 if data are incomplete");
  parser.quiet("no next commands");
  parser.verbose("say what was read, and how long it took");
}

std::vector<std::string> section_names() {
  std::vector<std::string> names;
  for (const SectionReport* report : all_reports()) names.emplace_back(report->section);
  names.emplace_back(kFindings);
  return names;
}

int check(ReportOptions& options) {
  if (std::find(kReportFormats.begin(), kReportFormats.end(), options.format) == kReportFormats.end()) {
    return fail(kUsage, "--format: '" + options.format + "' is none of text, json, csv, html" +
                            did_you_mean(options.format, kReportFormats));
  }
  if (const int code = check_sections(options)) return code;
  if (options.top < -1) return fail(kUsage, "--top: a number of rows, 0 or more");
  if (options.device < -1) return fail(kUsage, "--device: a number of a device, 0 or more");
  if (const int code = check_times(options)) return code;
  if (!options.sort.empty()) {
    if (const int code = check_column(options, "--sort", options.sort)) return code;
  }
  for (const std::string& word : options.lists_columns() ? std::vector<std::string>{} : options.columns) {
    if (const int code = check_column(options, "--columns", word)) return code;
  }
  return check_conditions(options);
}

std::optional<std::pair<u64, u64>> parse_steps(const std::string& text) {
  const std::size_t dash = text.find('-');
  const auto number_in = [](const std::string& digits, u64 if_empty) -> std::optional<u64> {
    if (digits.empty()) return if_empty;
    if (digits.size() > 9 || digits.find_first_not_of("0123456789") != std::string::npos) return std::nullopt;
    return std::stoull(digits);
  };
  const std::string first = text.substr(0, dash);
  const std::string last = dash == std::string::npos ? first : text.substr(dash + 1);
  const auto from = number_in(first, 1), to = number_in(last, ~u64{0});
  if ((first.empty() && last.empty()) || !from || !to || *from == 0 || *from > *to) return std::nullopt;
  return std::pair(*from, *to);
}

std::string list_of_columns(const ReportOptions& options) {
  std::string text;
  for (const SectionReport* report : all_reports()) {
    if (!asked_for(options, report->section)) continue;
    const std::vector<Column> columns = columns_of(*report);
    text += fmt::format("{}: {}\n", report->section, report->title);
    for (std::size_t i = 0; i < columns.size(); ++i)
      text += fmt::format("  {:<24} {:<24} {}\n", columns[i].key, heading_of(columns, i), unit_name(columns[i].unit));
  }
  return text;
}

}  // namespace gputrace
