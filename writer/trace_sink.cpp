#include "writer/trace_sink.h"

#include <algorithm>
#include <cstring>

namespace gputrace {
namespace {

constexpr std::size_t kMaxNews = 4096;  // entries gathered before they are written

ThreadEntry entry_of(const RingThread& thread) {
  ThreadEntry entry{};
  entry.slot = thread.slot;
  entry.incarnation = thread.incarnation;
  entry.tid = thread.tid;
  entry.begin = thread.begin;
  entry.end = thread.end;
  std::memcpy(entry.name, thread.name, sizeof entry.name);
  return entry;
}

bool is_definitions(const RingThread& thread) { return thread.slot == 0 || thread.slot == kSidecarSlot; }

u64 digest(const HealthEntry& entry) {
  u64 total = entry.seen + entry.stored;
  for (u64 dropped : entry.dropped) total += dropped;
  return total;
}

// Machine code that was copied is for the scanner, which has read it on its way, and is nobody's afterwards: of its pieces the file has what they are pieces of.
void append_without_code(const u8* data, u32 size, std::vector<u8>& to) {
  u32 whole = 0;  // from here on nothing was appended yet
  for (u32 at = 0; size - at >= sizeof(RecordHeader);) {
    RecordHeader header;
    std::memcpy(&header, data + at, sizeof header);
    if (header.size < sizeof header || header.size > size - at) break;
    const u32 next = at + header.size;
    if (header.type == static_cast<u16>(RecordType::CodeBytes) && header.size > sizeof(CodeBytes)) {
      header.size = sizeof(CodeBytes);
      to.insert(to.end(), data + whole, data + at + header.size);
      std::memcpy(to.data() + to.size() - header.size, &header, sizeof header);
      whole = next;
    }
    at = next;
  }
  to.insert(to.end(), data + whole, data + size);
}

}  // namespace

void TraceSink::thread_began(const RingThread& thread) {
  Stage& stage = stages_[key_of(thread)];
  stage.of = {thread.slot, thread.incarnation, 0, 0};
  if (const auto had = expected_.find(key_of(thread)); had != expected_.end()) {
    stage.of.first_record = had->second.first;
    stage.stored = had->second.second;
    expected_stored_ += stage.stored;
  }
  if (thread.slot == 0) definitions_ = &stage;
  thread_news_.push_back(entry_of(thread));
}

void TraceSink::records(const RingThread& thread, u64 first_record, u32 count, const u8* data, u32 size) {
  Stage& stage = stages_[key_of(thread)];
  const bool follows = stage.of.first_record + stage.of.record_count == first_record;
  if (stage.of.record_count && (!follows || stage.bytes.size() + size > kChunkBytes)) {
    if (!is_definitions(thread)) write_definitions();
    write_stage(stage);
  }
  if (!stage.of.record_count) stage.of.first_record = first_record;
  if (refusal_) {
    stage.refused += count;
    refused_ += count;
    return;
  }
  if (stop() != WriteStop::None && !(writer_ && is_definitions(thread))) {
    stage.disk += count;
    disk_ += count;
    return;
  }
  if (stage.bytes.empty()) stage.bytes.reserve(size < kChunkBytes / 4 ? size : kChunkBytes);
  const std::size_t before = stage.bytes.size();
  if (thread.slot == 0)
    append_without_code(data, size, stage.bytes);
  else
    stage.bytes.insert(stage.bytes.end(), data, data + size);
  staged_ += stage.bytes.size() - before;
  stage.of.record_count += count;
  if (staged_ > kStagedBytes) flush();
}

void TraceSink::thread_ended(const RingThread& thread) {
  const auto found = stages_.find(key_of(thread));
  if (found == stages_.end()) return;
  write_stage(found->second);
  ended_.push_back(health_of(thread, found->second));
  thread_news_.push_back(entry_of(thread));
  if (definitions_ == &found->second) definitions_ = nullptr;
  stages_.erase(found);
  if (thread_news_.size() >= kMaxNews) write_threads();
}

void TraceSink::write_stage(Stage& stage) {
  if (!stage.of.record_count) return;
  if (writer_ && writer_->append_records(stage.of, stage.bytes.data(), stage.bytes.size())) {
    stage.stored += stage.of.record_count;
    stored_ += stage.of.record_count;
  } else {
    stage.disk += stage.of.record_count;
    disk_ += stage.of.record_count;
  }
  staged_ -= stage.bytes.size();
  stage.bytes.clear();
  stage.of.first_record += stage.of.record_count;
  stage.of.record_count = 0;
}

void TraceSink::write_threads() {
  if (writer_ && !thread_news_.empty())
    writer_->append(ChunkKind::Thread, thread_news_.data(), thread_news_.size() * sizeof(ThreadEntry));
  thread_news_.clear();
  if (writer_ && !ended_.empty())
    writer_->append(ChunkKind::Health, ended_.data(), ended_.size() * sizeof(HealthEntry));
  ended_.clear();
}

// Before calls are: where the space ends, what they are about is there.
void TraceSink::write_definitions() {
  if (definitions_) write_stage(*definitions_);
}

void TraceSink::flush() {
  write_definitions();
  for (auto& [key, stage] : stages_) {
    write_stage(stage);
    if (stage.bytes.capacity() > kChunkBytes / 8 && stages_.size() > 16) std::vector<u8>().swap(stage.bytes);
  }
  write_threads();
}

// An idle process needs no anchors: of those that nothing was written between, the newest is enough.
void TraceSink::write_anchors(bool last) {
  if (!writer_ || anchors_.empty()) return;
  if (!last && writer_->chunks() == chunks_at_anchors_) {
    if (anchors_.size() > 1) anchors_.erase(anchors_.begin(), anchors_.end() - 1);
    return;
  }
  writer_->append(ChunkKind::Anchors, anchors_.data(), anchors_.size() * sizeof(Anchor));
  anchors_.clear();
  chunks_at_anchors_ = writer_->chunks();
}

HealthEntry TraceSink::health_of(const RingThread& thread, const Stage& stage) const {
  HealthEntry entry{};
  entry.slot = thread.slot;
  entry.incarnation = thread.incarnation;
  entry.tid = thread.tid;
  entry.seen = thread.seen;
  entry.stored = stage.stored;
  std::copy(thread.dropped, thread.dropped + kDropReasons, entry.dropped);
  entry.dropped[static_cast<u32>(DropReason::Disk)] += stage.disk;
  if (refusal_) entry.dropped[static_cast<u32>(*refusal_)] += stage.refused;
  return entry;
}

void TraceSink::add_record(const RecordHeader& record) {
  if (!own_.seen) {
    own_.slot = kSidecarSlot;
    own_.begin = record.begin;
    std::memcpy(own_.name, "sidecar", sizeof "sidecar");
    thread_began(own_);
  }
  records(own_, own_.seen, 1, reinterpret_cast<const u8*>(&record), record.size);
  ++own_.seen;
}

void TraceSink::report_health(const RingThread& thread, bool last, std::vector<HealthEntry>& entries) {
  const auto found = stages_.find(key_of(thread));
  if (found == stages_.end()) return;
  const HealthEntry entry = health_of(thread, found->second);
  if (!last && digest(entry) == found->second.reported) return;
  found->second.reported = digest(entry);
  entries.push_back(entry);
}

void TraceSink::expect(u32 slot, u32 incarnation, u64 next_record, u64 stored) {
  expected_[static_cast<u64>(slot) << 32 | incarnation] = {next_record, stored};
}

HealthEntry TraceSink::health_of_process(Consumer& consumer) const {
  const RingThread process = consumer.process();
  HealthEntry all{};
  all.slot = kProcessSlot;
  all.seen = process.seen + own_.seen + earlier_.seen;
  all.stored = stored_ + expected_stored_ + earlier_.stored;
  for (u32 i = 0; i < kDropReasons; ++i) all.dropped[i] = process.dropped[i] + earlier_.dropped[i];
  all.dropped[static_cast<u32>(DropReason::Disk)] += disk_;
  if (refusal_) all.dropped[static_cast<u32>(*refusal_)] += refused_;
  return all;
}

void TraceSink::update_counters(Consumer& consumer, Ticks now) {
  if (!writer_) return;
  const HealthEntry all = health_of_process(consumer);
  if (digest(all) == counted_) return;
  counted_ = digest(all);
  writer_->update_counters(all, now);
}

void TraceSink::checkpoint(Consumer& consumer, Ticks now, bool last) {
  flush();
  write_anchors(last);
  if (!writer_) return;
  std::vector<HealthEntry> entries;
  for (const RingThread& thread : consumer.threads()) report_health(thread, last, entries);
  report_health(own_, last, entries);
  const HealthEntry all = health_of_process(consumer);
  if (!last && digest(all) == told_) return;
  told_ = digest(all);
  entries.push_back(all);
  writer_->append(ChunkKind::Health, entries.data(), entries.size() * sizeof(HealthEntry), now);
  chunks_at_anchors_ += writer_->chunks() == chunks_at_anchors_ + 1;  // counters alone need no anchor
}

void TraceSink::add_info(const std::string& text) {
  if (writer_) writer_->append(ChunkKind::Info, text.data(), text.size());
}
void TraceSink::add_schema(const std::string& text) {
  if (writer_) writer_->append(ChunkKind::Schema, text.data(), text.size());
}

void TraceSink::add_in_flight(const std::vector<Consumer::OpenCall>& calls) {
  std::vector<InFlightEntry> entries;
  entries.reserve(calls.size());
  for (const auto& call : calls)
    entries.push_back({call.slot, call.incarnation, call.tid, call.call, call.begin, call.argument, call.depth, 0});
  if (writer_ && !entries.empty())
    writer_->append(ChunkKind::InFlight, entries.data(), entries.size() * sizeof(InFlightEntry));
}

void TraceSink::refuse(DropReason reason) {
  flush();
  refusal_ = reason;
}

void TraceSink::end(const EndEntry& entry) {
  if (writer_) writer_->append(ChunkKind::End, &entry, sizeof entry);
}

WriteStop TraceSink::stop() const { return writer_ ? writer_->stop() : WriteStop::Error; }

}  // namespace gputrace
