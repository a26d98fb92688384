// One report: a pure function from the loaded traces to a table, and all that it says of itself. It never prints, and
// never looks at options. The list of sections, `not_collected`, docs/REFERENCE.md and the tests come from here.
#pragma once

#include <initializer_list>

#include "analysis/facts/facts.h"
#include "analysis/run/needs.h"
#include "analysis/table/table.h"

namespace gputrace {

enum class Shown { Always, Filled, OnDemand };  // when the terminal shows a section without --section

struct SectionColumn {
  const char* key;
  Unit unit = Unit::Text;
  Hint hint = Hint::Normal;
  bool promised = true;  // scripts may rely on it: it keeps its name and its unit
};

// A column that may change or go.
constexpr SectionColumn extra(SectionColumn column) {
  column.promised = false;
  return column;
}

struct SectionReport {
  const char* section;
  const char* title;
  const char* answers;  // its row in docs/REFERENCE.md, in Markdown
  Shown shown = Shown::Filled;
  Needs needs;  // not met: the section is absent, and named in `not_collected`
  std::initializer_list<SectionColumn> columns;
  std::initializer_list<const char*> notes = {};  // that hold for every trace; `fill` adds those that depend on it
  // Adds the rows, each with as many cells as there are columns. The table comes with section, title, columns and notes.
  void (*fill)(const LoadedRun& run, Table& table);
  bool of_all_devices = false;  // of the host's side: --device leaves it as it is

  // The whole table. Throws std::logic_error where a row does not fit the columns: a mistake in `fill`.
  Table operator()(const LoadedRun& run) const;
};

}  // namespace gputrace
