// The first screen.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/render/render.h"
#include "analysis/render/screen_facts.h"
#include "analysis/words/human.h"
#include "analysis/words/safe_text.h"

namespace gputrace {
namespace {

constexpr std::size_t kLabel = 9, kFindings = 3, kHeaviest = 5, kBar = 32, kWidest = 120;

std::string percent(double share) {
  if (share > 0 && share < 0.0005) return "<0.1 %";
  if (share < 1 && share >= 0.995) return ">99 %";
  return fmt::format("{:.{}f} %", share * 100, share < 0.0995 && share > 0 ? 1 : 0);
}

std::string why_nothing(const std::vector<TimePart>& device) {
  constexpr double kMuch = 0.01;  // from there on rules may be silent for it (kUnknownShare)
  if (device.empty()) return "nothing was found; without device times most causes cannot be seen";
  if (device.back().share > kMuch)
    return fmt::format("nothing was found; of {} of the devices' time it is not known whether they worked",
                       percent(device.back().share));
  return "nothing was found that would make it faster";
}

class Screen {
 public:
  Screen(const Report& report, const ScreenStyle& style, std::size_t findings, std::size_t heaviest)
      : report_(report),
        style_(style),
        width_(std::min(style.width, kWidest)),
        findings_(findings),
        heaviest_(heaviest) {}

  std::string render() {
    head();
    what_to_do();
    if (!style_.head) heaviest_work();
    gap();
    memory();
    if (!incomplete()) trace();
    remarks();
    next();
    return std::move(out_);
  }

 private:
  std::string paint(const char* code, const std::string& text) const {
    return style_.color ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : text;
  }
  std::string separator() const { return style_.utf8 ? " · " : ", "; }

  void gap() {
    if (out_.size() < 2 || out_.compare(out_.size() - 2, 2, "\n\n") != 0) out_ += "\n";
  }

  // "Label    text", the text behind the label's column.
  void line(const char* label, const std::string& text, const char* code = nullptr) {
    std::string whole = wrapped(fmt::format("{:<{}}", label, kLabel), text, kLabel, width_);
    const std::string name = label;
    if (code)
      whole = paint(code, whole.substr(0, whole.size() - 1)) + "\n";
    else
      whole.replace(0, name.size(), paint("1", name));
    out_ += whole;
  }

  void head() {
    std::string text;
    for (const std::string& part : headline(report_)) text += (text.empty() ? "" : separator()) + part;
    const std::string shown = wrapped("", text, 2, width_);
    const std::size_t name = std::min(shown.find(separator()), shown.size() - 1);
    out_ += paint("1", shown.substr(0, name)) + shown.substr(name);
    gap();
    if (incomplete()) trace();
    work();
    run_phases();
    steps();
    device();
  }

  void work() {
    const auto count = [this](const char* metric) {
      return static_cast<u64>(number_of(metric_of(report_, metric).value).value_or(0));
    };
    if (count("calls") == 0) return;
    std::string words = counted(count("kernels"), "kernel") + " by " + counted(count("launches"), "launch call");
    if (const u64 copies = count("copies"))
      words += fmt::format(", {} {} of {}", human_count(copies), copies == 1 ? "copy" : "copies",
                           human_bytes(count("copy_bytes")));
    words += ", " + counted(count("calls"), "CUDA call");
    if (const u64 errors = count("errors")) words += ", " + counted(errors, "error");
    line("Work", words);
  }

  // What the loop's numbers say little of: most of the run lies before it.
  void run_phases() {
    const LongStart start = long_start(report_);
    if (start.phases.empty()) return;
    line("Run",
         largest(start.phases) + "   of " + human_duration(start.whole) +
             (start.idle_at.empty() ? ""
                                    : "; the device waits longest outside of the loop: " + safe_text(start.idle_at)));
  }

  // Of `source` in `steps`.
  static std::string how_found(const std::string& source) {
    if (source.empty() || source == "-") return "";
    return source == "inferred" ? ", inferred" : ", by " + source;
  }

  void steps() {
    const Metric counted = metric_of(report_, "steps_counted");
    const auto steps = number_of(counted.value);
    const Value median = metric_of(report_, "step_median_ns").value, p99 = metric_of(report_, "step_p99_ns").value;
    if (!steps || *steps < 1 || is_null(median)) return;
    std::string source;
    if (const Table* table = report_.table("steps"); table && !table->rows.empty())
      source = human(cell_of(*table, table->rows.front(), "source"), Unit::Text);
    line("Steps",
         fmt::format("{} of {} (median{}{}){}{}", human_count(static_cast<u64>(*steps)), human(median, Unit::Nanos),
                     is_null(p99) ? "" : "; p99 ", is_null(p99) ? "" : human(p99, Unit::Nanos), how_found(source),
                     whose_steps(report_) + (counted.note.empty() ? "" : ", " + safe_text(counted.note)) +
                         steps_of_others(report_) + between_steps(report_)));
    const std::string parts = largest(step_parts(report_));
    if (!parts.empty())
      line("A step", parts + "   of " + human(metric_of(report_, "step_mean_ns").value, Unit::Nanos) + " (mean)");
  }

  void device() {
    const std::vector<TimePart> parts = device_time_parts(report_);
    if (parts.empty()) {
      const Metric busy = metric_of(report_, "gpu_busy_ratio");
      if (!busy.note.empty()) line("Device", "no times: " + safe_text(busy.note));
      return;
    }
    std::string words;
    for (const TimePart& part : parts) {
      const std::string name = part.name;
      if (part.share <= 0 && name != "compute" && name != "idle") continue;
      words += (words.empty() ? "" : "   ") + name + " " + percent(part.share);
    }
    const auto devices = number_of(metric_of(report_, "devices").value);
    words += "   of " + human_duration(std::get<i64>(metric_of(report_, "device_span_ns").value));
    if (devices && *devices > 1) words += fmt::format(" on {:.0f} devices, summed", *devices);
    line("Device", bar(parts) + words);
    idle_causes();
  }

  void idle_causes() {
    const std::string words = largest(idle_parts(report_));
    if (!words.empty()) line("Idle", words);
  }

  // The first of them, which are the largest, and the sum of all others.
  static std::string largest(const std::vector<std::pair<std::string, double>>& parts) {
    constexpr std::size_t kShown = 4;
    constexpr double kLeast = 0.0005;
    std::string words;
    double rest = 0;
    std::size_t shown = 0;
    for (const auto& [name, share] : parts) {
      if (shown == kShown || share < kLeast || name == "other") {
        rest += share;
        continue;
      }
      words += (words.empty() ? "" : "   ") + safe_text(name) + " " + percent(share);
      ++shown;
    }
    if (rest >= kLeast) words += "   other " + percent(rest);
    return words;
  }

  // Cells by largest remainder, so that they are kBar in all.
  std::string bar(const std::vector<TimePart>& parts) const {
    if (!style_.bars || width_ < 90) return "";
    static constexpr const char* kFull[] = {"█", "▓", "▒", "░", "·", "?"};
    static constexpr const char* kPlain[] = {"#", "=", "-", ".", ":", "?"};
    static constexpr const char* kColors[] = {"32", "36", "34", "33", "35", "31"};
    std::vector<std::size_t> cells(parts.size());
    std::vector<std::pair<double, std::size_t>> rests;
    std::size_t used = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const double exact = std::clamp(parts[i].share, 0.0, 1.0) * static_cast<double>(kBar);
      cells[i] = static_cast<std::size_t>(exact);
      used += cells[i];
      rests.emplace_back(cells[i] - exact, i);
    }
    std::sort(rests.begin(), rests.end());
    for (std::size_t i = 0; i < rests.size() && used < kBar; ++i, ++used) ++cells[rests[i].second];
    std::string text;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      std::string piece;
      for (std::size_t cell = 0; cell < cells[i]; ++cell) piece += style_.utf8 ? kFull[i] : kPlain[i];
      if (!piece.empty()) text += paint(kColors[i], piece);
    }
    return text + "  ";
  }

  void what_to_do() {
    const std::vector<const Finding*> findings = findings_by_gain(report_);
    gap();
    if (findings.empty()) {
      out_ += paint("1", "What to do") + "  " + why_nothing(device_time_parts(report_)) + "\n";
      return;
    }
    const std::size_t shown = std::min(findings.size(), findings_);
    std::string title = paint("1", "What to do");
    if (shown < findings.size()) title += fmt::format("  ({} of {}, by gain)", shown, findings.size());
    out_ += title + "\n";
    if (findings.front()->id != "idle-gaps") asked_too_seldom();
    for (std::size_t i = 0; i < shown; ++i) finding(i + 1, *findings[i]);
    what_remains(findings);
  }

  // A device that has nothing to do since the program has nothing to do: no finding has a gain for it, and it explains all the others' size.
  void asked_too_seldom() {
    const Outside found = most_from_outside(report_);
    if (found.waits_ns == 0) return;
    out_ += wrapped(
        "     ",
        fmt::format("{} of {} device {} has nothing to do, since the program waits for what comes from outside ({})",
                    human_nanos(static_cast<Nanos>(found.waits_ns)), human_nanos(static_cast<Nanos>(found.span_ns)),
                    found.device, safe_text(found.at)),
        5, width_);
  }

  void finding(std::size_t number, const Finding& finding) {
    constexpr std::size_t kIndent = 16;
    const char* code = finding.severity == Severity::Problem   ? "31;1"
                       : finding.severity == Severity::Warning ? "33;1"
                                                               : "36";
    const std::string gain = finding.gain_ns ? "-" + human_nanos(static_cast<Nanos>(finding.gain_ns)) : "";
    std::string text = wrapped(fmt::format("  {}  {:>9}  ", number, gain), safe_text(finding.text), kIndent, width_);
    if (style_.color && !gain.empty()) text.replace(text.find(gain), gain.size(), paint(code, gain));
    out_ += text;
    if (!finding.site.empty())
      out_ += wrapped(std::string(kIndent, ' ') + "at ", safe_text(finding.site), kIndent + 3, width_);
    else if (number == 1 && lines_can_be_had())
      out_ += wrapped(std::string(kIndent, ' ') + "at ",
                      "a line that is not known: `gputrace run --collect +stacks` tells it", kIndent + 3, width_);
    if (!finding.fix.empty())
      out_ += wrapped(std::string(kIndent, ' ') + "fix: ", safe_text(finding.fix), kIndent + 5, width_);
  }

  // No line is known since the program has no Python, and native ones were not asked for.
  bool lines_can_be_had() const {
    const auto& absent = report_.coverage.not_collected;
    return std::any_of(absent.begin(), absent.end(), [](const NotCollected& entry) {
      return entry.what == "sites" && entry.why.find("+stacks") != std::string::npos;
    });
  }

  // What all changes together would leave, and how well the replay behind it fits.
  void what_remains(const std::vector<const Finding*>& findings) {
    const Value floor = metric_of(report_, "floor_ns").value, replayed = metric_of(report_, "replayed_ns").value;
    if (style_.head || is_null(floor) || is_null(replayed) || findings.front()->gain_ns == 0) return;
    const double all = number_of(replayed).value_or(0) - number_of(floor).value_or(0);
    if (static_cast<double>(findings.front()->gain_ns) > all)
      return;  // told by something that the replay does not know
    std::string error;
    for (const Finding* finding : findings) {
      for (const auto& [key, value] : finding->evidence) {
        if (key == "model_error_ratio" && error.empty() && number_of(value))
          error = fmt::format(" (a replay; it is {:.1f} % off the run as it was)", *number_of(value) * 100);
      }
    }
    out_ += wrapped("     ",
                    fmt::format("{} of {} would remain if all causes were gone{}", human(floor, Unit::Nanos),
                                human(replayed, Unit::Nanos), error),
                    5, width_);
  }

  void heaviest_work() {
    const Heaviest found = heaviest(report_, heaviest_);
    if (found.rows.empty()) return;
    const std::string mark = style_.utf8 ? "…" : "...";
    std::size_t name = 10, detail = 0;
    for (const Heavy& row : found.rows) {
      name = std::max(name, display_width(row.name));
      detail = std::max(detail, display_width(safe_text(row.detail)));
    }
    constexpr std::size_t kNumbers = 2 + 8 + 2 + 10 + 2 + 10 + 2 + 10;  // share, total, count, mean
    detail = std::min<std::size_t>(detail, 28);
    name = std::min(name, width_ - std::min(width_ - 12, kNumbers + 4 + detail));
    const std::string title = fmt::format("{} by {}", found.operations ? "Operations" : "Kernels",
                                          found.timed ? "time on the device" : "executions (no device times)");
    gap();
    out_ += paint("1", title) + fmt::format("  ({} of {})\n", found.rows.size(), human_count(found.all));
    const char* what = detail == 0 ? "" : found.operations ? "  line" : "  code";
    out_ += paint("2", fmt::format("  {:<{}}  {:>8}  {:>10}  {:>10}  {:>10}{}", "", name, "share", "total", "count",
                                   "mean", what)) +
            "\n";
    for (const Heavy& row : found.rows) {
      const bool timed = row.total_ns && row.count && *row.count > 0;
      const Value mean_ns = timed ? mean(static_cast<u64>(*row.total_ns), static_cast<u64>(*row.count)) : Value();
      const std::string shown = shorten(row.name, name, mark);
      std::string text =
          fmt::format("  {}{}  {:>8}  {:>10}  {:>10}  {:>10}  {}", shown, std::string(name - display_width(shown), ' '),
                      row.share ? human(Value(*row.share), Unit::Ratio) : "-",
                      row.total_ns ? human(Value(*row.total_ns), Unit::Nanos) : "-",
                      row.count ? human(Value(*row.count), Unit::Count) : "-", human(mean_ns, Unit::Nanos),
                      shorten_site(safe_text(row.detail), detail, mark));
      text.resize(text.find_last_not_of(' ') + 1);
      out_ += text + "\n";
    }
  }

  void memory() {
    const auto peak = number_of(metric_of(report_, "peak_memory_bytes").value);
    if (style_.head || !peak || *peak <= 0) return;
    std::optional<double> most;
    if (const Table* devices = report_.table("devices")) {
      for (const Row& row : devices->rows) {
        const auto size = number_of(cell_of(*devices, row, "memory_bytes"));
        if (size && (!most || *size < *most)) most = size;
      }
    }
    line("Memory", "peak " + human_bytes(static_cast<u64>(*peak)) +
                       (most ? " of " + human_bytes(static_cast<u64>(*most)) : "") + ", of the fullest device");
  }

  bool incomplete() const {
    const Coverage& coverage = report_.coverage;
    return coverage.dropped != 0 || coverage.truncated || !coverage.missing.empty();
  }

  // Below the headline where all that follows is doubtful, else at the end.
  void trace() { line("Trace", safe_text(trace_line(report_)), incomplete() ? "33;1" : nullptr); }

  void remarks() {
    const Coverage& coverage = report_.coverage;
    constexpr std::size_t kOptions = 3;  // the rest is among all findings
    std::size_t options = 0;
    for (const Finding& finding : report_.findings) {
      if (is_of_options(finding) && options++ < kOptions) line("Note", safe_text(finding.text), "33;1");
    }
    if (options > kOptions)
      line("Note", human_count(options - kOptions) + " more options were not understood: --section quality");
    if (!coverage.remarks.empty()) {
      const std::size_t more = coverage.remarks.size() - 1;
      line("Note", safe_text(coverage.remarks.front()) +
                       (more == 0 ? "" : fmt::format(" (and {} more: --section quality)", more)));
    }
    std::string absent;
    for (const NotCollected& entry : coverage.not_collected) {
      if ((", " + absent + ", ").find(", " + entry.what + ", ") == std::string::npos)
        absent += (absent.empty() ? "" : ", ") + entry.what;
    }
    if (!absent.empty() && !style_.head) line("Absent", safe_text(absent) + " (why: --section quality)");
  }

  void next() {
    if (style_.next.empty()) return;
    gap();
    const char* label = "next:  ";
    for (const std::string& command : style_.next) {
      out_ += label + safe_text(command) + "\n";
      label = "       ";
    }
  }

  const Report& report_;
  const ScreenStyle& style_;
  const std::size_t width_, findings_, heaviest_;
  std::string out_;
};

}  // namespace

std::string render_screen(const Report& report, const ScreenStyle& style) {
  std::string text;
  std::size_t findings = style.head ? 1 : kFindings, heaviest = kHeaviest;
  while (true) {
    text = Screen(report, style, findings, heaviest).render();
    const auto lines = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
    if (lines <= style.lines || (findings == 1 && heaviest == 3)) return text;
    if (findings > 2)
      --findings;
    else if (heaviest > 3)
      --heaviest;
    else
      --findings;
  }
}

}  // namespace gputrace
