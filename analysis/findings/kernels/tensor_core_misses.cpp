// Products and convolutions that could run on tensor cores and do not: fp32 that may not be rounded to tf32, and 16-bit
// (or narrower) types whose kernel has no matrix instruction.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/advice/advice.h"
#include "analysis/findings/rules.h"
#include "analysis/gains/gains.h"
#include "analysis/kernels/kernel_callers.h"
#include "analysis/kernels/kernel_changes.h"
#include "analysis/kernels/kernel_rows.h"
#include "analysis/run/device_time.h"
#include "analysis/words/human.h"

namespace gputrace {
namespace {

struct Missed {
  u64 executions = 0, nanos = 0, worst_ns = 0;
  double saved_ns = 0;
  std::string worst, call, reason;
  KernelCallers callers;

  void add(const JudgedKernel& each) {
    executions += each.executions;
    nanos += each.nanos;
    saved_ns += static_cast<double>(each.nanos) * each.verdict.gain;
    if (!worst.empty() && each.nanos <= worst_ns) return;
    worst_ns = each.nanos;
    worst = name_of(each.process.functions[each.process.kernels[each.kernel].shape.function]).brief;
    call = each.verdict.call;
    reason = each.verdict.reason;
  }
};

// What of the process's kernels one change would make faster.
Missed missed_by(const ProcessTrace& process, WhatIf what) {
  Missed missed;
  const std::vector<KernelCallers> callers = kernel_callers(process, FileNames(process));
  for_each_judged(process, [&](const JudgedKernel& each) {
    if (each.nanos != 0 && matrix_change(each.verdict) == what) {
      missed.add(each);
      missed.callers.add(callers[each.kernel]);
    }
  });
  return missed;
}

std::optional<Finding> judge(const ProcessTrace& process, WhatIf what, const char* id, const char* says,
                             const std::string& fix, const Missed& missed) {
  const u64 kernel_ns = kernel_time(process);
  const auto share = ratio(missed.nanos, kernel_ns);
  if (!share || *share < kCostlyShare) return {};
  Finding finding{id,
                  Severity::Hint,
                  "tensor-core-misses",
                  fmt::format("{}: {} execution{}, {} ({:.0f} % of kernel time), most of it {}", says,
                              human_count(missed.executions), missed.executions == 1 ? "" : "s",
                              human_nanos(static_cast<Nanos>(missed.nanos)), *share * 100, missed.worst),
                  fix,
                  {{"executions", number(missed.executions)},
                   {"total_ns", number(missed.nanos)},
                   {"share", *share},
                   {"saved_kernel_ns", number(static_cast<u64>(missed.saved_ns))},
                   {"kernel", missed.worst},
                   {"call", text_or_null(missed.call)},
                   {"reason", missed.reason}}};
  finding.site = missed.callers.site();
  if (!speeds_up(finding, process, what)) return {};
  return finding;
}

// Names the switch of who made the call; without one, none.
std::string fp32_fix(const ProcessTrace& process, const std::string& call) {
  // PyTorch's kernels in a program that shows no frames are PyTorch's as well.
  const bool torch = std::any_of(process.modules.begin(), process.modules.end(), [](const ModuleInstance& module) {
    return module.path.find("libtorch") != std::string::npos;
  });
  const Maker known = calls_made(process).by, maker = known == Maker::General && torch ? Maker::PyTorch : known;
  std::string fix = "let it round to tf32";
  if (const std::string own = advise(Advice::RoundToTf32, maker); !own.empty())
    fix += own;
  else if (call.rfind("cublas", 0) == 0)
    fix += ": CUBLAS_TF32_TENSOR_OP_MATH, or a compute type of FAST_TF32";
  else if (call.rfind("cudnn", 0) == 0)
    fix += ": CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION";
  return fix + ", " + advise(Advice::NarrowTypes, maker);
}

void find_tensor_core_misses(const LoadedRun& run, Findings& found) {
  add_worst(run, found, [&](const ProcessTrace& process) {
    const Missed missed = missed_by(process, WhatIf::Tf32);
    return judge(process, WhatIf::Tf32, "fp32-matmul",
                 "products in fp32 outside of the tensor cores, which would take them as tf32",
                 fp32_fix(process, missed.call), missed);
  });
  add_worst(run, found, [](const ProcessTrace& process) {
    return judge(
        process, WhatIf::MatrixUnits, "no-tensor-cores",
        "products in types that tensor cores take, by kernels without matrix instructions",
        "see the reason: make sizes and leading dimensions multiples of 16 bytes, take another layout or math mode",
        missed_by(process, WhatIf::MatrixUnits));
  });
}

}  // namespace

extern constexpr FindingRule tensor_core_misses_rule = {
    .findings = {{"fp32-matmul", "products in fp32 that tensor cores would take as tf32"},
                 {"no-tensor-cores", "products in narrower types by kernels without matrix instructions"}},
    .needs = {Need::Calls, Need::Device, Need::Code},
    .find = find_tensor_core_misses,
    .of_the_loop = true,
};

}  // namespace gputrace
