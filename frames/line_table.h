// Which line of a Python function an instruction belongs to, from the table that its code object carries. Pure: reads the
// bytes that it is given, whatever they hold. Formats: CPython's Objects/lnotab_notes.txt (3.8 … 3.10) and
// Objects/locations.md (from 3.11 on).
#pragma once

#include "base/types.h"

namespace gputrace {

enum class LineTableKind : u32 {
  Increments,  // 3.8, 3.9: co_lnotab, pairs of byte and line increments
  Ranges,      // 3.10: co_linetable, pairs of length and line change
  Locations,   // 3.11 on: co_linetable, entries of varying length
};

// offset: of the instruction, in bytes from the first. 0: it has no line, or the table does not tell.
u32 line_of(LineTableKind kind, const u8* table, u64 size, u32 first_line, u64 offset);

}  // namespace gputrace
