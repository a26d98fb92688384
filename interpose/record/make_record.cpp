#include "interpose/record/make_record.h"

#include <cstring>

#include "interpose/definition/own_work.h"
#include "interpose/lookup/driver_query.h"
#include "interpose/record/context_facts.h"

namespace gputrace {
namespace {

constexpr u64 kMaxBatch = 1u << 16;  // members of one batch that are recorded one by one

u32 bytes_of(CUarray_format format) {
  switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
      return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
      return 2;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
      return 4;
    default:
      return 0;  // block-compressed and planar formats: not known
  }
}

void read_attribute(KernelLaunch& record, const CUlaunchAttribute& attribute) {
  switch (attribute.id) {
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
      record.cluster_x = static_cast<u16>(attribute.value.clusterDim.x);
      record.cluster_y = static_cast<u16>(attribute.value.clusterDim.y);
      record.cluster_z = static_cast<u16>(attribute.value.clusterDim.z);
      break;
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
      if (attribute.value.cooperative) record.flags |= kLaunchCooperative;
      break;
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
      if (attribute.value.programmaticStreamSerializationAllowed) record.flags |= kLaunchProgrammatic;
      break;
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
      record.flags |= kLaunchProgrammatic;
      break;
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
      record.priority = static_cast<i16>(attribute.value.priority);
      break;
    default:
      break;
  }
}

ImageKind kind_of_input(CUjitInputType type) {
  switch (type) {
    case CU_JIT_INPUT_CUBIN:
      return ImageKind::Cubin;
    case CU_JIT_INPUT_PTX:
      return ImageKind::Ptx;
    case CU_JIT_INPUT_FATBINARY:
      return ImageKind::Fatbin;
    case CU_JIT_INPUT_NVVM:
      return ImageKind::LtoIr;
    default:
      return ImageKind::Unknown;
  }
}

}  // namespace

CopyKind kind_of(CUmemorytype from, CUmemorytype to) {
  if (from == CU_MEMORYTYPE_UNIFIED || to == CU_MEMORYTYPE_UNIFIED) return CopyKind::Unknown;
  // Arrays lie on the device.
  if (from == CU_MEMORYTYPE_HOST) return to == CU_MEMORYTYPE_HOST ? CopyKind::HtoH : CopyKind::HtoD;
  return to == CU_MEMORYTYPE_HOST ? CopyKind::DtoH : CopyKind::DtoD;
}

MemoryKind memory_of(CUmemorytype type) {
  switch (type) {
    case CU_MEMORYTYPE_HOST:
      return MemoryKind::Host;
    case CU_MEMORYTYPE_DEVICE:
      return MemoryKind::Device;
    case CU_MEMORYTYPE_ARRAY:
      return MemoryKind::Array;
    default:
      return MemoryKind::Unknown;
  }
}

void kernel_launch_ex(const FinishedCall& call, CUfunction function, const CUlaunchConfig* config) {
  KernelLaunch record{};
  record.function = handle(function);
  record.context = call.context();
  if (config) {
    record.stream = handle(config->hStream);
    record.grid_x = config->gridDimX;
    record.grid_y = config->gridDimY;
    record.grid_z = config->gridDimZ;
    record.block_x = config->blockDimX;
    record.block_y = config->blockDimY;
    record.block_z = config->blockDimZ;
    record.dynamic_shared_bytes = config->sharedMemBytes;
    // Of a failed call even the attribute list may be wrong.
    const u32 count = call.ok() && config->attrs ? config->numAttrs : 0;
    for (u32 i = 0; i < count; ++i) read_attribute(record, config->attrs[i]);
    record.flags |= work_flags(call, config->hStream);
  }
  emit(call, record);
  work_given();
  function_launched(call, record.function);
}

void multi_device_launch(const FinishedCall& call, const CUDA_LAUNCH_PARAMS* launches, unsigned count) {
  if (!call.ok() || !launches) {
    kernel_launch(call, nullptr, {}, {}, 0, nullptr, kLaunchCooperative | kLaunchMultiDevice);
    return;
  }
  for (unsigned i = 0; i < count; ++i) {
    const CUDA_LAUNCH_PARAMS& p = launches[i];
    kernel_launch(call, p.function, {p.gridDimX, p.gridDimY, p.gridDimZ}, {p.blockDimX, p.blockDimY, p.blockDimZ},
                  p.sharedMemBytes, p.hStream, kLaunchCooperative | kLaunchMultiDevice);
  }
}

u32 part_of_memset() {
  const ThreadSlot& slot = *thread_state.slot;
  const u32 around = slot.depth;  // calls around the one that has returned
  if (around == 0 || around > kInFlightDepth) return 0;
  switch (slot.in_flight[around - 1].call) {
    case kCall_cudaMemset3D:
    case kCall_cudaMemset3D_ptds:
    case kCall_cudaMemset3DAsync:
    case kCall_cudaMemset3DAsync_ptsz:
      return kLaunchPart;
    default:
      return 0;
  }
}

void copy_batch(const FinishedCall& call, const CUdeviceptr* to, const CUdeviceptr* from, const size_t* bytes,
                size_t count, CUstream stream) {
  const bool readable = call.ok() && to && from && bytes && count;
  if (!readable) {
    emit_copy(call, {}, true, stream, kCopyBatch);
    return;
  }
  for (size_t i = 0; i < count && i < kMaxBatch; ++i)
    emit_copy(call, {.destination = to[i], .source = from[i], .bytes = bytes[i]}, true, stream, kCopyBatch);
}

void copy_3d_batch(const FinishedCall& call, const CUDA_MEMCPY3D_BATCH_OP* operations, size_t count, CUstream stream) {
  const auto address = [](const CUmemcpy3DOperand& operand) {
    return operand.type == CU_MEMCPY_OPERAND_TYPE_ARRAY ? handle(operand.op.array.array) : handle(operand.op.ptr.ptr);
  };
  const auto memory = [](const CUmemcpy3DOperand& operand) {
    return operand.type == CU_MEMCPY_OPERAND_TYPE_ARRAY ? MemoryKind::Array : MemoryKind::Unknown;
  };
  if (!call.ok() || !operations || !count) {
    emit_copy(call, {.dimensions = 3}, true, stream, kCopyBatch);
    return;
  }
  for (size_t i = 0; i < count && i < kMaxBatch; ++i) {
    const CUDA_MEMCPY3D_BATCH_OP& op = operations[i];
    const MemoryKind from = memory(op.src), to = memory(op.dst);
    const bool arrays = from == MemoryKind::Array && to == MemoryKind::Array;
    const CopyKind kind = arrays                      ? CopyKind::DtoD
                          : from == MemoryKind::Array ? CopyKind::AtoX
                          : to == MemoryKind::Array   ? CopyKind::XtoA
                                                      : CopyKind::Unknown;
    emit_copy(
        call,
        {address(op.dst), address(op.src), op.extent.width * op.extent.height * op.extent.depth, kind, from, to, 3},
        true, stream, kCopyBatch);
  }
}

void vmm_create(const FinishedCall& call, CUmemGenericAllocationHandle created, u64 bytes,
                const CUmemAllocationProp* properties) {
  Alloc record{};
  record.address = created;
  record.bytes = bytes;
  record.kind = static_cast<u32>(AllocKind::VmmCreate);
  record.device = call.ok() && properties && properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE
                      ? properties->location.id
                      : -1;
  emit_alloc(call, record);
}

void vmm_map(const FinishedCall& call, CUdeviceptr address, u64 bytes, CUmemGenericAllocationHandle mapped) {
  Alloc record{};
  record.address = call.ok() ? address : 0;
  record.bytes = bytes;
  record.pool = mapped;
  record.kind = static_cast<u32>(AllocKind::VmmMap);
  record.device = -1;
  emit_alloc(call, record);
}

void array_allocated(const FinishedCall& call, u64 array, u64 elements, CUarray_format format, u32 channels,
                     u32 flags) {
  alloc(call, AllocKind::Array, array, elements * bytes_of(format) * channels, flags);
}

void mipmapped_created(const FinishedCall& call, CUmipmappedArray array, const CUDA_ARRAY3D_DESCRIPTOR* d,
                       unsigned levels) {
  u64 elements = 0;
  for (unsigned level = 0; d && level < levels && level < 32; ++level) {
    const auto extent = [level](size_t size) { return size ? (size >> level ? u64{size >> level} : u64{1}) : u64{1}; };
    elements += extent(d->Width) * extent(d->Height) * extent(d->Depth);
  }
  array_allocated(call, handle(array), elements, d ? d->Format : CUarray_format{}, d ? d->NumChannels : 0,
                  d ? d->Flags : 0);
}

void context_call(const FinishedCall& call, ObjectAct act, u64 context, i64 value) {
  thread_state.context = kUnknownContext;
  object_call(call, ObjectKind::Context, act, context, 0, value);
}

void primary_retained(const FinishedCall& call, CUcontext context, CUdevice device) {
  primary_context_retained(device, handle(context));
  context_call(call, ObjectAct::Retained, handle(context), device);
}

void driver_initialized(const FinishedCall& call) {
  plain(call, 0);
  if (!call.ok()) return;
  process_ready(call);
}

void profiler_range(const FinishedCall& call, bool begin) {
  plain(call, 0);
  if (call.ok()) set_profiler_range(begin, call.end);
}

void module_loaded(const FinishedCall& call, ModuleAct act, u64 module, ImageKind image, u64 bytes, const char* path) {
  ErrnoGuard guard;
  ModuleLoad record{};
  record.module = module;
  record.bytes = bytes;
  record.image = static_cast<u32>(image);
  record.what = static_cast<u32>(act);
  record.thread = call.thread();
  const Definitions lock;
  if (!lock.held()) return emit(call, record);
  if (call.ok() && path) record.path = define_text(call, path, strnlen(path, 4096));
  define(call, record);
}

void image_loaded(const FinishedCall& call, ModuleAct act, u64 module, const void* image) {
  ErrnoGuard guard;
  const OwnWorkScope work(call, OwnWorkKind::Code);
  ImageExtent images[kMaxImagesOfModule];
  const u32 count = call.ok() ? find_images(image, images) : 0;
  module_loaded(call, act, module, count ? images[0].kind : ImageKind::Unknown, count ? images[0].bytes : 0, nullptr);
  capture_images(call, module, images, count);
}

void file_loaded(const FinishedCall& call, ModuleAct act, u64 module, const char* path) {
  const OwnWorkScope work(call, OwnWorkKind::Code);
  module_loaded(call, act, module, ImageKind::File, 0, path);
  capture_file(call, module, path);
}

void forget_module(u64 module) {
  if (gate_generation() < kFirstGeneration) return;  // nothing is remembered
  functions_gone(module);
  code_unloaded(module);
}
void unloaded(const FinishedCall& call, u64 module) {
  module_loaded(call, ModuleAct::Unload, module, ImageKind::Unknown, 0, nullptr);
}

void library_module(const FinishedCall& call, CUmodule module, CUlibrary library) {
  plain(call, library);
  capture_library_module(call, handle(module), handle(library));
}

void link_data(const FinishedCall& call, CUlinkState state, CUjitInputType type, u64 bytes, const char* name) {
  module_loaded(call, ModuleAct::Link, handle(state), kind_of_input(type), bytes, name);
}
void link_file(const FinishedCall& call, CUlinkState state, CUjitInputType type, const char* path) {
  module_loaded(call, ModuleAct::Link, handle(state), type == CU_JIT_INPUT_PTX ? ImageKind::Ptx : ImageKind::File, 0,
                path);
}
void link_complete(const FinishedCall& call, CUlinkState state, u64 bytes) {
  module_loaded(call, ModuleAct::Link, handle(state), ImageKind::Cubin, bytes, nullptr);
}

void functions_listed(const FinishedCall& call, const CUfunction* functions, unsigned capacity, CUmodule module) {
  plain(call, module);
  unsigned count = 0;
  const auto ask = driver_query().cuModuleGetFunctionCount;
  if (!call.ok() || !functions || !ask || ask(&count, module) != CUDA_SUCCESS) return;
  functions_given(call, reinterpret_cast<const u64*>(functions), count < capacity ? count : capacity,
                  FunctionKind::Function, handle(module));
}

void kernels_listed(const FinishedCall& call, const CUkernel* kernels, unsigned capacity, CUlibrary library) {
  plain(call, library);
  unsigned count = 0;
  const auto ask = driver_query().cuLibraryGetKernelCount;
  if (!call.ok() || !kernels || !ask || ask(&count, library) != CUDA_SUCCESS) return;
  functions_given(call, reinterpret_cast<const u64*>(kernels), count < capacity ? count : capacity,
                  FunctionKind::Kernel, handle(library));
}

}  // namespace gputrace
