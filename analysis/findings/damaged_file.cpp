// A file that could not be read, is damaged, or has no end.
#include <fmt/format.h>

#include "analysis/findings/rules.h"
#include "analysis/run/quality.h"

namespace gputrace {
namespace {

void find_damaged_file(const LoadedRun& run, Findings& found) {
  for (const std::string& unread : run.unread) {
    found.push_back({"unread-file", Severity::Problem, "quality-notes", unread, "", {}});
  }
  for (const ProcessTrace& process : run.processes) {
    if (!process.damage.empty()) {
      const std::string more =
          process.damage.size() > 1 ? fmt::format(" (and {} more, see quality-notes)", process.damage.size() - 1) : "";
      found.push_back(
          {"damaged-file",
           Severity::Problem,
           "quality-notes",
           fmt::format("{} is damaged: {}{}", process.who.file, process.damage.front(), more),
           "what is intact was used; --strict refuses it",
           {{"damages", number(static_cast<u64>(process.damage.size()))}, {"pid", static_cast<i64>(process.who.pid)}}});
    } else if (!process.who.ended) {
      found.push_back({"unfinished-file",
                       Severity::Warning,
                       "quality-notes",
                       fmt::format("the trace of {} has no end: it is still being written, or its sidecar was killed",
                                   name_of(process)),
                       "",
                       {{"pid", static_cast<i64>(process.who.pid)}}});
    }
  }
}

}  // namespace

extern constexpr FindingRule damaged_file_rule = {
    .findings = {{"unread-file", "a file that could not be read"},
                 {"damaged-file", "a file that is damaged; what is intact was used"},
                 {"unfinished-file", "a trace without an end: still being written, or its sidecar was killed"}},
    .needs = {},
    .find = find_damaged_file,
};

}  // namespace gputrace
