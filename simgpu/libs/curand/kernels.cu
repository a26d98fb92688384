// One kernel for each distribution and type.
#include "simgpu/libs/kernels/bodies.cuh"

#define GT_GENERATOR(name)                                                  \
  template <typename T>                                                     \
  __global__ void __launch_bounds__(256) name(simlibs::KernelArguments p) { \
    simlibs::map_elements<T>(p);                                            \
  }
GT_GENERATOR(generate_seed_pseudo)
GT_GENERATOR(gen_sequenced_pseudo)
GT_GENERATOR(gen_normal_pseudo)
template __global__ void generate_seed_pseudo<float>(simlibs::KernelArguments);
template __global__ void gen_sequenced_pseudo<unsigned>(simlibs::KernelArguments);
template __global__ void gen_sequenced_pseudo<float>(simlibs::KernelArguments);
template __global__ void gen_sequenced_pseudo<double>(simlibs::KernelArguments);
template __global__ void gen_normal_pseudo<float>(simlibs::KernelArguments);
template __global__ void gen_normal_pseudo<double>(simlibs::KernelArguments);
