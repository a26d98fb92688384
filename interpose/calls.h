// The calls of api.def and library.def as ids, names and tables. An id is an index; it means something only together
// with the schema of its trace.
#pragma once

#include <atomic>

#include "base/types.h"

namespace gputrace {

// Id 0 is "no call". A routed function has an id too, though it is never recorded.
enum CallId : u16 {
  kNoCall = 0,
#define GT_API(name, pfn, signature, forwarded, record) kCall_##name,
#define GT_RUNTIME(name, signature, forwarded, record) kCall_##name,
#define GT_ROUTE(name, pfn) kCall_##name,
#include "interpose/api.def"
#define GT_LIBRARY(name, library, signature, forwarded, record) kCall_##name,
#include "interpose/library.def"
  kCallCount
};

// The rows of library.def, counted from 0.
enum LibraryIndex : u16 {
#define GT_LIBRARY(name, library, signature, forwarded, record) kLibrary_##name,
#include "interpose/library.def"
  kLibraryCount
};

enum class CallLevel : u8 { Driver = 1, Runtime = 2, Route = 3, Library = 4 };

// Without a pointer: what a process relocates at load it pays for also where it never calls CUDA.
extern __attribute__((visibility("hidden"))) const char kCallNames[];

struct CallInfo {
  u32 name_at;            // in kCallNames
  u32 since;              // driver rows: first CUDA version for which cuGetProcAddress hands out this ABI
  u16 documented_length;  // of the documented name, which `name` begins with
  CallLevel level;
  bool per_thread;  // a _ptsz or _ptds variant

  const char* name() const { return kCallNames + name_at; }  // as exported
};

struct CallTable {
  CallInfo rows[kCallCount];
  constexpr const CallInfo& operator[](u16 id) const { return rows[id]; }
};
extern __attribute__((visibility("hidden"))) const CallTable kCalls;

// Our entry of each call, by id.
extern __attribute__((visibility("hidden"))) void* const kCallWrappers[kCallCount];

// What stands behind each call; null until it is known. Set once, to the first answer.
extern __attribute__((visibility("hidden"))) std::atomic<void*> real_functions[kCallCount] asm(
    "gputrace_real_functions");  // named for the assembler

// The id of an exported name; kNoCall: not ours. No allocation; any thread.
u16 find_call(const char* name);
// The row that cuGetProcAddress(documented name, version, per-thread flag) stands for in CUDA 13; kNoCall where the
// table cannot tell.
u16 find_call(const char* documented, u32 version, bool per_thread);

// Appends the schema's `call` lines; same contract as write_schema_text().
std::size_t write_call_schema(char* out, std::size_t capacity);

}  // namespace gputrace
