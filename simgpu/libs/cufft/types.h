// The types and numbers of cuFFT's documented interface that the stand-in uses. With SIMLIBS_VENDOR_HEADERS the vendor's
// header takes their place, and the compiler holds every function that we define against its declaration.
#pragma once

#if defined(SIMLIBS_VENDOR_HEADERS)
#include <cufft.h>
#include <cufftXt.h>
#else
#include <cuComplex.h>
#include <driver_types.h>
#include <library_types.h>

using cufftReal = float;
using cufftDoubleReal = double;
using cufftComplex = cuComplex;
using cufftDoubleComplex = cuDoubleComplex;
using cufftHandle = int;

enum cufftResult : int {
  CUFFT_SUCCESS = 0,
  CUFFT_INVALID_PLAN = 1,
  CUFFT_ALLOC_FAILED = 2,
  CUFFT_INVALID_TYPE = 3,
  CUFFT_INVALID_VALUE = 4,
  CUFFT_EXEC_FAILED = 6,
  CUFFT_SETUP_FAILED = 7,
  CUFFT_INVALID_SIZE = 8,
  CUFFT_NO_WORKSPACE = 13,
  CUFFT_NOT_SUPPORTED = 16
};
enum cufftType : int {
  CUFFT_R2C = 0x2a,
  CUFFT_C2R = 0x2c,
  CUFFT_C2C = 0x29,
  CUFFT_D2Z = 0x6a,
  CUFFT_Z2D = 0x6c,
  CUFFT_Z2Z = 0x69
};
#endif
