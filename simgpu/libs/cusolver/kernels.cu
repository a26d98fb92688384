// One kernel for each routine and type, named after the routine.
#include <cuComplex.h>

#include "simgpu/libs/kernels/bodies.cuh"

template <typename T>
struct RealOf {
  using Type = T;
};
template <>
struct RealOf<cuComplex> {
  using Type = float;
};
template <>
struct RealOf<cuDoubleComplex> {
  using Type = double;
};

#define GT_ROUTINE(name)                                                             \
  template <typename T>                                                              \
  __global__ void __launch_bounds__(256) name##_kernel(simlibs::KernelArguments p) { \
    simlibs::reduce_elements<typename RealOf<T>::Type>(p);                           \
  }                                                                                  \
  template __global__ void name##_kernel<float>(simlibs::KernelArguments);           \
  template __global__ void name##_kernel<double>(simlibs::KernelArguments);          \
  template __global__ void name##_kernel<cuComplex>(simlibs::KernelArguments);       \
  template __global__ void name##_kernel<cuDoubleComplex>(simlibs::KernelArguments);

GT_ROUTINE(potrf)
GT_ROUTINE(potrs)
GT_ROUTINE(potri)
GT_ROUTINE(getrf)
GT_ROUTINE(getrs)
GT_ROUTINE(sytrf)
GT_ROUTINE(sytrs)
GT_ROUTINE(geqrf)
GT_ROUTINE(orgqr)
GT_ROUTINE(ormqr)
GT_ROUTINE(sytrd)
GT_ROUTINE(syevd)
GT_ROUTINE(syevj)
GT_ROUTINE(geev)
GT_ROUTINE(gesvd)
GT_ROUTINE(gesvdj)
GT_ROUTINE(gesvda)
