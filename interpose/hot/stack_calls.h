// The calls before which the stack is read: those that put work on a device, wait for it, ask whether it is done, copy,
// allocate or load code. Cheap questions (which device, which stream) are left out: frameworks ask them all the time.
#pragma once

#include "interpose/calls.h"

namespace gputrace {

constexpr bool contains(const char* name, const char* word) {
  for (; *name; ++name) {
    const char *at = name, *w = word;
    while (*w && *at == *w) ++at, ++w;
    if (!*w) return true;
  }
  return false;
}

constexpr bool shows_stack(const char* name) {
  for (const char* word :
       {"Launch", "Synchronize", "Memcpy", "Memset", "Alloc", "Malloc", "Free", "ModuleLoad", "LibraryLoad",
        "StreamQuery", "EventQuery", "WaitEvent", "MemCreate", "HostRegister", "GraphInstantiate"}) {
    if (contains(name, word)) return true;
  }
  return false;
}

struct StackCalls {
  bool show[kCallCount];
};
constexpr StackCalls find_stack_calls() {
  StackCalls calls{};
#define GT_API(name, pfn, signature, forwarded, record) calls.show[kCall_##name] = shows_stack(#name);
#define GT_RUNTIME(name, signature, forwarded, record) calls.show[kCall_##name] = shows_stack(#name);
#define GT_ROUTE(name, pfn)
#include "interpose/api.def"
// A call of a library stands for what it launches.
#define GT_LIBRARY(name, library, signature, forwarded, record) calls.show[kCall_##name] = true;
#include "interpose/library.def"
  return calls;
}
inline constexpr StackCalls kStackCalls = find_stack_calls();

}  // namespace gputrace
