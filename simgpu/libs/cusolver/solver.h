// What every factorization and solution of the stand-in does: judge, launch one kernel named after the routine, say that
// all went well.
#pragma once

#include <cuda.h>

#include <cstddef>

#include "simgpu/libs/cusolver/types.h"

struct cusolverDnContext {
  static constexpr unsigned kLives = 0x736c7665;
  unsigned lives = kLives;  // a handle that was destroyed is not taken
  CUstream stream = nullptr;
  cusolverDeterministicMode_t deterministic = CUSOLVER_DETERMINISTIC_RESULTS;
};

namespace simlibs {

// An m × n matrix of a batch. `routine` is a literal, `type` as mangled: f, d, 6float2, 7double2.
struct Job {
  const char* routine;
  const char* type;
  long long m, n;
  const void* matrix;
  int* info;  // on the device, one for each of the batch; may be null
  long long batch = 1;
};
cusolverStatus_t run(cusolverDnHandle_t handle, const Job& job);
// A workspace of panels of 32 columns, in elements or bytes of that size.
cusolverStatus_t tell_size(cusolverDnHandle_t handle, long long m, long long n, int* elements);
cusolverStatus_t tell_bytes(cusolverDnHandle_t handle, long long m, long long n, cudaDataType type, size_t* device,
                            size_t* host);
// Null: a type that is no matrix's.
const char* mangled(cudaDataType type);

}  // namespace simlibs
