#include "simgpu/runtime/life/registry.h"

#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace simgpu::runtime {
namespace {

struct ManagedVariable {
  void** host_pointer;  // the program's own variable: it reads the data's address there
  const char* name;     // in the program's own image
};

struct FatBinary {
  const void* image;  // nvcc's wrapper
  CUlibrary library = nullptr;
  std::vector<ManagedVariable> managed;
};

struct Kernel {
  FatBinary* binary;
  const char* name;  // in the program's own image
  CUkernel handle = nullptr;
};

struct Variable {
  FatBinary* binary;
  const char* name;  // in the program's own image
  bool managed;
};

// Never destroyed: nvcc's own atexit handlers come back to it.
struct Registry {
  std::shared_mutex mutex;
  std::unordered_map<const void*, Kernel> kernels;      // by host function
  std::unordered_map<const void*, Variable> variables;  // by host variable
  std::unordered_map<CUkernel, const void*> symbols;    // host function by handle
  std::unordered_set<CUkernel> foreign;                 // from cudaLibraryGetKernel
};

Registry& registry() {
  static auto* const the_registry = new Registry;
  return *the_registry;
}

// The mutex is held by the caller.
CUresult load(Registry& all, FatBinary& binary) {
  if (binary.library != nullptr) {
    return CUDA_SUCCESS;
  }
  const CUresult result =
      driver.cuLibraryLoadData(&binary.library, binary.image, nullptr, nullptr, 0u, nullptr, nullptr, 0u);
  if (result != CUDA_SUCCESS) {
    binary.library = nullptr;
    return result;
  }
  for (const ManagedVariable& variable : binary.managed) {
    CUdeviceptr address = 0;
    if (driver.cuLibraryGetManaged(&address, nullptr, binary.library, variable.name) == CUDA_SUCCESS) {
      *variable.host_pointer = reinterpret_cast<void*>(address);
      // `&variable` in the program is the data's address from now on.
      all.variables[*variable.host_pointer] = Variable{&binary, variable.name, true};
    }
  }
  return CUDA_SUCCESS;
}

CUresult load_kernel(Registry& all, const void* symbol, CUkernel* kernel) {
  const std::unique_lock lock(all.mutex);
  const auto found = all.kernels.find(symbol);
  if (found == all.kernels.end()) {
    return as_result(cudaErrorInvalidDeviceFunction);
  }
  Kernel& wanted = found->second;
  if (wanted.handle == nullptr) {
    if (const CUresult result = load(all, *wanted.binary); result != CUDA_SUCCESS) {
      return result;
    }
    const CUresult result = driver.cuLibraryGetKernel(&wanted.handle, wanted.binary->library, wanted.name);
    if (result != CUDA_SUCCESS) {
      wanted.handle = nullptr;
      return result == CUDA_ERROR_NOT_FOUND ? as_result(cudaErrorInvalidDeviceFunction) : result;
    }
    all.symbols[wanted.handle] = symbol;
  }
  *kernel = wanted.handle;
  return CUDA_SUCCESS;
}

void forget(Registry& all, FatBinary* binary) {
  std::erase_if(all.kernels, [&](const auto& entry) {
    if (entry.second.binary == binary && entry.second.handle != nullptr) {
      all.symbols.erase(entry.second.handle);
    }
    return entry.second.binary == binary;
  });
  std::erase_if(all.variables, [&](const auto& entry) { return entry.second.binary == binary; });
}

}  // namespace

CUresult kernel_of(const void* symbol, CUkernel* kernel) {
  Registry& all = registry();
  {
    const std::shared_lock lock(all.mutex);
    const auto found = all.kernels.find(symbol);
    if (found != all.kernels.end() && found->second.handle != nullptr) {
      *kernel = found->second.handle;
      return CUDA_SUCCESS;
    }
    const auto handle = reinterpret_cast<CUkernel>(const_cast<void*>(symbol));
    if (all.symbols.contains(handle) || all.foreign.contains(handle)) {
      *kernel = handle;
      return CUDA_SUCCESS;
    }
  }
  return load_kernel(all, symbol, kernel);
}

void* symbol_of(CUkernel kernel) {
  Registry& all = registry();
  const std::shared_lock lock(all.mutex);
  const auto found = all.symbols.find(kernel);
  return found != all.symbols.end() ? const_cast<void*>(found->second) : static_cast<void*>(kernel);
}

void remember_kernel(CUkernel kernel) {
  Registry& all = registry();
  const std::unique_lock lock(all.mutex);
  all.foreign.insert(kernel);
}

CUresult variable_of(const void* symbol, CUdeviceptr* address, std::size_t* size) {
  Registry& all = registry();
  const std::unique_lock lock(all.mutex);
  const auto found = all.variables.find(symbol);
  if (found == all.variables.end()) {
    return as_result(cudaErrorInvalidSymbol);
  }
  const Variable variable = found->second;  // a copy: loading adds to the map
  if (const CUresult result = load(all, *variable.binary); result != CUDA_SUCCESS) {
    return result;
  }
  CUlibrary library = variable.binary->library;
  const CUresult result = variable.managed ? driver.cuLibraryGetManaged(address, size, library, variable.name)
                                           : driver.cuLibraryGetGlobal(address, size, library, variable.name);
  return result == CUDA_ERROR_NOT_FOUND ? as_result(cudaErrorInvalidSymbol) : result;
}

}  // namespace simgpu::runtime

using namespace simgpu::runtime;

// The handle is opaque to nvcc's code: it points at our FatBinary.
extern "C" void** __cudaRegisterFatBinary(void* wrapper) {
  return reinterpret_cast<void**>(new FatBinary{.image = wrapper, .library = nullptr, .managed = {}});
}

extern "C" void __cudaRegisterFatBinaryEnd(void**) {}

extern "C" void __cudaUnregisterFatBinary(void** handle) {
  auto* const binary = reinterpret_cast<FatBinary*>(handle);
  if (binary == nullptr) {
    return;
  }
  Registry& all = registry();
  const std::unique_lock lock(all.mutex);
  forget(all, binary);
  if (binary->library != nullptr) {
    driver.cuLibraryUnload(binary->library);
  }
  delete binary;
}

extern "C" void __cudaRegisterFunction(void** handle, const char* host_function, char*, const char* device_name, int,
                                       uint3*, uint3*, dim3*, dim3*, int*) {
  Registry& all = registry();
  const std::unique_lock lock(all.mutex);
  all.kernels[host_function] = Kernel{reinterpret_cast<FatBinary*>(handle), device_name};
}

extern "C" void __cudaRegisterVar(void** handle, char* host_variable, char*, const char* device_name, int, std::size_t,
                                  int, int) {
  Registry& all = registry();
  const std::unique_lock lock(all.mutex);
  all.variables[host_variable] = Variable{reinterpret_cast<FatBinary*>(handle), device_name, false};
}

extern "C" void __cudaRegisterManagedVar(void** handle, void** host_pointer, char*, const char* device_name, int,
                                         std::size_t, int, int) {
  auto* const binary = reinterpret_cast<FatBinary*>(handle);
  Registry& all = registry();
  const std::unique_lock lock(all.mutex);
  all.variables[host_pointer] = Variable{binary, device_name, true};
  binary->managed.push_back({host_pointer, device_name});
}

// Called by nvcc's code before the host touches a managed variable. Non-zero means done, as nvcc reads it.
extern "C" char __cudaInitModule(void** handle) {
  if (ready() != cudaSuccess) {
    return 0;
  }
  Registry& all = registry();
  const std::unique_lock lock(all.mutex);
  return load(all, *reinterpret_cast<FatBinary*>(handle)) == CUDA_SUCCESS ? 1 : 0;
}
