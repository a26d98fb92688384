#include <cstring>

#include "simgpu/runtime/life/registry.h"
#include "simgpu/runtime/life/streamed.h"

// Launching: <<<>>> as nvcc 13 compiles it, the documented calls, and host functions.
namespace simgpu::runtime {
namespace {

static_assert(sizeof(cudaLaunchAttribute) == sizeof(CUlaunchAttribute));

struct CallConfiguration {
  dim3 grid;
  dim3 block;
  std::size_t shared_bytes;
  cudaStream_t stream;
};

// <<<>>> pushes, the kernel's host stub pops; arguments that launch themselves nest.
struct ConfigurationStack {
  static constexpr int depth = 64;
  CallConfiguration entries[depth];
  int used;
};

ConfigurationStack& configurations() {
  static thread_local ConfigurationStack stack;
  return stack;
}

// nvcc's stub keeps the kernel in a static: a failed look-up must be reported by the launch that follows.
thread_local cudaError_t lookup_error = cudaErrorInvalidDeviceFunction;

// The driver has one code for every bad argument of a launch; the runtime tells a bad shape by its own.
CUresult shaped(CUresult result, dim3 grid, dim3 block) {
  if (result != CUDA_ERROR_INVALID_VALUE) {
    return result;
  }
  constexpr unsigned long long max_threads = 1024;
  const unsigned long long threads = 1ULL * block.x * block.y * block.z;
  const bool bad_block = threads == 0 || threads > max_threads || block.z > 64;
  const bool bad_grid =
      grid.x == 0 || grid.x > 0x7fffffffu || grid.y == 0 || grid.y > 65535 || grid.z == 0 || grid.z > 65535;
  return bad_block || bad_grid ? as_result(cudaErrorInvalidConfiguration) : result;
}

cudaError_t launch(Mode mode, CUkernel kernel, dim3 grid, dim3 block, void** args, std::size_t shared_bytes,
                   cudaStream_t stream) {
  return run([&] {
    const CUresult result =
        driver.cuLaunchKernel(mode, reinterpret_cast<CUfunction>(kernel), grid.x, grid.y, grid.z, block.x, block.y,
                              block.z, static_cast<unsigned>(shared_bytes), stream, args, static_cast<void**>(nullptr));
    return shaped(result, grid, block);
  });
}

cudaError_t launch_registered(Mode mode, cudaKernel_t kernel, dim3 grid, dim3 block, void** args,
                              std::size_t shared_bytes, cudaStream_t stream) {
  if (kernel != nullptr) {
    return launch(mode, kernel, grid, block, args, shared_bytes, stream);
  }
  const cudaError_t error = ready();
  return record(error != cudaSuccess ? error : lookup_error);
}

}  // namespace

cudaError_t streamed::cudaLaunchKernel(Mode mode, const void* func, dim3 grid, dim3 block, void** args,
                                       size_t shared_bytes, cudaStream_t stream) {
  CUkernel kernel = nullptr;
  const cudaError_t error = run([&] { return kernel_of(func, &kernel); });
  return error != cudaSuccess ? error : launch(mode, kernel, grid, block, args, shared_bytes, stream);
}

cudaError_t streamed::cudaLaunchCooperativeKernel(Mode mode, const void* func, dim3 grid, dim3 block, void** args,
                                                  size_t shared_bytes, cudaStream_t stream) {
  CUkernel kernel = nullptr;
  if (const cudaError_t error = run([&] { return kernel_of(func, &kernel); }); error != cudaSuccess) {
    return error;
  }
  return run([&] {
    const CUresult result =
        driver.cuLaunchCooperativeKernel(mode, reinterpret_cast<CUfunction>(kernel), grid.x, grid.y, grid.z, block.x,
                                         block.y, block.z, static_cast<unsigned>(shared_bytes), stream, args);
    return shaped(result, grid, block);
  });
}

CUlaunchConfig driver_config(const cudaLaunchConfig_t& config) {
  CUlaunchConfig out{};
  out.gridDimX = config.gridDim.x;
  out.gridDimY = config.gridDim.y;
  out.gridDimZ = config.gridDim.z;
  out.blockDimX = config.blockDim.x;
  out.blockDimY = config.blockDim.y;
  out.blockDimZ = config.blockDim.z;
  out.sharedMemBytes = static_cast<unsigned>(config.dynamicSmemBytes);
  out.hStream = config.stream;
  out.attrs = reinterpret_cast<CUlaunchAttribute*>(config.attrs);
  out.numAttrs = config.numAttrs;
  return out;
}

cudaError_t streamed::cudaLaunchKernelExC(Mode mode, const cudaLaunchConfig_t* config, const void* func, void** args) {
  if (config == nullptr) {
    return record(cudaErrorInvalidValue);
  }
  CUkernel kernel = nullptr;
  if (const cudaError_t error = run([&] { return kernel_of(func, &kernel); }); error != cudaSuccess) {
    return error;
  }
  const CUlaunchConfig driver_launch = driver_config(*config);
  return run([&] {
    const CUresult result = driver.cuLaunchKernelEx(mode, &driver_launch, reinterpret_cast<CUfunction>(kernel), args,
                                                    static_cast<void**>(nullptr));
    return shaped(result, config->gridDim, config->blockDim);
  });
}

cudaError_t streamed::cudaLaunchHostFunc(Mode mode, cudaStream_t stream, cudaHostFn_t fn, void* user_data) {
  return run([&] { return driver.cuLaunchHostFunc(mode, stream, fn, user_data); });
}

}  // namespace simgpu::runtime

using namespace simgpu::runtime;

extern "C" unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes, CUstream_st* stream) {
  ConfigurationStack& stack = configurations();
  if (stack.used == ConfigurationStack::depth) {
    return 1;
  }
  stack.entries[stack.used++] = {grid, block, shared_bytes, stream};
  return 0;
}

extern "C" cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared_bytes, void* stream) {
  ConfigurationStack& stack = configurations();
  if (stack.used == 0) {
    return record(cudaErrorMissingConfiguration);
  }
  const CallConfiguration& top = stack.entries[--stack.used];
  *grid = top.grid;
  *block = top.block;
  *shared_bytes = top.shared_bytes;
  std::memcpy(stream, &top.stream, sizeof(cudaStream_t));
  return cudaSuccess;
}

extern "C" cudaError_t cudaGetKernel(cudaKernel_t* kernel, const void* symbol) {
  return run([&] { return kernel_of(symbol, kernel); });
}

extern "C" cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* symbol) {
  const cudaError_t error = cudaGetKernel(kernel, symbol);
  if (error != cudaSuccess) {
    lookup_error = error;
  }
  return error;
}

extern "C" cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** args, size_t shared_bytes,
                                          cudaStream_t stream) {
  Seen seen("__cudaLaunchKernel");
  return seen.left(launch_registered(Mode::legacy, kernel, grid, block, args, shared_bytes, stream));
}

extern "C" cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void** args,
                                               size_t shared_bytes, cudaStream_t stream) {
  Seen seen("__cudaLaunchKernel_ptsz");
  return seen.left(launch_registered(Mode::per_thread, kernel, grid, block, args, shared_bytes, stream));
}
