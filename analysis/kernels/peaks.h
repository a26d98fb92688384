// What a device could compute at most: dense floating-point (or integer) operations a second, a multiply-add counting
// two.
#pragma once

#include <string_view>

#include "analysis/facts/facts.h"

namespace gputrace {

// Operations of one multiprocessor in one clock cycle, by the matrix units where they take this precision, else by the
// ordinary ones. `precision` in the words of `kernels`: fp64 tf32 fp32 bf16 fp16 fp8 fp6 fp4 int8 int4. 0: not known,
// or the chip cannot.
//
// Sources: CUDA C++ Programming Guide, "Arithmetic Instructions" (results per clock cycle and SM) for fp32 and fp64;
// the architecture white papers of V100, T4, A100, GA102, Orin, AD102, H100 and Blackwell for the matrix units (their
// dense TFLOPS / SMs / boost clock; rates with fp32 accumulation of the full product line: GeForce boards run fp16 at
// half of them).
u32 peak_per_cycle(u32 major, u32 minor, std::string_view precision);

// SMs × largest clock × the above. 0: not known.
double peak_flops(const Device& device, std::string_view precision);

}  // namespace gputrace
