#pragma once

#include <cuda.h>
#include <cudaTypedefs.h>

#include <atomic>
#include <cstddef>

#include "simgpu/driver/observe/runtime_door.h"

namespace simgpu::runtime {

// Which default stream a call means by stream 0: the legacy one, or the calling thread's own.
enum class Mode { legacy, per_thread };

// One driver entry, found at its first use and kept for the life of the process.
// The first use may happen on several threads at once: all find the same address.
class EntryBase {
 public:
  // `symbol`: what the driver exports it as, for drivers that have to be asked by dlsym.
  constexpr EntryBase(const char* name, const char* symbol, int version, Mode mode)
      : name_(name), symbol_(symbol), version_(version), mode_(mode) {}

 protected:
  void* address() {
    void* found = address_.load(std::memory_order_acquire);
    return found != nullptr ? found : resolve();
  }

 private:
  void* resolve();

  const char* name_;
  const char* symbol_;
  int version_;
  Mode mode_;
  std::atomic<void*> address_{nullptr};
};

template <typename Function>
class Entry : public EntryBase {
 public:
  using EntryBase::EntryBase;

  template <typename... Args>
  CUresult operator()(Args... args) {
    auto function = reinterpret_cast<Function>(address());
    return function != nullptr ? function(args...) : CUDA_ERROR_NOT_SUPPORTED;
  }
};

// A call that means the default stream of its mode when it is given stream 0.
template <typename Function>
class StreamEntry {
 public:
  constexpr StreamEntry(const char* name, const char* symbol, int since, int per_thread_since)
      : legacy_(name, symbol, since, Mode::legacy), per_thread_(name, symbol, per_thread_since, Mode::per_thread) {}

  template <typename... Args>
  CUresult operator()(Mode mode, Args... args) {
    return mode == Mode::legacy ? legacy_(args...) : per_thread_(args...);
  }

 private:
  Entry<Function> legacy_;
  Entry<Function> per_thread_;
};

// cudaTypedefs.h has no types for these two.
using PFN_cuProfilerStart_v4000 = CUresult (*)();
using PFN_cuProfilerStop_v4000 = CUresult (*)();

// The driver as the runtime sees it: libcuda.so.1 by dlopen, cuGetProcAddress_v2 by dlsym, and every other entry
// through that by name, version and flags. Member names go through cuda.h's own versioning macros, as in any program.
struct Driver {
#define GT_TEXT(symbol) #symbol
#define GT_DRIVER(name, since) Entry<PFN_##name##_v##since> name{#name, GT_TEXT(name), since, Mode::legacy};
#define GT_DRIVER_STREAM(name, since, ptsz_since) \
  StreamEntry<PFN_##name##_v##since> name{#name, GT_TEXT(name), since, ptsz_since};
#include "simgpu/runtime/life/driver.def"
#undef GT_TEXT
#undef GT_DRIVER
#undef GT_DRIVER_STREAM
  Entry<PFN_cuProfilerStart_v4000> cuProfilerStart{"cuProfilerStart", "cuProfilerStart", 4000, Mode::legacy};
  Entry<PFN_cuProfilerStop_v4000> cuProfilerStop{"cuProfilerStop", "cuProfilerStop", 4000, Mode::legacy};
};

extern Driver driver;

// False when there is no libcuda.so.1, or one that answers no look-up.
bool driver_present();

// The driver's answer to cuGetProcAddress, for cudaGetDriverEntryPoint.
CUresult find_driver_entry(const char* name, void** function, int version, cuuint64_t flags,
                           CUdriverProcAddressQueryResult* status);

// Where runtime calls are reported; null: this driver has no such door, or there is none.
const RuntimeDoor* runtime_door();

}  // namespace simgpu::runtime
