#include "cupti/buffers.h"

#include "base/mapped_memory.h"

namespace gputrace {

void ActivityBuffers::configure(u64 budget) {
  budget_ = budget < 2 * kSmallest ? 2 * kSmallest : budget;
  size_.store(kFirst, std::memory_order_relaxed);
}

ActivityBuffers::Buffer* ActivityBuffers::take_free(u64 size) {
  const u32 made = made_.load(std::memory_order_acquire);
  for (u32 i = 0; i < made; ++i) {
    Buffer& buffer = buffers_[i];
    u32 state = buffer.state.load(std::memory_order_acquire);
    if (state != kFree || (size && buffer.size != size)) continue;
    if (buffer.state.compare_exchange_strong(state, kLent, std::memory_order_acq_rel)) return &buffer;
  }
  return nullptr;
}

ActivityBuffers::Buffer* ActivityBuffers::make(u64 size) {
  if (bytes_.fetch_add(size, std::memory_order_relaxed) + size > budget_) {
    bytes_.fetch_sub(size, std::memory_order_relaxed);
    return nullptr;
  }
  u32 index = made_.load(std::memory_order_relaxed);
  while (index < kMost && !made_.compare_exchange_weak(index, index + 1, std::memory_order_acq_rel)) {
  }
  u8* const data = index == kMost ? nullptr : map_memory<u8>(size);
  if (!data) {
    bytes_.fetch_sub(size, std::memory_order_relaxed);
    return nullptr;  // its entry stays absent for good
  }
  Buffer& buffer = buffers_[index];
  buffer.size = size;
  buffer.data.store(data, std::memory_order_relaxed);
  buffer.state.store(kLent, std::memory_order_release);
  return &buffer;
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
  if (!buffer) buffer = make(wanted);
  if (!buffer) buffer = take_free(0);
  if (buffer) return lend(*buffer, size, now);
  refused_.fetch_add(1, std::memory_order_relaxed);
  size = 0;
  return nullptr;
}

u32 ActivityBuffers::find(const u8* data) const {
  const u32 made = made_.load(std::memory_order_acquire);
  for (u32 i = 0; data && i < made; ++i) {
    if (buffers_[i].data.load(std::memory_order_relaxed) == data) return i;
  }
  return kMost;
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
  buffers_[index].state.store(kFree, std::memory_order_release);
  unread_.fetch_sub(1, std::memory_order_release);
}

}  // namespace gputrace
