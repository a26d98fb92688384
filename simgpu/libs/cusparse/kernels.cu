// One kernel for each operation and type, in the library's namespace.
#include "simgpu/libs/kernels/typed_kernels.cuh"

namespace cusparse {

SIMLIBS_TYPED_KERNELS(csrmv_v3, 128)
SIMLIBS_TYPED_KERNELS(csrmm_alg2, 128)
SIMLIBS_TYPED_KERNELS(sddmm_csr, 128)
SIMLIBS_TYPED_KERNELS(spgemm, 128)
SIMLIBS_TYPED_KERNELS(spgemm_copy, 128)
SIMLIBS_TYPED_KERNELS(spsv_analysis, 128)
SIMLIBS_TYPED_KERNELS(spsv_solve, 128)
SIMLIBS_TYPED_KERNELS(spsm_analysis, 128)
SIMLIBS_TYPED_KERNELS(spsm_solve, 128)
SIMLIBS_TYPED_KERNELS(sparse_to_dense, 128)
SIMLIBS_TYPED_KERNELS(coo2csr, 128)
SIMLIBS_TYPED_KERNELS(csr2coo, 128)

}  // namespace cusparse
