// The words of api.def's record column: one function per shape of record. Hot ones are inline.
#pragma once

#include "interpose/code/code_capture.h"
#include "interpose/definition/facts.h"
#include "interpose/device/device_collection.h"
#include "interpose/hot/session.h"
#include "interpose/record/graphs.h"

namespace gputrace {

template <typename T>
GT_HOT u64 handle(T value) {
  if constexpr (std::is_pointer_v<T>)
    return reinterpret_cast<u64>(value);
  else
    return static_cast<u64>(value);
}
GT_HOT u32 launch_flags(const FinishedCall& call) { return call.per_thread ? kLaunchPerThread : 0u; }
GT_HOT u32 stream_flags(const FinishedCall& call, CUstream stream) {
  const u32 flags = launch_flags(call);
  if (open_captures.load(std::memory_order_relaxed) == 0) [[likely]]
    return flags;
  return flags | (call.ok() ? capture_flags(stream, call.per_thread) : 0);
}

struct Extent3 {
  unsigned x = 0, y = 0, z = 0;
};

// The same of a call that adds a node to what is captured: says which one.
GT_HOT u32 work_flags(const FinishedCall& call, CUstream stream) {
  const u32 flags = launch_flags(call);
  if (open_captures.load(std::memory_order_relaxed) == 0) [[likely]]
    return flags;
  return flags | (call.ok() ? captured_work(call, stream) : 0);
}

// ------------------------------------------------------------------ calls without facts of their own
template <typename T>
GT_HOT void plain(const FinishedCall& call, T object) {
  Call record{};
  record.object = handle(object);
  emit(call, record);
}

// ------------------------------------------------------------------ launches
GT_HOT void kernel_launch(const FinishedCall& call, CUfunction function, Extent3 grid, Extent3 block, unsigned shared,
                          CUstream stream, u32 flags = 0) {
  KernelLaunch record{};
  record.function = handle(function);
  record.stream = handle(stream);
  record.context = call.context();
  record.grid_x = grid.x;
  record.grid_y = grid.y;
  record.grid_z = grid.z;
  record.block_x = block.x;
  record.block_y = block.y;
  record.block_z = block.z;
  record.dynamic_shared_bytes = shared;
  record.flags = flags | work_flags(call, stream);
  emit(call, record);
  work_given();
  function_launched(call, record.function);
}
void kernel_launch_ex(const FinishedCall& call, CUfunction function, const CUlaunchConfig* config);
void multi_device_launch(const FinishedCall& call, const CUDA_LAUNCH_PARAMS* launches, unsigned count);
GT_HOT void graph_launch(const FinishedCall& call, CUgraphExec exec, CUstream stream) {
  GraphLaunch record{};
  record.exec = handle(exec);
  record.stream = handle(stream);
  record.context = call.context();
  record.flags = stream_flags(call, stream);
  emit(call, record);
  work_given();
}

// ------------------------------------------------------------------ copies and memsets
struct CopyShape {
  u64 destination = 0, source = 0;
  u64 bytes = 0;
  CopyKind kind = CopyKind::Unknown;
  MemoryKind from = MemoryKind::Unknown, to = MemoryKind::Unknown;
  u32 dimensions = 1;
};
constexpr MemoryKind source_of(CopyKind kind) {
  switch (kind) {
    case CopyKind::HtoD:
    case CopyKind::HtoH:
      return MemoryKind::Host;
    case CopyKind::DtoH:
    case CopyKind::DtoD:
    case CopyKind::PtoP:
      return MemoryKind::Device;
    case CopyKind::AtoX:
      return MemoryKind::Array;
    default:
      return MemoryKind::Unknown;
  }
}
constexpr MemoryKind destination_of(CopyKind kind) {
  switch (kind) {
    case CopyKind::DtoH:
    case CopyKind::HtoH:
      return MemoryKind::Host;
    case CopyKind::HtoD:
    case CopyKind::DtoD:
    case CopyKind::PtoP:
      return MemoryKind::Device;
    case CopyKind::XtoA:
      return MemoryKind::Array;
    default:
      return MemoryKind::Unknown;
  }
}
CopyKind kind_of(CUmemorytype from, CUmemorytype to);

inline constexpr u32 kCopyBatch = 1u << 18;
GT_HOT void emit_copy(const FinishedCall& call, const CopyShape& shape, bool asynchronous, CUstream stream,
                      u32 more_flags = 0) {
  Copy record{};
  record.destination = shape.destination;
  record.source = shape.source;
  record.bytes = shape.bytes;
  record.stream = handle(stream);
  record.context = call.context();
  record.kind = static_cast<u8>(shape.kind);
  record.asynchronous = asynchronous;
  record.source_memory = static_cast<u8>(shape.from);
  record.destination_memory = static_cast<u8>(shape.to);
  record.flags = (asynchronous ? work_flags(call, stream) : launch_flags(call)) | shape.dimensions << 16 | more_flags;
  emit(call, record);
  work_given();
}
template <typename To, typename From>
GT_HOT void copy(const FinishedCall& call, CopyKind kind, To to, From from, u64 bytes) {
  emit_copy(call, {handle(to), handle(from), bytes, kind, source_of(kind), destination_of(kind), 1}, false, nullptr);
}
template <typename To, typename From>
GT_HOT void copy_async(const FinishedCall& call, CopyKind kind, To to, From from, u64 bytes, CUstream stream) {
  emit_copy(call, {handle(to), handle(from), bytes, kind, source_of(kind), destination_of(kind), 1}, true, stream);
}

GT_HOT void copy_arrays(const FinishedCall& call, CUarray to, CUarray from, u64 bytes) {
  emit_copy(call, {handle(to), handle(from), bytes, CopyKind::DtoD, MemoryKind::Array, MemoryKind::Array, 1}, false,
            nullptr);
}

// CUDA_MEMCPY2D, CUDA_MEMCPY3D and their old layouts: one end of a copy.
template <typename Params>
u64 source_address(const Params& p) {
  if (p.srcMemoryType == CU_MEMORYTYPE_HOST) return handle(p.srcHost);
  return p.srcMemoryType == CU_MEMORYTYPE_ARRAY ? handle(p.srcArray) : handle(p.srcDevice);
}
template <typename Params>
u64 destination_address(const Params& p) {
  if (p.dstMemoryType == CU_MEMORYTYPE_HOST) return handle(p.dstHost);
  return p.dstMemoryType == CU_MEMORYTYPE_ARRAY ? handle(p.dstArray) : handle(p.dstDevice);
}
MemoryKind memory_of(CUmemorytype type);
template <typename Params>
CopyShape shape_of(const Params& p, u64 bytes, u32 dimensions) {
  return {destination_address(p),     source_address(p),          bytes,     kind_of(p.srcMemoryType, p.dstMemoryType),
          memory_of(p.srcMemoryType), memory_of(p.dstMemoryType), dimensions};
}
template <typename Params>
CopyShape shape_2d(const Params* p) {
  return p ? shape_of(*p, u64{p->WidthInBytes} * p->Height, 2) : CopyShape{.dimensions = 2};
}
template <typename Params>
CopyShape shape_3d(const Params* p) {
  return p ? shape_of(*p, u64{p->WidthInBytes} * p->Height * p->Depth, 3) : CopyShape{.dimensions = 3};
}
template <typename Params>
void copy_2d(const FinishedCall& call, const Params* p) {
  emit_copy(call, shape_2d(p), false, nullptr);
}
template <typename Params>
void copy_2d_async(const FinishedCall& call, const Params* p, CUstream stream) {
  emit_copy(call, shape_2d(p), true, stream);
}
template <typename Params>
void copy_3d(const FinishedCall& call, const Params* p) {
  emit_copy(call, shape_3d(p), false, nullptr);
}
template <typename Params>
void copy_3d_async(const FinishedCall& call, const Params* p, CUstream stream) {
  emit_copy(call, shape_3d(p), true, stream);
}
// Within one context a peer copy is an ordinary one.
inline CopyKind peer_kind(CUcontext to, CUcontext from) { return to == from ? CopyKind::DtoD : CopyKind::PtoP; }
inline void copy_3d_peer(const FinishedCall& call, const CUDA_MEMCPY3D_PEER* p) {
  CopyShape shape = shape_3d(p);
  if (shape.kind == CopyKind::DtoD) shape.kind = peer_kind(p->dstContext, p->srcContext);
  emit_copy(call, shape, false, nullptr);
}
inline void copy_3d_peer_async(const FinishedCall& call, const CUDA_MEMCPY3D_PEER* p, CUstream stream) {
  CopyShape shape = shape_3d(p);
  if (shape.kind == CopyKind::DtoD) shape.kind = peer_kind(p->dstContext, p->srcContext);
  emit_copy(call, shape, true, stream);
}
void copy_batch(const FinishedCall& call, const CUdeviceptr* to, const CUdeviceptr* from, const size_t* bytes,
                size_t count, CUstream stream);
void copy_3d_batch(const FinishedCall& call, const CUDA_MEMCPY3D_BATCH_OP* operations, size_t count, CUstream stream);

u32 part_of_memset();  // kLaunchPart where the call around this one is one memset that takes several
GT_HOT void emit_memset(const FinishedCall& call, u64 to, u64 bytes, u32 element, bool asynchronous, CUstream stream) {
  Memset record{};
  record.destination = to;
  record.bytes = bytes;
  record.stream = handle(stream);
  record.context = call.context();
  record.flags = (asynchronous ? work_flags(call, stream) : launch_flags(call)) | part_of_memset();
  record.asynchronous = asynchronous;
  record.element_bytes = static_cast<u8>(element);
  emit(call, record);
  work_given();
}
GT_HOT void memset_1d(const FinishedCall& call, u64 to, u64 count, u32 element) {
  emit_memset(call, to, count * element, element, false, nullptr);
}
GT_HOT void memset_2d(const FinishedCall& call, u64 to, u64 width, u64 height, u32 element) {
  emit_memset(call, to, width * height * element, element, false, nullptr);
}
GT_HOT void memset_1d_async(const FinishedCall& call, u64 to, u64 count, u32 element, CUstream stream) {
  emit_memset(call, to, count * element, element, true, stream);
}
GT_HOT void memset_2d_async(const FinishedCall& call, u64 to, u64 width, u64 height, u32 element, CUstream stream) {
  emit_memset(call, to, width * height * element, element, true, stream);
}

// ------------------------------------------------------------------ memory
GT_HOT void emit_alloc(const FinishedCall& call, Alloc record) {
  record.context = call.context();
  emit(call, record);
}
template <typename Address>
GT_HOT void alloc(const FinishedCall& call, AllocKind kind, Address address, u64 bytes, u64 flags = 0) {
  Alloc record{};
  record.address = call.ok() ? handle(address) : 0;
  record.bytes = bytes;
  record.kind = static_cast<u32>(kind);
  record.device = -1;
  record.flags = static_cast<u32>(flags);
  record.launch_flags = launch_flags(call);
  emit_alloc(call, record);
}
GT_HOT void pool_alloc(const FinishedCall& call, u64 address, u64 bytes, CUmemoryPool pool, CUstream stream) {
  Alloc record{};
  record.address = address;
  record.bytes = bytes;
  record.pool = handle(pool);
  record.stream = handle(stream);
  record.kind = static_cast<u32>(AllocKind::Pool);
  record.device = -1;
  record.launch_flags = stream_flags(call, stream);
  emit_alloc(call, record);
}
void vmm_create(const FinishedCall& call, CUmemGenericAllocationHandle created, u64 bytes,
                const CUmemAllocationProp* properties);
void vmm_map(const FinishedCall& call, CUdeviceptr address, u64 bytes, CUmemGenericAllocationHandle mapped);
void array_allocated(const FinishedCall& call, u64 array, u64 elements, CUarray_format format, u32 channels, u32 flags);
template <typename Descriptor>
void array_created(const FinishedCall& call, CUarray array, const Descriptor* d) {
  array_allocated(call, handle(array), d ? u64{d->Width} * (d->Height ? d->Height : 1) : 0,
                  d ? d->Format : CUarray_format{}, d ? d->NumChannels : 0, 0);
}
template <typename Descriptor>
void array_3d_created(const FinishedCall& call, CUarray array, const Descriptor* d) {
  const u64 elements = d ? u64{d->Width} * (d->Height ? d->Height : 1) * (d->Depth ? d->Depth : 1) : 0;
  array_allocated(call, handle(array), elements, d ? d->Format : CUarray_format{}, d ? d->NumChannels : 0,
                  d ? d->Flags : 0);
}
void mipmapped_created(const FinishedCall& call, CUmipmappedArray array, const CUDA_ARRAY3D_DESCRIPTOR* d,
                       unsigned levels);

template <typename Address>
GT_HOT void freed(const FinishedCall& call, AllocKind kind, Address address, u64 bytes = 0) {
  Free record{};
  record.address = handle(address);
  record.bytes = bytes;
  record.context = call.context();
  record.kind = static_cast<u32>(kind);
  record.launch_flags = launch_flags(call);
  emit(call, record);
}
GT_HOT void pool_freed(const FinishedCall& call, CUdeviceptr address, CUstream stream) {
  Free record{};
  record.address = address;
  record.stream = handle(stream);
  record.context = call.context();
  record.kind = static_cast<u32>(AllocKind::Pool);
  record.launch_flags = stream_flags(call, stream);
  emit(call, record);
}

// ------------------------------------------------------------------ order
GT_HOT void sync_call(const FinishedCall& call, SyncKind kind, u64 object) {
  Sync record{};
  record.object = object;
  record.context = call.context();
  record.what = static_cast<u32>(kind);
  record.flags = launch_flags(call);
  emit(call, record);
}
GT_HOT void stream_order(const FinishedCall& call, OrderKind kind, u64 object, CUstream stream) {
  StreamOrder record{};
  record.object = object;
  record.stream = handle(stream);
  record.context = call.context();
  record.what = static_cast<u32>(kind);
  record.flags = stream_flags(call, stream);
  emit(call, record);
}

// ------------------------------------------------------------------ objects
template <typename Object>
GT_HOT void object_call(const FinishedCall& call, ObjectKind kind, ObjectAct act, Object object, u64 parent = 0,
                        i64 value = 0) {
  ObjectCall record{};
  record.object = handle(object);
  record.parent = parent;
  record.value = value;
  record.kind = static_cast<u32>(kind);
  record.what = static_cast<u32>(act);
  emit(call, record);
}
inline void stream_call(const FinishedCall& call, CUstream stream, u64 context, i64 value) {
  object_call(call, ObjectKind::Stream, ObjectAct::Created, stream, context, value);
  stream_created(call, stream, context);
}
// Every call after which another context may be current.
void context_call(const FinishedCall& call, ObjectAct act, u64 context, i64 value = 0);
void primary_retained(const FinishedCall& call, CUcontext context, CUdevice device);
void driver_initialized(const FinishedCall& call);
void profiler_range(const FinishedCall& call, bool begin);

// ------------------------------------------------------------------ machine code
void module_loaded(const FinishedCall& call, ModuleAct act, u64 module, ImageKind image, u64 bytes, const char* path);
void image_loaded(const FinishedCall& call, ModuleAct act, u64 module, const void* image);
void file_loaded(const FinishedCall& call, ModuleAct act, u64 module, const char* path);
void unloaded(const FinishedCall& call, u64 module);
void forget_module(u64 module);
void library_module(const FinishedCall& call, CUmodule module, CUlibrary library);
template <typename Module>
void module_image(const FinishedCall& call, ModuleAct act, Module module, const void* image) {
  image_loaded(call, act, handle(module), image);
}
template <typename Module>
void module_file(const FinishedCall& call, ModuleAct act, Module module, const char* path) {
  file_loaded(call, act, handle(module), path);
}
// Before the real call: once that has begun, another thread may be given the same handles for something else. A call that fails has us
// ask for what we forgot again.
template <typename Module>
Module unloading(Module module) {
  forget_module(handle(module));
  return module;
}
template <typename Module>
void module_unloaded(const FinishedCall& call, Module module) {
  unloaded(call, handle(module));
}
void link_data(const FinishedCall& call, CUlinkState state, CUjitInputType type, u64 bytes, const char* name);
void link_file(const FinishedCall& call, CUlinkState state, CUjitInputType type, const char* path);
void link_complete(const FinishedCall& call, CUlinkState state, u64 bytes);

template <typename Function, typename Owner>
void function_get(const FinishedCall& call, FunctionKind kind, Function function, Owner owner, const char* name) {
  code_wanted(call, handle(owner));
  function_given(call, handle(function), kind, handle(owner), name);
}
inline void function_of_kernel(const FinishedCall& call, CUfunction function, CUkernel kernel) {
  function_given(call, handle(function), FunctionKind::Function, handle(kernel), nullptr);
}
void functions_listed(const FinishedCall& call, const CUfunction* functions, unsigned capacity, CUmodule module);
void kernels_listed(const FinishedCall& call, const CUkernel* kernels, unsigned capacity, CUlibrary library);

}  // namespace gputrace
