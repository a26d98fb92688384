// The parts of GPUTRACE_COLLECT: their names, which of them this version has, and what a list of them means. No allocation.
#pragma once

#include <cstring>

#include "base/types.h"

namespace gputrace::collect {

enum : u32 {
  kApi = 1u << 0,
  kMemory = 1u << 1,
  kDevice = 1u << 2,
  kLatency = 1u << 3,
  kNvtx = 1u << 4,
  kStacks = 1u << 5,
  kPython = 1u << 6,
  kOps = 1u << 7,
  kIo = 1u << 8,
  kWaits = 1u << 9,
  kLibraries = 1u << 10,
  kCode = 1u << 11,
  kCounters = 1u << 12,
  kEnvironment = 1u << 13,
};
struct Part {
  u32 bit;
  const char* name;
};
inline constexpr Part kParts[] = {{kApi, "api"},
                                  {kMemory, "memory"},
                                  {kDevice, "device"},
                                  {kLatency, "latency"},
                                  {kNvtx, "nvtx"},
                                  {kStacks, "stacks"},
                                  {kPython, "python"},
                                  {kOps, "ops"},
                                  {kIo, "io"},
                                  {kWaits, "waits"},
                                  {kLibraries, "libs"},
                                  {kCode, "code"},
                                  {kCounters, "counters"},
                                  {kEnvironment, "environment"}};
inline constexpr u32 kAll = (kEnvironment << 1) - 1;
inline constexpr u32 kBuilt = kApi | kMemory | kDevice | kLatency | kNvtx | kStacks | kPython | kOps | kIo | kWaits |
                              kLibraries | kCode | kEnvironment;
inline constexpr u32 kDefault = kApi | kDevice | kNvtx | kCode | kPython | kOps;
// Any of these needs CUPTI, and then brings device times too.
inline constexpr u32 kFromCupti = kDevice | kLatency | kEnvironment;

// The bit of a part, all bits for "all"; 0: there is none of that name. `name` need not be terminated.
inline u32 part_of(const char* name, u64 length) {
  const auto is = [&](const char* word) { return std::strlen(word) == length && std::memcmp(name, word, length) == 0; };
  if (is("all")) return kAll;
  for (const Part& part : kParts) {
    if (is(part.name)) return part.bit;
  }
  return 0;
}

template <typename Visit>
void visit_words(const char* list, u64 length, Visit&& visit) {
  for (u64 at = 0; at < length;) {
    u64 end = at;
    while (end < length && list[end] != ',') ++end;
    if (end > at) visit(list + at, end - at);
    at = end + 1;
  }
}

// The parts that a list asks for: "api,device", "all,-libs"; a list of exclusions and additions alone ("+stacks,-code") changes
// the default.
// Calls unknown(name, length) for every word that is no part.
template <typename Unknown>
u32 parts_of(const char* list, Unknown&& unknown) {
  u32 included = 0, excluded = 0, added = 0;
  visit_words(list ? list : "", list ? std::strlen(list) : 0, [&](const char* word, u64 length) {
    const bool exclude = *word == '-', add = *word == '+', has_sign = exclude || add;
    const u32 bits = part_of(word + has_sign, length - has_sign);
    if (!bits && length > has_sign) unknown(word + has_sign, length - has_sign);
    (exclude ? excluded : add ? added : included) |= bits;
  });
  return ((included ? included : kDefault) | added) & ~excluded;
}
inline u32 parts_of(const char* list) {
  return parts_of(list, [](const char*, u64) {});
}

// The parts that a list names, and no others: of a list in effect, as a trace has it (Info, option.collect). A newer writer's
// list may name parts that we do not know.
inline u32 parts_in_effect(const char* list, u64 length) {
  u32 parts = 0;
  visit_words(list, length, [&](const char* word, u64 size) { parts |= part_of(word, size); });
  return parts;
}

}  // namespace gputrace::collect
