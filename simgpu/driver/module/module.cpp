#include "simgpu/driver/module/module.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "simgpu/driver/context/device.h"
#include "simgpu/driver/memory/memory.h"
#include "simgpu/driver/observe/observe.h"
#include "simgpu/driver/time/timeline.h"

namespace simgpu {

namespace {

using gputrace::CodeGlobal;
using gputrace::ImageKernel;

constexpr size_t kGlobalAlignment = 512;

CUresult error_of(const gputrace::LoadFailure& failure, gputrace::ByteSpan bytes) {
  if (failure.no_match) return CUDA_ERROR_NO_BINARY_FOR_GPU;
  return gputrace::identify_image(bytes) == gputrace::ContainerKind::kPtx ? CUDA_ERROR_INVALID_PTX
                                                                          : CUDA_ERROR_INVALID_IMAGE;
}

CUresult read_bytes(gputrace::ByteSpan bytes, std::shared_ptr<const Image>* out) {
  if (bytes.empty()) return CUDA_ERROR_INVALID_IMAGE;
  gputrace::LoadFailure failure;
  std::optional<gputrace::LoadedImage> loaded = gputrace::load_image(bytes, capability(), &failure);
  if (!loaded) return error_of(failure, bytes);
  auto image = std::make_shared<Image>();
  image->loaded = std::move(*loaded);
  image->image_bytes = bytes.size();
  *out = std::move(image);
  return CUDA_SUCCESS;
}

Allocation global_allocation(Module& module, const CodeGlobal& global, void* at, MemoryKind kind) {
  Allocation allocation;
  allocation.address = reinterpret_cast<uint64_t>(at);
  allocation.bytes = global.bytes;
  allocation.kind = kind;
  allocation.context = module.context;
  allocation.device = module.context->device;
  allocation.owner = &module;
  return allocation;
}

void initialize(void* at, const CodeGlobal& global) {
  std::memset(at, 0, global.bytes);
  const size_t given = std::min<size_t>(global.init.size(), global.bytes);
  if (given) std::memcpy(at, global.init.data(), given);
}

// A __managed__ variable: one for all contexts of a library.
CUresult place_managed(Module& module, const CodeGlobal& global) {
  if (module.library != nullptr) {
    const auto known = module.library->managed.find(global.symbol);
    if (known != module.library->managed.end()) {
      module.globals[global.symbol] = known->second;
      return CUDA_SUCCESS;
    }
  }
  void* at = map_host_memory(global.bytes);
  if (at == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  initialize(at, global);
  Allocation allocation = global_allocation(module, global, at, MemoryKind::managed);
  if (module.library != nullptr) {
    allocation.context = nullptr;
    allocation.owner = module.library;
    module.library->managed[global.symbol] = {allocation.address, global.bytes};
  }
  add_allocation(allocation);
  module.globals[global.symbol] = {allocation.address, global.bytes};
  return CUDA_SUCCESS;
}

size_t room_for(const CodeGlobal& global) {
  return (std::max<size_t>(global.bytes, 1) + kGlobalAlignment - 1) / kGlobalAlignment * kGlobalAlignment;
}

CUresult place_globals(Module& module) {
  const std::vector<CodeGlobal>& globals = module.image->loaded.module.globals;
  size_t bytes = 0;
  for (const CodeGlobal& global : globals) {
    if (!global.is_managed) bytes += room_for(global);
  }
  if (bytes > 0) {
    module.global_block = device_reserve(*module.context->device, bytes);
    if (module.global_block == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    module.global_block_bytes = bytes;
  }
  char* next = static_cast<char*>(module.global_block);
  for (const CodeGlobal& global : globals) {
    if (global.is_managed) {
      if (global.bytes == 0) continue;
      if (CUresult result = place_managed(module, global); result != CUDA_SUCCESS) return result;
      continue;
    }
    initialize(next, global);
    if (global.bytes > 0) add_allocation(global_allocation(module, global, next, MemoryKind::device));
    module.globals[global.symbol] = {reinterpret_cast<CUdeviceptr>(next), global.bytes};
    next += room_for(global);
  }
  return CUDA_SUCCESS;
}

CUresult make_functions(Module& module) {
  const std::vector<ImageKernel>& kernels = module.image->kernels();
  module.functions.reserve(kernels.size());
  for (size_t i = 0; i < kernels.size(); ++i) {
    auto* function = create<Function>();
    if (function == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    function->module = &module;
    function->context = module.context;
    function->code = &kernels[i];
    if (module.library != nullptr) {
      function->kernel = module.library->kernels[i];
      for (size_t a = 0; a < function->attributes.size(); ++a)
        function->attributes[a] = function->kernel->attributes[a].load();
    } else {
      fill_attributes(kernels[i], *module.image, function->attributes);
    }
    module.functions.push_back(function);
    module.by_name[kernels[i].symbol] = function;
  }
  return CUDA_SUCCESS;
}

}  // namespace

CUresult read_image(const void* image, std::shared_ptr<const Image>* out) {
  return read_bytes(gputrace::image_at(image), out);
}

CUresult read_image_file(const char* path, std::shared_ptr<const Image>* out) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return CUDA_ERROR_FILE_NOT_FOUND;
  std::ifstream file(path, std::ios::binary);
  if (!file) return CUDA_ERROR_FILE_NOT_FOUND;
  const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  return read_bytes(std::as_bytes(std::span(bytes)), out);
}

CUresult load_module(Call& call, Context& context, std::shared_ptr<const Image> image, Library* library, Module** out) {
  auto* module = create<Module>();
  if (module == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  module->context = &context;
  module->library = library;
  module->image = std::move(image);
  CUresult result = make_functions(*module);
  if (result == CUDA_SUCCESS) result = place_globals(*module);
  {
    std::lock_guard lock(context.mutex);
    context.modules.push_back(module);
  }
  if (result != CUDA_SUCCESS) {
    unload_module(*module);
    return result;
  }
  if (library == nullptr) {
    call.truth(TruthFields("module")
                   .add("bytes", uint64_t{module->image->image_bytes})
                   .add("kernels", uint64_t{module->image->kernels().size()}));
  }
  *out = module;
  if (looked_at(look::resources)) show_module(ResourceNotice::Act::module_loaded, *module);
  return CUDA_SUCCESS;
}

void unload_module(Module& module) {
  Context& context = *module.context;
  if (context.active.load()) context_wait_host(context);
  if (looked_at(look::resources)) show_module(ResourceNotice::Act::module_unloaded, module);
  {
    std::lock_guard lock(context.mutex);
    const auto found = std::find(context.modules.begin(), context.modules.end(), &module);
    if (found == context.modules.end()) return;
    context.modules.erase(found);
  }
  if (module.library != nullptr) {
    std::lock_guard lock(module.library->mutex);
    module.library->modules.erase(&context);
  }
  for (const auto& [name, place] : module.globals) {
    const std::optional<Allocation> allocation = find_allocation(place.first);
    if (!allocation || allocation->owner != &module) continue;
    remove_allocation(allocation->address);
    if (allocation->kind == MemoryKind::managed) give_back_memory(*allocation);
  }
  if (module.global_block != nullptr) device_return(*context.device, module.global_block, module.global_block_bytes);
  for (Function* function : module.functions) retire(function);
  retire(&module);
}

void fill_attributes(const ImageKernel& code, const Image& image,
                     std::array<std::atomic<int>, CU_FUNC_ATTRIBUTE_MAX>& attributes) {
  const auto registers = static_cast<int>(code.registers.value_or(0));
  uint32_t threads = limits::kMaxThreadsPerBlock;
  if (code.max_threads > 0) threads = std::min(threads, code.max_threads);
  if (const uint32_t* block = code.required_block; block[0] * block[1] * block[2] > 0) {
    threads = std::min(threads, block[0] * block[1] * block[2]);
  }
  if (registers > 0) {
    const uint32_t per_warp = (code.registers.value() * limits::kWarp + 255) / 256 * 256;
    threads = std::min(threads, limits::kRegisters / per_warp / 4 * 4 * limits::kWarp);
  }
  const int version = static_cast<int>(image.loaded.module.sm.number);
  attributes[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK] = static_cast<int>(threads);
  attributes[CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES] = static_cast<int>(code.static_shared_bytes);
  attributes[CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES] = static_cast<int>(image.loaded.module.const_bytes);
  attributes[CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES] = static_cast<int>(code.local_bytes.value_or(0));
  attributes[CU_FUNC_ATTRIBUTE_NUM_REGS] = registers;
  attributes[CU_FUNC_ATTRIBUTE_PTX_VERSION] = version;
  attributes[CU_FUNC_ATTRIBUTE_BINARY_VERSION] =
      image.loaded.module.kind == gputrace::ContainerKind::kCubin ? version : static_cast<int>(capability());
  attributes[CU_FUNC_ATTRIBUTE_CACHE_MODE_CA] = 0;
  attributes[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES] =
      static_cast<int>(limits::kSharedPerBlock - std::min(code.static_shared_bytes, limits::kSharedPerBlock));
  attributes[CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT] = -1;
  attributes[CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET] = 0;
  attributes[CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH] = static_cast<int>(code.required_cluster[0]);
  attributes[CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT] = static_cast<int>(code.required_cluster[1]);
  attributes[CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH] = static_cast<int>(code.required_cluster[2]);
}

CUresult set_attribute(std::array<std::atomic<int>, CU_FUNC_ATTRIBUTE_MAX>& attributes, int attribute, int value) {
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: {
      const int own = attributes[CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES].load();
      if (value < 0 || value > static_cast<int>(shared_per_block_optin()) - own) return CUDA_ERROR_INVALID_VALUE;
      break;
    }
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      if (value < -1 || value > 100) return CUDA_ERROR_INVALID_VALUE;
      break;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
      if (!has_clusters()) return CUDA_ERROR_NOT_SUPPORTED;
      if (value < 0) return CUDA_ERROR_INVALID_VALUE;
      break;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
  attributes[static_cast<size_t>(attribute)] = value;
  return CUDA_SUCCESS;
}

Function* function_in(Kernel* kernel, Context* context) {
  Function* last = kernel->last_function.load(std::memory_order_acquire);
  if (last != nullptr && last->tag.load(std::memory_order_acquire) == Function::kTag && last->kernel == kernel &&
      last->context == context) {
    return last;
  }
  Module* module = module_in(*kernel->library, *context);
  if (module == nullptr) return nullptr;
  Function* function = module->functions[kernel->index];
  kernel->last_function.store(function, std::memory_order_release);
  return function;
}

Module* module_in(Library& library, Context& context) {
  static constinit std::mutex loading;  // one at a time: the library's own lock must not be held while a module is made
  std::lock_guard one(loading);
  {
    std::lock_guard lock(library.mutex);
    const auto known = library.modules.find(&context);
    if (known != library.modules.end()) return known->second;
  }
  Call quiet("", "", DefaultStream::legacy);
  Module* module = nullptr;
  if (load_module(quiet, context, library.image, &library, &module) != CUDA_SUCCESS) return nullptr;
  std::lock_guard lock(library.mutex);
  library.modules[&context] = module;
  return module;
}

Function* function_from_handle(CUfunction handle, Context* context) {
  if (auto* function = live<Function>(handle)) return function;
  auto* kernel = live<Kernel>(handle);
  return kernel == nullptr || context == nullptr ? nullptr : function_in(kernel, context);
}

}  // namespace simgpu
