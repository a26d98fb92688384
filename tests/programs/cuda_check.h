#pragma once

#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

// A runtime call that must succeed: otherwise one line on stderr and exit code 70.
inline void check(cudaError_t error, const char* call, int line) {
  if (error != cudaSuccess) {
    std::fprintf(stderr, "line %d: %s: %s (%d)\n", line, call, cudaGetErrorString(error), static_cast<int>(error));
    std::exit(70);
  }
}

#define CHECK(call) check((call), #call, __LINE__)
