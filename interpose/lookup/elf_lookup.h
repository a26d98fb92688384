// Looking up functions in the objects that are loaded, by walking their ELF tables: no dlsym (it is ours, and it keeps
// its caller), no symbol version, no allocation. Any thread; takes the loader's lock for the time of one walk.
#pragma once

#include "base/types.h"
#include "interpose/lookup/elf_tables.h"

namespace gputrace {

enum class ObjectRole : u32 {
  Other = 0,
  Own = 1,      // a copy of this library, this one included
  Driver = 2,   // libcuda.so.1
  Runtime = 3,  // libcudart.so.*
  Cupti = 4,    // libcupti, libnvperf: their own look-ups must not meet our wrappers
  Library = 5,  // cuBLAS, cuDNN, cuSPARSE, cuFFT, NCCL
};

struct LoadedObject {
  const void* handle = nullptr;  // its dynamic section: tells objects apart while they are loaded
  u64 begin = 0, end = 0;        // addresses that it spans
  ObjectRole role = ObjectRole::Other;
  const char* path = nullptr;  // lives as long as the object; "" for the program itself
};

// The first object in load order after this library that defines a function `name`, copies of this library left out.
void* find_function_after_us(const char* name);
// The function `name` of the first object that plays this role (Other: of any object but copies of this library).
void* find_function(ObjectRole role, const char* name);
// libc's own function `name` (libc.so.6, libdl.so.2 or libpthread.so.0), whatever stands before it.
void* find_libc_function(const char* name);
// find_function() for many names with one walk: functions[i] is set to what defines names[i], or left alone. Returns
// whether there is such an object.
bool find_functions(ObjectRole role, const char* const* names, void** functions, u32 count);
// The function `name` that the object holding `address` defines.
void* find_function_beside(const void* address, const char* name);
elf::Variable find_variable_beside(const void* address, const char* name);
// How the object holding `address` refers to a function of another object. Scans its relocations: cold.
struct SymbolReference {
  bool refers = false;
  const char* version = nullptr;  // nullptr: any
};
SymbolReference find_reference(const void* address, const char* name);
// The object that holds an address. False: none does.
bool find_object(const void* address, LoadedObject& object);
bool find_object(ObjectRole role, LoadedObject& object);
// Whether an object that plays this role holds an address.
bool lies_in(const void* address, ObjectRole role);
// The object that holds `function` stays until the process ends, whatever the program closes: for every address that is
// remembered. A wrapper that jumped to where a library was would end the program.
void keep_loaded(const void* function);
// Whether this copy of the library is the first of all loaded copies.
bool is_first_copy();
// Whether `address` lies in this copy.
bool is_ours(const void* address);

}  // namespace gputrace
