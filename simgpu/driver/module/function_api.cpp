// cuFunc*: what a function is, and its settings. A CUkernel is taken wherever a CUfunction is.
#include "simgpu/driver/life/call.h"
#include "simgpu/driver/module/module.h"

using namespace simgpu;

namespace {

Function* function_of(Call& call, CUfunction handle) { return function_from_handle(handle, call.context()); }

}  // namespace

SIM_API(cuFuncGetAttribute, "cuFuncGetAttribute", (int* value, CUfunction_attribute attribute, CUfunction handle),
        (value, attribute, handle)) {
  if (value == nullptr || static_cast<unsigned>(attribute) >= CU_FUNC_ATTRIBUTE_MAX) return CUDA_ERROR_INVALID_VALUE;
  const Function* function = function_of(call, handle);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *value = function->attributes[attribute];
  return CUDA_SUCCESS;
}

SIM_API(cuFuncSetAttribute, "cuFuncSetAttribute", (CUfunction handle, CUfunction_attribute attribute, int value),
        (handle, attribute, value)) {
  Function* function = function_of(call, handle);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return set_attribute(function->attributes, attribute, value);
}

SIM_API(cuFuncGetModule, "cuFuncGetModule", (CUmodule * out, CUfunction handle), (out, handle)) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Function* function = function_of(call, handle);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *out = handle_of(function->module);
  return CUDA_SUCCESS;
}

SIM_API(cuFuncGetName, "cuFuncGetName", (const char** out, CUfunction handle), (out, handle)) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Function* function = function_of(call, handle);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *out = function->code->symbol.c_str();
  return CUDA_SUCCESS;
}

SIM_API(cuFuncGetParamInfo, "cuFuncGetParamInfo", (CUfunction handle, size_t index, size_t* offset, size_t* size),
        (handle, index, offset, size)) {
  if (offset == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Function* function = function_of(call, handle);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (index >= function->code->parameters.size()) return CUDA_ERROR_INVALID_VALUE;
  *offset = function->code->parameters[index].offset;
  if (size != nullptr) *size = function->code->parameters[index].size;
  return CUDA_SUCCESS;
}

SIM_API(cuFuncIsLoaded, "cuFuncIsLoaded", (CUfunctionLoadingState * state, CUfunction handle), (state, handle)) {
  if (state == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (function_of(call, handle) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *state = CU_FUNCTION_LOADING_STATE_LOADED;
  return CUDA_SUCCESS;
}

SIM_API(cuFuncLoad, "cuFuncLoad", (CUfunction handle), (handle)) {
  return function_of(call, handle) == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

SIM_API(cuFuncSetCacheConfig, "cuFuncSetCacheConfig", (CUfunction handle, CUfunc_cache config), (handle, config)) {
  if (function_of(call, handle) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return static_cast<unsigned>(config) > CU_FUNC_CACHE_PREFER_EQUAL ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

SIM_API(cuFuncSetSharedMemConfig, "cuFuncSetSharedMemConfig", (CUfunction handle, CUsharedconfig config),
        (handle, config)) {
  if (function_of(call, handle) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return static_cast<unsigned>(config) > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE ? CUDA_ERROR_INVALID_VALUE
                                                                                   : CUDA_SUCCESS;
}

SIM_API(cuFuncSetBlockShape, "cuFuncSetBlockShape", (CUfunction handle, int x, int y, int z), (handle, x, y, z)) {
  Function* function = function_of(call, handle);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (x <= 0 || y <= 0 || z <= 0) return CUDA_ERROR_INVALID_VALUE;
  function->legacy_block = {static_cast<uint32_t>(x), static_cast<uint32_t>(y), static_cast<uint32_t>(z)};
  return CUDA_SUCCESS;
}

SIM_API(cuFuncSetSharedSize, "cuFuncSetSharedSize", (CUfunction handle, unsigned bytes), (handle, bytes)) {
  Function* function = function_of(call, handle);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  function->legacy_shared = bytes;
  return CUDA_SUCCESS;
}

// Parameters of the legacy launches: kernels are not computed, so they are judged and not kept.
SIM_API(cuParamSetSize, "cuParamSetSize", (CUfunction handle, unsigned bytes), (handle, bytes)) {
  if (function_of(call, handle) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return bytes > 32764 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

SIM_API(cuParamSeti, "cuParamSeti", (CUfunction handle, int offset, unsigned value), (handle, offset, value)) {
  static_cast<void>(value);
  if (function_of(call, handle) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return offset < 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

SIM_API(cuParamSetf, "cuParamSetf", (CUfunction handle, int offset, float value), (handle, offset, value)) {
  static_cast<void>(value);
  if (function_of(call, handle) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return offset < 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

SIM_API(cuParamSetv, "cuParamSetv", (CUfunction handle, int offset, void* data, unsigned bytes),
        (handle, offset, data, bytes)) {
  if (function_of(call, handle) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return offset < 0 || (data == nullptr && bytes > 0) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
