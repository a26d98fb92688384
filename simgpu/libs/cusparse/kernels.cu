// One kernel for each operation and type, in the library's namespace.
#include <cuComplex.h>

#include "simgpu/libs/kernels/bodies.cuh"

namespace cusparse {

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

#define GT_OPERATION(name)                                                           \
  template <typename T>                                                              \
  __global__ void __launch_bounds__(128) name##_kernel(simlibs::KernelArguments p) { \
    simlibs::reduce_elements<typename RealOf<T>::Type>(p);                           \
  }                                                                                  \
  template __global__ void name##_kernel<float>(simlibs::KernelArguments);           \
  template __global__ void name##_kernel<double>(simlibs::KernelArguments);          \
  template __global__ void name##_kernel<cuComplex>(simlibs::KernelArguments);       \
  template __global__ void name##_kernel<cuDoubleComplex>(simlibs::KernelArguments);

GT_OPERATION(csrmv_v3)
GT_OPERATION(csrmm_alg2)
GT_OPERATION(sddmm_csr)
GT_OPERATION(spgemm)
GT_OPERATION(spgemm_copy)
GT_OPERATION(spsv_analysis)
GT_OPERATION(spsv_solve)
GT_OPERATION(spsm_analysis)
GT_OPERATION(spsm_solve)
GT_OPERATION(sparse_to_dense)
GT_OPERATION(coo2csr)
GT_OPERATION(csr2coo)

}  // namespace cusparse
