#include "interpose/lookup/named_variables.h"

#include <sys/mman.h>

#include <atomic>

#include "base/raw_syscall.h"
#include "interpose/lookup/elf_tables.h"

namespace gputrace {
namespace {

using elf::find_symbol;
using elf::Tables;

// One of these is among the variables of whoever has such.
constexpr const char* kUsual[] = {"cuInit", "cuLaunchKernel", "cudaMalloc", "cudaLaunchKernel"};
constexpr u64 kPage = 4096;
const char own_marker = 0;

struct Binding {
  const Tables* variables = nullptr;  // of the object that has them
  Tables own;
};

bool lies_in(const Tables& tables, u64 address) { return address >= tables.begin && address < tables.end; }

void write_slot(const Tables& tables, u64* slot, u64 value) {
  const u64 at = reinterpret_cast<u64>(slot), page = at & ~(kPage - 1);
  const bool closed = at >= tables.relro_begin && at < tables.relro_end;  // to writing, once it was relocated
  const auto protect = [&](long protection) { raw_syscall(SYS_mprotect, static_cast<long>(page), kPage, protection); };
  if (closed) protect(PROT_READ | PROT_WRITE);
  __atomic_store_n(slot, value, __ATOMIC_RELAXED);
  if (closed) protect(PROT_READ);
}

// A program that is not position-independent has a copy of the variable: of our function, that is of nothing so far,
// since our entries have no size.
void copy_again(const Binding& binding, char* copy, u64 size, const char* name, const char* variable) {
  if (!find_symbol(binding.own, name, STT_FUNC)) return;
  for (u64 i = 0; i < size; ++i) {
    if (copy[i]) return;  // written to since then
  }
  for (u64 i = 0; i < size; ++i) copy[i] = variable[i];
}

void bind_references(const Binding& binding, const Tables& tables, const ElfW(Rela) * relocations, u64 bytes) {
  for (u64 i = 0; relocations && i < bytes / sizeof *relocations; ++i) {
    const ElfW(Rela)& relocation = relocations[i];
    const u64 type = ELF64_R_TYPE(relocation.r_info);
    const u32 index = static_cast<u32>(ELF64_R_SYM(relocation.r_info));
    if (!index || (type != R_X86_64_GLOB_DAT && type != R_X86_64_64 && type != R_X86_64_COPY)) continue;
    u64* slot = reinterpret_cast<u64*>(tables.base + relocation.r_offset);
    if (type != R_X86_64_COPY && !lies_in(binding.own, *slot)) continue;
    const ElfW(Sym)& symbol = tables.symbols[index];
    const char* name = tables.strings + symbol.st_name;
    const void* variable = find_symbol(*binding.variables, name, STT_OBJECT);
    if (!variable) continue;
    if (type == R_X86_64_COPY)
      copy_again(binding, reinterpret_cast<char*>(slot), symbol.st_size, name, static_cast<const char*>(variable));
    else
      write_slot(tables, slot, reinterpret_cast<u64>(variable) + static_cast<u64>(relocation.r_addend));
  }
}

// Every object may refer to them.
void bind_variables_of(const Tables& variables) {
  Binding binding{&variables, {}};
  elf::visit_objects(
      [](const dl_phdr_info&, const Tables& tables, void* data) {
        if (lies_in(tables, reinterpret_cast<u64>(&own_marker))) *static_cast<Tables*>(data) = tables;
        return lies_in(tables, reinterpret_cast<u64>(&own_marker));
      },
      &binding.own);
  elf::visit_objects(
      [](const dl_phdr_info&, const Tables& tables, void* data) {
        const Binding& known = *static_cast<const Binding*>(data);
        bind_references(known, tables, tables.relocations, tables.relocation_bytes);
        return false;
      },
      &binding);
}

}  // namespace

void bind_named_variables() {
  elf::visit_objects(
      [](const dl_phdr_info&, const Tables& tables, void*) {
        for (const char* name : kUsual) {
          if (!find_symbol(tables, name, STT_OBJECT)) continue;
          bind_variables_of(tables);
          break;
        }
        return false;
      },
      nullptr);
}

void bind_named_variables_of(const void* caller, const char* name) {
  struct Asked {
    u64 caller;
    const char* name;
  } asked{reinterpret_cast<u64>(caller), name};
  elf::visit_objects(
      [](const dl_phdr_info&, const Tables& tables, void* data) {
        // Each look-up of such an object comes here: the last one is remembered, so that its references are read once.
        static constinit std::atomic<const void*> bound{nullptr};
        const Asked& of = *static_cast<const Asked*>(data);
        if (!lies_in(tables, of.caller)) return false;
        if (find_symbol(tables, of.name, STT_OBJECT) &&
            bound.exchange(tables.dynamic, std::memory_order_relaxed) != tables.dynamic)
          bind_variables_of(tables);
        return true;
      },
      &asked);
}

}  // namespace gputrace
