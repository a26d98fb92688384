#include "cupti/buffers.h"

#include "base/mapped_memory.h"

namespace gputrace {

void ActivityBuffers::configure(u64 budget) {
  budget_ = budget < 2 * kSmallest ? 2 * kSmallest : budget;
  size_.store(kFirst, std::memory_order_relaxed);
}

ActivityBuffers::Buffer* ActivityBuffers::take_free(u64 size) {
  if (!free_.load(std::memory_order_acquire)) return nullptr;
  const u32 made = made_.load(std::memory_order_acquire);
  const u32 first = look_at_.load(std::memory_order_relaxed);
  for (u32 i = 0; i < made; ++i) {
    const u32 index = first + i < made ? first + i : first + i - made;
    Buffer& buffer = buffers_[index];
    u32 state = buffer.state.load(std::memory_order_acquire);
    if (state != kFree || (size && buffer.size != size)) continue;
    if (!buffer.state.compare_exchange_strong(state, kLent, std::memory_order_acq_rel)) continue;
    free_.fetch_sub(1, std::memory_order_relaxed);
    look_at_.store(index, std::memory_order_relaxed);
    return &buffer;
  }
  return nullptr;
}

u32 ActivityBuffers::home_of(const u8* data) {
  return static_cast<u32>(reinterpret_cast<u64>(data) / kSmallest * 0x9e3779b97f4a7c15 >> 32) % kHomes;
}

void ActivityBuffers::settle(u32 index, u8* data, u64 size, State state) {
  Buffer& buffer = buffers_[index];
  buffer.size = size;
  buffer.data.store(data, std::memory_order_relaxed);
  for (u32 home = home_of(data);; home = (home + 1) % kHomes) {
    u16 nobody = 0;
    if (homes_[home].compare_exchange_strong(nobody, static_cast<u16>(index + 1), std::memory_order_release)) break;
  }
  buffer.state.store(state, std::memory_order_release);
}

// The first of them is lent, the others are free.
ActivityBuffers::Buffer* ActivityBuffers::make(u64 size, u32 count) {
  const u64 bytes = count * size;
  if (bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes > budget_) {
    bytes_.fetch_sub(bytes, std::memory_order_relaxed);
    return nullptr;
  }
  u32 index = made_.load(std::memory_order_relaxed);
  while (index + count <= kMost && !made_.compare_exchange_weak(index, index + count, std::memory_order_acq_rel)) {
  }
  u8* const data = index + count > kMost ? nullptr : map_memory<u8>(bytes);
  if (!data) {
    bytes_.fetch_sub(bytes, std::memory_order_relaxed);
    return nullptr;  // their entries stay absent for good
  }
  if (count > 1) populate_memory(data, bytes);  // many threads are about to write into them
  free_.fetch_add(count - 1, std::memory_order_relaxed);
  for (u32 i = 0; i < count; ++i) settle(index + i, data + i * size, size, i ? kFree : kLent);
  return &buffers_[index];
}

u8* ActivityBuffers::lend(Buffer& buffer, u64& size, Nanos now) {
  buffer.lent_at = now;
  held_.fetch_add(1, std::memory_order_relaxed);
  size = buffer.size;
  return buffer.data.load(std::memory_order_relaxed);
}

u8* ActivityBuffers::request(u64& size, Nanos now) {
  // The more are lent, the less there is for the next one: a thousand threads find one each.
  const u64 share = budget_ / 16 / (held() + 1);
  u64 wanted = size_.load(std::memory_order_relaxed);
  while (wanted > kSmallest && wanted > share) wanted /= 2;
  Buffer* buffer = take_free(wanted);
  if (!buffer && wanted == kSmallest) buffer = make(wanted, kAtOnce);
  if (!buffer) buffer = make(wanted);
  if (!buffer) buffer = take_free(0);
  if (buffer) return lend(*buffer, size, now);
  refused_.fetch_add(1, std::memory_order_relaxed);
  size = 0;
  return nullptr;
}

u32 ActivityBuffers::find(const u8* data) const {
  for (u32 home = home_of(data);; home = (home + 1) % kHomes) {
    const u32 number = homes_[home].load(std::memory_order_acquire);
    if (!number) return kMost;
    if (buffers_[number - 1].data.load(std::memory_order_relaxed) == data) return number - 1;
  }
}

bool ActivityBuffers::owns(const u8* data) const { return find(data) != kMost; }

// Whether those that follow it should be larger or smaller.
void ActivityBuffers::judge(const Buffer& buffer, Nanos now) {
  u64 size = buffer.size;
  const Nanos out = now - buffer.lent_at;
  const bool full = buffer.valid > size / 2;
  u64 next = size;
  if (full && out < kFast && size < kLargest) next = size * 2;
  if (out > kSlow && size > kSmallest) next = size / 2;
  if (next != size) size_.compare_exchange_strong(size, next, std::memory_order_relaxed);
}

bool ActivityBuffers::complete(u8* data, u64 valid, Nanos now) {
  const u32 index = find(data);
  if (index == kMost) return false;
  Buffer* const buffer = &buffers_[index];
  u32 lent = kLent;
  if (!buffer->state.compare_exchange_strong(lent, kCompleted, std::memory_order_acq_rel))
    return true;  // given back twice: the first time counts
  held_.fetch_sub(1, std::memory_order_relaxed);
  unread_.fetch_add(1, std::memory_order_release);
  buffer->era = era();
  buffer->valid = valid < buffer->size ? valid : buffer->size;
  judge(*buffer, now);
  const u32 number = index + 1;
  buffer->next = completed_.load(std::memory_order_relaxed);
  while (!completed_.compare_exchange_weak(buffer->next, number, std::memory_order_release,
                                           std::memory_order_relaxed)) {  // pairs with the acquire in take()
  }
  return true;
}

ActivityBuffers::Completed ActivityBuffers::take() {
  if (!queue_) {  // all that came since, the last one first: turned round
    u32 number = completed_.exchange(0, std::memory_order_acquire);
    while (number) {
      Buffer& buffer = buffers_[number - 1];
      const u32 earlier = buffer.next;
      buffer.next = queue_;
      queue_ = number;
      number = earlier;
    }
  }
  if (!queue_) return {};
  Buffer& first = buffers_[queue_ - 1];
  queue_ = first.next;
  first.state.store(kReading, std::memory_order_relaxed);
  return {first.data.load(std::memory_order_relaxed), first.valid, first.era};
}

void ActivityBuffers::give_back(u8* data) {
  const u32 index = find(data);
  if (index == kMost) return;
  free_.fetch_add(1, std::memory_order_relaxed);
  buffers_[index].state.store(kFree, std::memory_order_release);
  unread_.fetch_sub(1, std::memory_order_release);
}

}  // namespace gputrace
