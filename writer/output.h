// Where a trace goes: the directory from GPUTRACE_OUTPUT with its tokens, and the name of the file in it.
#pragma once

#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"
#include "base/types.h"
#include "writer/host.h"

namespace gputrace {

struct OutputNames {
  std::string host, executable, rank, local_rank, job, start;  // start: UTC, YYYYMMDD-HHMMSS
  i32 pid = 0;
  u64 random_id = 0;
};

// Replaces the tokens %h %p %r %l %j %e %t %q{ENV} %% ; '/' and control characters in values become '_'. %n becomes
// `number`.
std::string expand_tokens(std::string_view pattern, const OutputNames& names, const Environment& environment,
                          u32 number);
bool has_number_token(std::string_view pattern);

// [rankNNNN-]EXECUTABLE-HOST-PID-RANDOM, without the extension; at most 200 bytes.
std::string trace_name(const OutputNames& names);

struct OutputDirectory {
  Fd fd;
  std::string path;     // absolute
  bool shared = false;  // others may write to it, or own it: allowed by GPUTRACE_ALLOW_SHARED_DIR
};
struct OutputError {
  std::string what, fix;  // one line each
};
// Makes the directory (0700, with its parents) or opens the one that is there. `pattern`: GPUTRACE_OUTPUT, or empty for
// the default.
Result<OutputDirectory, OutputError> open_output(std::string_view pattern, const OutputNames& names,
                                                 const Environment& environment);

// 4096, 64K, 10M, 1.5G, with an optional B or iB; binary. 0 where it is none.
u64 parse_bytes(std::string_view text);

}  // namespace gputrace
