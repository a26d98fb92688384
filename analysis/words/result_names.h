// CUresult in words.
#pragma once

#include <string>

#include "base/types.h"

namespace gputrace {

// The documented name of a CUresult ("CUDA_ERROR_OUT_OF_MEMORY"); the runtime's numbers mean the same for these. Else
// "error N".
std::string result_name(u16 result);

// Whether a CUresult or cudaError_t (no result of a library's) other than 0 tells of nothing that went wrong: "not ready" is what a query asks for; "deinitialized"
// is what the runtime gets for the libraries and contexts that it gives back when the process ends, since the driver has ended before it (seen with CUDA
// 13.0 in every program).
bool is_plain_answer(u16 result);

}  // namespace gputrace
