// The names of our environment variables: what the library acts on or passes on, and what `run` tells its processes. A name
// that is none of these is a mistake of the user's, which is said.
#pragma once

namespace gputrace {

inline constexpr const char* kVariables[] = {
    "GPUTRACE",         "GPUTRACE_OUTPUT",      "GPUTRACE_DURATION",      "GPUTRACE_DELAY",
    "GPUTRACE_CAPTURE", "GPUTRACE_COLLECT",     "GPUTRACE_CUPTI",         "GPUTRACE_GRAPHS",
    "GPUTRACE_BUFFER",  "GPUTRACE_ON_FULL",     "GPUTRACE_MAX_SIZE",      "GPUTRACE_KEEP",
    "GPUTRACE_RANKS",   "GPUTRACE_PROCESS",     "GPUTRACE_SIDECAR",       "GPUTRACE_SHM",
    "GPUTRACE_SIGNAL",  "GPUTRACE_METRICS",     "GPUTRACE_LOG",           "GPUTRACE_CONFIG",
    "GPUTRACE_PAGER",   "GPUTRACE_READ_LIMITS", "GPUTRACE_KEEP_DEEPBIND", "GPUTRACE_ALLOW_SHARED_DIR",
    "GPUTRACE_RUN",     "GPUTRACE_RUN_NOTES",   "GPUTRACE_RUN_MEMORY",    "GPUTRACE_RUN_START"};

}  // namespace gputrace
