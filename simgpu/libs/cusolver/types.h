// The types and numbers of cuSOLVER's documented interface (dense) that the stand-in uses. With SIMLIBS_VENDOR_HEADERS the
// vendor's header takes their place, and the compiler holds every function that we define against its declaration.
#pragma once

#if defined(SIMLIBS_VENDOR_HEADERS)
#include <cusolverDn.h>
#else
#include <cuComplex.h>
#include <driver_types.h>
#include <library_types.h>

#include <cstdint>

struct cusolverDnContext;
struct cusolverDnParams;
struct syevjInfo;
struct gesvdjInfo;
using cusolverDnHandle_t = cusolverDnContext*;
using cusolverDnParams_t = cusolverDnParams*;
using syevjInfo_t = syevjInfo*;
using gesvdjInfo_t = gesvdjInfo*;

enum cusolverStatus_t : int {
  CUSOLVER_STATUS_SUCCESS = 0,
  CUSOLVER_STATUS_NOT_INITIALIZED = 1,
  CUSOLVER_STATUS_ALLOC_FAILED = 2,
  CUSOLVER_STATUS_INVALID_VALUE = 3,
  CUSOLVER_STATUS_EXECUTION_FAILED = 6,
  CUSOLVER_STATUS_NOT_SUPPORTED = 9
};
enum cusolverEigMode_t : int { CUSOLVER_EIG_MODE_NOVECTOR = 0, CUSOLVER_EIG_MODE_VECTOR = 1 };
enum cusolverAlgMode_t : int { CUSOLVER_ALG_0 = 0 };
enum cusolverDnFunction_t : int { CUSOLVERDN_GETRF = 0 };
enum cusolverDeterministicMode_t : int {
  CUSOLVER_DETERMINISTIC_RESULTS = 1,
  CUSOLVER_ALLOW_NON_DETERMINISTIC_RESULTS = 2
};
enum cublasFillMode_t : int { CUBLAS_FILL_MODE_LOWER = 0, CUBLAS_FILL_MODE_UPPER = 1 };
enum cublasSideMode_t : int { CUBLAS_SIDE_LEFT = 0, CUBLAS_SIDE_RIGHT = 1 };
enum cublasOperation_t : int { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1, CUBLAS_OP_C = 2 };
#endif
