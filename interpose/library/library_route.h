// The ways to a vendor library's function: from an exported wrapper to what its caller would have reached without us,
// and from dlsym to a wrapper. Several versions of one library may be loaded (RTLD_LOCAL, symbol versions), and a
// handle of one must never reach another: so every calling object has its own answer.
#pragma once

#include "interpose/calls.h"
#include "interpose/lookup/dlsym_answer.h"

namespace gputrace {

// The answer for the object that called first: calls from its addresses need nothing else. Set once, `size` last; the
// assembler reads it.
struct LibraryEntry {
  std::atomic<u64> begin;
  std::atomic<u64> size;
  std::atomic<void*> real;
};
static_assert(sizeof(LibraryEntry) == 24);
extern __attribute__((visibility("hidden")))
LibraryEntry library_entries[kLibraryCount] asm("gputrace_library_entries");

struct LibraryTarget {
  void* function;  // nullptr: there is none
  bool recorded;   // not for a call that one of the libraries makes itself: it is part of the program's call
};

// Cold: remembers the answer.
LibraryTarget resolve_library(u16 id, u16 row, void* caller);
// Any other caller than an entry's first.
LibraryTarget find_library_function(u16 id, u16 row, void* caller);

// dlsym(handle, name of `id`) called from `caller`.
DlsymAnswer answer_library(void* handle, u16 id, void* caller);

// A function of the library that `real` belongs to: how its own getters are found. One of these a getter; holds the
// answer for the first library object, others are looked up each time.
class LibraryGetter {
 public:
  constexpr explicit LibraryGetter(const char* name) : name_(name) {}
  // nullptr: the library has none.
  void* find(const void* real);

 private:
  const char* name_;
  std::atomic<u64> begin_{0}, size_{0};   // addresses of the object; size_ last
  std::atomic<void*> function_{nullptr};  // nullptr: that object has none, which is not looked up again either
  std::atomic<bool> claimed_{false};
};

// Whether the session that there is, or the one that would begin now, records library calls.
bool enter_library_session();

}  // namespace gputrace
