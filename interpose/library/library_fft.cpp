// cuFFT plans, remembered by their handle: an execution names the plan alone. cuFFT numbers its plans from 1, so a
// table of places handle % kPlans forgets nothing until a process keeps more of them.
#include "interpose/hot/session.h"
#include "interpose/library/library_records.h"

namespace gputrace {
namespace {

constexpr u32 kPlans = 1024;

// Written by calls that the application must not make while the same plan executes. `key` goes first to 0 and
// last to the handle + 1, so that a reader of a place that changes hands sees no mixture.
struct Plan {
  std::atomic<u64> key;
  std::atomic<u64> stream;
  std::atomic<u64> x, y, z, batch;
  std::atomic<u64> type;
};
constinit Plan plans[kPlans]{};

Plan& place_of(int plan) { return plans[static_cast<u32>(plan) % kPlans]; }
u64 key_of(int plan) { return static_cast<u64>(static_cast<u32>(plan)) + 1; }

void put(std::atomic<u64>& word, u64 value) { word.store(value, std::memory_order_relaxed); }
u64 get(const std::atomic<u64>& word) { return word.load(std::memory_order_relaxed); }

}  // namespace

void fft_plan(const LibraryCall& did, int plan, const FftShape& shape) {
  object(did, static_cast<u64>(static_cast<u32>(plan)));
  if (!did.call.ok()) return;
  Plan& place = place_of(plan);
  const bool same = place.key.load(std::memory_order_acquire) == key_of(plan);
  const u64 stream = same ? get(place.stream) : 0;  // set before the plan was made
  place.key.store(0, std::memory_order_release);
  put(place.stream, stream);
  put(place.x, positive(shape.x));
  put(place.y, positive(shape.y));
  put(place.z, positive(shape.z));
  put(place.batch, positive(shape.batch));
  put(place.type, static_cast<u64>(shape.type));
  place.key.store(key_of(plan), std::memory_order_release);
}

void fft_stream(const LibraryCall& did, int plan, void* stream) {
  object(did, static_cast<u64>(static_cast<u32>(plan)));
  if (!did.call.ok()) return;
  Plan& place = place_of(plan);
  if (place.key.load(std::memory_order_acquire) != key_of(plan)) {
    place.key.store(0, std::memory_order_release);
    put(place.x, 0), put(place.y, 0), put(place.z, 0), put(place.batch, 0), put(place.type, 0);
  }
  put(place.stream, reinterpret_cast<u64>(stream));
  place.key.store(key_of(plan), std::memory_order_release);
}

void fft_gone(const LibraryCall& did, int plan) {
  object(did, static_cast<u64>(static_cast<u32>(plan)));
  Plan& place = place_of(plan);
  if (did.call.ok() && place.key.load(std::memory_order_acquire) == key_of(plan))
    place.key.store(0, std::memory_order_release);
}

void fft(const LibraryCall& did, int plan, int type, int direction) {
  Fft record{};
  record.plan = static_cast<u64>(static_cast<u32>(plan));
  record.type = static_cast<u32>(type);
  record.direction = direction;
  const Plan& place = place_of(plan);
  if (place.key.load(std::memory_order_acquire) == key_of(plan)) {
    record.stream = get(place.stream);
    record.x = get(place.x);
    record.y = get(place.y);
    record.z = get(place.z);
    record.batch = get(place.batch);
    if (!type) record.type = static_cast<u32>(get(place.type));
  }
  emit(did.call, record);
}

}  // namespace gputrace
