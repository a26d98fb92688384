// CUresult in words.
#pragma once

#include <string>

#include "base/types.h"

namespace gputrace {

// The documented name of a CUresult ("CUDA_ERROR_OUT_OF_MEMORY"); the runtime's numbers mean the same for these. Else
// "error N".
std::string result_name(u16 result);

}  // namespace gputrace
