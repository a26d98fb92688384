// Files: what the program's processes read and wrote, and how long that took.
#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "analysis/reports/section_report.h"
#include "analysis/words/human.h"
#include "trace/schema.h"

namespace gputrace {
namespace {

struct FileTotals {
  u64 count = 0, bytes = 0, total_ns = 0, longest_ns = 0;
};

void fill_io(const LoadedRun& run, Table& table) {
  std::map<std::pair<std::string_view, FileCall>, FileTotals> totals;
  u64 left_out = 0;
  for (const ProcessTrace& process : run.processes) {
    const SampleFacts& samples = process.samples;
    left_out += samples.files_left_out;
    for (const FileUses& uses : samples.files) {
      FileTotals& sum = totals[{samples.paths[uses.path], uses.call}];
      sum.count += uses.count, sum.bytes += uses.bytes, sum.total_ns += uses.total_ns;
      sum.longest_ns = std::max(sum.longest_ns, uses.longest_ns);
    }
  }
  for (const auto& [what, sum] : totals) {
    const auto& [path, call] = what;
    table.rows.push_back({text_or_null(std::string(path)), std::string(word_of(call)), number(sum.count),
                          number(sum.bytes), number(sum.total_ns), number(sum.longest_ns)});
  }
  sort_table(table, "total_ns");
  table.sort = "total_ns";
  if (left_out)
    table.notes.push_back(human_count(left_out) + " calls more are in no row: there were too many different ones");
}

}  // namespace

extern constexpr SectionReport io_report = {
    .section = "io",
    .title = "File calls, by the time they took",
    .answers = "file and call: how often, bytes, time, longest; of the traced processes and those forked from them",
    .shown = Shown::Filled,
    .needs = {Need::Files},
    .columns = {{"path", Unit::Text, Hint::Name},
                {"call", Unit::Text},
                {"count", Unit::Count},
                {"bytes", Unit::Bytes},
                {"total_ns", Unit::Nanos},
                {"max_ns", Unit::Nanos}},
    .notes =
        {"calls of libc from a process's first CUDA call on, and from the fork of a worker that comes after it; memory "
         "that is "
         "mapped to a file, direct system calls and what libc does within other functions (fgets, fflush) are not seen",
         "DIR/*: files of a directory, once there are too many to tell one by one; failed calls "
         "count, but for those that opened nothing; (pipe), (socket): time in them is mostly waiting"},
    .fill = fill_io,
    .of_all_devices = true,
};

}  // namespace gputrace
