// Words for what was lost, and the coverage that every output begins with.
#pragma once

#include <array>
#include <string>

#include "analysis/facts/facts.h"
#include "analysis/table/table.h"

namespace gputrace {

const char* drop_reason(DropReason reason);
// "ring full 10, disk 2".
std::string drop_reasons(const std::array<u64, kDropReasons>& dropped);

Coverage coverage_of(const LoadedRun& run);

// Frees may be missing too: neither side of what the ledger of memory came to is a bound.
bool ledger_has_holes(const LoadedRun& run);
inline constexpr const char* kHolesInTheLedger =
    "allocations and frees may be among the records that were lost: memory sums may be too small or too large";

// For readers of text: of the rows of the section `quality` those that lost most, then the inexact ones, at most `most`
// of them; the others are summed, those that lost something apart from those that did not. A table of at most `most`
// rows, or without a column that this needs, stays as it is.
void fold_quality(Table& table, std::size_t most);

// A process in a sentence: its rank where it has one ("rank 0 (restart 1)" where its launcher started it anew), else its executable and pid.
std::string name_of(const ProcessTrace& process);

// Somebody wanted it to end: a launcher, a scheduler, Ctrl-C.
bool was_told_to_end(const ProcessTrace& process);

// "; the program exited 1", "; the program was ended by signal 6", to go on with; empty: it ended well, or nobody saw how.
std::string failure_of(const ProcessTrace& process);

}  // namespace gputrace
