// Builds a TraceReader: finds the chunks of a file, verifies them, reads everything but the records. Internal to
// trace/.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/types.h"
#include "trace/codec/chunk_codec.h"
#include "trace/read_limits.h"
#include "trace/reader.h"
#include "trace/seeded_hash.h"

namespace gputrace {

// Bytes of a file through one window; nullptr where the file ends or cannot be read. A pointer is good until the next
// call.
class FileWindow {
 public:
  FileWindow(int fd, u64 size) : fd_(fd), size_(size) {}
  const u8* at(u64 offset, std::size_t bytes);
  u64 size() const { return size_; }
  // Where bytes lie again from there on, behind the hole that is there; the end of the file: nowhere.
  u64 behind_hole(u64 offset) const;
  u64 data_bytes() const;               // in the file but for its holes
  int error() const { return error_; }  // errno of the last failed read
  void forget() { filled_ = 0; }        // what was read: the file may have changed

 private:
  int fd_;
  u64 size_;
  u64 begin_ = 0;
  std::size_t filled_ = 0;
  std::vector<u8> buffer_;
  int error_ = 0;
};

// A good header at that place? (Magic, header_check, sizes within their caps; the payload is not looked at.)
bool read_chunk_header(FileWindow& file, u64 offset, ChunkHeader& header);

class TraceIndexer {
 public:
  explicit TraceIndexer(TraceReader& trace)
      : trace_(trace), limits_(trace.data_bytes_), file_(trace.file_.get(), trace.file_size_) {}
  void run(u64 first_chunk);

 private:
  struct Found {
    u64 offset;
    ChunkHeader header;
    bool good;  // its payload passes the checksum
  };

  // Pass 1: which chunks are there.
  void find_chunks(u64 at);
  u64 take_chunk(u64 at, const ChunkHeader& header);  // where to go on
  u64 take_counters(u64 at);
  u64 resync(u64 from);  // the next good header, or the end of the file
  void note_lost_bytes(u64 from, u64 to);
  void check_places();
  void check_sequences();

  // Pass 2: what they say, in the order of their numbers.
  void read_chunk(const Found& found);
  bool read_payload(const Found& found, std::vector<u64>& raw);
  bool add_meta(const ChunkHeader& header, const u8* raw, std::size_t size);
  void add_records(const Found& found);
  bool takes(const ChunkHeader& header);
  bool add_info(std::string_view text);
  void note_unread();
  template <typename Entry, typename Take>
  bool each(const u8* raw, std::size_t size, Take take);

  // Pass 3: threads, definitions, counters.
  u32 thread(u32 slot, u32 incarnation, i32 tid);
  void order_chunks();
  void read_definitions();
  void settle_counters();
  void settle_thread(ThreadInfo& thread, const HealthEntry* health);
  void settle_process(u64 threads_seen, const u64* threads_dropped);

  Damage& add_damage(DamageKind kind, u64 offset, u64 bytes, std::string reason);

  static constexpr std::size_t kMaxDamage = 100'000;  // findings kept

  TraceReader& trace_;
  const ReadLimits limits_;
  FileWindow file_;
  ChunkDecoder decoder_;
  std::vector<Found> found_;
  u64 stored_bytes_ = 0;  // of payloads that were looked at
  u64 wasted_bytes_ = 0;  // of payloads that failed their checksum: bounds the work on hostile files
  u64 other_bytes_ = 0, schema_bytes_ = 0, info_bytes_ = 0, record_bytes_ = 0;  // decoded, so far
  u64 unread_bytes_ = 0, unread_records_ = 0;                                   // of records beyond the limit
  bool gave_up_ = false;
  std::vector<Anchor> anchors_;
  std::unordered_map<u64, u32, SeededHash> thread_index_;
  std::unordered_map<u64, HealthEntry, SeededHash> health_;
  std::optional<HealthEntry> counters_;  // of the process, as they were written in place
};

}  // namespace gputrace
