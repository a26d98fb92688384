#include "simgpu/libs/cusolver/solver.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "simgpu/libs/common/launch.h"

namespace simlibs {
namespace {

constexpr long long kPanel = 32;

bool lives(cusolverDnHandle_t handle) { return handle && handle->lives == cusolverDnContext::kLives; }

}  // namespace

cusolverStatus_t run(cusolverDnHandle_t handle, const Job& job) {
  if (!lives(handle)) return CUSOLVER_STATUS_NOT_INITIALIZED;
  if (job.m < 0 || job.n < 0 || job.batch < 0 || !job.type) return CUSOLVER_STATUS_INVALID_VALUE;
  // The kernel would write it; the simulated device's memory is where its address says.
  if (job.info) std::memset(job.info, 0, static_cast<size_t>(std::max(job.batch, 1LL)) * sizeof(int));
  if (job.m == 0 || job.n == 0 || job.batch == 0) return CUSOLVER_STATUS_SUCCESS;
  const std::string name = std::string(job.routine) + "_kernel";
  LaunchShape shape;
  shape.grid.x = tiles(job.m, kPanel);
  shape.grid.y = static_cast<unsigned>(std::min(job.batch, 65535LL));
  shape.block.x = 256;
  KernelArguments arguments;
  arguments.a = arguments.b = job.matrix;
  arguments.c = const_cast<void*>(job.matrix);
  arguments.m = job.m;
  arguments.n = job.n;
  const std::string symbol =
      "_Z" + std::to_string(name.size()) + name + "I" + job.type + "EvN7simlibs15KernelArgumentsE";
  return launch(symbol.c_str(), handle->stream, shape, arguments) == CUDA_SUCCESS ? CUSOLVER_STATUS_SUCCESS
                                                                                  : CUSOLVER_STATUS_EXECUTION_FAILED;
}

cusolverStatus_t tell_size(cusolverDnHandle_t handle, long long m, long long n, int* elements) {
  if (!lives(handle)) return CUSOLVER_STATUS_NOT_INITIALIZED;
  if (m < 0 || n < 0 || !elements) return CUSOLVER_STATUS_INVALID_VALUE;
  *elements = static_cast<int>(std::max(m, n) * kPanel + kPanel * kPanel);
  return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t tell_bytes(cusolverDnHandle_t handle, long long m, long long n, cudaDataType type, size_t* device,
                            size_t* host) {
  int elements = 0;
  const cusolverStatus_t result = tell_size(handle, m, n, &elements);
  if (result != CUSOLVER_STATUS_SUCCESS) return result;
  if (!mangled(type) || !device || !host) return CUSOLVER_STATUS_INVALID_VALUE;
  *device = static_cast<size_t>(elements) * (type == CUDA_C_64F ? 16 : type == CUDA_R_32F ? 4 : 8);
  *host = 0;
  return CUSOLVER_STATUS_SUCCESS;
}

const char* mangled(cudaDataType type) {
  switch (type) {
    case CUDA_R_32F:
      return "f";
    case CUDA_R_64F:
      return "d";
    case CUDA_C_32F:
      return "6float2";
    case CUDA_C_64F:
      return "7double2";
    default:
      return nullptr;
  }
}

}  // namespace simlibs
