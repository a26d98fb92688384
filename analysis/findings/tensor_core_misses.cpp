// Products and convolutions that could run on tensor cores and do not: fp32 that may not be rounded to tf32, and 16-bit
// (or narrower) types whose kernel has no matrix instruction.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/findings/rules.h"
#include "analysis/kernels/kernel_rows.h"
#include "analysis/kernels/tensor_cores.h"
#include "analysis/run/device_time.h"
#include "analysis/words/human.h"

namespace gputrace {
namespace {

struct Missed {
  u64 executions = 0, nanos = 0, worst_ns = 0;
  double gain_ns = 0;
  std::string worst, call, reason;

  void add(const JudgedKernel& each) {
    executions += each.executions;
    nanos += each.nanos;
    gain_ns += static_cast<double>(each.nanos) * each.verdict.gain;
    if (!worst.empty() && each.nanos <= worst_ns) return;
    worst_ns = each.nanos;
    worst = name_of(each.process.functions[each.process.kernels[each.kernel].shape.function]).brief;
    call = each.verdict.call;
    reason = each.verdict.reason;
  }
};

void tell(const char* id, const std::string& what, const std::string& fix, const Missed& missed, u64 kernel_ns,
          Findings& found) {
  const auto share = ratio(missed.nanos, kernel_ns);
  if (!share || *share < kCostlyShare) return;
  Finding finding{id,
                  Severity::Warning,
                  "tensor-core-misses",
                  fmt::format("{}: {} execution{}, {} ({:.0f} % of kernel time), most of it {}", what,
                              human_count(missed.executions), missed.executions == 1 ? "" : "s",
                              human_nanos(static_cast<Nanos>(missed.nanos)), *share * 100, missed.worst),
                  fix,
                  {{"executions", number(missed.executions)},
                   {"total_ns", number(missed.nanos)},
                   {"share", *share},
                   {"kernel", missed.worst},
                   {"call", missed.call.empty() ? Value() : Value(missed.call)},
                   {"reason", missed.reason}}};
  finding.gain_ns = static_cast<u64>(missed.gain_ns);
  found.push_back(std::move(finding));
}

// Names the switch of who made the call; without one, none.
std::string fp32_fix(const LoadedRun& run, const std::string& call) {
  const auto torch = [](const ProcessTrace& process) {
    return std::any_of(process.modules.begin(), process.modules.end(),
                       [](const ModuleInstance& module) { return module.path.find("libtorch") != std::string::npos; });
  };
  std::string fix = "let it round to tf32";
  if (std::any_of(run.processes.begin(), run.processes.end(), torch))
    fix += ": torch.set_float32_matmul_precision('high')";
  else if (call.rfind("cublas", 0) == 0)
    fix += ": CUBLAS_TF32_TENSOR_OP_MATH, or a compute type of FAST_TF32";
  else if (call.rfind("cudnn", 0) == 0)
    fix += ": CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION";
  return fix + ", or use bf16";
}

void find_tensor_core_misses(const LoadedRun& run, Findings& found) {
  Missed single, narrow;
  for_each_judged(run, [&](const JudgedKernel& each) {
    const TensorCoreVerdict& verdict = each.verdict;
    if (verdict.used != false || verdict.eligible != true || each.nanos == 0) return;
    const bool fp32 = verdict.reason == "math mode" ? verdict.precision == "fp32" : verdict.reason == "precision";
    (fp32 ? single : narrow).add(each);
  });
  const u64 kernel_ns = device_totals(run).kernel_ns;
  tell("fp32-matmul", "products in fp32 outside of the tensor cores, which would take them as tf32",
       fp32_fix(run, single.call), single, kernel_ns, found);
  tell("no-tensor-cores", "products in types that tensor cores take, by kernels without matrix instructions",
       "see the reason: make sizes and leading dimensions multiples of 16 bytes, take another layout or math mode",
       narrow, kernel_ns, found);
}

}  // namespace

extern constexpr FindingRule tensor_core_misses_rule = {
    .findings = {{"fp32-matmul", "products in fp32 that tensor cores would take as tf32"},
                 {"no-tensor-cores", "products in narrower types by kernels without matrix instructions"}},
    .needs = {Need::Calls, Need::Device, Need::Code},
    .find = find_tensor_core_misses,
};

}  // namespace gputrace
