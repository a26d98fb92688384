// NVTX version 3 by injection: NVTX_INJECTION64_PATH names this library, every object of the program that includes the
// NVTX headers loads it, hands over its table of functions, and from then on calls us. Nothing is recorded before the
// first CUDA call, which alone starts a session; ranges that are open then, and names given before, are recorded at its
// start.
#pragma once

#include "interpose/settings/info_text.h"
#include "interpose/settings/options.h"

namespace gputrace {

// Sets NVTX_INJECTION64_PATH, unless NVTX is not collected or somebody has set it. Once; by the constructor, or by the
// first getenv of that name before it. No allocation.
void nvtx_prepare_environment();
// Whether the variable names us: then the program's NVTX calls come here.
bool nvtx_is_ours();
// What the trace must say about it.
void describe_nvtx(InfoText& info, const Options& options);

// A session begins, its gate is still closed. True: a range of GPUTRACE_CAPTURE=nvtx: is open already.
bool nvtx_session_begins(const Options& options, bool forked);
// The calling thread has become part of the session.
void nvtx_thread_joined(u64 generation);
// The calling thread ends.
void nvtx_thread_ended();

}  // namespace gputrace
