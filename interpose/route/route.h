// The ways to the driver: dlsym, dlopen, cuGetProcAddress, and the search for what stands behind a wrapper.
#pragma once

#include "interpose/lookup/dlsym_answer.h"

namespace gputrace {

// What dlsym's assembler entry asks.
extern "C" {
__attribute__((visibility("hidden"))) DlsymAnswer gputrace_dlsym(void* handle, const char* name, void* caller);
__attribute__((visibility("hidden"))) void* gputrace_find_dlsym();
// The real dlopen; `flags` come back without RTLD_DEEPBIND where that would hide us from an object that reaches CUDA,
// unless GPUTRACE_KEEP_DEEPBIND=1.
__attribute__((visibility("hidden"))) void* gputrace_find_dlopen();
__attribute__((visibility("hidden"))) int gputrace_dlopen_flags(int flags, const char* file);
// The next functions behind ours in load order; null until first needed. Read by the assembler.
__attribute__((visibility("hidden"))) extern void* gputrace_real_dlsym;
__attribute__((visibility("hidden"))) extern void* gputrace_real_dlopen;
}

}  // namespace gputrace
