#include "simgpu/runtime/life/driver.h"

#include <dlfcn.h>

#include <cstdio>

namespace simgpu::runtime {

constinit Driver driver;

namespace {

// How the driver is asked. `get` is null on a driver older than cuGetProcAddress_v2: then every entry is a dlsym of its
// exported name.
struct Gate {
  void* library = nullptr;
  PFN_cuGetProcAddress_v12000 get = nullptr;
};

Gate open_gate() {
  Gate gate;
  gate.library = dlopen("libcuda.so.1", RTLD_NOW);
  if (gate.library != nullptr) {
    gate.get = reinterpret_cast<PFN_cuGetProcAddress_v12000>(dlsym(gate.library, "cuGetProcAddress_v2"));
  }
  return gate;
}

const Gate& gate() {
  static const Gate the_gate = open_gate();
  return the_gate;
}

void* by_symbol(const char* symbol, Mode mode) {
  if (mode == Mode::legacy) {
    return dlsym(gate().library, symbol);
  }
  for (const char* suffix : {"_ptsz", "_ptds"}) {
    char name[128];
    std::snprintf(name, sizeof name, "%s%s", symbol, suffix);
    if (void* found = dlsym(gate().library, name); found != nullptr) {
      return found;
    }
  }
  return nullptr;
}

}  // namespace

bool driver_present() {
  if (gate().library == nullptr) {
    return false;
  }
  return gate().get != nullptr || dlsym(gate().library, "cuInit") != nullptr;
}

CUresult find_driver_entry(const char* name, void** function, int version, cuuint64_t flags,
                           CUdriverProcAddressQueryResult* status) {
  if (gate().get != nullptr) {
    return gate().get(name, function, version, flags, status);
  }
  *function = gate().library != nullptr ? dlsym(gate().library, name) : nullptr;
  if (status != nullptr) {
    *status = *function != nullptr ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  }
  return *function != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

const RuntimeDoor* runtime_door() {
  static const RuntimeDoor* const the_door = [] {
    const auto open = gate().library == nullptr
                          ? nullptr
                          : reinterpret_cast<const RuntimeDoor* (*)()>(dlsym(gate().library, "simgpu_runtime_door"));
    return open != nullptr ? open() : nullptr;
  }();
  return the_door;
}

void* EntryBase::resolve() {
  void* found = nullptr;
  if (gate().library == nullptr) {
    return nullptr;
  }
  if (gate().get == nullptr) {
    found = by_symbol(symbol_, mode_);
    address_.store(found, std::memory_order_release);
    return found;
  }
  CUdriverProcAddressQueryResult status{};
  const cuuint64_t flags =
      mode_ == Mode::legacy ? CU_GET_PROC_ADDRESS_DEFAULT : CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  if (find_driver_entry(name_, &found, version_, flags, &status) != CUDA_SUCCESS) {
    return nullptr;
  }
  address_.store(found, std::memory_order_release);
  return found;
}

}  // namespace simgpu::runtime
