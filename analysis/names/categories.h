// Which kind of work a kernel does, by rule: on its name, on the library call that launched it, on its machine code.
// The rules are one table, categories.def.
#pragma once

#include <string>
#include <vector>

#include "analysis/names/kernel_names.h"

namespace gputrace {

enum class Category { Gemm, Convolution, Attention, Reduction, Elementwise, Copy, Collective, SortScan, Random, Other };
inline constexpr std::size_t kCategories = 10;
// "gemm", "convolution", "attention", "normalization/reduction", …, "other".
const char* category_name(Category category);

// What is known of a kernel besides its name; what is not known is left out.
struct KernelEvidence {
  std::string library;  // of the innermost library call around the launch: "cuBLAS", "cuDNN convolution", "NCCL"
  bool has_mma = false;
};

struct CategoryChoice {
  Category category = Category::Other;
  std::string rule;  // "name has \"gemm\""; what decided, for people
};
CategoryChoice categorize(const KernelName& name, const KernelEvidence& evidence = {});

// Whether it does nothing but move a tensor between channels first and channels last, as cuDNN does around kernels of its own that want
// the other one (nchwToNhwcKernel, nhwcToNchwKernel). Folding and padding, which no layout of the program's would save, are none.
bool only_converts_layout(const KernelName& name);

}  // namespace gputrace
