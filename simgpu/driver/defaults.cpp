#include "simgpu/driver/memory.h"
namespace simgpu {
__attribute__((weak)) CUresult free_pool_memory(Call&, const Allocation&) { return CUDA_ERROR_INVALID_VALUE; }
}
