// The table behind cuGetProcAddress, made from the toolkit's headers by gen_table.py. The addresses are static: nothing
// here asks the dynamic linker, whose answers an interposer may change.
#pragma once

#include "simgpu/driver/life/cuda_api.h"

namespace simgpu {

struct ProcAddress {
  const char* name;      // documented, without suffix
  int since;             // CUDA version, 1000 * major + 10 * minor
  bool per_thread;       // the _ptsz or _ptds twin
  bool modelled;         // false: answers CUDA_ERROR_NOT_SUPPORTED
  const char* exported;  // with suffix
  CUresult (*address)();
};

extern const ProcAddress kProcAddresses[];  // by name, then since, legacy before per-thread
extern const unsigned kProcAddressCount;

// What a call does that is documented but not modelled.
CUresult not_modelled(const char* name, const char* variant);

}  // namespace simgpu
