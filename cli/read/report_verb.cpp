// gputrace report: loads traces, makes the sections that were asked for, renders them.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <set>

#include "analysis/load.h"
#include "analysis/render/render.h"
#include "analysis/report.h"
#include "analysis/reports/list.h"
#include "analysis/run/devices.h"
#include "analysis/run/quality.h"
#include "analysis/words/human.h"
#include "analysis/words/safe_text.h"
#include "base/clock.h"
#include "base/fd.h"
#include "cli/output.h"
#include "cli/output_directory.h"
#include "cli/places.h"
#include "cli/read/last_writes.h"
#include "cli/read/pager.h"
#include "cli/read/report_options.h"
#include "cli/read/report_page.h"

namespace gputrace {
namespace {

constexpr std::size_t kQualityRows = 20;
constexpr std::size_t kTerminalRows = 10;  // of each table when no section is asked for

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
  if (options.format == "csv" && options.sections.front() == kFindings) return render_csv(report.findings);
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
  style.sections = options.sections;
  style.wide = options.wide;
  if (options.sections.empty()) keep_what_is_shown(report);
  std::string text = render_text(report, style);
  if (options.sections.empty() && !globals.quiet) {
    const auto& absent = report.coverage.not_collected;
    const auto there = [&absent](const std::string& section) {
      return std::none_of(absent.begin(), absent.end(), [&section](const auto& item) { return item.what == section; });
    };
    text += wrapped(
        "More:", " --section NAME (" + words_of_sections(section_names(), there) + "), --top 0 for all rows, --json", 6,
        style.width);
  }
  return text;
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

void say_what_was_read(const LoadedRun& run, Nanos took) {
  u64 records = 0, bytes = 0;
  for (const ProcessTrace& process : run.processes) {
    records += process.records;
    bytes += process.who.file_bytes;
    say(process.who.file + ": " + counted(process.records, "record") + ", " + human_bytes(process.who.file_bytes));
  }
  const double seconds = static_cast<double>(took) / 1e9;
  say(fmt::format("{} in {} read in {:.2f} s ({:.1f} M records/s)", counted(records, "record"), human_bytes(bytes),
                  seconds, static_cast<double>(records) / 1e6 / std::max(seconds, 1e-9)));
}

// Everything that is missing, in a sentence; empty: nothing.
std::string what_is_missing(const Report& report) {
  std::string text;
  for (const std::string& clause : report.coverage.missing) text += (text.empty() ? "" : "; ") + clause;
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

// Of a page its events too.
Result<IndexedRun, InputError> load_for(const ReportOptions& options, const LoadRequest& request) {
  if (options.format == "html") return load_for_page(request);
  auto run = load_run(request);
  if (!run) return Failure{run.error()};
  return IndexedRun{std::move(run.value()), {}};
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
  if (const int code = check(options)) return code;
  if (options.lists_columns()) {
    Output output(options.output);
    if (!output.open()) return kRuntimeError;
    output.write(list_of_columns(options));
    return output.close();
  }

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
  const Nanos began = monotonic_nanos();
  const auto loaded = load_for(options, load);
  if (!loaded) return fail(kNoInput, loaded.error().message);
  const LoadedRun& run = loaded.value().run;
  if (globals.verbose) say_what_was_read(run, monotonic_nanos() - began);
  for (const std::string& unread : run.unread) warn(unread);

  warn_of_what_is_beside(run);
  if (const int code = check_device(options, run)) return code;

  ReportRequest request;
  request.sections = options.sections;
  request.sort = options.sort;
  request.filters = options.filters;
  request.columns = options.columns;
  if (options.device >= 0) request.device = options.device;
  if (options.top >= 0) request.top = static_cast<std::size_t>(options.top);
  Report report = make_report(run, request);
  // A row a thread: nobody reads two thousand. Whoever asks for rows in a way of his own gets them.
  if (options.format == "text" && options.top < 0 && !options.wide && options.sort.empty() && options.filters.empty()) {
    for (Table& table : report.tables) {
      if (table.section == "quality") fold_quality(table, kQualityRows);
    }
  }
  if (options.format == "text" && options.top < 0 && options.sections.empty() && !options.first_screen()) {
    for (Table& table : report.tables) {
      if (table.column("metric") >= 0 || table.rows.size() <= kTerminalRows) continue;
      table.total_rows = table.rows.size();
      table.rows.resize(kTerminalRows);
    }
  }
  if (options.format == "csv" && report.tables.empty() && options.sections.front() != kFindings) {
    const std::string& section = options.sections.front();
    for (const auto& [what, why] : report.coverage.not_collected) {
      if (what == section) return fail(kNoInput, fmt::format("section '{}' is not in this trace: {}", section, why));
    }
  }
  const std::string missing = what_is_missing(report);
  const int code = options.format == "html" ? write_page(report, loaded.value(), load, options.output)
                                            : write_report(options, globals, report);
  if (code != kOk || !options.strict || missing.empty()) return code;
  return fail(kIncomplete, "the data are incomplete (--strict): " + missing);
}

}  // namespace gputrace
