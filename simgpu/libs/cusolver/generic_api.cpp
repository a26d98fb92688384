// Handles, and the routines that are told the type.
#include "simgpu/libs/common/launch.h"
#include "simgpu/libs/cusolver/solver.h"

using namespace simlibs;

#define CUSOLVER_ENTRY(name, parameters) \
  extern "C" __attribute__((visibility("default"))) cusolverStatus_t name parameters
#define GT_OBJECT(name, type)                                  \
  CUSOLVER_ENTRY(cusolverDnCreate##name, (type##_t * out)) {   \
    if (!out) return CUSOLVER_STATUS_INVALID_VALUE;            \
    *out = reinterpret_cast<type##_t>(new char);               \
    return CUSOLVER_STATUS_SUCCESS;                            \
  }                                                            \
  CUSOLVER_ENTRY(cusolverDnDestroy##name, (type##_t object)) { \
    delete reinterpret_cast<char*>(object);                    \
    return CUSOLVER_STATUS_SUCCESS;                            \
  }

CUSOLVER_ENTRY(cusolverDnCreate, (cusolverDnHandle_t * out)) {
  if (!out) return CUSOLVER_STATUS_INVALID_VALUE;
  if (enter_context() != CUDA_SUCCESS) return CUSOLVER_STATUS_NOT_INITIALIZED;
  *out = new cusolverDnContext;
  return CUSOLVER_STATUS_SUCCESS;
}
CUSOLVER_ENTRY(cusolverDnDestroy, (cusolverDnHandle_t handle)) {
  if (!handle || handle->lives != cusolverDnContext::kLives) return CUSOLVER_STATUS_NOT_INITIALIZED;
  handle->lives = 0;
  delete handle;
  return CUSOLVER_STATUS_SUCCESS;
}
CUSOLVER_ENTRY(cusolverDnSetStream, (cusolverDnHandle_t handle, cudaStream_t stream)) {
  if (!handle || handle->lives != cusolverDnContext::kLives) return CUSOLVER_STATUS_NOT_INITIALIZED;
  handle->stream = reinterpret_cast<CUstream>(stream);
  return CUSOLVER_STATUS_SUCCESS;
}
CUSOLVER_ENTRY(cusolverDnGetStream, (cusolverDnHandle_t handle, cudaStream_t* stream)) {
  if (!handle || handle->lives != cusolverDnContext::kLives) return CUSOLVER_STATUS_NOT_INITIALIZED;
  if (!stream) return CUSOLVER_STATUS_INVALID_VALUE;
  *stream = reinterpret_cast<cudaStream_t>(handle->stream);
  return CUSOLVER_STATUS_SUCCESS;
}
CUSOLVER_ENTRY(cusolverDnSetDeterministicMode, (cusolverDnHandle_t handle, cusolverDeterministicMode_t mode)) {
  if (!handle || handle->lives != cusolverDnContext::kLives) return CUSOLVER_STATUS_NOT_INITIALIZED;
  handle->deterministic = mode;
  return CUSOLVER_STATUS_SUCCESS;
}
CUSOLVER_ENTRY(cusolverDnGetDeterministicMode, (cusolverDnHandle_t handle, cusolverDeterministicMode_t* mode)) {
  if (!handle || handle->lives != cusolverDnContext::kLives) return CUSOLVER_STATUS_NOT_INITIALIZED;
  if (!mode) return CUSOLVER_STATUS_INVALID_VALUE;
  *mode = handle->deterministic;
  return CUSOLVER_STATUS_SUCCESS;
}
CUSOLVER_ENTRY(cusolverGetVersion, (int* version)) {
  if (!version) return CUSOLVER_STATUS_INVALID_VALUE;
  *version = 12000;
  return CUSOLVER_STATUS_SUCCESS;
}

GT_OBJECT(Params, cusolverDnParams)
GT_OBJECT(SyevjInfo, syevjInfo)
GT_OBJECT(GesvdjInfo, gesvdjInfo)
// Nothing is iterated here.
CUSOLVER_ENTRY(cusolverDnSetAdvOptions, (cusolverDnParams_t, cusolverDnFunction_t, cusolverAlgMode_t)) {
  return CUSOLVER_STATUS_SUCCESS;
}
CUSOLVER_ENTRY(cusolverDnXsyevjSetTolerance, (syevjInfo_t, double)) { return CUSOLVER_STATUS_SUCCESS; }
CUSOLVER_ENTRY(cusolverDnXsyevjSetMaxSweeps, (syevjInfo_t, int)) { return CUSOLVER_STATUS_SUCCESS; }
CUSOLVER_ENTRY(cusolverDnXsyevjSetSortEig, (syevjInfo_t, int)) { return CUSOLVER_STATUS_SUCCESS; }
CUSOLVER_ENTRY(cusolverDnXgesvdjSetTolerance, (gesvdjInfo_t, double)) { return CUSOLVER_STATUS_SUCCESS; }
CUSOLVER_ENTRY(cusolverDnXgesvdjSetMaxSweeps, (gesvdjInfo_t, int)) { return CUSOLVER_STATUS_SUCCESS; }
CUSOLVER_ENTRY(cusolverDnXgesvdjSetSortEig, (gesvdjInfo_t, int)) { return CUSOLVER_STATUS_SUCCESS; }

#define H cusolverDnHandle_t h, cusolverDnParams_t
#define FILL cublasFillMode_t
#define TYPE cudaDataType
#define SIZES size_t *device, size_t *host
#define WORK void*, size_t, void*, size_t
#define GT_SIZED(m, n) tell_bytes(h, m, n, type, device, host)
#define GT_RUN(routine, m, n, ...) run(h, {#routine, mangled(type), m, n, a, info __VA_OPT__(, ) __VA_ARGS__})

CUSOLVER_ENTRY(cusolverDnXpotrf_bufferSize, (H, FILL, int64_t n, TYPE type, const void*, int64_t, TYPE, SIZES)) {
  return GT_SIZED(n, n);
}

CUSOLVER_ENTRY(cusolverDnXpotrf, (H, FILL, int64_t n, TYPE type, void* a, int64_t, TYPE, WORK, int* info)) {
  return GT_RUN(potrf, n, n);
}

CUSOLVER_ENTRY(cusolverDnXpotrs,
               (H, FILL, int64_t n, int64_t, TYPE type, const void* a, int64_t, TYPE, void*, int64_t, int* info)) {
  return GT_RUN(potrs, n, n);
}
CUSOLVER_ENTRY(cusolverDnXgeqrf_bufferSize,
               (H, int64_t m, int64_t n, TYPE type, const void*, int64_t, TYPE, const void*, TYPE, SIZES)) {
  return GT_SIZED(m, n);
}

CUSOLVER_ENTRY(cusolverDnXgeqrf,
               (H, int64_t m, int64_t n, TYPE type, void* a, int64_t, TYPE, void*, TYPE, WORK, int* info)) {
  return GT_RUN(geqrf, m, n);
}

CUSOLVER_ENTRY(cusolverDnXgetrf_bufferSize, (H, int64_t m, int64_t n, TYPE type, const void*, int64_t, TYPE, SIZES)) {
  return GT_SIZED(m, n);
}

CUSOLVER_ENTRY(cusolverDnXgetrf,
               (H, int64_t m, int64_t n, TYPE type, void* a, int64_t, int64_t*, TYPE, WORK, int* info)) {
  return GT_RUN(getrf, m, n);
}

CUSOLVER_ENTRY(cusolverDnXgetrs, (H, cublasOperation_t, int64_t n, int64_t, TYPE type, const void* a, int64_t,
                                  const int64_t*, TYPE, void*, int64_t, int* info)) {
  return GT_RUN(getrs, n, n);
}
CUSOLVER_ENTRY(cusolverDnXsyevd_bufferSize, (H, cusolverEigMode_t, FILL, int64_t n, TYPE type, const void*, int64_t,
                                             TYPE, const void*, TYPE, SIZES)) {
  return GT_SIZED(n, n);
}

CUSOLVER_ENTRY(cusolverDnXsyevd, (H, cusolverEigMode_t, FILL, int64_t n, TYPE type, void* a, int64_t, TYPE, void*, TYPE,
                                  WORK, int* info)) {
  return GT_RUN(syevd, n, n);
}

CUSOLVER_ENTRY(cusolverDnXsyevBatched_bufferSize, (H, cusolverEigMode_t, FILL, int64_t n, TYPE type, const void*,
                                                   int64_t, TYPE, const void*, TYPE, SIZES, int64_t)) {
  return GT_SIZED(n, n);
}

CUSOLVER_ENTRY(cusolverDnXsyevBatched, (H, cusolverEigMode_t, FILL, int64_t n, TYPE type, void* a, int64_t, TYPE, void*,
                                        TYPE, WORK, int* info, int64_t batch)) {
  return GT_RUN(syevd, n, n, batch);
}

CUSOLVER_ENTRY(cusolverDnXgeev_bufferSize,
               (H, cusolverEigMode_t, cusolverEigMode_t, int64_t n, TYPE type, const void*, int64_t, TYPE, const void*,
                TYPE, const void*, int64_t, TYPE, const void*, int64_t, TYPE, SIZES)) {
  return GT_SIZED(n, n);
}

CUSOLVER_ENTRY(cusolverDnXgeev, (H, cusolverEigMode_t, cusolverEigMode_t, int64_t n, TYPE type, void* a, int64_t, TYPE,
                                 void*, TYPE, void*, int64_t, TYPE, void*, int64_t, TYPE, WORK, int* info)) {
  return GT_RUN(geev, n, n);
}

CUSOLVER_ENTRY(cusolverDnXgesvd_bufferSize,
               (H, signed char, signed char, int64_t m, int64_t n, TYPE type, const void*, int64_t, TYPE, const void*,
                TYPE, const void*, int64_t, TYPE, const void*, int64_t, TYPE, SIZES)) {
  return GT_SIZED(m, n);
}

CUSOLVER_ENTRY(cusolverDnXgesvd, (H, signed char, signed char, int64_t m, int64_t n, TYPE type, void* a, int64_t, TYPE,
                                  void*, TYPE, void*, int64_t, TYPE, void*, int64_t, TYPE, WORK, int* info)) {
  return GT_RUN(gesvd, m, n);
}

#undef H
#define H cusolverDnHandle_t h
CUSOLVER_ENTRY(cusolverDnXsytrs_bufferSize, (H, FILL, int64_t n, int64_t, TYPE type, const void*, int64_t,
                                             const int64_t*, TYPE, void*, int64_t, SIZES)) {
  return GT_SIZED(n, n);
}

CUSOLVER_ENTRY(cusolverDnXsytrs, (H, FILL, int64_t n, int64_t, TYPE type, const void* a, int64_t, const int64_t*, TYPE,
                                  void*, int64_t, WORK, int* info)) {
  return GT_RUN(sytrs, n, n);
}

#undef H
#undef FILL
#undef TYPE
#undef SIZES
#undef WORK
#undef GT_SIZED
#undef GT_RUN
