// cuModule*: code images in the current context.
#include <cstring>

#include "simgpu/driver/graph/capture.h"
#include "simgpu/driver/module/jit_options.h"
#include "simgpu/driver/module/module.h"

namespace simgpu {

CUresult answer_jit_options(unsigned count, const CUjit_option* options, void** values) {
  if (count == 0) return CUDA_SUCCESS;
  if (options == nullptr || values == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < count; ++i) {
    switch (options[i]) {
      case CU_JIT_WALL_TIME: {
        const float none = 0;
        values[i] = nullptr;
        std::memcpy(&values[i], &none, sizeof none);
        break;
      }
      case CU_JIT_INFO_LOG_BUFFER:
      case CU_JIT_ERROR_LOG_BUFFER: {
        const CUjit_option size = options[i] == CU_JIT_INFO_LOG_BUFFER ? CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES
                                                                       : CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES;
        for (unsigned j = 0; j < count; ++j) {
          if (options[j] != size) continue;
          if (values[i] != nullptr && values[j] != nullptr) *static_cast<char*>(values[i]) = '\0';
          values[j] = nullptr;  // bytes written
        }
        break;
      }
      default:
        break;
    }
  }
  return CUDA_SUCCESS;
}

}  // namespace simgpu

using namespace simgpu;

namespace {

CUresult load(Call& call, CUmodule* out, const void* image) {
  if (out == nullptr || image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Context* context = call.context();
  if (context == nullptr) return call.context_error();
  if (CUresult refused = capture_refuses_unsafe(call); refused != CUDA_SUCCESS) return refused;
  std::shared_ptr<const Image> read;
  if (CUresult result = read_image(image, &read); result != CUDA_SUCCESS) return result;
  Module* module = nullptr;
  const CUresult result = load_module(call, *context, std::move(read), nullptr, &module);
  if (result == CUDA_SUCCESS) *out = handle_of(module);
  return result;
}

}  // namespace

SIM_API(cuModuleLoad, "cuModuleLoad", (CUmodule * out, const char* path), (out, path)) {
  if (out == nullptr || path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Context* context = call.context();
  if (context == nullptr) return call.context_error();
  if (CUresult refused = capture_refuses_unsafe(call); refused != CUDA_SUCCESS) return refused;
  std::shared_ptr<const Image> read;
  if (CUresult result = read_image_file(path, &read); result != CUDA_SUCCESS) return result;
  Module* module = nullptr;
  const CUresult result = load_module(call, *context, std::move(read), nullptr, &module);
  if (result == CUDA_SUCCESS) *out = handle_of(module);
  return result;
}

SIM_API(cuModuleLoadData, "cuModuleLoadData", (CUmodule * out, const void* image), (out, image)) {
  return load(call, out, image);
}

SIM_API(cuModuleLoadFatBinary, "cuModuleLoadFatBinary", (CUmodule * out, const void* image), (out, image)) {
  return load(call, out, image);
}

SIM_API(cuModuleLoadDataEx, "cuModuleLoadDataEx",
        (CUmodule * out, const void* image, unsigned count, CUjit_option* options, void** values),
        (out, image, count, options, values)) {
  if (CUresult result = answer_jit_options(count, options, values); result != CUDA_SUCCESS) return result;
  return load(call, out, image);
}

SIM_API(cuModuleUnload, "cuModuleUnload", (CUmodule handle), (handle)) {
  if (call.context() == nullptr) return call.context_error();
  auto* module = live<Module>(handle);
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (module->library != nullptr) return CUDA_ERROR_NOT_PERMITTED;
  if (CUresult refused = capture_refuses_unsafe(call); refused != CUDA_SUCCESS) return refused;
  unload_module(*module);
  return CUDA_SUCCESS;
}

SIM_API(cuModuleGetLoadingMode, "cuModuleGetLoadingMode", (CUmoduleLoadingMode * mode), (mode)) {
  if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const char* wanted = getenv("CUDA_MODULE_LOADING");
  *mode = wanted != nullptr && std::strcmp(wanted, "EAGER") == 0 ? CU_MODULE_EAGER_LOADING : CU_MODULE_LAZY_LOADING;
  return CUDA_SUCCESS;
}

SIM_API(cuModuleGetFunction, "cuModuleGetFunction", (CUfunction * out, CUmodule handle, const char* name),
        (out, handle, name)) {
  if (out == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto* module = live<Module>(handle);
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const auto found = module->by_name.find(name);
  if (found == module->by_name.end()) return CUDA_ERROR_NOT_FOUND;
  *out = handle_of(found->second);
  return CUDA_SUCCESS;
}

SIM_API(cuModuleGetFunctionCount, "cuModuleGetFunctionCount", (unsigned* count, CUmodule handle), (count, handle)) {
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto* module = live<Module>(handle);
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *count = static_cast<unsigned>(module->functions.size());
  return CUDA_SUCCESS;
}

SIM_API(cuModuleEnumerateFunctions, "cuModuleEnumerateFunctions", (CUfunction * out, unsigned count, CUmodule handle),
        (out, count, handle)) {
  if (out == nullptr && count > 0) return CUDA_ERROR_INVALID_VALUE;
  auto* module = live<Module>(handle);
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  for (size_t i = 0; i < count && i < module->functions.size(); ++i) out[i] = handle_of(module->functions[i]);
  return CUDA_SUCCESS;
}

SIM_API(cuModuleGetGlobal_v2, "cuModuleGetGlobal",
        (CUdeviceptr * address, size_t* bytes, CUmodule handle, const char* name), (address, bytes, handle, name)) {
  if (name == nullptr || (address == nullptr && bytes == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  auto* module = live<Module>(handle);
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const auto found = module->globals.find(name);
  if (found == module->globals.end()) return CUDA_ERROR_NOT_FOUND;
  if (address != nullptr) *address = found->second.first;
  if (bytes != nullptr) *bytes = found->second.second;
  return CUDA_SUCCESS;
}
