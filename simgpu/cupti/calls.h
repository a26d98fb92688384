// API calls by CUPTI's numbers. The tables are made by gen_table.py from cupti_driver_cbid.h and cupti_runtime_cbid.h.
#pragma once

#include <cstdint>

namespace simgpu::cupti {

struct CallNumber {
  const char* name;  // as in the enumeration: cuMemAlloc_v2, cudaLaunchKernel_v7000
  uint32_t number;
};

extern const CallNumber kDriverCalls[];  // sorted by name
extern const unsigned kDriverCallCount;
extern const CallNumber kRuntimeCalls[];  // sorted by name; only the highest version of each
extern const unsigned kRuntimeCallCount;
inline constexpr uint32_t kMostCalls = 1024;  // numbers are below

// The number of a call by its exported name, a literal (its address is remembered); 0: it has none.
uint32_t number_of(const char* exported, bool runtime);
const char* name_of(uint32_t number, bool runtime);  // null: none has that number

}  // namespace simgpu::cupti
