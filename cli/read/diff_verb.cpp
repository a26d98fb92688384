// gputrace diff: two runs held against each other.
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <optional>

#include "analysis/diff/diff.h"
#include "analysis/load.h"
#include "analysis/render/render.h"
#include "analysis/report.h"
#include "analysis/words/human.h"
#include "analysis/words/safe_text.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/read/last_writes.h"

namespace gputrace {
namespace {

constexpr std::size_t kRows = 15;  // of each table on a terminal

struct DiffOptions {
  std::vector<std::string> paths;
  std::string format = "text", output, fail_above;
  bool json = false, wide = false;
  long long top = -1;
};

// "5%", "0.05".
std::optional<double> parse_share(const std::string& text) {
  char* rest = nullptr;
  const double number = std::strtod(text.c_str(), &rest);
  const std::string unit = rest;
  if (rest == text.c_str() || !std::isfinite(number) || number < 0 || (!unit.empty() && unit != "%"))
    return std::nullopt;
  return unit == "%" ? number / 100 : number;
}

// One of the two runs.
std::optional<Report> load(const std::string& path, int& code) {
  const auto files = find_trace_files({path});
  if (!files) return code = fail(kNoInput, files.error().message), std::nullopt;
  wait_for_last_writes(files.value());
  LoadRequest request;
  request.files = files.value();
  const auto run = load_run(request);
  if (!run) return code = fail(kNoInput, run.error().message), std::nullopt;
  for (const std::string& unread : run.value().unread) warn(unread);
  ReportRequest wanted;
  wanted.sections = sections_for_diff();
  return make_report(run.value(), wanted);
}

std::string signed_percent(double ratio) { return fmt::format("{:+.1f} %", ratio * 100); }

// "step  742.0 ms -> 698.1 ms  -43.9 ms (-5.9 %), beyond the spread of the steps".
std::string verdict_of(const Diff& diff) {
  const Change& change = diff.change;
  if (change.what.empty()) return "Nothing can be compared: one of the runs has no calls";
  const auto nanos = [](double value) { return human_nanos(static_cast<Nanos>(std::llround(value))); };
  const double by = change.b_ns - change.a_ns;
  std::string text =
      fmt::format("{}: {} -> {}, {}{} ({})",
                  change.what == "step"   ? "A step"
                  : change.what == "wall" ? "Wall time"
                                          : "Device span",
                  nanos(change.a_ns), nanos(change.b_ns), by > 0 ? "+" : "", nanos(by), signed_percent(change.ratio()));
  if (!change.error_ns)
    text += "; measured once each: what such runs differ by anyway is not known";
  else
    text += fmt::format(": {} than the steps' spread explains (standard error {})", change.told() ? "more" : "no more",
                        nanos(*change.error_ns));
  return text;
}

std::string text_of(const Diff& diff, const DiffOptions& options, const Globals& globals) {
  const TerminalStyle terminal = terminal_style(globals.color, !options.output.empty());
  TextStyle style;
  style.width = terminal.width, style.color = terminal.color, style.utf8 = terminal.utf8;
  style.wide = options.wide;
  style.rows = options.top < 0 ? kRows : static_cast<std::size_t>(options.top);
  return wrapped("", "A  " + safe_text(options.paths[0]), 3, style.width) +
         wrapped("", "B  " + safe_text(options.paths[1]), 3, style.width) + "\n" +
         wrapped("", verdict_of(diff), 2, style.width) + "\n" + render_text(diff.report, style);
}

int exceeded(const Change& change, double most) {
  if (change.what.empty()) return fail(kNoInput, "--fail-above: nothing can be compared");
  if (change.ratio() <= most || !change.told()) return kOk;
  return fail(kExceeded, fmt::format("--fail-above: {} is {} longer than before, more than {:.1f} %",
                                     change.what == "step" ? "a step" : "the " + change.what,
                                     signed_percent(change.ratio()).substr(1), most * 100));
}

}  // namespace

int diff_verb(const Arguments& arguments, Globals& globals) {
  OptionParser parser("gputrace diff", "Holds two runs against each other: gputrace diff BEFORE AFTER.", globals);
  DiffOptions options;
  parser.paths(options.paths, "two traces or directories of traces: before, after");
  parser.flag("--json", options.json, "as JSON, every row");
  parser.text("-o,--output", options.output, "write to FILE", "FILE");
  parser.text("--fail-above", options.fail_above,
              "exit code 5 if steps (else the devices' span) became longer by more, beyond their spread", "5%");
  parser.number("--top", options.top, "rows of each table; 0: all", "N");
  parser.flag("--wide", options.wide, "tables as wide as they are");
  if (const auto code = parser.parse(arguments)) return *code;
  if (options.paths.size() != 2) return fail(kUsage, "two runs are needed: gputrace diff BEFORE AFTER");
  const std::optional<double> most = parse_share(options.fail_above);
  if (!options.fail_above.empty() && !most)
    return fail(kUsage, "--fail-above: '" + options.fail_above + "' is no share: 5%, 0.05");
  if (options.top < -1) return fail(kUsage, "--top: a number of rows, 0 or more");
  int code = kOk;
  const std::optional<Report> a = load(options.paths[0], code);
  if (!a) return code;
  const std::optional<Report> b = load(options.paths[1], code);
  if (!b) return code;
  const Diff diff = diff_of(*a, *b);
  Output output(options.output);
  if (!output.open()) return kRuntimeError;
  output.write(options.json ? render_json(diff.report, 1, "gputrace-diff/1") : text_of(diff, options, globals));
  code = output.close();
  if (code != kOk || !most) return code;
  return exceeded(diff.change, *most);
}

}  // namespace gputrace
