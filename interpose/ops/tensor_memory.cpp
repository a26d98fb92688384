#include "interpose/ops/tensor_memory.h"

#include <atomic>

#include "interpose/hot/traced.h"
#include "interpose/lookup/elf_lookup.h"

namespace gputrace {
namespace {

// c10::Device: two bytes, passed by value.
struct TorchDevice {
  i8 type;
  i8 index;
};
constexpr i8 kCuda = 1;  // c10::DeviceType::CUDA

using ReportUsage = void (*)(void*, i64, u64, u64, TorchDevice);
using ReportOutOfMemory = void (*)(i64, u64, u64, TorchDevice);

constinit std::atomic<ReportUsage> real_usage{nullptr};
constinit std::atomic<ReportOutOfMemory> real_out_of_memory{nullptr};
constinit std::atomic<bool> is_wanted{false};

// libc10's own. nullptr: nobody defines it, and nobody but a stranger can have called us.
template <typename Function>
Function real_of(std::atomic<Function>& kept, const char* name) {
  if (const Function known = kept.load(std::memory_order_acquire)) return known;
  void* const found = find_function(ObjectRole::Other, name);
  if (!found) return nullptr;
  keep_loaded(found);
  const auto function = reinterpret_cast<Function>(found);
  kept.store(function, std::memory_order_release);
  return function;
}

bool may_record(TorchDevice device) {
  if (device.type != kCuda || !is_wanted.load(std::memory_order_relaxed)) return false;
  const ThreadState& thread = thread_state;
  const u64 generation = gate_generation();
  return generation >= kFirstGeneration && (thread.generation == generation || enter_session()) && !thread.busy;
}

// What is given back needs no stack: that of its allocation says whose it is.
void record(u64 address, i64 bytes, u64 allocated, u64 reserved, TorchDevice device, u32 flags) {
  if (bytes >= 0 && gate.stacks.load(std::memory_order_relaxed) != 0) read_stack();
  FinishedCall call{};
  call.generation = thread_state.generation;
  call.begin = call.end = record_ticks();
  TensorMemory memory{};
  memory.address = address;
  memory.bytes = bytes;
  memory.allocated = allocated;
  memory.reserved = reserved;
  memory.device = i32{device.index};
  memory.flags = flags;
  emit(call, memory);
}

}  // namespace

void reset_tensor_memory(bool wanted) { is_wanted.store(wanted, std::memory_order_relaxed); }

#define GT_EXPORT extern "C" __attribute__((visibility("default")))

// void c10::reportMemoryUsageToProfiler(void*, int64_t, size_t, size_t, c10::Device)
GT_EXPORT void _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(void* address, i64 bytes, u64 allocated,
                                                                     u64 reserved, TorchDevice device) {
  if (may_record(device)) record(reinterpret_cast<u64>(address), bytes, allocated, reserved, device, 0);
  const ReportUsage real = real_of(real_usage, "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE");
  if (real) real(address, bytes, allocated, reserved, device);
}

// void c10::reportOutOfMemoryToProfiler(int64_t, size_t, size_t, c10::Device)
GT_EXPORT void _ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE(i64 bytes, u64 allocated, u64 reserved,
                                                                   TorchDevice device) {
  if (may_record(device)) record(0, bytes, allocated, reserved, device, kTensorOutOfMemory);
  const ReportOutOfMemory real = real_of(real_out_of_memory, "_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE");
  if (real) real(bytes, allocated, reserved, device);
}

}  // namespace gputrace
