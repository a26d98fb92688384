// Kernels of a routine that has one for each of the four types of linear algebra.
#pragma once

#include <cuComplex.h>

#include "simgpu/libs/kernels/bodies.cuh"

namespace simlibs {

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

}  // namespace simlibs

// name_kernel<float>, <double>, <cuComplex>, <cuDoubleComplex>, of blocks of at most so many threads.
#define SIMLIBS_TYPED_KERNELS(name, threads)                                             \
  template <typename T>                                                                  \
  __global__ void __launch_bounds__(threads) name##_kernel(simlibs::KernelArguments p) { \
    simlibs::reduce_elements<typename simlibs::RealOf<T>::Type>(p);                      \
  }                                                                                      \
  template __global__ void name##_kernel<float>(simlibs::KernelArguments);               \
  template __global__ void name##_kernel<double>(simlibs::KernelArguments);              \
  template __global__ void name##_kernel<cuComplex>(simlibs::KernelArguments);           \
  template __global__ void name##_kernel<cuDoubleComplex>(simlibs::KernelArguments);
