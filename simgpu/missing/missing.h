// SIMGPU_MISSING=FILE: what was asked for and answered *not supported*, so that gaps are found and not guessed.
//
//   simgpu_missing("libcublas.so.13", "cublasDgemm_v2");
// counts one such call. In the file (`%p` is the pid) each function has one line per process,
//        COUNT NAME LIBRARY [unknown|newer]
// with COUNT right-aligned in ten columns. The line is appended at the first call and its count is written over at each later one, so the
// file is right at any moment, however the process ends.
//   · Every library compiles a copy of its own; none sees the counts of another.
//   · From any thread, in exit handlers, in the child of a fork (which gets lines of its own). Keeps errno. Costs nothing to speak of while
//     the variable is not set, else four system calls.
//   · Names that do not fit (128 characters, 4095 names) are not counted.
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

// `library` is a literal: the soname. `name` is copied: the function as programs call it.
__attribute__((visibility("hidden"))) void simgpu_missing(const char* library, const char* name);
// Likewise for a name that was looked up (cuGetProcAddress) and not found. `why`, a literal: "unknown" (there is no such function), "newer"
// (the simulated driver's version is below the function's).
__attribute__((visibility("hidden"))) void simgpu_missing_lookup(const char* library, const char* name,
                                                                 const char* why);

#ifdef __cplusplus
}
#endif
