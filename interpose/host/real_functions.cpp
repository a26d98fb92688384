#include "interpose/host/real_functions.h"

#include <atomic>

#include "interpose/lookup/elf_tables.h"

namespace gputrace::host {
namespace {

constexpr const char* kNames[] = {
#define GT_HOST_FUNCTION(name) #name,
#include "interpose/host/host_functions.def"
};
constexpr u32 kCount = sizeof kNames / sizeof kNames[0];

constinit std::atomic<void*> found[kCount]{};
const char own_marker = 0;

struct Search {
  const char* name;
  bool passed = false;
  void* result = nullptr;
};

// pthread_cond_wait has two versions in glibc, whose condition variables differ: the one that programs link to today is meant.
void* find_after_us(const char* name) {
  Search search{name};
  elf::visit_objects(
      [](const dl_phdr_info&, const elf::Tables& tables, void* data) -> bool {
        auto& at = *static_cast<Search*>(data);
        const u64 own = reinterpret_cast<u64>(&own_marker);
        if (own >= tables.begin && own < tables.end) {
          at.passed = true;
          return false;
        }
        if (at.passed) at.result = elf::find_default_function(tables, at.name);
        return at.result != nullptr;
      },
      &search);
  return search.result;
}

}  // namespace

void* find_real(Function function) {
  std::atomic<void*>& known = found[static_cast<u32>(function)];
  void* real = known.load(std::memory_order_relaxed);
  if (!real) {
    real = find_after_us(kNames[static_cast<u32>(function)]);
    known.store(real, std::memory_order_relaxed);
  }
  return real;
}

void find_all_real() {
  for (u32 i = 0; i < kCount; ++i) find_real(static_cast<Function>(i));
}

}  // namespace gputrace::host
