// cuBLAS has most functions in four types, and each of them twice: sizes of 32 bits, and `_64`.
#pragma once

#include <cstdint>

#define GT_WIDTHS(macro, name, ...) \
  macro(name, int __VA_OPT__(, ) __VA_ARGS__) macro(name##_64, int64_t __VA_OPT__(, ) __VA_ARGS__)
#define GT_TYPES(macro, function, tail)                \
  GT_WIDTHS(macro, cublasS##function##tail, float)     \
  GT_WIDTHS(macro, cublasD##function##tail, double)    \
  GT_WIDTHS(macro, cublasC##function##tail, cuComplex) \
  GT_WIDTHS(macro, cublasZ##function##tail, cuDoubleComplex)

namespace simlibs {

// The least leading dimension of so many rows.
inline long long least_ld(long long rows) { return rows > 1 ? rows : 1; }

}  // namespace simlibs
