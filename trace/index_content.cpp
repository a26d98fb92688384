// Passes 2 and 3 of the indexer: what the chunks say, and how the counters add up.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "trace/indexer.h"
#include "trace/info_text.h"

namespace gputrace {
namespace {

constexpr u64 kMaxSchemaBytes = 4u << 20;  // of all schema chunks: the schema of this version has some 80 KB
constexpr u32 kLost = static_cast<u32>(DropReason::Lost);

u64 key_of(u32 slot, u32 incarnation) { return static_cast<u64>(slot) << 32 | incarnation; }

// Sums that a hostile file cannot wrap.
u64 add(u64 a, u64 b) { return a > ~u64{0} - b ? ~u64{0} : a + b; }
u64 sum(const u64* dropped) { return std::accumulate(dropped, dropped + kDropReasons, u64{0}, add); }

// No sum of such counters over all threads overflows.
bool plausible(const HealthEntry& entry) {
  const u64 limit = entry.slot == kProcessSlot ? u64{1} << 60 : u64{1} << 40;
  return entry.seen < limit && entry.stored < limit &&
         std::all_of(entry.dropped, entry.dropped + kDropReasons, [&](u64 count) { return count < limit; });
}

}  // namespace

bool TraceIndexer::read_payload(const Found& found, std::vector<u64>& raw) {
  const ChunkHeader& header = found.header;
  raw.resize(header.raw_size / 8 + 1);
  const u8* stored = file_.at(found.offset + sizeof header, header.stored_size);
  return stored && decoder_.decode(header.encoding, stored, header.stored_size, reinterpret_cast<u8*>(raw.data()),
                                   header.raw_size);
}

void TraceIndexer::read_chunk(const Found& found) {
  const ChunkHeader& header = found.header;
  if (header.kind == ChunkKind::Records) return add_records(found);
  if (header.kind < ChunkKind::Schema || header.kind > ChunkKind::Counters) {
    ++trace_.unknown_chunks_;
    return;
  }
  std::vector<u64> raw;
  const char* wrong = nullptr;
  if (!takes(header))
    wrong = "more beside records than a file of this size may hold: not read";
  else if (!read_payload(found, raw))
    wrong = "this chunk does not decode";
  else if (!add_meta(header, reinterpret_cast<const u8*>(raw.data()), header.raw_size))
    wrong = "the content of this chunk makes no sense, or is more than a file of this size may hold: not read";
  if (!wrong) {
    trace_.other_chunks_.push_back({found.offset, header.sequence, header.stored_size, header.raw_size, header.encoding,
                                    header.kind, header.begin});
    return;
  }
  Damage& damage = add_damage(DamageKind::BadContent, found.offset, sizeof header + header.stored_size, wrong);
  damage.sequence = header.sequence;
  damage.sequence_count = 1;
}

// Within what a file of this size may hold beside records?
bool TraceIndexer::takes(const ChunkHeader& header) {
  other_bytes_ += header.raw_size;
  if (header.kind == ChunkKind::Schema) schema_bytes_ += header.raw_size;
  if (header.kind == ChunkKind::Info) info_bytes_ += header.raw_size;
  return other_bytes_ <= limits_.other_bytes && schema_bytes_ <= kMaxSchemaBytes && info_bytes_ <= limits_.info_bytes;
}

// Calls take(entry) for every entry; false where the size is no multiple of the entry's, or take says so.
template <typename Entry, typename Take>
bool TraceIndexer::each(const u8* raw, std::size_t size, Take take) {
  for (std::size_t at = 0; at + sizeof(Entry) <= size; at += sizeof(Entry)) {
    Entry entry;
    std::memcpy(&entry, raw + at, sizeof entry);
    if (!take(entry)) return false;
  }
  return size % sizeof(Entry) == 0;
}

bool TraceIndexer::add_meta(const ChunkHeader& header, const u8* raw, std::size_t size) {
  switch (header.kind) {
    case ChunkKind::Schema:
      return trace_.schema_.add_text({reinterpret_cast<const char*>(raw), size});
    case ChunkKind::Info:
      return add_info({reinterpret_cast<const char*>(raw), size});
    case ChunkKind::Thread:
      return each<ThreadEntry>(raw, size, [&](const ThreadEntry& entry) {
        const u32 index = thread(entry.slot, entry.incarnation, entry.tid);
        if (index == ~0u) return false;
        ThreadInfo& info = trace_.threads_[index];
        info.begin = entry.begin;
        info.end = entry.end;
        info.name.assign(entry.name, strnlen(entry.name, sizeof entry.name));
        return true;
      });
    case ChunkKind::Anchors:
      return each<Anchor>(raw, size, [&](const Anchor& anchor) {
        if (anchors_.size() >= limits_.anchors) return false;
        anchors_.push_back(anchor);
        return true;
      });
    case ChunkKind::Health:
      trace_.last_health_ = header.begin;
      return each<HealthEntry>(raw, size, [&](const HealthEntry& entry) {
        if (health_.size() > limits_.threads || !plausible(entry)) return false;
        if (entry.slot != kProcessSlot && thread(entry.slot, entry.incarnation, entry.tid) == ~0u) return false;
        health_[key_of(entry.slot, entry.slot == kProcessSlot ? 0 : entry.incarnation)] = entry;
        return true;
      });
    case ChunkKind::Counters:
      trace_.counters_at_ = header.begin;
      return each<HealthEntry>(raw, size, [&](const HealthEntry& entry) {
        if (!plausible(entry)) return false;
        counters_ = entry;
        return true;
      });
    case ChunkKind::InFlight:
      return each<InFlightEntry>(raw, size, [&](const InFlightEntry& entry) {
        const u32 index = thread(entry.slot, entry.incarnation, entry.tid);
        if (index == ~0u || trace_.in_flight_.size() >= limits_.open_calls) return false;
        trace_.in_flight_.push_back({index, entry.tid, entry.call, entry.begin, entry.argument, entry.depth});
        return true;
      });
    case ChunkKind::End:
      return each<EndEntry>(raw, size, [&](const EndEntry& entry) {
        trace_.end_ = entry;
        return true;
      });
    case ChunkKind::Records:
      break;
  }
  return false;
}

bool TraceIndexer::add_info(std::string_view text) {
  while (!text.empty()) {
    if (trace_.info_.size() >= limits_.info_lines) return false;
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    const std::size_t tab = line.find('\t');
    if (tab == std::string_view::npos || !tab) continue;
    trace_.info_.emplace_back(unescaped(line.substr(0, tab)), unescaped(line.substr(tab + 1)));
  }
  return true;
}

// Index of a thread, made where it is new; ~0: there are too many.
u32 TraceIndexer::thread(u32 slot, u32 incarnation, i32 tid) {
  const auto [found, is_new] =
      thread_index_.try_emplace(key_of(slot, incarnation), static_cast<u32>(trace_.threads_.size()));
  if (is_new) {
    if (trace_.threads_.size() >= limits_.threads) {
      thread_index_.erase(found);
      return ~0u;
    }
    ThreadInfo& info = trace_.threads_.emplace_back();
    info.slot = slot;
    info.incarnation = incarnation;
  }
  if (tid) trace_.threads_[found->second].tid = tid;
  return found->second;
}

void TraceIndexer::add_records(const Found& found) {
  const ChunkHeader& header = found.header;
  const u32 index = thread(header.slot, header.incarnation, 0);
  const bool sound = static_cast<u64>(header.record_count) * sizeof(RecordHeader) <= header.raw_size &&
                     header.first_record <= ~u64{0} - header.record_count;
  if (index == ~0u || !sound) {
    Damage& damage = add_damage(DamageKind::BadContent, found.offset, sizeof header + header.stored_size,
                                "this chunk's counts make no sense");
    damage.sequence = header.sequence;
    damage.sequence_count = 1;
    return;
  }
  if (record_bytes_ + header.raw_size > limits_.record_bytes) {
    unread_records_ += header.record_count;
    unread_bytes_ += header.raw_size;
    return;
  }
  record_bytes_ += header.raw_size;
  RecordChunk chunk;
  chunk.offset = found.offset;
  chunk.sequence = header.sequence;
  chunk.stored_size = header.stored_size;
  chunk.raw_size = header.raw_size;
  chunk.encoding = header.encoding;
  chunk.thread = index;
  chunk.first_record = header.first_record;
  chunk.record_count = header.record_count;
  chunk.begin = header.begin;
  chunk.end = header.end;
  trace_.chunks_.push_back(chunk);
}

void TraceIndexer::note_unread() {
  if (!unread_bytes_) return;
  Damage& damage =
      add_damage(DamageKind::TooMuch, 0, 0,
                 std::to_string(unread_records_) + " records were not read: decoded, the records of this file take " +
                     std::to_string(record_bytes_ + unread_bytes_) + " bytes, of which one of its size may hold " +
                     std::to_string(limits_.record_bytes));
  damage.records = unread_records_;
}

// Gives every thread its chunks by first record; a chunk that repeats records is left out.
void TraceIndexer::order_chunks() {
  for (u32 i = 0; i < trace_.chunks_.size(); ++i) trace_.threads_[trace_.chunks_[i].thread].chunks.push_back(i);
  for (ThreadInfo& thread : trace_.threads_) {
    const auto& chunks = trace_.chunks_;
    std::stable_sort(thread.chunks.begin(), thread.chunks.end(),
                     [&](u32 a, u32 b) { return chunks[a].first_record < chunks[b].first_record; });
    u64 next = 0;
    std::erase_if(thread.chunks, [&](u32 index) {
      const RecordChunk& chunk = chunks[index];
      if (chunk.first_record < next) {
        Damage& damage = add_damage(DamageKind::BadContent, chunk.offset, chunk.stored_size,
                                    "this chunk repeats records of another one");
        damage.sequence = chunk.sequence;
        damage.sequence_count = 1;
        return true;
      }
      next = chunk.first_record + chunk.record_count;
      return false;
    });
  }
}

// Texts: all of them are in slot 0, but for those of samples.
void TraceIndexer::read_definitions() {
  ChunkBuffer buffer;
  trace_.texts_.limit(limits_.texts, limits_.text_bytes);
  for (ThreadInfo& thread : trace_.threads_) {
    if (thread.slot != 0 && thread.slot != kSidecarSlot) continue;
    std::erase_if(thread.chunks, [&](u32 index) {
      const auto records = trace_.decode(trace_.chunks_[index], buffer);
      if (!records) {
        if (trace_.damage_.size() < kMaxDamage) trace_.damage_.push_back(records.error());
        return true;
      }
      for (const RecordHeader& record : records.value())
        if (record.type == static_cast<u16>(RecordType::Text)) trace_.texts_.add(record);
      return false;
    });
  }
  if (const u64 refused = trace_.texts_.refused())
    add_damage(DamageKind::TooMuch, 0, 0,
               std::to_string(refused) + " pieces of texts are more than a file of this size may hold: not read");
}

void TraceIndexer::settle_counters() {
  u64 seen = 0, dropped[kDropReasons] = {};
  for (ThreadInfo& thread : trace_.threads_) {
    const auto health = health_.find(key_of(thread.slot, thread.incarnation));
    settle_thread(thread, health == health_.end() ? nullptr : &health->second);
    seen = add(seen, thread.counters.seen);
    for (u32 i = 0; i < kDropReasons; ++i) dropped[i] = add(dropped[i], thread.counters.dropped[i]);
    trace_.process_.stored += thread.counters.stored;
  }
  settle_process(seen, dropped);
}

// seen = stored + sum(dropped), whatever is missing: what is known to have been seen and is not here is Lost.
void TraceIndexer::settle_thread(ThreadInfo& thread, const HealthEntry* health) {
  Counters& counters = thread.counters;
  for (u32 index : thread.chunks) counters.stored += trace_.chunks_[index].record_count;
  if (!health) {
    counters.seen = counters.stored;
    return;
  }
  std::copy(health->dropped, health->dropped + kDropReasons, counters.dropped);
  const u64 accounted = add(counters.stored, sum(counters.dropped));
  counters.exact =
      trace_.end_.has_value() && health->seen >= accounted && health->seen == add(health->stored, sum(health->dropped));
  counters.seen = std::max(health->seen, accounted);
  counters.dropped[kLost] = add(counters.dropped[kLost], counters.seen - accounted);
}

void TraceIndexer::settle_process(u64 threads_seen, const u64* threads_dropped) {
  Counters& process = trace_.process_;
  const auto health = health_.find(key_of(kProcessSlot, 0));
  process.exact = health != health_.end() && trace_.end_.has_value();
  process.seen = threads_seen;
  std::copy(threads_dropped, threads_dropped + kDropReasons, process.dropped);
  if (health != health_.end()) {
    const HealthEntry& entry = health->second;
    process.exact =
        process.exact && entry.seen == add(entry.stored, sum(entry.dropped)) && entry.seen >= process.stored;
    process.seen = std::max(process.seen, entry.seen);
    for (u32 i = 0; i < kLost; ++i) process.dropped[i] = std::max(process.dropped[i], entry.dropped[i]);
    process.dropped[kLost] = std::max(process.dropped[kLost], entry.dropped[kLost]);
  }
  // Without an end the counters that were written in place are the newest.
  if (counters_ && !trace_.end_) {
    process.seen = std::max(process.seen, counters_->seen);
    for (u32 i = 0; i < kLost; ++i) process.dropped[i] = std::max(process.dropped[i], counters_->dropped[i]);
  }
  const u64 accounted = add(process.stored, sum(process.dropped));
  if (accounted > process.seen) {
    process.exact = false;
    process.seen = accounted;
  }
  process.dropped[kLost] = add(process.dropped[kLost], process.seen - accounted);
}

}  // namespace gputrace
