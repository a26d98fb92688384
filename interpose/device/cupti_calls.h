// The few calls of CUPTI by which another client comes and goes: they pass through us, so that device collection can
// step aside before they happen. Not recorded.
#pragma once

#include "interpose/lookup/dlsym_answer.h"

namespace gputrace {

// dlsym(handle, a name that begins with "cupti") called from `caller`.
DlsymAnswer answer_cupti(void* handle, const char* name, void* caller);

}  // namespace gputrace
