// gputrace report: loads traces, makes the sections that were asked for, renders them.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <regex>
#include <set>

#include "analysis/load.h"
#include "analysis/render/render.h"
#include "analysis/report.h"
#include "analysis/reports/list.h"
#include "analysis/run/devices.h"
#include "analysis/words/safe_text.h"
#include "base/fd.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/output_directory.h"
#include "cli/places.h"
#include "cli/read/last_writes.h"
#include "cli/read/pager.h"
#include "cli/read/report_page.h"

namespace gputrace {
namespace {

constexpr std::size_t kTerminalRows = 10;  // of each table when no section is asked for

struct ReportOptions {
  std::vector<std::string> paths, sections;
  std::string format = "text", output, html, sort, rank, from, to, steps, step_range;
  bool json = false, last = false, strict = false, all = false;
  long long top = -1, device = -1;

  // Without a word on tables, text is the first screen.
  bool first_screen() const { return format == "text" && !all && sections.empty() && top < 0 && sort.empty(); }
};

template <typename Wanted>
std::string words_of_sections(Wanted&& wanted) {
  std::string words;
  for (const SectionReport* report : all_reports()) {
    if (wanted(report->section)) words += (words.empty() ? "" : " ") + std::string(report->section);
  }
  return words;
}

void add_options(OptionParser& parser, ReportOptions& options) {
  parser.paths(options.paths, "traces or directories of traces; none: the newest gputrace-* directory here");
  parser.flag("--all", options.all, "all sections, through a pager on a terminal; without it the first screen");
  const std::string sections = "sections, by comma: " + words_of_sections([](const std::string&) { return true; });
  parser.comma_list("--section", options.sections, sections.c_str(), "S[,S]");
  parser.text("--format", options.format, "text, json, csv or html", "FORMAT");
  parser.flag("--json", options.json, "the same as --format json");
  parser.text("--html", options.html, "write the page, one file that needs no network, to FILE", "FILE");
  parser.text("-o,--output", options.output, "write to FILE", "FILE");
  parser.number("--top", options.top, "rows of each table; 0: all", "N");
  parser.text("--sort", options.sort, "order by this column, largest first", "COLUMN");
  parser.text("--rank", options.rank, "only processes of this rank", "R");
  parser.number("--device", options.device, "only what this device did", "D");
  parser.text("--from", options.from, "leave out calls before T (after the first one: 500ms, 2s)", "T");
  parser.text("--to", options.to, "leave out calls from T on", "T");
  parser.text("--steps", options.steps, "only what happened in steps A to B, from 1 (5-9, 5-, -9, 5)", "A-B");
  parser.text("--step-range", options.step_range, "NVTX ranges whose name holds this regular expression are the steps",
              "REGEX");
  parser.flag("--last", options.last, "only the newest run");
  parser.flag("--strict", options.strict, "exit code 4 if data are incomplete");
}

std::vector<std::string> section_names() {
  std::vector<std::string> names;
  for (const SectionReport* report : all_reports()) names.emplace_back(report->section);
  return names;
}

// "5-9", "5-", "-9", "5".
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

bool is_regex(const std::string& pattern) {
  try {
    const std::regex compiled(pattern);
    return true;
  } catch (const std::regex_error&) {
    return false;
  }
}

// What can be said against the options before anything is read. 0: nothing.
int check_options(const ReportOptions& options) {
  const std::vector<std::string> formats = {"text", "json", "csv", "html"};
  if (std::find(formats.begin(), formats.end(), options.format) == formats.end()) {
    return fail(kUsage, "--format: '" + options.format + "' is none of text, json, csv, html" +
                            did_you_mean(options.format, formats));
  }
  for (const std::string& section : options.sections) {
    if (find_report(section)) continue;
    return fail(kUsage, "unknown section '" + section + "'" + did_you_mean(section, section_names()));
  }
  if (options.format == "csv" && options.sections.size() != 1)
    return fail(kUsage, "csv is one section at a time: add --section NAME");
  if (options.top < -1) return fail(kUsage, "--top: a number of rows, 0 or more");
  if (options.device < -1) return fail(kUsage, "--device: a number of a device, 0 or more");
  for (const auto& [name, value] : {std::pair{"--from", &options.from}, std::pair{"--to", &options.to}}) {
    if (!value->empty() && !parse_duration(*value)) {
      return fail(kUsage, std::string(name) + ": '" + *value +
                              "' is no duration: 500ms, 2s, 1m (ns us ms s m h; a bare number is seconds)");
    }
  }
  if (!options.steps.empty() && !parse_steps(options.steps))
    return fail(kUsage, "--steps: '" + options.steps + "' is none of A-B, A-, -B, A (numbers from 1)");
  if (!options.steps.empty() && (!options.from.empty() || !options.to.empty()))
    return fail(kUsage, "--steps and --from, --to exclude each other");
  if (!is_regex(options.step_range))
    return fail(kUsage, "--step-range: '" + options.step_range + "' is no regular expression");
  if (!options.from.empty() && !options.to.empty() && *parse_duration(options.from) >= *parse_duration(options.to)) {
    return fail(kUsage, "--from must be before --to");
  }
  return 0;
}

// A column that no section has is a mistake.
int check_sort(const ReportOptions& options) {
  if (options.sort.empty()) return 0;
  std::vector<std::string> keys;
  for (const SectionReport* report : all_reports()) {
    const auto& asked = options.sections;
    if (!asked.empty() && std::find(asked.begin(), asked.end(), report->section) == asked.end()) continue;
    for (const SectionColumn& column : report->columns) keys.emplace_back(column.key);
  }
  if (std::find(keys.begin(), keys.end(), options.sort) != keys.end()) return 0;
  return fail(kUsage, "--sort: no column '" + options.sort + "'" +
                          (options.sections.empty() ? "" : " in these sections") + did_you_mean(options.sort, keys));
}

// A device that no process used is a mistake, like a rank that no process has.
int check_device(const ReportOptions& options, const LoadedRun& run) {
  const DeviceMap devices(run);
  if (options.device < 0 || devices.entries().empty()) return 0;
  std::string used;
  for (const DeviceMap::Entry& entry : devices.entries()) {
    if (entry.number == options.device) return 0;
    used += (used.empty() ? "" : ", ") + std::to_string(entry.number);
  }
  return fail(kNoInput, "no device " + std::to_string(options.device) + " in these traces" + " (in use: " + used + ")");
}

// On a terminal without --section: the sections that have something to say.
void keep_what_is_shown(Report& report) {
  std::vector<Table> kept;
  for (Table& table : report.tables) {
    const Shown when = find_report(table.section)->shown;
    const bool shown = when == Shown::Always || (when == Shown::Filled && !table.rows.empty());
    if (shown) kept.push_back(std::move(table));
  }
  report.tables = std::move(kept);
}

// What to type next, for the same traces.
std::vector<std::string> next_commands(const ReportOptions& options, const Report& report) {
  std::string command = own_command(find_places()) + " report";
  for (const std::string& path : options.paths) command += " " + shell_word((path[0] == '-' ? "./" : "") + path);
  if (options.last) command += " --last";
  if (!options.rank.empty()) command += " --rank " + shell_word(options.rank);
  std::vector<std::string> commands = {command + " --all"};
  const std::string leading =
      report.findings.empty() || !report.table(report.findings.front().section) ? "" : report.findings.front().section;
  if (!leading.empty() && leading != "overview") commands.push_back(command + " --section " + leading);
  return commands;
}

std::string render(const ReportOptions& options, const Globals& globals, Report& report) {
  if (options.format == "json") return render_json(report);
  if (options.format == "csv") return report.tables.empty() ? std::string() : render_csv(report.tables.front());
  const TerminalStyle terminal = terminal_style(globals.color, !options.output.empty());
  if (options.first_screen()) {
    ScreenStyle style;
    style.width = terminal.width;
    style.color = terminal.color;
    style.utf8 = terminal.utf8;
    style.bars = terminal.terminal;
    if (!globals.quiet) style.next = next_commands(options, report);
    return render_screen(report, style);
  }
  TextStyle style;
  style.width = terminal.width;
  style.color = terminal.color;
  style.utf8 = terminal.utf8;
  style.all_sections = !options.sections.empty();
  if (options.sections.empty()) keep_what_is_shown(report);
  std::string text = render_text(report, style);
  if (options.sections.empty() && !globals.quiet) {
    const auto& absent = report.coverage.not_collected;
    const auto there = [&absent](const std::string& section) {
      return std::none_of(absent.begin(), absent.end(), [&section](const auto& item) { return item.what == section; });
    };
    text += wrapped("More:", " --section NAME (" + words_of_sections(there) + "), --top 0 for all rows, --json", 6,
                    style.width);
  }
  return text;
}

int write_report(const ReportOptions& options, const Globals& globals, Report& report) {
  const std::string text = render(options, globals, report);
  std::optional<Pager> pager;
  if (options.all && options.format == "text" && options.output.empty()) pager.emplace();
  Output output(options.output);
  if (!output.open()) return kRuntimeError;
  output.write(text);
  const int code = output.close();
  if (pager) pager->finish();
  return code;
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

// Of a plain file, 1 MiB at most; 0 where there is none.
u64 lines_of(const std::string& path) {
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  u64 lines = 0, size = 0;
  char piece[4096];
  for (ssize_t got; file && size < (1u << 20) && (got = read(file.get(), piece, sizeof piece)) > 0;
       size += static_cast<u64>(got))
    lines += static_cast<u64>(std::count(piece, piece + got, '\n'));
  return lines;
}

// What lies beside the traces and makes them less than all: a ring in a file, whose rest can be had; lines on processes that could not
// be traced.
void warn_of_what_is_beside(const LoadedRun& run) {
  std::set<std::string> folders, unended;
  for (const ProcessTrace& process : run.processes) {
    folders.insert(folder_of(process.who.file));
    if (!process.who.ended) unended.insert(folder_of(process.who.file));
  }
  for (const std::string& folder : unended) {
    if (!rings_below(folder).empty())
      warn(folder +
           ": a ring lies in a file there, of a program that still runs, or that died with its sidecar; then: gputrace "
           "recover " +
           shell_word(folder));
  }
  for (const std::string& folder : folders) {
    if (const u64 lines = lines_of(folder + "/untraced"))
      warn(std::to_string(lines) + (lines == 1 ? " process" : " processes") + " could not be traced: " + folder +
           "/untraced");
  }
}

// Everything that is missing, in a sentence; empty: nothing.
std::string what_is_missing(const Report& report) {
  std::string text;
  for (const std::string& clause : report.coverage.missing) text += (text.empty() ? "" : "; ") + clause;
  return text;
}

}  // namespace

int report_verb(const Arguments& arguments, Globals& globals) {
  OptionParser parser("gputrace report", "Reports what traced programs did.", globals);
  ReportOptions options;
  add_options(parser, options);
  if (const auto code = parser.parse(arguments)) return *code;
  if (options.json && parser.given("--format") && options.format != "json")
    return fail(kUsage, "--json and --format " + options.format + " exclude each other");
  if (options.json) options.format = "json";
  if (!options.html.empty()) {
    if (parser.given("--format") && options.format != "html")
      return fail(kUsage, "--html and --format " + options.format + " exclude each other");
    if (options.json || !options.output.empty()) return fail(kUsage, "--html takes no --json and no --output");
    options.format = "html";
    options.output = options.html;
  }
  if (options.format == "html" && !has_page()) return kRuntimeError;
  if (const int code = check_options(options)) return code;
  if (const int code = check_sort(options)) return code;

  const auto files = find_trace_files(options.paths);
  if (!files) return fail(kNoInput, files.error().message);
  wait_for_last_writes(files.value());
  LoadRequest load;
  load.files = files.value();
  load.last = options.last;
  if (!options.rank.empty()) load.rank = options.rank;
  if (!options.steps.empty()) load.steps = parse_steps(options.steps);
  load.step_pattern = options.step_range;
  if (!options.from.empty()) load.from = parse_duration(options.from);
  if (!options.to.empty()) load.to = parse_duration(options.to);
  const auto run = load_run(load);
  if (!run) return fail(kNoInput, run.error().message);
  for (const std::string& unread : run.value().unread) warn(unread);

  warn_of_what_is_beside(run.value());
  if (const int code = check_device(options, run.value())) return code;

  ReportRequest request;
  request.sections = options.sections;
  request.sort = options.sort;
  if (options.device >= 0) request.device = options.device;
  if (options.top >= 0) request.top = static_cast<std::size_t>(options.top);
  Report report = make_report(run.value(), request);
  if (options.format == "text" && options.top < 0 && options.sections.empty() && !options.first_screen()) {
    for (Table& table : report.tables) {
      if (table.column("metric") >= 0 || table.rows.size() <= kTerminalRows) continue;
      table.total_rows = table.rows.size();
      table.rows.resize(kTerminalRows);
    }
  }
  if (options.format == "csv" && report.tables.empty()) {
    const std::string& section = options.sections.front();
    for (const auto& [what, why] : report.coverage.not_collected) {
      if (what == section) return fail(kNoInput, fmt::format("section '{}' is not in this trace: {}", section, why));
    }
  }
  const std::string missing = what_is_missing(report);
  const int code = options.format == "html" ? write_page(report, run.value(), load, options.output)
                                            : write_report(options, globals, report);
  if (code != kOk || !options.strict || missing.empty()) return code;
  return fail(kIncomplete, "the data are incomplete (--strict): " + missing);
}

}  // namespace gputrace
