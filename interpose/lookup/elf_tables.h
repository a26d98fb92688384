// The ELF tables of loaded objects, read where they lie.
#pragma once

#include <link.h>

#include "base/types.h"

namespace gputrace::elf {

// No string function of libc here: this runs inside dlsym, and an address sanitizer calls that before its own strcmp
// works.
bool begins_with(const char* text, const char* prefix);
bool equal(const char* a, const char* b);

// What one object's dynamic section says. Pointers into the object: valid while it is loaded.
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
  u64 relro_begin = 0, relro_end = 0;  // read-only since it was relocated
};

// Of an object that lies at `base` and has this dynamic section. False: it has no symbols.
bool read_dynamic(const ElfW(Dyn) * dynamic, u64 base, Tables& tables);

// What the object defines under this name as a function (STT_FUNC) or a variable (STT_OBJECT), whatever its version.
void* find_symbol(const Tables& tables, const char* name, u32 type);
struct Variable {
  u64 address = 0, size = 0;  // 0: there is none
};
Variable find_variable(const Tables& tables, const char* name);
// The function that programs which are linked today would get: its default version.
void* find_default_function(const Tables& tables, const char* name);

// Calls visit(info, tables, data) for every loaded object in load order until it returns true; whether it did. Holds the
// loader's lock meanwhile.
bool visit_objects(bool (*visit)(const dl_phdr_info& info, const Tables& tables, void* data), void* data);

// libc's own dl_iterate_phdr, whatever stands before it: a sanitizer's may not work yet, a program's may be slow.
int iterate_objects(int (*visit)(dl_phdr_info*, size_t, void*), void* data);

}  // namespace gputrace::elf
