#include <cuda_runtime_api.h>

#include "simgpu/runtime/life/core.h"

using namespace simgpu::runtime;

extern "C" cudaError_t cudaGetLastError() { return last_error(true); }

extern "C" cudaError_t cudaPeekAtLastError() { return last_error(false); }

// Over the number: a toolkit newer than the list has errors that it lacks.
extern "C" const char* cudaGetErrorName(cudaError_t error) {
  switch (static_cast<int>(error)) {
#define GT_ERROR(name, text) \
  case name:                 \
    return #name;
#include "simgpu/runtime/life/errors.def"
#undef GT_ERROR
  }
  return "unrecognized error code";
}

extern "C" const char* cudaGetErrorString(cudaError_t error) {
  switch (static_cast<int>(error)) {
#define GT_ERROR(name, text) \
  case name:                 \
    return text;
#include "simgpu/runtime/life/errors.def"
#undef GT_ERROR
  }
  return "unrecognized error code";
}
