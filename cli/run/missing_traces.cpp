#include "cli/run/missing_traces.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "analysis/words/human.h"
#include "analysis/words/safe_text.h"
#include "cli/environment.h"

namespace gputrace {
namespace {

constexpr std::size_t kNamed = 4;  // reasons that are told one by one

// What happened, why, the fix: one line each.
std::string message(const char* severity, const std::string& what, const std::vector<std::string>& why,
                    const std::string& fix) {
  std::string text = fmt::format("gputrace: {}: {}\n", severity, safe_text(what));
  for (const std::string& line : why) text += fmt::format("          {}\n", safe_text(line));
  if (!fix.empty()) text += fmt::format("          fix: {}\n", safe_text(fix));
  return text;
}

std::vector<RunNote> of_word(const std::vector<RunNote>& notes, const char* word) {
  std::vector<RunNote> found;
  for (const RunNote& note : notes) {
    if (note.word == word) found.push_back(note);
  }
  return found;
}

std::size_t processes(const std::vector<RunNote>& notes) {
  std::set<i32> pids;
  for (const RunNote& note : notes) pids.insert(note.pid);
  return pids.size();
}

// "python (pid 42): GPUTRACE_RANKS=0 does not select rank 3", a line a reason; the first fix.
std::string untraced_message(const char* severity, const std::string& what, const std::vector<RunNote>& untraced) {
  std::vector<std::string> why;
  std::set<std::string> told;
  std::string fix;
  for (const RunNote& note : untraced) {
    if (!told.insert(note.what).second) continue;
    if (told.size() <= kNamed) why.push_back(fmt::format("{} (pid {}): {}", note.executable, note.pid, note.what));
    if (fix.empty()) fix = note.fix;
  }
  if (told.size() > kNamed) why.push_back(fmt::format("and {} more reasons", told.size() - kNamed));
  return message(severity, what, why, fix);
}

std::string made_calls(const std::vector<RunNote>& notes) {
  const std::size_t count = processes(notes);
  return count == 1 ? "a process made CUDA calls" : fmt::format("{} processes made CUDA calls", count);
}

std::string no_call(const std::vector<RunNote>& notes, const Arguments& command, const Target& target,
                    const Places& places) {
  std::vector<std::string> why;
  if (const std::string unreachable = why_unreachable(target); !unreachable.empty()) {
    why.push_back(unreachable);
  } else {
    why.push_back("looked at: " + base_name(target.path) +
                  (target.interpreter.empty() ? "" : " (run by " + target.interpreter + ")") +
                  " and what it started; no trace was written");
  }
  for (const RunNote& note : of_word(notes, "sandboxed")) {
    why.push_back(
        fmt::format("{} (pid {}) put itself under a filter of system calls (seccomp): from then on it is left alone",
                    note.executable, note.pid));
    if (why.size() > kNamed) break;
  }
  std::string line;
  for (const std::string& word : command) line += (line.empty() ? "" : " ") + shell_word(word);
  return message("error", "no CUDA call was seen", why,
                 fmt::format("is this a CPU run? try: {} doctor -- {}", own_command(places), line));
}

}  // namespace

std::string why_no_trace(const std::vector<RunNote>& notes, const Arguments& command, const Target& target,
                         const Places& places) {
  const auto untraced = of_word(notes, "untraced"), began = of_word(notes, "began");
  if (!untraced.empty())
    return untraced_message("error", "no trace was written, and " + made_calls(untraced), untraced);
  if (variable("GPUTRACE") == "0")
    return message("error", "nothing was traced", {"GPUTRACE=0 turns tracing off"}, "unset GPUTRACE");
  if (!began.empty()) {
    const std::string chosen = variable("GPUTRACE_SIDECAR");
    const bool own = chosen.empty() || chosen == "auto";
    return message("error", "no trace was written, and " + made_calls(began),
                   {own ? "gputrace-sidecar ended before it could write anything"
                        : "GPUTRACE_SIDECAR=" + chosen + " ended before it could write anything"},
                   own ? "GPUTRACE_LOG=info, which leaves a log in the output directory" : "unset GPUTRACE_SIDECAR");
  }
  return no_call(notes, command, target, places);
}

std::string why_not_all(const std::vector<RunNote>& notes) {
  const auto untraced = of_word(notes, "untraced");
  if (untraced.empty()) return "";
  const std::size_t count = processes(untraced);
  return untraced_message("warning",
                          count == 1 ? "a process made CUDA calls that were not traced"
                                     : fmt::format("{} processes made CUDA calls that were not traced", count),
                          untraced);
}

}  // namespace gputrace
