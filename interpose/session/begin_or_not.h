// Whether a process is traced, with how much memory, and why not: what is decided before there is a session. Cold.
#pragma once

#include "base/sentence.h"
#include "base/types.h"
#include "interpose/settings/info_text.h"
#include "interpose/settings/options.h"

namespace gputrace {

// Why there is no session, and what can be done: for `run`, and for the line in OUTPUT/untraced.
struct Reason {
  Sentence what, fix;
};

// Whether the user's own choice (GPUTRACE, _COLLECT, _PROCESS, _RANKS) leaves this process in. `scratch`: memory to work in.
bool is_wanted(const Options& options, InfoText& info, const char* executable, char* scratch, u32 capacity,
               Reason& reason);

// How large the ring is, and what else there is room for, which changes `options`. 0: there is room for none, and why.
Bytes choose_budget(Options& options, InfoText& info, Reason& reason);

// What an errno of ours means, in the words of the case.
const char* error_word(int error);

}  // namespace gputrace
