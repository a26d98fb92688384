#include "cli/run/verdict.h"

#include <fmt/format.h>

#include <unistd.h>

#include "analysis/load.h"
#include "analysis/render/render.h"
#include "analysis/report.h"
#include "analysis/words/safe_text.h"
#include "cli/output.h"
#include "cli/places.h"

namespace gputrace {
namespace {

constexpr u64 kMostBytes =
    512u << 20;  // larger traces are not read through at the end of a run: their size is all that is said

}  // namespace

std::string verdict(const VerdictRequest& request) {
  LoadRequest load;
  load.files = request.files;
  u64 bytes = 0;
  for (const std::string& file : request.files) {
    const auto opened = TraceReader::open(file);
    if (opened) bytes += opened.value().file_size();
    if (bytes > kMostBytes) break;
  }
  const bool like_an_option = !request.shown.empty() && request.shown[0] == '-';
  const std::string next = fmt::format("\n  next:  {} {}\n", request.report_command,
                                       shell_word((like_an_option ? "./" : "") + request.shown));
  if (bytes > kMostBytes)
    return fmt::format("gputrace: {} files in {}, too large to sum up here\n{}", request.files.size(),
                       safe_text(request.shown), next);
  const auto run = load_run(load);
  if (!run) return fmt::format("gputrace: {}\n{}", safe_text(run.error().message), next);
  const TerminalStyle terminal = terminal_style(request.color, false, STDERR_FILENO);
  ScreenStyle style;
  style.head = true;
  style.width = terminal.width;
  style.color = terminal.color;
  style.utf8 = terminal.utf8;
  style.bars = terminal.terminal;
  return render_screen(make_report(run.value(), {}), style) + next;
}

}  // namespace gputrace
