// cuLibrary* and cuKernel*: code images that belong to no context.
#include "simgpu/driver/context/device.h"
#include "simgpu/driver/memory/memory.h"
#include "simgpu/driver/module/jit_options.h"
#include "simgpu/driver/module/module.h"

using namespace simgpu;

namespace {

CUresult make_library(Call& call, std::shared_ptr<const Image> image, CUlibrary* out) {
  auto* library = create<Library>();
  if (library == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  library->image = std::move(image);
  const auto& kernels = library->image->kernels();
  library->kernels.reserve(kernels.size());
  for (size_t i = 0; i < kernels.size(); ++i) {
    auto* kernel = create<Kernel>();
    if (kernel == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    kernel->library = library;
    kernel->code = &kernels[i];
    kernel->index = i;
    fill_attributes(kernels[i], *library->image, kernel->attributes);
    library->kernels.push_back(kernel);
    library->by_name[kernels[i].symbol] = kernel;
  }
  call.truth(TruthFields("module")
                 .add("bytes", uint64_t{library->image->image_bytes})
                 .add("kernels", uint64_t{kernels.size()}));
  *out = handle_of(library);
  return CUDA_SUCCESS;
}

void free_managed(Library& library) {
  for (const auto& [name, place] : library.managed) {
    if (std::optional<Allocation> allocation = remove_allocation(place.first)) give_back_memory(*allocation);
  }
}

CUresult current_module(Call& call, CUlibrary handle, Module** out) {
  auto* library = live<Library>(handle);
  if (library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  Context* context = call.context();
  if (context == nullptr) return call.context_error();
  *out = module_in(*library, *context);
  return *out == nullptr ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

}  // namespace

SIM_API(cuLibraryLoadData, "cuLibraryLoadData",
        (CUlibrary * out, const void* code, CUjit_option* options, void** values, unsigned count,
         CUlibraryOption* library_options, void** library_values, unsigned library_count),
        (out, code, options, values, count, library_options, library_values, library_count)) {
  if (out == nullptr || code == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (library_count > 0 && library_options == nullptr) return CUDA_ERROR_INVALID_VALUE;
  static_cast<void>(library_values);
  if (CUresult result = answer_jit_options(count, options, values); result != CUDA_SUCCESS) return result;
  std::shared_ptr<const Image> image;
  if (CUresult result = read_image(code, &image); result != CUDA_SUCCESS) return result;
  return make_library(call, std::move(image), out);
}

SIM_API(cuLibraryLoadFromFile, "cuLibraryLoadFromFile",
        (CUlibrary * out, const char* path, CUjit_option* options, void** values, unsigned count,
         CUlibraryOption* library_options, void** library_values, unsigned library_count),
        (out, path, options, values, count, library_options, library_values, library_count)) {
  if (out == nullptr || path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (library_count > 0 && library_options == nullptr) return CUDA_ERROR_INVALID_VALUE;
  static_cast<void>(library_values);
  if (CUresult result = answer_jit_options(count, options, values); result != CUDA_SUCCESS) return result;
  std::shared_ptr<const Image> image;
  if (CUresult result = read_image_file(path, &image); result != CUDA_SUCCESS) return result;
  return make_library(call, std::move(image), out);
}

SIM_API(cuLibraryUnload, "cuLibraryUnload", (CUlibrary handle), (handle)) {
  auto* library = live<Library>(handle);
  if (library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  std::map<Context*, Module*> modules;
  {
    std::lock_guard lock(library->mutex);
    modules = library->modules;
  }
  for (const auto& [context, module] : modules) unload_module(*module);
  free_managed(*library);
  for (Kernel* kernel : library->kernels) retire(kernel);
  retire(library);
  return CUDA_SUCCESS;
}

SIM_API(cuLibraryGetKernel, "cuLibraryGetKernel", (CUkernel * out, CUlibrary handle, const char* name),
        (out, handle, name)) {
  if (out == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto* library = live<Library>(handle);
  if (library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const auto found = library->by_name.find(name);
  if (found == library->by_name.end()) return CUDA_ERROR_NOT_FOUND;
  *out = handle_of(found->second);
  return CUDA_SUCCESS;
}

SIM_API(cuLibraryGetKernelCount, "cuLibraryGetKernelCount", (unsigned* count, CUlibrary handle), (count, handle)) {
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto* library = live<Library>(handle);
  if (library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *count = static_cast<unsigned>(library->kernels.size());
  return CUDA_SUCCESS;
}

SIM_API(cuLibraryEnumerateKernels, "cuLibraryEnumerateKernels", (CUkernel * out, unsigned count, CUlibrary handle),
        (out, count, handle)) {
  if (out == nullptr && count > 0) return CUDA_ERROR_INVALID_VALUE;
  auto* library = live<Library>(handle);
  if (library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  for (size_t i = 0; i < count && i < library->kernels.size(); ++i) out[i] = handle_of(library->kernels[i]);
  return CUDA_SUCCESS;
}

SIM_API(cuLibraryGetModule, "cuLibraryGetModule", (CUmodule * out, CUlibrary handle), (out, handle)) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Module* module = nullptr;
  const CUresult result = current_module(call, handle, &module);
  if (result == CUDA_SUCCESS) *out = handle_of(module);
  return result;
}

SIM_API(cuLibraryGetGlobal, "cuLibraryGetGlobal",
        (CUdeviceptr * address, size_t* bytes, CUlibrary handle, const char* name), (address, bytes, handle, name)) {
  if (name == nullptr || (address == nullptr && bytes == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  Module* module = nullptr;
  if (CUresult result = current_module(call, handle, &module); result != CUDA_SUCCESS) return result;
  const auto found = module->globals.find(name);
  if (found == module->globals.end()) return CUDA_ERROR_NOT_FOUND;
  if (address != nullptr) *address = found->second.first;
  if (bytes != nullptr) *bytes = found->second.second;
  return CUDA_SUCCESS;
}

SIM_API(cuLibraryGetManaged, "cuLibraryGetManaged",
        (CUdeviceptr * address, size_t* bytes, CUlibrary handle, const char* name), (address, bytes, handle, name)) {
  if (name == nullptr || (address == nullptr && bytes == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  Module* module = nullptr;
  if (CUresult result = current_module(call, handle, &module); result != CUDA_SUCCESS) return result;
  std::lock_guard lock(module->library->mutex);
  const auto found = module->library->managed.find(name);
  if (found == module->library->managed.end()) return CUDA_ERROR_NOT_FOUND;
  if (address != nullptr) *address = found->second.first;
  if (bytes != nullptr) *bytes = found->second.second;
  return CUDA_SUCCESS;
}

SIM_API(cuLibraryGetUnifiedFunction, "cuLibraryGetUnifiedFunction", (void** out, CUlibrary handle, const char* symbol),
        (out, handle, symbol)) {
  if (out == nullptr || symbol == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return live<Library>(handle) == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_NOT_FOUND;
}

SIM_API(cuKernelGetFunction, "cuKernelGetFunction", (CUfunction * out, CUkernel handle), (out, handle)) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto* kernel = live<Kernel>(handle);
  if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  Context* context = call.context();
  if (context == nullptr) return call.context_error();
  Function* function = function_in(kernel, context);
  if (function == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  *out = handle_of(function);
  return CUDA_SUCCESS;
}

SIM_API(cuKernelGetLibrary, "cuKernelGetLibrary", (CUlibrary * out, CUkernel handle), (out, handle)) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto* kernel = live<Kernel>(handle);
  if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *out = handle_of(kernel->library);
  return CUDA_SUCCESS;
}

SIM_API(cuKernelGetName, "cuKernelGetName", (const char** out, CUkernel handle), (out, handle)) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto* kernel = live<Kernel>(handle);
  if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *out = kernel->code->symbol.c_str();
  return CUDA_SUCCESS;
}

SIM_API(cuKernelGetParamInfo, "cuKernelGetParamInfo", (CUkernel handle, size_t index, size_t* offset, size_t* size),
        (handle, index, offset, size)) {
  if (offset == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto* kernel = live<Kernel>(handle);
  if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (index >= kernel->code->parameters.size()) return CUDA_ERROR_INVALID_VALUE;
  *offset = kernel->code->parameters[index].offset;
  if (size != nullptr) *size = kernel->code->parameters[index].size;
  return CUDA_SUCCESS;
}

SIM_API(cuKernelGetAttribute, "cuKernelGetAttribute",
        (int* value, CUfunction_attribute attribute, CUkernel handle, CUdevice dev), (value, attribute, handle, dev)) {
  if (value == nullptr || static_cast<unsigned>(attribute) >= CU_FUNC_ATTRIBUTE_MAX) return CUDA_ERROR_INVALID_VALUE;
  auto* kernel = live<Kernel>(handle);
  if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (device_at(dev) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  *value = kernel->attributes[attribute];
  return CUDA_SUCCESS;
}

// For one device; the devices here are alike, so for all contexts.
SIM_API(cuKernelSetAttribute, "cuKernelSetAttribute",
        (CUfunction_attribute attribute, int value, CUkernel handle, CUdevice dev), (attribute, value, handle, dev)) {
  auto* kernel = live<Kernel>(handle);
  if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  Device* device = device_at(dev);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  if (CUresult result = set_attribute(kernel->attributes, attribute, value); result != CUDA_SUCCESS) return result;
  std::lock_guard lock(kernel->library->mutex);
  for (const auto& [context, module] : kernel->library->modules) {
    if (context->device != device) continue;
    module->functions[kernel->index]->attributes[attribute] = value;
    module->functions[kernel->index]->occupancy_cache = 0;
  }
  return CUDA_SUCCESS;
}

SIM_API(cuKernelSetCacheConfig, "cuKernelSetCacheConfig", (CUkernel handle, CUfunc_cache config, CUdevice dev),
        (handle, config, dev)) {
  if (live<Kernel>(handle) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (device_at(dev) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  return static_cast<unsigned>(config) > CU_FUNC_CACHE_PREFER_EQUAL ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
