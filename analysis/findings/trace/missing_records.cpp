// What is not there to be read: a file that could not be read, is damaged or has no end; records that were seen and are not in the file.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/findings/rules.h"
#include "analysis/gains/gains.h"
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

// The next power of two above four times what it was: a ring that was full is rarely full by a little.
std::string buffer_fix(const ProcessTrace& process) {
  u64 bytes = 16u << 20;
  const auto option = process.options.find("buffer_bytes");
  if (option != process.options.end()) {
    u64 value = 0;
    for (const char c : option->second)
      value = c >= '0' && c <= '9' && value < (1ull << 50) ? value * 10 + static_cast<u64>(c - '0') : value;
    if (value) bytes = value;
  }
  u64 wanted = 1u << 20;
  while (wanted < bytes * 4) wanted *= 2;
  return fmt::format("GPUTRACE_BUFFER={}M", wanted >> 20);
}

void find_dropped_records(const LoadedRun& run, Findings& found) {
  for (const ProcessTrace& process : run.processes) {
    if (process.dropped == 0) continue;
    Finding finding;
    finding.id = "dropped-records";
    finding.severity = misses_records(process) ? Severity::Problem : Severity::Warning;
    finding.section = "quality";
    finding.text = fmt::format("{} of {} records of {} were dropped ({}): counts and sums below are lower bounds",
                               process.dropped, process.seen, name_of(process), drop_reasons(process.dropped_by));
    const u64 full = process.dropped_by[static_cast<u32>(DropReason::RingFull)];
    const u64 disk = process.dropped_by[static_cast<u32>(DropReason::Disk)];
    const u64 slots = process.dropped_by[static_cast<u32>(DropReason::NoSlot)];
    const u64 most = std::max({full, disk, slots});
    if (most && most == full)
      finding.fix = buffer_fix(process) + ", or trace less of it: --duration, --capture profiler-api";
    else if (most && most == disk)
      finding.fix = "more room on the disk, or a larger GPUTRACE_MAX_SIZE";
    else if (most)
      finding.fix = buffer_fix(process) + " (a larger segment has more thread slots)";
    finding.evidence = {{"dropped", number(process.dropped)},
                        {"seen", number(process.seen)},
                        {"pid", static_cast<i64>(process.who.pid)},
                        {"reasons", drop_reasons(process.dropped_by)}};
    found.push_back(std::move(finding));
  }
}

void find_missing_records(const LoadedRun& run, Findings& found) {
  find_damaged_file(run, found);
  find_dropped_records(run, found);
}

}  // namespace

extern constexpr FindingRule missing_records_rule = {
    .findings = {{"unread-file", "a file that could not be read"},
                 {"damaged-file", "a file that is damaged; what is intact was used"},
                 {"unfinished-file", "a trace without an end: still being written, or its sidecar was killed"},
                 {"dropped-records",
                  "records that were seen and are not in the file, and what would make room for them"}},
    .needs = {},
    .find = find_missing_records,
};

}  // namespace gputrace
