// Waits: what the threads of the program's processes waited for, from which line, and how long.
#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "analysis/lines/sites.h"
#include "analysis/reports/section_report.h"
#include "analysis/words/human.h"
#include "trace/schema.h"

namespace gputrace {
namespace {

using ThreadNames = std::map<std::pair<i32, i32>, std::string>;  // by process and thread

ThreadNames names_of_threads(const ProcessTrace& process) {
  ThreadNames names;
  for (const ThreadFacts& thread : process.threads) {
    if (!thread.process_wide && thread.tid != 0 && !thread.name.empty()) names[{0, thread.tid}] = thread.name;
  }
  for (const HostThread& thread : process.samples.host_threads) names[{thread.process, thread.tid}] = thread.name;
  return names;
}

// Of one process, by thread, what for and line: several frames may have the same one.
using Waits = std::map<std::tuple<i32, i32, WaitFor, std::string>, WaitUses>;

Waits waits_of(const ProcessTrace& process, const FileNames& files) {
  Waits waits;
  for (const WaitUses& uses : process.samples.waits) {
    const SourceFrames& frames = process.lines.frames;
    WaitUses& sum = waits[{uses.process, uses.tid, uses.what, site_name(frames, own_frame(frames, uses.frame), files)}];
    sum.count += uses.count, sum.total_ns += uses.total_ns;
    sum.longest_ns = std::max(sum.longest_ns, uses.longest_ns);
  }
  return waits;
}

void fill_waits(const LoadedRun& run, Table& table) {
  const FileNames files(run);
  u64 left_out = 0;
  for (const ProcessTrace& process : run.processes) {
    left_out += process.samples.waits_left_out;
    const ThreadNames names = names_of_threads(process);
    for (const auto& [who, sum] : waits_of(process, files)) {
      const auto& [child, tid, what, site] = who;
      const auto name = names.find({child, tid});
      table.rows.push_back({name == names.end() ? Value() : Value(name->second), std::string(word_of(what)),
                            text_or_null(site), number(sum.count), number(sum.total_ns),
                            static_cast<i64>(child ? child : process.who.pid), static_cast<i64>(tid),
                            number(sum.longest_ns)});
    }
  }
  sort_table(table, "total_ns");
  table.sort = "total_ns";
  if (left_out)
    table.notes.push_back(human_count(left_out) + " waits more are in no row: there were too many different ones");
}

}  // namespace

extern constexpr SectionReport waits_report = {
    .section = "waits",
    .title = "What threads waited for, by time",
    .answers = "thread, what it waited for and from which line: how often and how long",
    .shown = Shown::Filled,
    .needs = {Need::Waits},
    .columns = {{"thread", Unit::Text},
                {"for", Unit::Text},
                {"site", Unit::Text, Hint::Site},
                {"count", Unit::Count},
                {"total_ns", Unit::Nanos},
                extra({"pid", Unit::None}),
                extra({"tid", Unit::None}),
                extra({"max_ns", Unit::Nanos})},
    .notes = {"waits of 2 us and more in libc's functions, from a process's first CUDA call on, and from the fork of a "
              "worker that "
              "comes after it, once they are over; waits of CUDA's calls are in sync; direct system calls (futex) are "
              "not seen",
              "GIL = CPython's lock; semaphore = CPython's other locks, too; site = the line of a thread that has made "
              "a CUDA "
              "call, of waits of 20 us and more"},
    .fill = fill_waits,
    .of_all_devices = true,
};

}  // namespace gputrace
