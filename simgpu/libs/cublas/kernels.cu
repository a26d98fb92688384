// cuBLAS's kernels: the products, and what is none.
#include "simgpu/libs/gemm/gemm_kernels.cu"

#define GT_VECTOR_KERNEL(name, symbol, body, threads)                     \
  SIMLIBS_KERNEL(symbol##fEvPKvl, threads, simlibs::body<float>(p))       \
  SIMLIBS_KERNEL(symbol##dEvPKvl, threads, simlibs::body<double>(p))      \
  SIMLIBS_KERNEL(symbol##6float2EvPKvl, threads, simlibs::body<float>(p)) \
  SIMLIBS_KERNEL(symbol##7double2EvPKvl, threads, simlibs::body<double>(p))
#include "simgpu/libs/cublas/vector_kernels.def"
