#include "simgpu/cupti/calls.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

namespace simgpu::cupti {

namespace {

// Literal → number + 1, filled as calls come; a slot is written once.
struct Slot {
  std::atomic<const char*> name{nullptr};
  std::atomic<uint32_t> number{0};
};
constinit std::array<Slot, 4096> remembered;

uint32_t find(const char* exported, const CallNumber* begin, unsigned count) {
  const CallNumber* const end = begin + count;
  const CallNumber* found = std::lower_bound(
      begin, end, exported, [](const CallNumber& a, const char* b) { return std::strcmp(a.name, b) < 0; });
  return found != end && std::strcmp(found->name, exported) == 0 ? found->number : 0;
}

// cudaMalloc → cudaMalloc_v3020: the one that begins with the name and goes on with _v and digits.
uint32_t find_runtime(const char* exported) {
  const size_t length = std::strlen(exported);
  const CallNumber* const end = kRuntimeCalls + kRuntimeCallCount;
  const CallNumber* found = std::lower_bound(
      kRuntimeCalls, end, exported, [](const CallNumber& a, const char* b) { return std::strcmp(a.name, b) < 0; });
  for (; found != end && std::strncmp(found->name, exported, length) == 0; ++found) {
    const char* rest = found->name + length;
    if (rest[0] == '_' && rest[1] == 'v' && std::strspn(rest + 2, "0123456789") == std::strlen(rest + 2))
      return found->number;
  }
  return 0;
}

}  // namespace

uint32_t number_of(const char* exported, bool runtime) {
  const size_t first = (reinterpret_cast<uintptr_t>(exported) >> 2) % remembered.size();
  for (size_t i = 0; i < 8; ++i) {
    Slot& slot = remembered[(first + i) % remembered.size()];
    const char* known = slot.name.load(std::memory_order_acquire);
    if (known == exported) {
      const uint32_t number = slot.number.load(std::memory_order_acquire);
      if (number != 0) return number - 1;
    }
    if (known != nullptr) continue;
    const uint32_t number = runtime ? find_runtime(exported) : find(exported, kDriverCalls, kDriverCallCount);
    if (slot.name.compare_exchange_strong(known, exported)) slot.number.store(number + 1, std::memory_order_release);
    return number;
  }
  return runtime ? find_runtime(exported) : find(exported, kDriverCalls, kDriverCallCount);
}

const char* name_of(uint32_t number, bool runtime) {
  const CallNumber* begin = runtime ? kRuntimeCalls : kDriverCalls;
  const CallNumber* end = begin + (runtime ? kRuntimeCallCount : kDriverCallCount);
  const CallNumber* found = std::find_if(begin, end, [&](const CallNumber& c) { return c.number == number; });
  return found != end ? found->name : nullptr;
}

}  // namespace simgpu::cupti
