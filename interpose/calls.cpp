#include "interpose/calls.h"

#include <cstring>

#include "base/bounded_text.h"

// Only addresses are taken here; the wrappers' real types are in driver_calls.cpp, runtime_calls.cpp and route.cpp.
#define GT_API(name, pfn, signature, forwarded, record) extern "C" char name[];
#define GT_RUNTIME(name, signature, forwarded, record) extern "C" char name[];
#define GT_ROUTE(name, pfn) extern "C" char name[];
#include "interpose/api.def"
#define GT_LIBRARY(name, library, signature, forwarded, record) extern "C" char name[];
#include "interpose/library.def"

namespace gputrace {
namespace {

constexpr u16 kHashSize = 4096;  // power of two, at least twice the rows
static_assert(kCallCount * 2 < kHashSize);

constexpr std::size_t length_of(const char* text) {
  std::size_t n = 0;
  while (text[n]) ++n;
  return n;
}
constexpr bool ends_with(const char* text, std::size_t length, const char* tail) {
  const std::size_t n = length_of(tail);
  if (length < n) return false;
  for (std::size_t i = 0; i < n; ++i) {
    if (text[length - n + i] != tail[i]) return false;
  }
  return true;
}
constexpr bool is_per_thread(const char* name) {
  return ends_with(name, length_of(name), "_ptsz") || ends_with(name, length_of(name), "_ptds");
}

// cuMemFreeAsync_ptsz, cuMemAlloc_v2, cublasSgemm_v2_64 -> the documented name's length.
constexpr u16 documented_length(const char* name) {
  std::size_t n = length_of(name);
  if (is_per_thread(name)) n -= 5;
  if (ends_with(name, n, "_64")) n -= 3;
  std::size_t digits = n;
  while (digits > 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9') --digits;
  if (digits < n && digits > 2 && name[digits - 1] == 'v' && name[digits - 2] == '_') n = digits - 2;
  return static_cast<u16>(n);
}

// PFN_cuMemAlloc_v3020, PFN_cuMemcpy_v7000_ptds -> 3020, 7000.
constexpr u32 since_of(const char* pfn) {
  std::size_t n = length_of(pfn);
  if (is_per_thread(pfn)) n -= 5;
  u32 value = 0, scale = 1;
  for (; n > 0 && pfn[n - 1] >= '0' && pfn[n - 1] <= '9'; --n, scale *= 10)
    value += static_cast<u32>(pfn[n - 1] - '0') * scale;
  return value;
}

constexpr u32 hash_of(const char* name, std::size_t length) {
  u32 hash = 2166136261u;
  for (std::size_t i = 0; i < length; ++i) hash = (hash ^ static_cast<unsigned char>(name[i])) * 16777619u;
  return hash ^ (hash >> 15);
}

}  // namespace

// Each with its zero, in the order of the ids.
constexpr char kCallNames[] = "\0"
#define GT_API(name, pfn, signature, forwarded, record) #name "\0"
#define GT_RUNTIME(name, signature, forwarded, record) #name "\0"
#define GT_ROUTE(name, pfn) #name "\0"
#include "interpose/api.def"
#define GT_LIBRARY(name, library, signature, forwarded, record) #name "\0"
#include "interpose/library.def"
    ;

namespace {

constexpr const char* name_of(const CallInfo& call) { return kCallNames + call.name_at; }

constexpr CallInfo row(const char* name, u32 since, CallLevel level) {
  return {0, since, documented_length(name), level, is_per_thread(name)};
}

constexpr CallTable make_table() {
  CallTable table{{
      {0, 0, 0, CallLevel::Route, false},
#define GT_API(name, pfn, signature, forwarded, record) row(#name, since_of(#pfn), CallLevel::Driver),
#define GT_RUNTIME(name, signature, forwarded, record) row(#name, 0, CallLevel::Runtime),
#define GT_ROUTE(name, pfn) row(#name, since_of(#pfn), CallLevel::Route),
#include "interpose/api.def"
#define GT_LIBRARY(name, library, signature, forwarded, record) row(#name, 0, CallLevel::Library),
#include "interpose/library.def"
  }};
  u32 at = 0;
  for (CallInfo& call : table.rows) {
    call.name_at = at;
    at += static_cast<u32>(length_of(kCallNames + at)) + 1;
  }
  return table;
}

}  // namespace

constexpr CallTable kCalls = make_table();

void* const kCallWrappers[kCallCount] = {
    nullptr,
#define GT_API(name, pfn, signature, forwarded, record) name,
#define GT_RUNTIME(name, signature, forwarded, record) name,
#define GT_ROUTE(name, pfn) name,
#include "interpose/api.def"
#define GT_LIBRARY(name, library, signature, forwarded, record) name,
#include "interpose/library.def"
};

namespace {

struct NameIndex {
  u16 ids[kHashSize]{};
  constexpr NameIndex() {
    for (u16 id = 1; id < kCallCount; ++id) {
      u32 at = hash_of(name_of(kCalls[id]), length_of(name_of(kCalls[id]))) % kHashSize;
      while (ids[at]) at = (at + 1) % kHashSize;
      ids[at] = id;
    }
  }
};
constexpr NameIndex kIndex;

constexpr const char* kLevelNames[] = {"", "driver", "runtime", "route", "library"};

constexpr bool same_entry(const CallInfo& one, const CallInfo& other) {
  if (one.since != other.since || one.per_thread != other.per_thread) return false;
  if (one.documented_length != other.documented_length) return false;
  for (u16 i = 0; i < one.documented_length; ++i) {
    if (name_of(one)[i] != name_of(other)[i]) return false;
  }
  return true;
}

// Whether no two of the rows that cuGetProcAddress may hand out agree in name, version and variant.
constexpr bool entries_differ() {
  u16 ids[kHashSize]{};
  for (u16 id = 1; id < kCallCount; ++id) {
    const CallInfo& call = kCalls[id];
    if (call.level == CallLevel::Runtime || call.level == CallLevel::Library) continue;
    u32 at = hash_of(name_of(call), call.documented_length) % kHashSize;
    for (; ids[at]; at = (at + 1) % kHashSize) {
      if (same_entry(kCalls[ids[at]], call)) return false;
    }
    ids[at] = id;
  }
  return true;
}
static_assert(entries_differ(), "two rows for one documented name, version and variant: which ABI it is would be luck");

}  // namespace

constinit std::atomic<void*> real_functions[kCallCount]{};

u16 find_call(const char* name) {
  for (u32 at = hash_of(name, std::strlen(name)) % kHashSize; kIndex.ids[at]; at = (at + 1) % kHashSize) {
    if (std::strcmp(kCalls[kIndex.ids[at]].name(), name) == 0) return kIndex.ids[at];
  }
  return kNoCall;
}

u16 find_call(const char* documented, u32 version, bool per_thread) {
  // From 11040 on the documented name stands for cuGraphInstantiateWithFlags in some drivers: only the address can
  // tell.
  if (version >= 11040 && std::strcmp(documented, "cuGraphInstantiate") == 0) return kNoCall;
  const std::size_t length = std::strlen(documented);
  u16 best = kNoCall;
  for (u16 id = 1; id < kCallCount; ++id) {
    const CallInfo& call = kCalls[id];
    if (call.level == CallLevel::Runtime || call.level == CallLevel::Library) continue;
    if (call.documented_length != length || call.since > version) continue;
    if (std::memcmp(call.name(), documented, length) != 0) continue;
    // A name without per-thread variants is the same for both flags.
    const bool fits =
        call.per_thread == per_thread || (!call.per_thread && (best == kNoCall || !kCalls[best].per_thread));
    if (!fits) continue;
    const bool better = best == kNoCall || call.per_thread > kCalls[best].per_thread ||
                        (call.per_thread == kCalls[best].per_thread && call.since > kCalls[best].since);
    if (better) best = id;
  }
  return best;
}

std::size_t write_call_schema(char* out, std::size_t capacity) {
  BoundedText lines(out, capacity);
  for (u16 id = 1; id < kCallCount; ++id) {
    const CallInfo& call = kCalls[id];
    if (call.level == CallLevel::Route) continue;
    lines << "call " << id << " ";
    lines.put(call.name(), call.documented_length);
    lines << " " << kLevelNames[static_cast<int>(call.level)] << " " << call.name() << "\n";
  }
  return lines.size();
}

}  // namespace gputrace
