// The options of `gputrace report`, and what can be said against them before a trace is read.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/table/choose.h"
#include "cli/options.h"

namespace gputrace {

struct ReportOptions {
  std::vector<std::string> paths, sections, columns, conditions;
  std::string format = "text", output, html, sort, rank, from, to, steps, step_range;
  bool json = false, last = false, strict = false, all = false, wide = false;
  long long top = -1, device = -1;
  std::vector<Filter> filters;  // of `conditions`, by check()

  // Without a word on tables, text is the first screen.
  bool first_screen() const {
    return format == "text" && !all && !wide && sections.empty() && columns.empty() && conditions.empty() && top < 0 &&
           sort.empty();
  }
  bool lists_columns() const { return columns.size() == 1 && columns.front() == "help"; }
};

void add_options(OptionParser& parser, ReportOptions& options);

// 0, or the exit code after a message.
int check(ReportOptions& options);

// "5-9", "5-", "-9", "5": the first and the last step, from 1. Nothing: it is none of these.
std::optional<std::pair<u64, u64>> parse_steps(const std::string& text);

// For --columns help: the columns of the sections that were asked for, by key and heading.
std::string list_of_columns(const ReportOptions& options);

// The sections' names, those for which `wanted(name)` holds, by blanks.
template <typename Wanted>
std::string words_of_sections(const std::vector<std::string>& names, Wanted&& wanted) {
  std::string words;
  for (const std::string& name : names) {
    if (wanted(name)) words += (words.empty() ? "" : " ") + name;
  }
  return words;
}

inline constexpr const char* kFindings = "findings";  // no table, but asked for like one
std::vector<std::string> section_names();

}  // namespace gputrace
