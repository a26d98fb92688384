// What reports about library calls share.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "analysis/facts/facts.h"

namespace gputrace {

// Which library rows launched a kernel (index in ProcessTrace::kernels), and how often.
std::span<const LibraryUse> library_uses_of_kernel(const ProcessTrace& process, u32 kernel);
// Name of a row's call without version suffixes: "cublasGemmEx".
const std::string& library_call_name(const ProcessTrace& process, const LibraryRow& row);

// Device time of a row's calls; false: not known whole.
bool device_time_of(const LibraryRow& row, u64& nanos);

}  // namespace gputrace
