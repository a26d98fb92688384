#include "interpose/facts.h"

#include <sys/mman.h>

#include <cstring>

#include "base/raw_syscall.h"
#include "interpose/device_collection.h"
#include "interpose/driver_query.h"
#include "interpose/elf_lookup.h"
#include "interpose/session.h"
#include "trace/string_id.h"

namespace gputrace {
namespace {

constexpr u32 kKnownTexts = 1u << 14;
constexpr u32 kKnownContexts = 64;
constexpr u32 kTextPiece = 2048;

// Kept under the definition lock; looked at without it, then only to find out whether there is something to ask.
struct FunctionEntry {
  std::atomic<u64> function;  // 0: free; never freed again
  u64 owner;
  u64 name;           // text id
  u32 described;      // 1: nothing more to ask
  FunctionKind kind;  // 0: not known
};

struct FactsMemory {
  FunctionEntry functions[kFunctionEntries];
  u16 used[kFunctionEntries];  // places of the entries in the order they were made: a walk touches no more than there
                               // are
  u64 described[kFunctionEntries];
  u64 texts[kKnownTexts];  // ids that are defined
};

constinit FactsMemory* memory = nullptr;
// Under the definition lock.
constinit u64 known_contexts[kKnownContexts]{};
constinit u32 context_count = 0;
constinit u64 known_devices = 0;                    // bit per ordinal
constinit std::atomic<u64> primary_contexts[64]{};  // by device ordinal, as cuDevicePrimaryCtxRetain gave them
constinit u32 function_count = 0;
constinit u32 text_count = 0;
constinit std::atomic<bool> process_told{false};

// True: it is in the set already. Else its place, or nullptr when the set is full (then it is defined again each time,
// which is harmless).
bool known_text(u64 id, u64*& place) {
  place = nullptr;
  if (text_count > kKnownTexts / 4 * 3) return false;
  u32 at = static_cast<u32>(id % kKnownTexts);
  for (; memory->texts[at]; at = (at + 1) % kKnownTexts) {
    if (memory->texts[at] == id) return true;
  }
  place = &memory->texts[at];
  return false;
}

bool write_piece(const FinishedCall& call, u64 id, const char* text, u64 offset, u64 length, u64 total) {
  const u32 size = static_cast<u32>(sizeof(Text) + align_up(length, 8));
  char* at = reserve_definition(size, call.end);
  if (!at) return false;
  std::memset(at, 0, size);
  Text& out = *reinterpret_cast<Text*>(at);
  out.header = {static_cast<u16>(RecordType::Text), static_cast<u16>(size), 0, 0, call.end, call.end};
  out.id = id;
  out.offset = static_cast<u32>(offset);
  out.total = static_cast<u32>(total);
  std::memcpy(at + sizeof(Text), text + offset, length);
  commit_definition(at, size, call.generation);
  return true;
}

// Entry of a function, made if need be; nullptr: the table is full. Under the lock.
FunctionEntry* entry_of(u64 function, bool make) {
  u32 at = function_place(function);
  for (u32 steps = 0; steps < kFunctionEntries; ++steps, at = (at + 1) % kFunctionEntries) {
    FunctionEntry& entry = memory->functions[at];
    const u64 there = entry.function.load(std::memory_order_acquire);
    if (there == function) return &entry;
    if (there) continue;
    if (!make || function_count > kFunctionEntries / 4 * 3) return nullptr;
    memory->used[function_count++] = static_cast<u16>(at);
    entry.function.store(function, std::memory_order_release);
    return &entry;
  }
  return nullptr;
}

void forget(FunctionEntry& entry) {
  entry.described = 0;
  const u64 function = entry.function.load(std::memory_order_relaxed);
  u64& place = described_functions[function_place(function)];
  if (std::atomic_ref(place).load(std::memory_order_relaxed) == function)
    std::atomic_ref(place).store(0, std::memory_order_relaxed);
}

u64 owner_of_owner(u64 owner) {
  const FunctionEntry* kernel = owner ? entry_of(owner, false) : nullptr;
  return kernel ? kernel->owner : owner;
}

// What FunctionGet says, under the lock.
void give(const FinishedCall& call, u64 function, FunctionKind kind, u64 owner, const char* name) {
  FunctionGet record{};
  record.function = function;
  record.module = owner;
  record.kind = static_cast<u32>(kind);
  record.thread = call.thread();
  if (name) {
    record.name = define_text(call, name, std::strlen(name));
  } else if (const FunctionEntry* source = entry_of(owner, false)) {
    record.name = source->name;
  }
  if (FunctionEntry* entry = entry_of(function, true)) {
    if (entry->name != record.name || entry->kind != kind) forget(*entry);
    entry->owner = owner_of_owner(owner);
    entry->name = record.name;
    entry->kind = kind;
  }
  define(call, record);
}

struct Attributes {
  i32 values[9];
};

bool read_attributes(u64 function, FunctionKind kind, Attributes& attributes) {
  const DriverQuery& query = driver_query();
  CUdevice device = 0;
  if (kind == FunctionKind::Kernel &&
      (!query.cuKernelGetAttribute || !query.cuCtxGetDevice || query.cuCtxGetDevice(&device) != CUDA_SUCCESS))
    return false;
  if (kind == FunctionKind::Function && !query.cuFuncGetAttribute) return false;
  bool any = false;
  for (int i = 0; i < 9; ++i) {
    int value = -1;
    const auto attribute = static_cast<CUfunction_attribute>(i);
    const CUresult result =
        kind == FunctionKind::Kernel
            ? query.cuKernelGetAttribute(&value, attribute, reinterpret_cast<CUkernel>(function), device)
            : query.cuFuncGetAttribute(&value, attribute, reinterpret_cast<CUfunction>(function));
    attributes.values[i] = result == CUDA_SUCCESS ? value : -1;
    any |= result == CUDA_SUCCESS;
  }
  return any;
}

const char* ask_name(u64 function, FunctionKind kind) {
  const DriverQuery& query = driver_query();
  const char* name = nullptr;
  if (kind == FunctionKind::Kernel && query.cuKernelGetName &&
      query.cuKernelGetName(&name, reinterpret_cast<CUkernel>(function)) == CUDA_SUCCESS)
    return name;
  if (kind == FunctionKind::Function && query.cuFuncGetName &&
      query.cuFuncGetName(&name, reinterpret_cast<CUfunction>(function)) == CUDA_SUCCESS)
    return name;
  return nullptr;
}

u32 device_number(const DriverQuery& query, CUdevice device, CUdevice_attribute attribute) {
  int value = 0;
  return query.cuDeviceGetAttribute && query.cuDeviceGetAttribute(&value, attribute, device) == CUDA_SUCCESS &&
                 value > 0
             ? static_cast<u32>(value)
             : 0;
}

struct DeviceAnswer {
  DeviceFacts facts;
  char name[256];
};

void ask_device(CUdevice device, DeviceAnswer& answer) {
  const DriverQuery& query = driver_query();
  DeviceFacts& facts = answer.facts;
  facts.device = device;
  if (!query.cuDeviceGetName || query.cuDeviceGetName(answer.name, sizeof answer.name, device) != CUDA_SUCCESS)
    answer.name[0] = 0;
  CUuuid uuid{};
  if (query.cuDeviceGetUuid && query.cuDeviceGetUuid(&uuid, device) == CUDA_SUCCESS) {
    std::memcpy(&facts.uuid_low, uuid.bytes, 8);
    std::memcpy(&facts.uuid_high, uuid.bytes + 8, 8);
  }
  size_t bytes = 0;
  if (query.cuDeviceTotalMem_v2 && query.cuDeviceTotalMem_v2(&bytes, device) == CUDA_SUCCESS)
    facts.memory_bytes = bytes;
  const auto number = [&](CUdevice_attribute attribute) { return device_number(query, device, attribute); };
  facts.sms = number(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  facts.capability_major = number(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  facts.capability_minor = number(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  facts.clock_khz = number(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
  facts.memory_clock_khz = number(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
  facts.bus_width_bits = number(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
  facts.max_threads_per_sm = number(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
  facts.max_blocks_per_sm = number(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
  facts.registers_per_sm = number(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
  facts.shared_bytes_per_sm = number(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
  facts.reserved_shared_bytes = number(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
  facts.warp_size = number(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
  facts.l2_bytes = number(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  facts.pci_domain = number(CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID);
  facts.pci_bus_device = number(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID) << 8 | number(CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID);
}

bool context_known(u64 context) {
  for (u32 i = 0; i < context_count; ++i) {
    if (known_contexts[i] == context) return true;
  }
  return false;
}

// First sight of a context: it, and its device. Asked before the lock is taken, written under it.
void tell_context(const FinishedCall& call, u64 context) {
  const DriverQuery& query = driver_query();
  ContextFacts facts{};
  facts.context = context;
  CUdevice device = -1;
  if (!query.cuCtxGetDevice || query.cuCtxGetDevice(&device) != CUDA_SUCCESS) device = -1;
  facts.device = device;
  facts.flags = device >= 0 && device < 64 && primary_contexts[device].load(std::memory_order_relaxed) == context;
  const FinishedCall definition = call.nameless();
  const bool new_device = device >= 0 && device < 64 && !(known_devices >> device & 1);
  DeviceAnswer answer{};
  if (new_device) ask_device(device, answer);
  if (!begin_definition()) return;
  if (!context_known(context)) {
    if (context_count < kKnownContexts) known_contexts[context_count++] = context;
    define(definition, facts);
  }
  if (new_device && !(known_devices >> device & 1)) {
    known_devices |= 1ull << device;
    answer.facts.name = define_text(definition, answer.name, std::strlen(answer.name));
    define(definition, answer.facts);
  }
  end_definition();
}

}  // namespace

constinit std::atomic<u32> open_captures{0};
constinit u64* described_functions = nullptr;

bool reset_facts() {
  if (memory)
    raw_syscall(SYS_madvise, raw_pointer(memory), sizeof(FactsMemory),
                MADV_DONTNEED);  // a parent's: private, so it reads as zeros
  if (!memory) {
    const long mapped = raw_syscall(SYS_mmap, 0, sizeof(FactsMemory), PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    memory = mapped < 0 && mapped > -4096 ? nullptr : reinterpret_cast<FactsMemory*>(mapped);
  }
  described_functions = memory ? memory->described : nullptr;
  open_captures.store(0, std::memory_order_relaxed);
  process_told.store(false, std::memory_order_relaxed);
  context_count = function_count = text_count = 0;
  known_devices = 0;
  return memory;
}

Definitions::Definitions() {
  for (int attempt = 0; attempt < 64 && !held_; ++attempt) {
    held_ = begin_definition();
    if (!held_) raw_syscall(SYS_sched_yield);
  }
}

u64 define_text(const FinishedCall& call, const char* text, u64 length) {
  if (!length) return 0;
  if (length > kMaxTextLength) length = kMaxTextLength;
  const u64 id = text_id(text, length);
  u64* place;
  if (known_text(id, place)) return id;
  for (u64 offset = 0; offset < length; offset += kTextPiece) {
    const u64 piece = length - offset < kTextPiece ? length - offset : kTextPiece;
    if (!write_piece(call, id, text, offset, piece, length)) return 0;
  }
  if (place) {
    *place = id;
    ++text_count;
  }
  return id;
}

void function_given(const FinishedCall& call, u64 function, FunctionKind kind, u64 owner, const char* name) {
  ErrnoGuard guard;
  if (call.ok() && function && begin_definition()) {
    give(call, function, kind, owner, name);
    end_definition();
    return;
  }
  FunctionGet record{};
  record.function = function;
  record.module = owner;
  record.kind = static_cast<u32>(kind);
  record.thread = call.thread();
  emit(call, record);
}

void functions_given(const FinishedCall& call, const u64* functions, u64 count, FunctionKind kind, u64 owner) {
  ErrnoGuard guard;
  const FinishedCall definition = call.nameless();
  for (u64 i = 0; i < count; ++i) {
    if (!functions[i]) continue;
    const char* name = ask_name(functions[i], kind);
    if (!begin_definition()) return;
    give(definition, functions[i], kind, owner, name);
    end_definition();
  }
}

void functions_gone(u64 owner) {
  ErrnoGuard guard;
  if (!begin_definition()) return;
  for (u32 i = 0; i < function_count; ++i) {
    FunctionEntry& entry = memory->functions[memory->used[i]];
    if (entry.owner != owner) continue;
    forget(entry);
    entry.owner = entry.name = 0;
    entry.kind = FunctionKind{};
  }
  end_definition();
}

void describe_function(FinishedCall call, u64 function) {
  if (!call.ok() || !function) return;
  FunctionEntry* entry = entry_of(function, false);
  if (entry && entry->described) {  // another one took its place
    std::atomic_ref(described_functions[function_place(function)]).store(function, std::memory_order_relaxed);
    return;
  }
  if (open_captures.load(std::memory_order_relaxed)) return;  // a later launch, or the instantiation, does it
  if (call.context() == 0) return;
  ErrnoGuard guard;
  const FunctionKind kind = entry ? entry->kind : FunctionKind{};
  FunctionFacts facts{};
  Attributes attributes{};
  const bool asked = kind != FunctionKind{} && read_attributes(function, kind, attributes);
  const char* name = asked && !entry->name ? ask_name(function, kind) : nullptr;
  if (!begin_definition()) return;
  entry = entry_of(function, true);
  if (entry && !entry->described) {
    entry->described = 1;
    std::atomic_ref(described_functions[function_place(function)]).store(function, std::memory_order_relaxed);
    const FinishedCall definition = call.nameless();
    facts.function = function;
    facts.context = call.context();
    if (name) facts.name = entry->name = define_text(definition, name, std::strlen(name));
    facts.max_threads = attributes.values[0];
    facts.static_shared_bytes = attributes.values[1];
    facts.const_bytes = attributes.values[2];
    facts.local_bytes = attributes.values[3];
    facts.registers = attributes.values[4];
    facts.ptx_version = attributes.values[5];
    facts.binary_version = attributes.values[6];
    facts.max_dynamic_shared_bytes = attributes.values[8];
    if (asked) define(definition, facts);
  }
  end_definition();
}

u64 refresh_context(FinishedCall call) {
  if (!call.ok()) return 0;
  ErrnoGuard guard;
  const DriverQuery& query = driver_query();
  CUcontext current = nullptr;
  if (!query.cuCtxGetCurrent || query.cuCtxGetCurrent(&current) != CUDA_SUCCESS || !current)
    return 0;  // asked again next time
  const u64 context = reinterpret_cast<u64>(current);
  process_ready(call);
  if (!context_known(context)) tell_context(call, context);
  default_stream_used(call, context);
  thread_state.context = context;
  return context;
}

void primary_context_retained(i64 device, u64 context) {
  if (context && device >= 0 && device < 64) primary_contexts[device].store(context, std::memory_order_relaxed);
}

u32 capture_flags(CUstream stream, bool per_thread) {
  ErrnoGuard guard;
  const DriverQuery& query = driver_query();
  const auto ask = per_thread ? query.cuStreamIsCapturing_ptsz : query.cuStreamIsCapturing;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  if (!ask || ask(stream, &status) != CUDA_SUCCESS) return kLaunchCaptureUnknown;
  return status == CU_STREAM_CAPTURE_STATUS_NONE ? 0u : kLaunchCaptured;
}

void process_ready(const FinishedCall& call) {
  if (process_told.load(std::memory_order_relaxed)) return;
  ErrnoGuard guard;
  const DriverQuery& query = driver_query();
  ProcessFacts facts{};
  int version = 0, devices = -1;
  if (query.cuDriverGetVersion && query.cuDriverGetVersion(&version) == CUDA_SUCCESS) facts.driver_version = version;
  facts.devices = query.cuDeviceGetCount && query.cuDeviceGetCount(&devices) == CUDA_SUCCESS ? devices : -1;
  LoadedObject driver, runtime;
  const bool has_driver = find_object(ObjectRole::Driver, driver);
  const bool has_runtime = find_object(ObjectRole::Runtime, runtime);
  if (!begin_definition()) return;
  if (!process_told.exchange(true, std::memory_order_relaxed)) {
    const FinishedCall definition = call.nameless();
    if (has_driver) facts.driver_path = define_text(definition, driver.path, std::strlen(driver.path));
    if (has_runtime) facts.runtime_path = define_text(definition, runtime.path, std::strlen(runtime.path));
    define(definition, facts);
  }
  end_definition();
}

}  // namespace gputrace
