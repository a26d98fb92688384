// What the ranks' numbers come to.
#pragma once

#include <cstddef>

#include "simgpu/libs/nccl/types.h"

namespace simlibs {

// 0: no such type.
size_t size_of(ncclDataType_t type);
// As kernels are named: f32, bf16, u8 …
const char* word_of(ncclDataType_t type);

struct Reduction {
  ncclRedOp_t op = ncclSum;  // one of the five
  bool scaled = false;       // every rank's numbers are multiplied by `factor` first (ncclRedOpCreatePreMulSum)
  double factor = 1;
};

// The value of a scalar of the type.
double scalar_of(ncclDataType_t type, const void* scalar);

// `sum` takes in one more rank's numbers; `first`: it holds none yet. 8 and 16 bit floats are rounded after each step, as
// by a ring.
void take_in(ncclDataType_t type, const Reduction& how, bool first, void* sum, const void* numbers, size_t count);
// What is left to do once all are in: the mean's division.
void finish(ncclDataType_t type, const Reduction& how, int ranks, void* sum, size_t count);

}  // namespace simlibs
