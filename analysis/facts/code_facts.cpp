#include "analysis/facts/code_facts.h"

#include <algorithm>

#include "analysis/facts/facts.h"
#include "trace/schema.h"

namespace gputrace {
namespace {

// As a driver picks: exactly this chip's own code, its family's, the nearest of its generation, else PTX. 0: not at
// all.
u32 fitness(const KernelCode& code, u32 device) {
  const bool generation = code.architecture / 10 == device / 10;
  if (code.flags & kCodePtxOnly) {
    if (code.flags & kCodeArchitectureVariant) return code.architecture == device ? 1 : 0;
    if (code.flags & kCodeFamilyVariant) return generation && code.architecture <= device ? 1 : 0;
    return code.architecture <= device ? 1 : 0;
  }
  if (!generation || code.architecture > device) return 0;
  if (code.flags & kCodeArchitectureVariant) return code.architecture == device ? 100000 : 0;
  return 10 + code.architecture * 4 + ((code.flags & kCodeFamilyVariant) ? 1 : 0);
}

template <typename Value>
void fill(i32& known, const std::vector<KernelCode>& code, Value value) {
  if (known >= 0) return;
  const i32 first = value(code.front());
  const bool same = std::all_of(code.begin(), code.end(), [&](const KernelCode& c) { return value(c) == first; });
  if (same) known = first;
}

// Whether its floating-point mix is known: PTX tells that of its text.
bool has_mix(const KernelCode& code) { return (code.flags & (kCodeScanned | kCodePtxOnly)) != 0; }

// Before Volta there were no matrix instructions, whatever the code is.
constexpr u32 kFirstWithTensorCores = 70;

bool is_read(const KernelCode& code) {
  return (code.flags & (kCodeScanned | kCodePtxOnly)) != 0 || code.architecture < kFirstWithTensorCores;
}

}  // namespace

void CodeTable::kernel(const CodeKernel& record) {
  const std::string_view name = texts_.find(record.name);
  if (name.empty()) return;
  KernelCode code;
  code.architecture = record.architecture;
  code.flags = record.flags;
  code.mma = record.mma;
  code.precision = record.precision;
  code.instructions = record.instructions;
  code.mma_instructions = record.mma_instructions;
  code.fp64 = record.fp64;
  code.fp32 = record.fp32;
  code.fp16 = record.fp16;
  code.bf16 = record.bf16;
  code.registers = record.registers;
  code.static_shared = record.static_shared_bytes;
  code.local_bytes = record.local_bytes;
  code.max_threads = record.max_threads;
  images_[record.image][std::string(name)].push_back(code);
}

void CodeTable::link(const std::vector<ModuleInstance>& modules, std::vector<Function>& functions) const {
  for (Function& function : functions) {
    if (function.module == kNone || function.symbol.empty()) continue;
    for (const u64 image : modules[function.module].images) {
      const auto kernels = images_.find(image);
      if (kernels == images_.end()) continue;
      const auto found = kernels->second.find(function.symbol);
      if (found == kernels->second.end()) continue;
      function.code.insert(function.code.end(), found->second.begin(), found->second.end());
    }
    if (function.code.empty()) continue;
    fill(function.registers, function.code, [](const KernelCode& code) { return code.registers; });
    fill(function.static_shared, function.code, [](const KernelCode& code) { return code.static_shared; });
    fill(function.local_bytes, function.code, [](const KernelCode& code) { return code.local_bytes; });
  }
}

const KernelCode* code_on(const Function& function, const Device* device) {
  if (function.code.empty()) return nullptr;
  if (device == nullptr || device->capability_major == 0) {
    return function.code.size() == 1 ? &function.code.front() : nullptr;
  }
  const u32 capability = device->capability_major * 10 + device->capability_minor;
  const KernelCode* best = nullptr;
  u32 best_fitness = 0;
  for (const KernelCode& code : function.code) {
    const u32 fits = fitness(code, capability);
    if (fits > best_fitness || (fits != 0 && fits == best_fitness && code.architecture > best->architecture)) {
      best = &code;
      best_fitness = fits;
    }
  }
  return best;
}

std::optional<bool> uses_tensor_cores(const KernelCode* code) {
  if (code == nullptr || !is_read(*code)) return std::nullopt;
  if (code->mma != 0) return true;
  if (code->flags & kCodeIncomplete) return std::nullopt;
  return false;
}

std::string tensor_core_kind(const KernelCode* code) {
  if (code == nullptr) return "";
  std::string kinds;
  const EnumSchema& words = schema_of(MmaClass{});
  for (u32 i = words.value_count; i-- > 0;) {  // the newer generation's first
    if ((code->mma & words.values[i].number) == 0) continue;
    if (!kinds.empty()) kinds += '+';
    kinds += words.values[i].word;
  }
  return kinds;
}

std::string code_precision(const KernelCode* code) {
  if (code == nullptr) return "";
  if (code->mma != 0) {
    if (code->flags & kCodePrecisionPart) return "";
    const EnumSchema& words = schema_of(PrecisionBits{});
    for (u32 i = 0; i < words.value_count; ++i) {
      if (code->precision & words.values[i].number) return words.values[i].word;
    }
    return "";
  }
  if (!has_mix(*code) || (code->flags & kCodeIncomplete) != 0) return "";
  const std::pair<u32, const char*> counts[] = {
      {code->fp64, "fp64"}, {code->fp32, "fp32"}, {code->bf16, "bf16"}, {code->fp16, "fp16"}};
  const auto most = std::max_element(std::begin(counts), std::end(counts),
                                     [](const auto& a, const auto& b) { return a.first < b.first; });
  return most->first == 0 ? "" : most->second;
}

}  // namespace gputrace
