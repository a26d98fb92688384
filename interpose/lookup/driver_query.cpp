#include "interpose/lookup/driver_query.h"

#include <atomic>

#include "interpose/lookup/elf_lookup.h"

namespace gputrace {
namespace {

constexpr const char* kNames[] = {
#define GT_QUERY(name) #name,
    GT_QUERIES(GT_QUERY)
#undef GT_QUERY
};
constexpr u32 kCount = sizeof kNames / sizeof *kNames;
static_assert(sizeof(DriverQuery) == kCount * sizeof(void*));

union Storage {
  void* functions[kCount];
  DriverQuery query;
};
constinit Storage storage{};
constinit std::atomic<bool> looked_up{false};

}  // namespace

const DriverQuery& driver_query() {
  if (!looked_up.load(std::memory_order_acquire)) {
    void* found[kCount]{};  // two threads may both look: they find and store the same
    if (find_functions(ObjectRole::Driver, kNames, found, kCount)) {
      for (u32 i = 0; i < kCount; ++i) storage.functions[i] = found[i];
      looked_up.store(true, std::memory_order_release);
    }
  }
  return storage.query;
}

}  // namespace gputrace
