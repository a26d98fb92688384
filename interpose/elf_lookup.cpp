#include "interpose/elf_lookup.h"

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

ObjectRole role_of(const char* path, const char* soname) {
  const char* name = soname ? soname : file_name(path);
  if (begins_with(name, "libgputrace.so")) return ObjectRole::Own;
  if (begins_with(name, "libcuda.so")) return ObjectRole::Driver;
  if (begins_with(name, "libcudart.so")) return ObjectRole::Runtime;
  if (begins_with(name, "libcupti.so") || begins_with(name, "libnvperf")) return ObjectRole::Cupti;
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
