// The routines whose names carry their type.
#include "simgpu/libs/cusolver/solver.h"

using namespace simlibs;

#define GT_DEFINE(name, parameters, ...) \
  extern "C" __attribute__((visibility("default"))) cusolverStatus_t name parameters { __VA_ARGS__; }

#define GT_SOLVER(real, complex, parameters, ...) GT_DEFINE(cusolverDnS##real, parameters, __VA_ARGS__)
#define T float
#define R float
#define W "f"
#include "simgpu/libs/cusolver/routines.def"
#undef GT_SOLVER
#undef T
#undef R
#undef W
#define GT_SOLVER(real, complex, parameters, ...) GT_DEFINE(cusolverDnD##real, parameters, __VA_ARGS__)
#define T double
#define R double
#define W "d"
#include "simgpu/libs/cusolver/routines.def"
#undef GT_SOLVER
#undef T
#undef R
#undef W
#define GT_SOLVER(real, complex, parameters, ...) GT_DEFINE(cusolverDnC##complex, parameters, __VA_ARGS__)
#define T cuComplex
#define R float
#define W "6float2"
#include "simgpu/libs/cusolver/routines.def"
#undef GT_SOLVER
#undef T
#undef R
#undef W
#define GT_SOLVER(real, complex, parameters, ...) GT_DEFINE(cusolverDnZ##complex, parameters, __VA_ARGS__)
#define T cuDoubleComplex
#define R double
#define W "7double2"
#include "simgpu/libs/cusolver/routines.def"
#undef GT_SOLVER
#undef T
#undef R
#undef W
