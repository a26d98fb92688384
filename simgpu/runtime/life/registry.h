#pragma once

#include "simgpu/runtime/life/core.h"

// What nvcc's generated code registers before main: fat binaries, and the host symbols of their kernels and variables.
// A binary is loaded at the first use of one of its symbols.
namespace simgpu::runtime {

// The kernel behind a host function address, or behind a cudaKernel_t that the runtime has handed out.
CUresult kernel_of(const void* symbol, CUkernel* kernel);
// The reverse, for graph node queries: the host function where there is one, else the kernel handle itself.
void* symbol_of(CUkernel kernel);
// Device address and size of a __device__, __constant__ or __managed__ variable, in the current context.
CUresult variable_of(const void* symbol, CUdeviceptr* address, std::size_t* size);
// Kernels that programs got from cudaLibrary* calls and may launch as they are.
void remember_kernel(CUkernel kernel);

}  // namespace simgpu::runtime
