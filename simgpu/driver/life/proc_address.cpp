// cuGetProcAddress, and the answer of every call that is not modelled.
#include "simgpu/driver/life/proc_address.h"

#include <algorithm>
#include <cstring>

#include "simgpu/driver/life/call.h"
#include "simgpu/driver/life/knobs.h"

namespace simgpu {

CUresult not_modelled(const char* name, const char* variant) {
  Call call(name, variant, DefaultStream::legacy);
  if (CUresult refused = call.enter(Need::initialized); refused != CUDA_SUCCESS) return call.leave(refused);
  return call.leave(CUDA_ERROR_NOT_SUPPORTED);
}

namespace {

struct Answer {
  void* address = nullptr;
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
};

// The newest version that is not newer than asked for: the per-thread one where that is wanted and exists, else the
// legacy one. A driver does not know what came after it.
Answer look_up(const char* symbol, int version, bool per_thread) {
  const ProcAddress* end = kProcAddresses + kProcAddressCount;
  const ProcAddress* row = std::lower_bound(kProcAddresses, end, symbol, [](const ProcAddress& p, const char* name) {
    return std::strcmp(p.name, name) < 0;
  });
  Answer answer;
  const ProcAddress* best = nullptr;
  const bool known = row != end && std::strcmp(row->name, symbol) == 0;
  for (; row != end && std::strcmp(row->name, symbol) == 0; ++row) {
    if (row->since > knobs().driver) continue;
    if (best == nullptr) answer.status = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
    if (row->since > version || (row->per_thread && !per_thread)) continue;
    if (best == nullptr || row->per_thread >= best->per_thread) best = row;
  }
  if (answer.status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND) {
    simgpu_missing_lookup("libcuda.so.1", symbol, known ? "newer" : "unknown");
  }
  if (best != nullptr) {
    answer.address = reinterpret_cast<void*>(best->address);
    answer.status = CU_GET_PROC_ADDRESS_SUCCESS;
  }
  return answer;
}

CUresult get_proc_address(const char* symbol, void** pfn, int version, cuuint64_t flags, Answer* answer) {
  if (symbol == nullptr || pfn == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (flags > CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) return CUDA_ERROR_INVALID_VALUE;
  if (version > knobs().driver) return CUDA_ERROR_INVALID_VALUE;
  *answer = look_up(symbol, version, flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
  *pfn = answer->address;
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace simgpu

using namespace simgpu;

// CUDA 11: no status to tell what is missing, so the result says it.
SIM_API_ALWAYS(cuGetProcAddress, "cuGetProcAddress", (const char* symbol, void** pfn, int version, cuuint64_t flags),
               (symbol, pfn, version, flags)) {
  Answer answer;
  const CUresult result = get_proc_address(symbol, pfn, version, flags, &answer);
  if (result != CUDA_SUCCESS) return result;
  return answer.address == nullptr ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
}

// CUDA 12: success with a null pointer and a status.
SIM_API_ALWAYS(cuGetProcAddress_v2, "cuGetProcAddress",
               (const char* symbol, void** pfn, int version, cuuint64_t flags, CUdriverProcAddressQueryResult* status),
               (symbol, pfn, version, flags, status)) {
  Answer answer;
  const CUresult result = get_proc_address(symbol, pfn, version, flags, &answer);
  if (result == CUDA_SUCCESS && status != nullptr) *status = answer.status;
  return result;
}
