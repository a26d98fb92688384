// One trace written anew, chunk for chunk and record for record, with other names.
//
//   · Times, counts, handles, sizes and line numbers are those of the original; so are chunks, but for their numbers.
//   · What names anything of the program's, its machine's or its user's is a pseudonym: texts (and their ids, which are made from them), info lines,
//     names of threads, boot ids, UUIDs of devices. Machine code is zeros.
//   · What this version does not know is not copied: chunks of other kinds, what is behind a record's last known field.
#pragma once

#include <string>

#include "base/result.h"
#include "cli/anonymize/pseudonyms.h"
#include "trace/reader.h"

namespace gputrace {

struct Rewritten {
  u64 records = 0;
  u64 left_out = 0;  // places of the original that could not be read, and what this version does not know
};

// Makes NAME in the directory. The error is one line.
Result<Rewritten, std::string> rewrite_trace(const TraceReader& trace, Pseudonyms& names, int directory,
                                             const std::string& name);

// The value of an info line; empty with `known` false: a line that this version does not know.
std::string rewrite_info(std::string_view key, std::string_view value, Pseudonyms& names, bool& known);

}  // namespace gputrace
