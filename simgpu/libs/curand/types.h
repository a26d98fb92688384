// The types and numbers of cuRAND's documented interface that the stand-in uses. With SIMLIBS_VENDOR_HEADERS the vendor's
// header takes their place, and the compiler holds every function that we define against its declaration.
#pragma once

#if defined(SIMLIBS_VENDOR_HEADERS)
#include <curand.h>
#else
#include <driver_types.h>
#include <library_types.h>

#include <cstddef>

using curandGenerator_t = struct curandGenerator_st*;

enum curandStatus_t : int {
  CURAND_STATUS_SUCCESS = 0,
  CURAND_STATUS_NOT_INITIALIZED = 101,
  CURAND_STATUS_TYPE_ERROR = 103,
  CURAND_STATUS_OUT_OF_RANGE = 104,
  CURAND_STATUS_LENGTH_NOT_MULTIPLE = 105,
  CURAND_STATUS_LAUNCH_FAILURE = 201,
  CURAND_STATUS_INITIALIZATION_FAILED = 203
};
enum curandRngType_t : int { CURAND_RNG_PSEUDO_DEFAULT = 100, CURAND_RNG_QUASI_DEFAULT = 200 };
enum curandOrdering_t : int { CURAND_ORDERING_PSEUDO_BEST = 100 };
#endif
