#include "interpose/lookup/elf_tables.h"

#include <atomic>

// The loader's own list of objects: other C libraries have none by this name.
#pragma weak _r_debug

namespace gputrace::elf {
namespace {

// glibc relocates these pointers in place, other loaders and the vdso do not.
template <typename T>
const T* pointer_of(const ElfW(Dyn) & entry, u64 base) {
  const u64 value = entry.d_un.d_ptr;
  return reinterpret_cast<const T*>(value < base ? value + base : value);
}

// Beside STT_FUNC and STT_OBJECT: functions of their default version.
constexpr u32 kDefaultFunction = 0x100;
constexpr u16 kHiddenVersion = 0x8000;

const ElfW(Sym) * symbol_at(const Tables& tables, u32 index, const char* name, u32 type) {
  const ElfW(Sym)& symbol = tables.symbols[index];
  if (type == kDefaultFunction) {
    if (tables.versions && (tables.versions[index] & kHiddenVersion)) return nullptr;
    type = STT_FUNC;
  }
  if (symbol.st_shndx == SHN_UNDEF || (symbol.st_info & 0xf) != type) return nullptr;
  if (!equal(tables.strings + symbol.st_name, name)) return nullptr;
  return &symbol;
}

u32 gnu_hash_of(const char* name) {
  u32 hash = 5381;
  for (; *name; ++name) hash = hash * 33 + static_cast<unsigned char>(*name);
  return hash;
}

const ElfW(Sym) * find_by_gnu_hash(const Tables& tables, const char* name, u32 type) {
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
      if (const ElfW(Sym)* found = symbol_at(tables, index, name, type)) return found;
    }
    if (entry & 1) return nullptr;
  }
}

const ElfW(Sym) * find_by_sysv_hash(const Tables& tables, const char* name, u32 type) {
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
    if (const ElfW(Sym)* found = symbol_at(tables, index, name, type)) return found;
  }
  return nullptr;
}

const ElfW(Sym) * find(const Tables& tables, const char* name, u32 type) {
  if (tables.gnu_hash) return find_by_gnu_hash(tables, name, type);
  return tables.sysv_hash ? find_by_sysv_hash(tables, name, type) : nullptr;
}

using Iterate = int (*)(int (*)(dl_phdr_info*, size_t, void*), void*);

// libc's own dl_iterate_phdr. The one by name may be a sanitizer's, which crashes before its runtime has begun; and we
// are asked before that. The loader's list is read once, by the constructor or by a look-up before it; libc never
// leaves it.
Iterate find_iterate() {
  for (const link_map* map = &_r_debug ? _r_debug.r_map : nullptr; map; map = map->l_next) {
    Tables tables;
    if (!read_dynamic(map->l_ld, map->l_addr, tables) || !tables.soname) continue;
    if (!begins_with(tables.soname, "libc.so.6")) continue;
    if (void* own = find_symbol(tables, "dl_iterate_phdr", STT_FUNC)) return reinterpret_cast<Iterate>(own);
  }
  return dl_iterate_phdr;
}

bool read_tables(const dl_phdr_info& info, Tables& tables) {
  const ElfW(Dyn)* dynamic = nullptr;
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info.dlpi_phdr[i];
    const u64 begin = info.dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_GNU_RELRO) {
      tables.relro_begin = begin & ~u64{4095};
      tables.relro_end = begin + segment.p_memsz;
    }
    if (segment.p_type == PT_DYNAMIC) dynamic = reinterpret_cast<const ElfW(Dyn)*>(begin);
    if (segment.p_type != PT_LOAD) continue;
    if (begin < tables.begin) tables.begin = begin;
    if (begin + segment.p_memsz > tables.end) tables.end = begin + segment.p_memsz;
  }
  return read_dynamic(dynamic, info.dlpi_addr, tables);
}

}  // namespace

int iterate_objects(int (*visit)(dl_phdr_info*, size_t, void*), void* data) {
  static constinit std::atomic<void*> found{nullptr};
  void* function = found.load(std::memory_order_relaxed);
  if (!function) {
    function = reinterpret_cast<void*>(find_iterate());
    found.store(function, std::memory_order_relaxed);
  }
  return reinterpret_cast<Iterate>(function)(visit, data);
}

bool begins_with(const char* text, const char* prefix) {
  while (*prefix && *text == *prefix) ++text, ++prefix;
  return *prefix == 0;
}

bool equal(const char* a, const char* b) {
  while (*a && *a == *b) ++a, ++b;
  return *a == *b;
}

bool read_dynamic(const ElfW(Dyn) * dynamic, u64 base, Tables& tables) {
  tables.dynamic = dynamic;
  tables.base = base;
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

void* find_symbol(const Tables& tables, const char* name, u32 type) {
  const ElfW(Sym)* const found = find(tables, name, type);
  return found ? reinterpret_cast<void*>(tables.base + found->st_value) : nullptr;
}

Variable find_variable(const Tables& tables, const char* name) {
  const ElfW(Sym)* const found = find(tables, name, STT_OBJECT);
  return found ? Variable{tables.base + found->st_value, found->st_size} : Variable{};
}

void* find_default_function(const Tables& tables, const char* name) {
  return find_symbol(tables, name, kDefaultFunction);
}

bool visit_objects(bool (*visit)(const dl_phdr_info& info, const Tables& tables, void* data), void* data) {
  struct Visit {
    bool (*function)(const dl_phdr_info&, const Tables&, void*);
    void* data;
  } with{visit, data};
  return iterate_objects(
             [](dl_phdr_info* info, size_t, void* argument) -> int {
               const auto& to = *static_cast<Visit*>(argument);
               Tables tables;
               return read_tables(*info, tables) && to.function(*info, tables, to.data) ? 1 : 0;
             },
             &with) != 0;
}

}  // namespace gputrace::elf
