#include "interpose/lookup/elf_lookup.h"

#include <dlfcn.h>
#include <link.h>

#include <atomic>
namespace gputrace {
namespace {

// No string function of libc here: this runs inside dlsym, and an address sanitizer calls that before its own strcmp
// works.
bool begins_with(const char* text, const char* prefix) {
  while (*prefix && *text == *prefix) ++text, ++prefix;
  return *prefix == 0;
}

bool equal(const char* a, const char* b) {
  while (*a && *a == *b) ++a, ++b;
  return *a == *b;
}

const char* file_name(const char* path) {
  const char* name = path;
  for (; *path; ++path) {
    if (*path == '/') name = path + 1;
  }
  return name;
}

// What one object's dynamic section says.
struct Tables {
  const ElfW(Dyn) * dynamic = nullptr;
  const ElfW(Sym) * symbols = nullptr;
  const char* strings = nullptr;
  const u32* gnu_hash = nullptr;
  const u32* sysv_hash = nullptr;
  const char* soname = nullptr;
  const u16* versions = nullptr;  // one a symbol
  const ElfW(Verneed) * needed = nullptr;
  u64 needed_count = 0;
  const ElfW(Rela) * relocations = nullptr;
  const ElfW(Rela) * plt_relocations = nullptr;
  u64 relocation_bytes = 0, plt_relocation_bytes = 0;
  u64 base = 0, begin = ~0ull, end = 0;
};

// glibc relocates these pointers in place, other loaders and the vdso do not.
template <typename T>
const T* pointer_of(const ElfW(Dyn) & entry, u64 base) {
  const u64 value = entry.d_un.d_ptr;
  return reinterpret_cast<const T*>(value < base ? value + base : value);
}

bool read_tables(const dl_phdr_info& info, Tables& tables) {
  tables.base = info.dlpi_addr;
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info.dlpi_phdr[i];
    const u64 begin = info.dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_DYNAMIC) tables.dynamic = reinterpret_cast<const ElfW(Dyn)*>(begin);
    if (segment.p_type != PT_LOAD) continue;
    if (begin < tables.begin) tables.begin = begin;
    if (begin + segment.p_memsz > tables.end) tables.end = begin + segment.p_memsz;
  }
  if (!tables.dynamic) return false;
  u64 soname = ~0ull;
  for (const ElfW(Dyn)* entry = tables.dynamic; entry->d_tag != DT_NULL; ++entry) {
    switch (entry->d_tag) {
      case DT_SYMTAB:
        tables.symbols = pointer_of<ElfW(Sym)>(*entry, tables.base);
        break;
      case DT_STRTAB:
        tables.strings = pointer_of<char>(*entry, tables.base);
        break;
      case DT_GNU_HASH:
        tables.gnu_hash = pointer_of<u32>(*entry, tables.base);
        break;
      case DT_HASH:
        tables.sysv_hash = pointer_of<u32>(*entry, tables.base);
        break;
      case DT_VERSYM:
        tables.versions = pointer_of<u16>(*entry, tables.base);
        break;
      case DT_VERNEED:
        tables.needed = pointer_of<ElfW(Verneed)>(*entry, tables.base);
        break;
      case DT_RELA:
        tables.relocations = pointer_of<ElfW(Rela)>(*entry, tables.base);
        break;
      case DT_RELASZ:
        tables.relocation_bytes = entry->d_un.d_val;
        break;
      case DT_JMPREL:
        tables.plt_relocations = pointer_of<ElfW(Rela)>(*entry, tables.base);
        break;
      case DT_PLTRELSZ:
        tables.plt_relocation_bytes = entry->d_un.d_val;
        break;
      case DT_VERNEEDNUM:
        tables.needed_count = entry->d_un.d_val;
        break;
      case DT_SONAME:
        soname = entry->d_un.d_val;
        break;
      default:
        break;
    }
  }
  if (!tables.symbols || !tables.strings) return false;
  if (soname != ~0ull) tables.soname = tables.strings + soname;
  return true;
}

void* function_at(const Tables& tables, const ElfW(Sym) & symbol, const char* name) {
  if (symbol.st_shndx == SHN_UNDEF || (symbol.st_info & 0xf) != STT_FUNC) return nullptr;
  if (!equal(tables.strings + symbol.st_name, name)) return nullptr;
  return reinterpret_cast<void*>(tables.base + symbol.st_value);
}

u32 gnu_hash_of(const char* name) {
  u32 hash = 5381;
  for (; *name; ++name) hash = hash * 33 + static_cast<unsigned char>(*name);
  return hash;
}

void* find_by_gnu_hash(const Tables& tables, const char* name) {
  const u32* table = tables.gnu_hash;
  const u32 buckets = table[0], first = table[1], words = table[2], shift = table[3];
  const u64* bloom = reinterpret_cast<const u64*>(table + 4);
  const u32* bucket = reinterpret_cast<const u32*>(bloom + words);
  const u32* chain = bucket + buckets;
  const u32 hash = gnu_hash_of(name);
  if (!buckets || !words) return nullptr;
  const u64 word = bloom[(hash / 64) % words];
  if (!((word >> (hash % 64)) & (word >> ((hash >> shift) % 64)) & 1)) return nullptr;
  u32 index = bucket[hash % buckets];
  if (index < first) return nullptr;
  for (;; ++index) {
    const u32 entry = chain[index - first];
    if ((entry | 1) == (hash | 1)) {
      if (void* found = function_at(tables, tables.symbols[index], name)) return found;
    }
    if (entry & 1) return nullptr;
  }
}

void* find_by_sysv_hash(const Tables& tables, const char* name) {
  u32 hash = 0;
  for (const char* c = name; *c; ++c) {
    hash = (hash << 4) + static_cast<unsigned char>(*c);
    if (const u32 high = hash & 0xf0000000u) hash = (hash ^ (high >> 24)) & ~high;
  }
  const u32 buckets = tables.sysv_hash[0], count = tables.sysv_hash[1];
  if (!buckets) return nullptr;
  const u32* bucket = tables.sysv_hash + 2;
  const u32* chain = bucket + buckets;
  for (u32 index = bucket[hash % buckets], steps = 0; index && steps < count; index = chain[index], ++steps) {
    if (void* found = function_at(tables, tables.symbols[index], name)) return found;
  }
  return nullptr;
}

void* find_in(const Tables& tables, const char* name) {
  if (tables.gnu_hash) return find_by_gnu_hash(tables, name);
  return tables.sysv_hash ? find_by_sysv_hash(tables, name) : nullptr;
}

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
  return dl_iterate_phdr(
             [](dl_phdr_info* info, size_t, void* data) -> int {
               Tables tables;
               if (!read_tables(*info, tables)) return 0;
               const char* path = info->dlpi_name ? info->dlpi_name : "";
               const LoadedObject object{tables.dynamic, tables.begin, tables.end, role_of(path, tables.soname), path};
               return (*static_cast<Visit*>(data))(object, tables) ? 1 : 0;
             },
             &visit) != 0;
}

bool holds(const LoadedObject& object, const void* address) {
  const u64 at = reinterpret_cast<u64>(address);
  return at >= object.begin && at < object.end;
}

}  // namespace

void* find_function_after_us(const char* name) {
  void* found = nullptr;
  bool passed = false;
  walk([&](const LoadedObject& object, const Tables& tables) {
    if (holds(object, &own_marker)) passed = true;
    if (!passed || object.role == ObjectRole::Own) return false;
    found = find_in(tables, name);
    return found != nullptr;
  });
  return found;
}

void* find_function(ObjectRole role, const char* name) {
  void* found = nullptr;
  walk([&](const LoadedObject& object, const Tables& tables) {
    if (object.role == ObjectRole::Own || (role != ObjectRole::Other && object.role != role)) return false;
    found = find_in(tables, name);
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
    if (libc) found = find_in(tables, name);
    return found != nullptr;
  });
  return found;
}

bool find_functions(ObjectRole role, const char* const* names, void** functions, u32 count) {
  return walk([&](const LoadedObject& object, const Tables& tables) {
    if (object.role != role) return false;
    for (u32 i = 0; i < count; ++i) {
      if (void* found = find_in(tables, names[i])) functions[i] = found;
    }
    return true;
  });
}

void* find_function_beside(const void* address, const char* name) {
  void* found = nullptr;
  walk([&](const LoadedObject& object, const Tables& tables) {
    if (!holds(object, address)) return false;
    found = find_in(tables, name);
    return true;
  });
  return found;
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
