#include "analysis/kernels/tensor_cores.h"

#include <algorithm>

#include "analysis/facts/library_rows.h"
#include "analysis/kernels/kernel_rows.h"
#include "analysis/kernels/peaks.h"
#include "analysis/run/devices.h"

namespace gputrace {
namespace {

// From this capability on matrix units take a type.
bool has_matrix_units(u32 major, u32 minor, const std::string& arithmetic) {
  const u32 capability = major * 10 + minor;
  if (arithmetic == "fp16") return capability >= 70;
  if (arithmetic == "int8") return capability >= 72;
  if (arithmetic == "bf16" || arithmetic == "tf32") return capability >= 80;
  if (arithmetic == "fp8") return capability >= 89;
  if (arithmetic == "fp6" || arithmetic == "fp4") return capability >= 100;
  if (arithmetic == "int4" || arithmetic == "b1") return capability >= 75 && capability < 90;
  return arithmetic == "fp64" && (capability == 80 || capability == 90 || major == 10);
}

bool uneven(u64 value, u64 unit) { return unit != 0 && value % unit != 0; }

std::string matmul_reason(const LibraryShape& shape, const std::string& arithmetic) {
  constexpr i32 kPedantic = 2;  // CUBLAS_PEDANTIC_MATH; the pedantic compute types are odd
  if ((shape.math_mode & 0xf) == kPedantic && shape.math_mode >= 0) return "math mode";
  if (shape.compute == 65 || shape.compute == 69 || shape.compute == 71 || shape.compute == 73) return "math mode";
  const u64 unit = dimension_unit(arithmetic);
  if (uneven(shape.m, unit) || uneven(shape.n, unit) || uneven(shape.k, unit)) return "dimension";
  if (uneven(shape.lda, unit) || uneven(shape.ldb, unit)) return "alignment";
  const bool transposed_left_only = (shape.flags & (kTransposeA | kTransposeB)) == kTransposeA;
  if ((arithmetic == "int8" || arithmetic == "fp8") && !transposed_left_only) return "layout";
  return "not told";
}

std::string convolution_reason(const LibraryShape& shape, const std::string& arithmetic) {
  const u64 unit = dimension_unit(arithmetic);
  if (uneven(shape.input[1], unit) || uneven(shape.filter[0], unit)) return "dimension";
  return shape.math_mode == 0 ? "math mode" : "not told";  // CUDNN_DEFAULT_MATH
}

bool is_of_products(Category category) {
  return category == Category::Gemm || category == Category::Convolution || category == Category::Attention;
}

// Not what stands beside a product: matrix times vector, sums of split products, epilogues, layouts of convolutions, what flash attention
// does before and after its products.
bool multiplies_matrices(const KernelName& name, Category category) {
  if (!is_of_products(category)) return false;
  const std::string words = words_of(name.parts.scope + name.parts.leaf);
  for (const char* other :
       {"gemv", "symv", "hemv", "trmv", "csrmv", "coomv", "spmv", "split kreduce", "execute split k", "epilogue",
        "im2col", "col2im", "flash bwd convert dq", "flash bwd dot do o", "splitkv combine", "flash fwd combine"}) {
    if (words.find(other) != std::string::npos) return false;
  }
  return true;
}

// The body of a product is multiply-adds: where there are few of them, or little of the code is, the name is believed no
// more.
bool computes_products(const KernelCode* code) {
  constexpr u32 kLeast = 16, kLeastShare = 8;
  if (!code) return false;
  const u64 arithmetic = u64{code->fp64} + code->fp32 + code->fp16 + code->bf16;
  return arithmetic >= kLeast && arithmetic * kLeastShare >= code->instructions;
}

// By what the name and the code show, where no library call is known.
void judge_by_code(const Function& function, const Device* device, TensorCoreVerdict& verdict) {
  if (verdict.used == true) {
    verdict.eligible = true;
    return;
  }
  const Category category = categorize(name_of(function), evidence_of(function)).category;
  if (!multiplies_matrices(name_of(function), category)) {
    if (category != Category::Other) verdict.eligible = false;
    return;
  }
  if (verdict.used != false || device == nullptr || verdict.precision.empty()) return;
  if (!computes_products(code_on(function, device))) return;
  const std::string target = verdict.precision == "fp32" ? "tf32" : verdict.precision;
  verdict.eligible = has_matrix_units(device->capability_major, device->capability_minor, target);
  if (!*verdict.eligible) return;
  verdict.reason = verdict.precision == "fp32" ? "precision" : "not told";
  verdict.gain = matrix_gain(*device, verdict.precision, target);
}

void judge_by_call(const LibraryShape& shape, const Device& device, TensorCoreVerdict& verdict) {
  const MatrixAdvice advice = advise(shape, device.capability_major, device.capability_minor);
  verdict.eligible = verdict.used == true ? std::optional<bool>(true) : advice.eligible;
  if (verdict.used != false || advice.eligible != true) return;
  verdict.reason = advice.reason;
  verdict.gain =
      matrix_gain(device, verdict.precision.empty() ? arithmetic_of(shape) : verdict.precision, advice.target);
}

}  // namespace

u32 dimension_unit(const std::string& arithmetic) {
  if (arithmetic == "fp16" || arithmetic == "bf16") return 8;
  if (arithmetic == "int8" || arithmetic == "fp8") return 16;
  if (arithmetic == "fp4") return 32;
  return arithmetic == "tf32" || arithmetic == "fp32" ? 4 : 0;
}

MatrixAdvice advise(const LibraryShape& shape, u32 major, u32 minor) {
  MatrixAdvice advice;
  const std::string arithmetic = arithmetic_of(shape);
  if (arithmetic.empty() || major == 0) return advice;
  advice.target = arithmetic == "fp32" ? "tf32" : arithmetic;
  advice.eligible = has_matrix_units(major, minor, advice.target);
  const bool matmul = shape.kind == LibraryKind::Matmul;
  if (matmul && (shape.m <= 1 || shape.n <= 1 || shape.k <= 1)) advice.eligible = false;
  if (!*advice.eligible) return advice;
  if (arithmetic == "fp32") {
    advice.reason = "math mode";
  } else {
    advice.reason = matmul ? matmul_reason(shape, arithmetic) : convolution_reason(shape, arithmetic);
  }
  return advice;
}

double matrix_gain(const Device& device, const std::string& arithmetic, const std::string& target) {
  const u32 major = device.capability_major, minor = device.capability_minor;
  const double fp32 = peak_per_cycle(major, minor, "fp32");
  const double matrix = peak_per_cycle(major, minor, target);
  double now = fp32;
  if (arithmetic == "fp16" || arithmetic == "bf16") now = 2 * fp32;   // two in one instruction
  if (arithmetic == "int8") now = 4 * fp32;                           // four in one
  if (arithmetic == "fp64") now = major == 10 ? matrix : matrix / 2;  // Blackwell's matrix units are no faster in it
  return matrix > now && now > 0 ? 1 - now / matrix : 0;
}

TensorCoreVerdict tensor_core_verdict(const ProcessTrace& process, u32 kernel, const Device* device) {
  TensorCoreVerdict verdict;
  const u32 index = process.kernels[kernel].shape.function;
  if (index == kNone) return verdict;
  const Function& function = process.functions[index];
  const KernelCode* code = code_on(function, device);
  verdict.used = uses_tensor_cores(code);
  verdict.kind = tensor_core_kind(code);
  verdict.precision = code_precision(code);
  verdict.no_arithmetic = code != nullptr && (code->flags & (kCodeScanned | kCodePtxOnly)) != 0 &&
                          verdict.used == false && code->fp64 + code->fp32 + code->fp16 + code->bf16 == 0;
  const auto uses = library_uses_of_kernel(process, kernel);
  // Of several calls the one that it ran longest for speaks.
  const LibraryUse* most = nullptr;
  for (const LibraryUse& use : uses) {
    const LibraryKind kind = process.library.rows[use.row].shape.kind;
    if (kind != LibraryKind::Matmul && kind != LibraryKind::Convolution) continue;
    if (!most || use.device_ns > most->device_ns) most = &use;
  }
  if (most == nullptr) {
    if (!uses.empty()) verdict.call = library_call_name(process, process.library.rows[uses.front().row]);
    judge_by_code(function, device, verdict);
    return verdict;
  }
  const LibraryRow& row = process.library.rows[most->row];
  verdict.call = library_call_name(process, row);
  if (verdict.precision.empty() && verdict.used != false) {
    verdict.precision = arithmetic_of(row.shape);
    verdict.precision_by_call = !verdict.precision.empty();
  }
  const Category category = categorize(name_of(function), evidence_of(function)).category;
  const bool helper = category != Category::Other && !multiplies_matrices(name_of(function), category);
  if (device == nullptr || (helper && verdict.used != true)) {  // what a call launches beside its product
    judge_by_code(function, device, verdict);
  } else {
    judge_by_call(row.shape, *device, verdict);
  }
  return verdict;
}

void for_each_judged(const ProcessTrace& process, const std::function<void(const JudgedKernel&)>& visit) {
  for (u32 k = 0; k < process.kernels.size(); ++k) {
    const KernelLaunches& group = process.kernels[k];
    const u64 executions = group.executions();
    if (executions == 0 || group.shape.function == kNone) continue;
    const i32 ordinal = group.shape.context == kNone ? -1 : process.contexts[group.shape.context].device;
    const Device* device = DeviceMap::facts(process, ordinal);
    visit({process, k, device, executions, group.times.durations.sum(), tensor_core_verdict(process, k, device)});
  }
}

void for_each_judged(const LoadedRun& run, const std::function<void(const JudgedKernel&)>& visit) {
  for (const ProcessTrace& process : run.processes) for_each_judged(process, visit);
}

PrecisionTimes precision_times(const LoadedRun& run) {
  PrecisionTimes times;
  for_each_judged(run, [&times](const JudgedKernel& each) {
    if (each.nanos == 0) return;
    if (each.verdict.used) times.judged_ns += each.nanos;
    if (each.verdict.used == true) times.tensor_core_ns += each.nanos;
    if (each.verdict.no_arithmetic) times.none_ns += each.nanos;
    if (!each.verdict.precision.empty()) times.by_precision[each.verdict.precision] += each.nanos;
    if (each.verdict.no_arithmetic || !each.verdict.precision.empty()) times.known_ns += each.nanos;
  });
  return times;
}

}  // namespace gputrace
