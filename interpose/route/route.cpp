#include "interpose/route/route.h"

#include <dlfcn.h>

#include <cstring>

#include "interpose/calls.h"
#include "interpose/cuda_api.h"
#include "interpose/device/cupti_calls.h"
#include "interpose/hot/session.h"
#include "interpose/hot/traced.h"
#include "interpose/library/library_route.h"
#include "interpose/lookup/elf_file.h"
#include "interpose/lookup/elf_lookup.h"
#include "interpose/lookup/named_variables.h"
#include "interpose/route/lookup_error.h"
#include "interpose/settings/environment.h"

namespace gputrace {

constinit void* gputrace_real_dlsym = nullptr;
constinit void* gputrace_real_dlopen = nullptr;

namespace {

using DlsymFunction = void* (*)(void*, const char*);

// libc's own, for questions of ours: never another interposer's, and called from here on purpose (RTLD_NEXT then means
// "after us").
DlsymFunction libc_dlsym() {
  static constinit std::atomic<void*> found{nullptr};
  void* function = found.load(std::memory_order_relaxed);
  if (!function) {
    function = find_libc_function("dlsym");
    if (!function) function = find_function_after_us("dlsym");  // another C library's
    found.store(function, std::memory_order_relaxed);
  }
  return reinterpret_cast<DlsymFunction>(function);
}

void* learn(u16 id, void* real) {
  keep_loaded(real);
  void* nothing = nullptr;
  if (real_functions[id].compare_exchange_strong(nothing, real, std::memory_order_relaxed)) return real;
  return nothing;
}

// ------------------------------------------------------------------ addresses of the driver's functions

// address -> row, for all rows that the driver exports. Built once.
struct AddressIndex {
  static constexpr u32 kSize = 4096;
  std::atomic<u32> state;  // 0, 1 being built, 2 ready
  void* addresses[kCallCount];
  u16 ids[kSize];

  static u32 place(const void* address) {
    return static_cast<u32>((reinterpret_cast<u64>(address) * 0x9e3779b97f4a7c15ull) >> 52);
  }
};
constinit AddressIndex driver_addresses{};

bool build_driver_index() {
  AddressIndex& index = driver_addresses;
  u32 state = index.state.load(std::memory_order_acquire);
  if (state == 2) return true;
  if (state == 1 || !index.state.compare_exchange_strong(state, 1, std::memory_order_acq_rel)) return false;
  const char* names[kCallCount];
  for (u16 id = 0; id < kCallCount; ++id)
    names[id] = kCalls[id].level == CallLevel::Driver || kCalls[id].level == CallLevel::Route ? kCalls[id].name() : "";
  if (!find_functions(ObjectRole::Driver, names, index.addresses, kCallCount)) {
    index.state.store(0, std::memory_order_release);
    return false;
  }
  for (u16 id = 1; id < kCallCount; ++id) {
    if (!index.addresses[id]) continue;
    u32 at = AddressIndex::place(index.addresses[id]);
    while (index.ids[at]) at = (at + 1) % AddressIndex::kSize;
    index.ids[at] = id;
  }
  index.state.store(2, std::memory_order_release);
  return true;
}

// The row whose exported function lives at `address`; names of the asked documented name first, for drivers that alias.
u16 row_at(const void* address, const char* documented) {
  if (!build_driver_index()) return kNoCall;
  const AddressIndex& index = driver_addresses;
  const std::size_t length = std::strlen(documented);
  u16 any = kNoCall;
  for (u32 at = AddressIndex::place(address); index.ids[at]; at = (at + 1) % AddressIndex::kSize) {
    const u16 id = index.ids[at];
    if (index.addresses[id] != address) continue;
    if (kCalls[id].documented_length == length && std::memcmp(kCalls[id].name(), documented, length) == 0) return id;
    if (!any) any = id;
  }
  return any;
}

// ------------------------------------------------------------------ cuGetProcAddress

// What the caller gets instead of the driver's function. Untouched: what we have no row for, and what a table older
// than the driver could mistake for another ABI.
void* substitute_entry(const char* symbol, void* real, int version, u64 flags, const void* caller) {
  if (!symbol || !real || is_ours(real) || lies_in(caller, ObjectRole::Cupti)) return real;
  if (lies_in(caller, ObjectRole::Driver)) return real;  // a door to it: calls of it come through us already
  u16 id = row_at(real, symbol);
  if (!id && version >= 0 && version <= CUDA_VERSION) {
    id = find_call(symbol, static_cast<u32>(version), (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0);
  }
  if (!id) return real;
  learn(id, real);
  return kCallWrappers[id];
}

// ------------------------------------------------------------------ dlsym

bool may_be_ours(const char* name) {
  if (name[0] == 'c') {
    if (name[1] != 'u') return false;
    const char c = name[2];
    return (c >= 'A' && c <= 'Z') || (c == 'd' && name[3] == 'a') || c == 'b' || c == 'd' || c == 'f' || c == 'p' ||
           c == 's';
  }
  if (name[0] == 'n') return name[1] == 'c' && name[2] == 'c' && name[3] == 'l';
  return name[0] == '_' && name[1] == '_' && name[2] == 'c';
}

ObjectRole role_of_call(u16 id) {
  return kCalls[id].level == CallLevel::Runtime ? ObjectRole::Runtime : ObjectRole::Driver;
}

// Whether `from`, which holds `caller`, is a door to the driver: an object that offers the function itself and looks up
// what stands behind it. What it asks for it gets, since calls of it come through us already. (A function that the program itself
// offers is called past us: there what it finds is the one place to see the call.)
bool is_door(const LoadedObject& from, const void* caller, const char* name) {
  if (from.role == ObjectRole::Driver) return true;
  return from.path && from.path[0] && find_function_beside(caller, name);
}

// Whether an object that is loaded, other than us, defines the function at all.
bool has_real(u16 id) { return find_function(ObjectRole::Other, kCalls[id].name()) != nullptr; }

// A look-up by name for the whole program: our export answers it, which is only right if there is something behind it.
DlsymAnswer answer_global(const char* name, u16 id, const void* caller) {
  if (has_real(id)) return {nullptr, 0};
  DlsymFunction real = libc_dlsym();
  if (real) real(RTLD_NEXT, name);  // finds nothing, and says so
  not_found_for(caller);
  return {nullptr, 1};
}

// Two runtimes in one process: a wrapper reaches one. The other one's functions are handed out as they are.
bool same_runtime(u16 id, void* real, void* caller) {
  void* known = real_functions[id].load(std::memory_order_relaxed);
  if (known) return known == real;
  void* usual = resolve_runtime(id, caller);
  return !usual || usual == real;
}

}  // namespace

// ------------------------------------------------------------------ what stands behind a wrapper

void* resolve_driver(u16 id) {
  ErrnoGuard guard;
  const char* name = kCalls[id].name();
  void* driver = find_function(ObjectRole::Driver, name);
  void* next = find_function_after_us(name);
  void* real = driver;
  if (next && next != driver) {
    // Another interposer behind us, or an object that happens to have the name: the loader's order decides.
    DlsymFunction ask = libc_dlsym();
    void* in_scope = ask ? ask(RTLD_NEXT, name) : nullptr;
    if (in_scope && !lies_in(in_scope, ObjectRole::Own)) real = in_scope;
  }
  return real ? learn(id, real) : nullptr;
}

void* resolve_runtime(u16 id, void* caller) {
  ErrnoGuard guard;
  const char* name = kCalls[id].name();
  DlsymFunction ask = libc_dlsym();
  LoadedObject object;
  const auto usable = [&](void* function) {
    return function && find_object(function, object) && object.role != ObjectRole::Own;
  };
  void* next = find_function_after_us(name);
  if (!next)
    return real_functions[id].load(std::memory_order_relaxed);  // no object has it, but a handle may have given it
  if (ask) {
    if (void* in_scope = ask(RTLD_NEXT, name); usable(in_scope)) return in_scope;
    // Not in the global scope: the caller was linked against a runtime that came with it (RTLD_LOCAL). A loaded
    // object's handle is its link map, which dlopen(RTLD_NOLOAD) gives without loading anything.
    LoadedObject from;
    if (find_object(caller, from) && from.path && from.path[0]) {
      using Dlopen = void* (*)(const char*, int);
      auto open = reinterpret_cast<Dlopen>(find_libc_function("dlopen"));
      auto close = reinterpret_cast<int (*)(void*)>(find_libc_function("dlclose"));
      if (void* handle = open ? open(from.path, RTLD_LAZY | RTLD_NOLOAD) : nullptr) {
        void* own = ask(handle, name);
        if (close) close(handle);
        if (usable(own)) return own;
      }
    }
  }
  if (void* known = real_functions[id].load(std::memory_order_relaxed)) return known;
  if (void* loaded = find_function(ObjectRole::Runtime, name)) return loaded;
  return next;
}

extern "C" void* gputrace_find_dlsym() {
  ErrnoGuard guard;
  void* found = find_function_after_us("dlsym");
  __atomic_store_n(&gputrace_real_dlsym, found, __ATOMIC_RELEASE);
  return found;
}

extern "C" void* gputrace_find_dlopen() {
  ErrnoGuard guard;
  void* found = find_function_after_us("dlopen");
  __atomic_store_n(&gputrace_real_dlopen, found, __ATOMIC_RELEASE);
  return found;
}

// An object that is opened with RTLD_DEEPBIND finds its own dependencies before us: the flag is taken off where that would
// hide calls of CUDA, and there only, since others of its dependencies may then come from elsewhere.
extern "C" int gputrace_dlopen_flags(int flags, const char* file) {
  if (!(flags & RTLD_DEEPBIND) || gate_generation() == kGateOff || is_sandboxed()) return flags;
  const char* keep = copied_variable("GPUTRACE_KEEP_DEEPBIND");
  if (keep && keep[0] == '1') return flags;
  ErrnoGuard guard;
  return file_reaches_cuda(file) ? flags & ~RTLD_DEEPBIND : flags;
}

extern "C" DlsymAnswer gputrace_dlsym(void* handle, const char* name, void* caller) {
  if (!name || !may_be_ours(name) || !is_first_copy()) return {nullptr, 0};
  if (name[2] == 'p') return answer_cupti(handle, name, caller);
  const u16 id = find_call(name);
  if (!id) return {nullptr, 0};
  ErrnoGuard guard;
  if (kCalls[id].level == CallLevel::Library) {
    const DlsymAnswer answer = answer_library(handle, id, caller);
    if (answer.answered && !answer.value) not_found_for(caller);
    return answer;
  }
  LoadedObject from;
  find_object(caller, from);
  if (from.role == ObjectRole::Cupti) {
    // By handle it gets the driver's own anyway; by scope it would get ours.
    if (handle != RTLD_NEXT && handle != RTLD_DEFAULT) return {nullptr, 0};
    void* driver = find_function(role_of_call(id), name);
    return {driver, driver ? 1u : 0u};
  }
  bind_named_variables_of(caller, name);
  if (handle == RTLD_NEXT || handle == RTLD_DEFAULT) return answer_global(name, id, caller);
  if (is_door(from, caller, name)) return {nullptr, 0};
  DlsymFunction ask = libc_dlsym();
  if (!ask) return {nullptr, 0};
  void* real = ask(handle, name);
  if (!real) return {nullptr, 1};  // dlerror() is set
  if (is_ours(real)) return has_real(id) ? DlsymAnswer{real, 1} : answer_global(name, id, caller);
  LoadedObject object;
  if (!find_object(real, object) || object.role != role_of_call(id)) return {real, 1};
  if (object.role == ObjectRole::Runtime && !same_runtime(id, real, caller)) return {real, 1};
  learn(id, real);
  return {kCallWrappers[id], 1};
}

extern "C" __attribute__((visibility("default"))) CUresult CUDAAPI cuGetProcAddress(const char* symbol, void** pfn,
                                                                                    int cudaVersion, cuuint64_t flags) {
  auto real = reinterpret_cast<PFN_cuGetProcAddress_v11030>(
      real_functions[kCall_cuGetProcAddress].load(std::memory_order_relaxed));
  if (!real) real = reinterpret_cast<PFN_cuGetProcAddress_v11030>(resolve_driver(kCall_cuGetProcAddress));
  if (!real) return CUDA_ERROR_STUB_LIBRARY;
  const CUresult result = real(symbol, pfn, cudaVersion, flags);
  if (gate_generation() == kGateOff || result != CUDA_SUCCESS || !pfn) return result;
  ErrnoGuard guard;
  *pfn = substitute_entry(symbol, *pfn, cudaVersion, flags, __builtin_return_address(0));
  return result;
}

extern "C" __attribute__((visibility("default"))) CUresult CUDAAPI cuGetProcAddress_v2(
    const char* symbol, void** pfn, int cudaVersion, cuuint64_t flags, CUdriverProcAddressQueryResult* symbolStatus) {
  auto real = reinterpret_cast<PFN_cuGetProcAddress_v12000>(
      real_functions[kCall_cuGetProcAddress_v2].load(std::memory_order_relaxed));
  if (!real) real = reinterpret_cast<PFN_cuGetProcAddress_v12000>(resolve_driver(kCall_cuGetProcAddress_v2));
  if (!real) return CUDA_ERROR_STUB_LIBRARY;
  const CUresult result = real(symbol, pfn, cudaVersion, flags, symbolStatus);
  if (gate_generation() == kGateOff || result != CUDA_SUCCESS || !pfn) return result;
  ErrnoGuard guard;
  *pfn = substitute_entry(symbol, *pfn, cudaVersion, flags, __builtin_return_address(0));
  return result;
}

}  // namespace gputrace
