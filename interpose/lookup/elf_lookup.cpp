#include "interpose/lookup/elf_lookup.h"

#include <dlfcn.h>

#include <atomic>

#include "interpose/hot/session.h"

namespace gputrace {
namespace {

using elf::begins_with;
using elf::equal;
using elf::Tables;

const char* file_name(const char* path) {
  const char* name = path;
  for (; *path; ++path) {
    if (*path == '/') name = path + 1;
  }
  return name;
}

void* function_in(const Tables& tables, const char* name) { return elf::find_symbol(tables, name, STT_FUNC); }

// The undefined symbol `name` that a relocation refers to; 0: none does. (A hash table lists what is defined only.)
u32 find_undefined(const Tables& tables, const ElfW(Rela) * relocations, u64 bytes, const char* name) {
  for (u64 i = 0; relocations && i < bytes / sizeof *relocations; ++i) {
    const u32 index = static_cast<u32>(ELF64_R_SYM(relocations[i].r_info));
    if (!index) continue;
    const ElfW(Sym)& symbol = tables.symbols[index];
    if (symbol.st_shndx == SHN_UNDEF && equal(tables.strings + symbol.st_name, name)) return index;
  }
  return 0;
}

// The version of an undefined symbol; nullptr: none.
const char* version_of(const Tables& tables, u32 symbol) {
  if (!tables.versions || !tables.needed) return nullptr;
  const u16 wanted = tables.versions[symbol] & 0x7fff;
  const char* entry = reinterpret_cast<const char*>(tables.needed);
  for (u64 i = 0; i < tables.needed_count; ++i) {
    const auto& need = *reinterpret_cast<const ElfW(Verneed)*>(entry);
    const char* at = entry + need.vn_aux;
    for (u16 j = 0; j < need.vn_cnt; ++j) {
      const auto& version = *reinterpret_cast<const ElfW(Vernaux)*>(at);
      if (version.vna_other == wanted) return tables.strings + version.vna_name;
      at += version.vna_next;
    }
    entry += need.vn_next;
  }
  return nullptr;
}

ObjectRole role_of(const char* path, const char* soname) {
  const char* name = soname ? soname : file_name(path);
  if (begins_with(name, "libgputrace.so")) return ObjectRole::Own;
  if (begins_with(name, "libcuda.so")) return ObjectRole::Driver;
  if (begins_with(name, "libcudart.so")) return ObjectRole::Runtime;
  if (begins_with(name, "libcupti.so") || begins_with(name, "libnvperf")) return ObjectRole::Cupti;
  for (const char* library :
       {"libcublas.so", "libcublasLt.so", "libcudnn", "libcusparse.so", "libcufft.so", "libnccl.so"}) {
    if (begins_with(name, library)) return ObjectRole::Library;
  }
  return ObjectRole::Other;
}

const char own_marker = 0;

// Calls visit(object, tables) for every loaded object in load order until it returns true.
template <typename Visit>
bool walk(Visit&& visit) {
  return elf::visit_objects(
      [](const dl_phdr_info& info, const Tables& tables, void* data) -> bool {
        const char* path = info.dlpi_name ? info.dlpi_name : "";
        const LoadedObject object{tables.dynamic, tables.begin, tables.end, role_of(path, tables.soname), path};
        return (*static_cast<Visit*>(data))(object, tables);
      },
      &visit);
}

bool holds(const LoadedObject& object, const void* address) {
  const u64 at = reinterpret_cast<u64>(address);
  return at >= object.begin && at < object.end;
}

// Of the object that holds `address`.
template <typename Find>
auto find_beside(const void* address, Find&& find) {
  decltype(find(Tables{})) found{};
  walk([&](const LoadedObject& object, const Tables& tables) {
    if (!holds(object, address)) return false;
    found = find(tables);
    return true;
  });
  return found;
}

}  // namespace

void* find_function_after_us(const char* name) {
  void* found = nullptr;
  bool passed = false;
  walk([&](const LoadedObject& object, const Tables& tables) {
    if (holds(object, &own_marker)) passed = true;
    if (!passed || object.role == ObjectRole::Own) return false;
    found = function_in(tables, name);
    return found != nullptr;
  });
  return found;
}

void* find_function(ObjectRole role, const char* name) {
  void* found = nullptr;
  walk([&](const LoadedObject& object, const Tables& tables) {
    if (object.role == ObjectRole::Own || (role != ObjectRole::Other && object.role != role)) return false;
    found = function_in(tables, name);
    return found != nullptr;
  });
  return found;
}

void* find_libc_function(const char* name) {
  void* found = nullptr;
  walk([&](const LoadedObject&, const Tables& tables) {
    if (!tables.soname) return false;
    const bool libc = begins_with(tables.soname, "libc.so.6") || begins_with(tables.soname, "libdl.so.2") ||
                      begins_with(tables.soname, "libpthread.so.0");
    if (libc) found = function_in(tables, name);
    return found != nullptr;
  });
  return found;
}

bool find_functions(ObjectRole role, const char* const* names, void** functions, u32 count) {
  return walk([&](const LoadedObject& object, const Tables& tables) {
    if (object.role != role) return false;
    for (u32 i = 0; i < count; ++i) {
      if (void* found = function_in(tables, names[i])) functions[i] = found;
    }
    return true;
  });
}

void* find_function_beside(const void* address, const char* name) {
  return find_beside(address, [name](const Tables& tables) { return function_in(tables, name); });
}
elf::Variable find_variable_beside(const void* address, const char* name) {
  return find_beside(address, [name](const Tables& tables) { return elf::find_variable(tables, name); });
}

SymbolReference find_reference(const void* address, const char* name) {
  SymbolReference reference;
  walk([&](const LoadedObject& object, const Tables& tables) {
    if (!holds(object, address)) return false;
    u32 symbol = find_undefined(tables, tables.plt_relocations, tables.plt_relocation_bytes, name);
    if (!symbol) symbol = find_undefined(tables, tables.relocations, tables.relocation_bytes, name);
    reference.refers = symbol != 0;
    if (symbol) reference.version = version_of(tables, symbol);
    return true;
  });
  return reference;
}

bool find_object(const void* address, LoadedObject& result) {
  return walk([&](const LoadedObject& object, const Tables&) {
    if (!holds(object, address)) return false;
    result = object;
    return true;
  });
}

bool find_object(ObjectRole role, LoadedObject& result) {
  return walk([&](const LoadedObject& object, const Tables&) {
    if (object.role != role) return false;
    result = object;
    return true;
  });
}

bool lies_in(const void* address, ObjectRole role) {
  LoadedObject object;
  return find_object(address, object) && object.role == role;
}

void keep_loaded(const void* function) {
  if (is_sandboxed()) return;  // dlopen allocates
  static constexpr u32 kObjects = 16;
  static constinit std::atomic<u64> kept[kObjects][2]{};  // begin, end: they do not move any more
  const u64 at = reinterpret_cast<u64>(function);
  u32 free = 0;
  for (; free < kObjects; ++free) {
    const u64 end = kept[free][1].load(std::memory_order_acquire);
    if (!end) break;
    if (at >= kept[free][0].load(std::memory_order_relaxed) && at < end) return;
  }
  LoadedObject object;
  if (!find_object(function, object) || !object.path || !object.path[0]) return;
  const auto open = reinterpret_cast<void* (*)(const char*, int)>(find_libc_function("dlopen"));
  if (!open || !open(object.path, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE)) return;
  u64 nobody = 0;
  if (free == kObjects || !kept[free][0].compare_exchange_strong(nobody, object.begin, std::memory_order_relaxed))
    return;
  kept[free][1].store(object.end, std::memory_order_release);
}

bool is_first_copy() {
  bool first = true;
  walk([&](const LoadedObject& object, const Tables&) {
    if (object.role != ObjectRole::Own) return false;
    first = holds(object, &own_marker);
    return true;
  });
  return first;
}

bool is_ours(const void* address) {
  static constinit std::atomic<u64> begin{0}, end{0};
  if (!end.load(std::memory_order_acquire)) {
    LoadedObject self;
    if (!find_object(&own_marker, self)) return false;
    begin.store(self.begin, std::memory_order_relaxed);
    end.store(self.end, std::memory_order_release);
  }
  const u64 at = reinterpret_cast<u64>(address);
  return at >= begin.load(std::memory_order_relaxed) && at < end.load(std::memory_order_relaxed);
}

}  // namespace gputrace
