#pragma once

#include <cuda.h>

#include <cstdio>
#include <cstdlib>

// Three kernels that compute nothing; the driver compiles them.
inline constexpr char ptx_text[] = R"(
.version 7.0
.target sm_75
.address_size 64
.visible .entry first(.param .u64 data, .param .u32 count) { ret; }
.visible .entry second(.param .u64 data, .param .u32 count) { ret; }
.visible .entry third() { ret; }
)";

inline void must(CUresult result, const char* call, int line) {
  if (result != CUDA_SUCCESS) {
    std::fprintf(stderr, "line %d: %s: %d\n", line, call, static_cast<int>(result));
    std::exit(70);
  }
}

#define MUST(call) must(call, #call, __LINE__)
