#include "interpose/library/library_route.h"

#include <dlfcn.h>

#include <cstring>

#include "interpose/hot/session.h"
#include "interpose/hot/traced.h"
#include "interpose/lookup/elf_lookup.h"
#include "interpose/settings/options.h"

namespace gputrace {

constinit LibraryEntry library_entries[kLibraryCount]{};

namespace {

// Looks up as the loader does, from this library on: the place of another interposer behind us is kept.
struct Loader {
  void* (*dlsym)(void*, const char*) = nullptr;
  void* (*dlvsym)(void*, const char*, const char*) = nullptr;
  void* (*dlopen)(const char*, int) = nullptr;
  int (*dlclose)(void*) = nullptr;

  Loader()
      : dlsym(reinterpret_cast<decltype(dlsym)>(find_libc_function("dlsym"))),
        dlvsym(reinterpret_cast<decltype(dlvsym)>(find_libc_function("dlvsym"))),
        dlopen(reinterpret_cast<decltype(dlopen)>(find_libc_function("dlopen"))),
        dlclose(reinterpret_cast<decltype(dlclose)>(find_libc_function("dlclose"))) {}

  void* find(void* handle, const char* name, const char* version) const {
    void* found = nullptr;
    if (version && dlvsym)
      found = dlvsym(handle, name, version);
    else if (dlsym)
      found = dlsym(handle, name);
    LoadedObject object;
    return found && find_object(found, object) && object.role != ObjectRole::Own ? found : nullptr;
  }
};

struct Caller {
  LoadedObject object;
  bool known = false;     // lies in an object
  bool internal = false;  // which is a vendor's library
  explicit Caller(const void* address) {
    known = find_object(address, object);
    internal = known && object.role == ObjectRole::Library;
  }
};

// What the name means to the calling object: the global scope, then what came with the object. nullptr: nothing.
void* in_scope(const Loader& loader, const Caller& caller, const char* name, const char* version) {
  if (void* found = loader.find(RTLD_NEXT, name, version)) return found;
  if (!caller.known || !caller.object.path || !caller.object.path[0] || !loader.dlopen) return nullptr;
  // A loaded object's handle, without loading anything.
  void* handle = loader.dlopen(caller.object.path, RTLD_LAZY | RTLD_NOLOAD);
  if (!handle) return nullptr;
  void* found = loader.find(handle, name, version);
  if (loader.dlclose) loader.dlclose(handle);
  return found;
}

void* real_function(u16 id, const Caller& caller, const void* address) {
  const char* name = kCalls[id].name();
  const SymbolReference reference = find_reference(address, name);
  void* known = real_functions[id].load(std::memory_order_relaxed);
  if (!reference.refers && known) return known;  // through a pointer that dlsym gave
  const Loader loader;
  if (void* found = in_scope(loader, caller, name, reference.version)) return found;
  if (known) return known;
  if (void* loaded = find_function(ObjectRole::Library, name)) return loaded;
  return find_function_after_us(name);
}

// Filled once, never changed: a reader that sees the key sees the rest.
struct CallSite {
  std::atomic<u64> key;  // return address and call id
  std::atomic<void*> real;
  std::atomic<u64> recorded;
};
constexpr u32 kCallSites = 2048;
constexpr u32 kProbes = 4;
constinit CallSite call_sites[kCallSites]{};
u32 place_of(u64 key) { return static_cast<u32>((key * 0x9e3779b97f4a7c15ull) >> 53); }
static_assert(kCallSites == 1u << (64 - 53));

u64 key_of(u16 id, const void* caller) {
  return reinterpret_cast<u64>(caller) ^ u64 { id } << 48;
}

void remember(u64 key, LibraryTarget target) {
  for (u32 i = 0; i < kProbes; ++i) {
    CallSite& site = call_sites[(place_of(key) + i) % kCallSites];
    if (site.key.load(std::memory_order_acquire) == key) return;
    void* nothing = nullptr;
    if (!site.real.compare_exchange_strong(nothing, target.function, std::memory_order_relaxed)) continue;
    site.recorded.store(target.recorded, std::memory_order_relaxed);
    site.key.store(key, std::memory_order_release);
    return;
  }
}

}  // namespace

LibraryTarget resolve_library(u16 id, u16 row, void* address) {
  ErrnoGuard guard;
  const Caller caller(address);
  const LibraryTarget target{real_function(id, caller, address), !caller.internal};
  if (!target.function) return target;
  keep_loaded(target.function);
  remember(key_of(id, address), target);
  if (!caller.known || caller.internal) return target;
  LibraryEntry& entry = library_entries[row];
  void* nothing = nullptr;
  if (entry.real.compare_exchange_strong(nothing, target.function, std::memory_order_relaxed)) {
    entry.begin.store(caller.object.begin, std::memory_order_release);
    entry.size.store(caller.object.end - caller.object.begin, std::memory_order_release);
  }
  return target;
}

LibraryTarget find_library_function(u16 id, u16 row, void* caller) {
  const u64 key = key_of(id, caller);
  for (u32 i = 0; i < kProbes; ++i) {
    const CallSite& site = call_sites[(place_of(key) + i) % kCallSites];
    if (site.key.load(std::memory_order_acquire) == key)
      return {site.real.load(std::memory_order_relaxed), site.recorded.load(std::memory_order_relaxed) != 0};
  }
  return resolve_library(id, row, caller);
}

namespace {

bool makes_communicators(u16 id) {
  switch (id) {
#define GT_COMMUNICATOR(name, library, signature, forwarded, record) case kCall_##name:
#include "interpose/library.def"
    return true;
    default:
      return false;
  }
}

// Whether calls of that function are passed on without a look.
bool is_off(u16 id) {
  return makes_communicators(id) ? gate_generation() == kGateOff
                                 : gate.libraries.load(std::memory_order_relaxed) == kLibrariesOff;
}

}  // namespace

DlsymAnswer answer_library(void* handle, u16 id, void* address) {
  const char* name = kCalls[id].name();
  const Loader loader;
  if (!loader.dlsym) return {nullptr, 0};
  if (handle == RTLD_NEXT) {
    // Nothing behind us in the global scope: a caller before us would find our export and take the library for loaded.
    void* behind = loader.dlsym(RTLD_NEXT, name);
    return behind ? DlsymAnswer{nullptr, 0} : DlsymAnswer{nullptr, 1};  // dlerror() is as it would be
  }
  const Caller caller(address);
  void* real = handle == RTLD_DEFAULT ? nullptr : loader.dlsym(handle, name);
  if (!real && handle != RTLD_DEFAULT) return {nullptr, 1};
  if (!real || is_ours(real)) {
    real = in_scope(loader, caller, name, nullptr);
    if (!real) return {loader.dlsym(RTLD_NEXT, name), 1};
  }
  const bool library = lies_in(real, ObjectRole::Library);
  if (!library || caller.internal || is_off(id)) return {real, 1};
  // Two versions in one process: a wrapper reaches one for each caller. The other one is handed out as it is.
  keep_loaded(real);
  void* nothing = nullptr;
  real_functions[id].compare_exchange_strong(nothing, real, std::memory_order_relaxed);
  if (nothing && nothing != real) return {real, 1};
  if (find_reference(address, name).refers && real_function(id, caller, address) != real) return {real, 1};
  return {kCallWrappers[id], 1};
}

void* LibraryGetter::find(const void* real) {
  const u64 at = reinterpret_cast<u64>(real);
  if (at - begin_.load(std::memory_order_acquire) < size_.load(std::memory_order_acquire))
    return function_.load(std::memory_order_relaxed);
  void* found = find_function_beside(real, name_);
  LoadedObject object;
  bool nobody = false;
  if (find_object(real, object) && claimed_.compare_exchange_strong(nobody, true, std::memory_order_relaxed)) {
    function_.store(found, std::memory_order_relaxed);
    begin_.store(object.begin, std::memory_order_release);
    size_.store(object.end - object.begin, std::memory_order_release);
  }
  return found;
}

bool enter_library_session() {
  if (gate.libraries.load(std::memory_order_relaxed) == kLibrariesOff || gate_generation() == kGateOff) return false;
  // A library call begins a session only where library calls are asked for.
  return libraries_are_collected() && enter_session() && gate.libraries.load(std::memory_order_relaxed) == kLibrariesOn;
}

}  // namespace gputrace
