// Whether a kernel uses tensor cores, whether it could, and if it could and does not: why, and what it would gain.
// Facts come from the machine code; eligibility from the library call that launched it (types, shape, math mode), else
// from what kind of work its name and code show. What cannot be known is nothing.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "analysis/facts/facts.h"

namespace gputrace {

struct TensorCoreVerdict {
  std::optional<bool> used;
  std::string kind;                // mnemonics of its matrix instructions
  std::string precision;           // input type of the dominant arithmetic; "": not known, or none
  bool no_arithmetic = false;      // its code was read whole and has no floating-point and no matrix instruction
  bool precision_by_call = false;  // the code did not tell; the library call did
  std::optional<bool> eligible;
  std::string call;    // library call that launched it; "": none known, or several
  std::string reason;  // eligible and not used: "math mode" "precision" "dimension" "alignment" "layout" "not told"
  double gain = 0;     // of its time, at most: were it bound by arithmetic, 1 - rate now / rate of the matrix units
};

// `kernel`: index in process.kernels. `device`: nullptr where it is not known.
TensorCoreVerdict tensor_core_verdict(const ProcessTrace& process, u32 kernel, const Device* device);

// What a product or convolution needs for tensor cores on a device of this capability.
struct MatrixAdvice {
  std::optional<bool> eligible;  // nothing: types not known. false: no such matrix units, or a matrix-vector product
  std::string reason;            // why a call like this may run without them
  std::string target;            // precision of the matrix units it would use
};
MatrixAdvice advise(const LibraryShape& shape, u32 major, u32 minor);

// Elements that a dimension should be a multiple of: 16 bytes' worth. 0: nothing to say of this arithmetic.
u32 dimension_unit(const std::string& arithmetic);

// Share of the time that would be saved at most by matrix units of `target` instead of ordinary arithmetic.
double matrix_gain(const Device& device, const std::string& arithmetic, const std::string& target);

// Each kernel that ran, with its executions' device time (0: not known) and the device it ran on (or nullptr).
struct JudgedKernel {
  const ProcessTrace& process;
  u32 kernel;  // index in process.kernels
  const Device* device;
  u64 executions, nanos;
  TensorCoreVerdict verdict;
};
void for_each_judged(const ProcessTrace& process, const std::function<void(const JudgedKernel&)>& visit);
void for_each_judged(const LoadedRun& run, const std::function<void(const JudgedKernel&)>& visit);

// Time of all kernels by what it was spent on, over all processes; the shares are of kernel_ns of device_totals.
struct PrecisionTimes {
  u64 tensor_core_ns = 0;
  u64 judged_ns = 0;  // of kernels of which is known whether they use tensor cores
  u64 known_ns = 0;   // of kernels whose arithmetic is known, or is none
  u64 none_ns = 0;    // of it: no floating-point or matrix arithmetic (copies, integer work)
  std::map<std::string, u64> by_precision;
};
PrecisionTimes precision_times(const LoadedRun& run);

}  // namespace gputrace
