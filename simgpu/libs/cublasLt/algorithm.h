// Which of gemm_choice.h's kernels a cuBLASLt product may take.
#pragma once

#include "simgpu/libs/cublasLt/descriptor.h"
#include "simgpu/libs/gemm/gemm_choice.h"

namespace simlibs {

struct LtProduct {
  const LtMatmulDesc& description;
  const LtLayout &a, &b, &c, &d;
};
// Fills sizes, operations, batch and math; not what memory it works on.
cublasStatus_t gemm_of(const LtProduct& product, Gemm& gemm);

}  // namespace simlibs
