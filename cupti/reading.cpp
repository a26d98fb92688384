// What CUPTI calls for a buffer, and how those that come back become records.
#include <cstring>

#include "base/raw_syscall.h"
#include "cupti/collector.h"

namespace gputrace {
namespace {

constexpr Nanos kReadPatience = 2'000'000'000;

}  // namespace

// ------------------------------------------------------------------ CUPTI's callbacks
void buffer_requested(u8** buffer, std::size_t* size, std::size_t* max_records) {
  if (max_records) *max_records = 0;
  *buffer = nullptr;
  *size = 0;
  if (!collector_is_ours() || !collector.wants_buffers.load(std::memory_order_acquire))
    return client_requested(buffer, size, max_records);
  u64 bytes = 0;
  *buffer = collector.buffers.request(bytes);
  *size = bytes;
}

void buffer_completed(void* context, u32 stream, u8* buffer, std::size_t size, std::size_t valid_size) {
  if (!collector.buffers.owns(buffer)) {
    client_completed(context, stream, buffer, size, valid_size);
    return;
  }
  if (!collector_is_ours()) return;  // a child of fork: its parent's
  collector.buffers.complete(buffer, valid_size);
  if (static_cast<i32>(own_thread_id()) != collector.thread_id.load(std::memory_order_relaxed)) wake_thread();
}

// ------------------------------------------------------------------ reading
namespace {

void read_record(void* record, u64 available) {
  AnyDeviceRecord out;
  const char* name = nullptr;
  if (void* details = details_to_free(record, available, collector.rules.version)) collector.host.release(details);
  switch (parse_activity(record, available, collector.rules, out, name)) {
    case ParseResult::Record:
      break;
    case ParseResult::ZeroTime:
      return count_loss(collector.forced ? DeviceLossReason::Unfinished : DeviceLossReason::ZeroTime, 1,
                        activity_kind(record, available));
    case ParseResult::Impossible:
      return count_loss(DeviceLossReason::Impossible, 1, activity_kind(record, available));
    case ParseResult::Unreadable:
      return count_loss(DeviceLossReason::Unknown, 1, activity_kind(record, available));
    case ParseResult::Skipped:
      return;
  }
  if (name) out.kernel.name = collector.names.id_of(name, collector.host.define_text);
  write_record(out.header);
}

void read_buffer(const ActivityBuffers::Completed& buffer) {
  void* record = nullptr;
  for (;;) {
    if (buffer.era != collector.buffers.era()) return count_loss(DeviceLossReason::Unknown, 1, 0);
    const CuptiResult result = collector.api.cuptiActivityGetNextRecord(buffer.data, buffer.valid, &record);
    if (result == kCuptiMaxLimitReached) return;
    const u8* at = static_cast<const u8*>(record);
    if (result != kCuptiSuccess || at < buffer.data || at >= buffer.data + buffer.valid) {
      count_loss(DeviceLossReason::Unknown, 1, 0);
      if (result == kCuptiInvalidKind || result == kCuptiSuccess) return;
      ControlLock lock;
      if (collector_is_ours()) checked("cuptiActivityGetNextRecord", result);
      return;
    }
    read_record(record, static_cast<u64>(buffer.data + buffer.valid - at));
  }
}

}  // namespace

void finish_reading() {
  const Nanos begin = monotonic_nanos();
  if (fetches() && start_thread()) {
    wake_thread();
    while (collector.buffers.unread() && monotonic_nanos() - begin < kReadPatience) sleep_briefly();
  }
  collector.buffers.begin_era();
}

bool read_buffers() {
  for (bool any = false;; any = true) {
    const ActivityBuffers::Completed buffer = collector.buffers.take();
    if (!buffer.data) return any;
    read_buffer(buffer);
    std::memset(buffer.data, 0, buffer.valid);
    collector.buffers.give_back(buffer.data);
  }
}

}  // namespace gputrace
