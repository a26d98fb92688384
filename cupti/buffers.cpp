#include "cupti/buffers.h"

#include <sys/mman.h>

#include "base/raw_syscall.h"

namespace gputrace {

void ActivityBuffers::configure(u64 budget) {
  size_ = budget / 8 & ~u64{4095};
  if (size_ > kLargest) size_ = kLargest;
  if (size_ < kSmallest) size_ = kSmallest;
  const u64 most = budget / size_;
  most_ = most > kMost ? kMost : most < 2 ? 2 : static_cast<u32>(most);
}

u8* ActivityBuffers::request(u64& size) {
  size = size_;
  for (u32 i = 0; i < most_; ++i) {
    u32 state = buffers_[i].state.load(std::memory_order_relaxed);
    if (state == kFree && buffers_[i].state.compare_exchange_strong(state, kLent, std::memory_order_acq_rel))
      return buffers_[i].data.load(std::memory_order_relaxed);
  }
  for (u32 i = 0; i < most_; ++i) {
    u32 absent = kAbsent;
    if (!buffers_[i].state.compare_exchange_strong(absent, kMaking, std::memory_order_acq_rel)) continue;
    const long mapped =
        raw_syscall(SYS_mmap, 0, static_cast<long>(size_), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped < 0 && mapped > -4096) {
      buffers_[i].state.store(kAbsent, std::memory_order_release);
      break;
    }
    u8* data = reinterpret_cast<u8*>(mapped);
    buffers_[i].data.store(data, std::memory_order_relaxed);
    buffers_[i].state.store(kLent, std::memory_order_release);
    return data;
  }
  refused_.fetch_add(1, std::memory_order_relaxed);
  size = 0;
  return nullptr;
}

ActivityBuffers::Buffer* ActivityBuffers::find(const u8* data) {
  for (Buffer& buffer : buffers_) {
    if (data && buffer.data.load(std::memory_order_relaxed) == data) return &buffer;
  }
  return nullptr;
}

bool ActivityBuffers::owns(const u8* data) const { return const_cast<ActivityBuffers*>(this)->find(data) != nullptr; }

bool ActivityBuffers::complete(u8* data, u64 valid) {
  Buffer* buffer = find(data);
  if (!buffer) return false;
  if (buffer->state.load(std::memory_order_acquire) != kLent) return true;  // given back twice: the first time counts
  buffer->valid = valid < size_ ? valid : size_;
  buffer->completed = next_completed_.fetch_add(1, std::memory_order_relaxed);
  buffer->state.store(kCompleted, std::memory_order_release);  // pairs with the acquire in take()
  return true;
}

ActivityBuffers::Completed ActivityBuffers::take() {
  Buffer* first = nullptr;
  for (Buffer& buffer : buffers_) {
    if (buffer.state.load(std::memory_order_acquire) != kCompleted) continue;
    if (!first || buffer.completed < first->completed) first = &buffer;
  }
  if (!first) return {};
  first->state.store(kReading, std::memory_order_relaxed);
  return {first->data.load(std::memory_order_relaxed), first->valid};
}

void ActivityBuffers::give_back(u8* data) {
  if (Buffer* buffer = find(data)) buffer->state.store(kFree, std::memory_order_release);
}

u32 ActivityBuffers::held() const {
  u32 count = 0;
  for (const Buffer& buffer : buffers_) count += buffer.state.load(std::memory_order_relaxed) == kLent;
  return count;
}

}  // namespace gputrace
