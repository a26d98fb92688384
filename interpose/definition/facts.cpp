#include "interpose/definition/facts.h"

#include <cstring>

#include "base/mapped_memory.h"
#include "interpose/definition/own_work.h"
#include "interpose/hot/session.h"
#include "interpose/lookup/driver_query.h"
#include "trace/string_id.h"

namespace gputrace {
namespace {

constexpr u32 kKnownTexts = 1u << 14;
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
constinit u32 function_count = 0;
constinit u32 text_count = 0;
constinit u32 frame_count = 0;

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

}  // namespace

constinit std::atomic<u32> open_captures{0};
constinit u64* described_functions = nullptr;

bool reset_facts() {
  if (memory)
    clear_memory(memory, sizeof(FactsMemory));  // a parent's
  else
    memory = map_memory<FactsMemory>(sizeof(FactsMemory));
  described_functions = memory ? memory->described : nullptr;
  open_captures.store(0, std::memory_order_relaxed);
  function_count = text_count = frame_count = 0;
  return memory;
}

Definitions::Definitions() : held_(begin_definition(kRestsForWhatIsSaidOnce)) {}

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

void define_note(const FinishedCall& call, const char* text) {
  const Definitions lock;
  if (!lock.held()) return;
  Note record{};
  record.text = define_text(call, text, std::strlen(text));
  record.what = static_cast<u32>(NoteKind::Other);
  define(call, record);
}

namespace {

template <typename Frame>
u32 write_numbered(const FinishedCall& call, Frame record) {
  char* at = reserve_definition(sizeof record, call.end);
  if (!at) return 0;
  record.id = ++frame_count;
  fill_header(record, call);
  std::memcpy(at, &record, sizeof record);
  commit_definition(at, sizeof record, call.generation);
  return record.id;
}

}  // namespace

u32 define_frame(const FinishedCall& call, const StackFrame& record) { return write_numbered(call, record); }
u32 define_frame(const FinishedCall& call, const NativeFrame& record) { return write_numbered(call, record); }

void function_given(const FinishedCall& call, u64 function, FunctionKind kind, u64 owner, const char* name) {
  ErrnoGuard guard;
  if (call.ok() && function) {
    const Definitions lock;
    if (lock.held()) return give(call, function, kind, owner, name);
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
    const Definitions lock;
    if (!lock.held()) return;
    give(definition, functions[i], kind, owner, name);
  }
}

namespace {

// The kernel of that name, where there is one library that it can be of; else 0. Under the lock.
u64 only_kernel_named(u64 name) {
  u64 found = 0, owner = 0;
  for (u32 i = 0; i < function_count; ++i) {
    const FunctionEntry& entry = memory->functions[memory->used[i]];
    if (entry.kind != FunctionKind::Kernel || entry.name != name) continue;
    if (found && entry.owner != owner) return 0;
    found = entry.function.load(std::memory_order_relaxed);
    owner = entry.owner;
  }
  return found;
}

}  // namespace

void function_of_node(const FinishedCall& call, u64 function) {
  const FunctionEntry* known = function ? entry_of(function, false) : nullptr;
  if (!function || (known && known->name)) return;
  ErrnoGuard guard;
  const DriverQuery& query = driver_query();
  const char* const name = ask_name(function, FunctionKind::Function);
  if (!name) return;
  CUmodule module = nullptr;
  if (query.cuFuncGetModule && query.cuFuncGetModule(&module, reinterpret_cast<CUfunction>(function)) != CUDA_SUCCESS)
    module = nullptr;
  if (!begin_definition()) return;
  FinishedCall before = call.nameless();
  before.end = before.begin;  // a reader comes upon it before the node
  const u64 kernel = only_kernel_named(text_id(name, std::strlen(name)));
  give(before, function, FunctionKind::Function, kernel ? kernel : reinterpret_cast<u64>(module), name);
  end_definition();
  if (kernel) function_launched(call, kernel);  // a capture has left that to whoever instantiates it
}

void functions_gone(u64 owner) {
  ErrnoGuard guard;
  const Definitions lock;
  if (!lock.held()) return;
  for (u32 i = 0; i < function_count; ++i) {
    FunctionEntry& entry = memory->functions[memory->used[i]];
    if (entry.owner != owner) continue;
    forget(entry);
    entry.owner = entry.name = 0;
    entry.kind = FunctionKind{};
  }
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
  const OwnWorkScope work(call, OwnWorkKind::Function);
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

u32 capture_flags(CUstream stream, bool per_thread) {
  ErrnoGuard guard;
  const DriverQuery& query = driver_query();
  const auto ask = per_thread ? query.cuStreamIsCapturing_ptsz : query.cuStreamIsCapturing;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  if (!ask || ask(stream, &status) != CUDA_SUCCESS) return kLaunchCaptureUnknown;
  return status == CU_STREAM_CAPTURE_STATUS_NONE ? 0u : kLaunchCaptured;
}

}  // namespace gputrace
