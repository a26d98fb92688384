// Reads one trace file: its index at open, its record chunks one by one, on demand, by any number of threads.
//
//   auto opened = TraceReader::open(path);
//   if (!opened) { ... opened.error().message ... }
//   const TraceReader& trace = opened.value();
//   ChunkBuffer buffer;                                     // one per analyzing thread, reused
//   for (const ThreadInfo& thread : trace.threads())
//     for (u32 index : thread.chunks) {                     // in the thread's order; jumps are counted in ThreadInfo
//       auto records = trace.decode(trace.record_chunks()[index], buffer);
//       if (!records) continue;                             // already in damage(), or the file changed under us
//       for (const RecordHeader& record : records.value())
//         if (record.type == u16(RecordType::KernelLaunch)) use(decode<KernelLaunch>(record));
//     }
//
//   · The file is hostile input: every size is checked before it is followed, and capped before it is allocated.
//   · open() reads the file once and verifies every checksum; memory is O(chunks + threads + definitions), never
//     O(records).
//   · The file may still be written: what is read is what was there at open.
//   · After open() a TraceReader never changes: every const member may be called from several threads at once.
//   · Broken parts are findings (damage()), not errors: open() fails only where nothing can be said.
#pragma once

#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "base/types.h"
#include "trace/clock_map.h"
#include "trace/codec/transform.h"
#include "trace/file.h"
#include "trace/record.h"
#include "trace/schema_reader.h"
#include "trace/text_table.h"

namespace gputrace {

enum class OpenErrorKind {
  NoSuchFile,
  NotReadable,  // permissions, a directory, an I/O error
  Empty,        // nothing in it: 0 bytes, or cut before the header ends
  NotATrace,    // another kind of file
  NewerMajor,   // written by a later gputrace: major, minor tell
};

struct OpenError {
  OpenErrorKind kind = OpenErrorKind::NotReadable;
  int system_error = 0;  // errno, where there is one
  u16 major = 0, minor = 0;
  std::string message;  // one clear line without the path
};

enum class DamageKind {
  BadHeader,        // the file header fails its checksum: identity and clock are not known from it
  BadChunk,         // a chunk fails its checksum, or does not decode
  LostBytes,        // bytes between chunks that are no chunk
  TornTail,         // the file ends within a chunk
  MissingSequence,  // chunk numbers that are nowhere in the file, and no bytes for them either
  Duplicate,        // a chunk that is there twice: used once
  OutOfOrder,       // chunks that changed places: nothing is lost
  BadContent,       // a chunk whose checksum is right and whose content makes no sense
  TooMuch,          // a cap was reached; the rest was not read
};

// One thing that is wrong with the file.
struct Damage {
  DamageKind kind = DamageKind::BadChunk;
  u64 sequence = 0;        // chunk number(s): first
  u64 sequence_count = 0;  // 0: not known
  u64 offset = 0;          // bytes of the file: [offset, offset + bytes)
  u64 bytes = 0;
  u64 records = 0;     // records lost for certain (also in Conservation::lost_in_file)
  std::string reason;  // one sentence
};

// Where the records of one chunk are. The index of a RecordChunk is its place in TraceReader::record_chunks().
struct RecordChunk {
  u64 offset = 0;  // of the ChunkHeader in the file
  u64 sequence = 0;
  u32 stored_size = 0;
  u32 raw_size = 0;
  Encoding encoding = Encoding::Raw;
  u32 thread = 0;  // index in threads()
  u64 first_record = 0;
  u32 record_count = 0;
  Ticks begin = 0;  // smallest begin and largest end of its records: lets a time window skip chunks
  Ticks end = 0;
};

// A good chunk of anything but records, for who copies a trace: what it says is in the TraceReader already.
struct OtherChunk {
  u64 offset = 0;  // of the ChunkHeader in the file
  u64 sequence = 0;
  u32 stored_size = 0;
  u32 raw_size = 0;
  Encoding encoding = Encoding::Raw;
  ChunkKind kind = ChunkKind::Schema;
  Ticks at = 0;  // the time that it speaks of
};

// What was seen, and what became of it. seen = stored + sum(dropped) holds when `exact`.
struct Counters {
  u64 seen = 0;                    // records that the thread wanted to write, as far as is known
  u64 stored = 0;                  // records that this reader can give
  u64 dropped[kDropReasons] = {};  // by DropReason; Lost also counts what the file itself has lost
  bool exact =
      false;  // false: the last counters are missing (sidecar killed, file cut): seen is what is known for certain
};

struct ThreadInfo {
  u32 slot = 0, incarnation = 0;
  i32 tid = 0;  // kernel thread id as the process saw it; 0: the definitions (slot 0)
  Ticks begin = 0;
  Ticks end = 0;  // 0: was alive when the trace ended
  std::string name;
  Counters counters;
  std::vector<u32> chunks;  // indexes into record_chunks(), by first_record
};

struct InFlightCallInfo {
  u32 thread = 0;  // index in threads()
  i32 tid = 0;
  u32 call = 0;  // id
  Ticks begin = 0;
  u64 argument = 0;
  u32 depth = 0;
};

// The records of one decoded chunk; lives in the ChunkBuffer.
class RecordRange {
 public:
  class Iterator {
   public:
    explicit Iterator(const u8* at) : at_(at) {}
    const RecordHeader& operator*() const { return *reinterpret_cast<const RecordHeader*>(at_); }
    const RecordHeader* operator->() const { return reinterpret_cast<const RecordHeader*>(at_); }
    Iterator& operator++() {
      at_ += (**this).size;
      return *this;
    }
    bool operator==(const Iterator&) const = default;

   private:
    const u8* at_;
  };
  Iterator begin() const { return Iterator(data); }
  Iterator end() const { return Iterator(data + size); }

  const u8* data = nullptr;
  std::size_t size = 0;
  u64 first_record = 0;  // ordinal of the first one within its thread
  u32 count = 0;
  u32 unknown = 0;  // records of types that this build does not know: skip them, count them, say so
  TypeSet types;    // those that it holds
};

// Scratch space of decode(). One per thread; grows to the largest chunk (≤ 16 MiB raw) and stays.
class ChunkBuffer {
 public:
  ChunkBuffer();
  ~ChunkBuffer();
  ChunkBuffer(ChunkBuffer&&) noexcept;
  ChunkBuffer& operator=(ChunkBuffer&&) noexcept;
  struct Parts;
  // Memory that decoded records are written to: nothing is there before.
  struct Records {
    std::unique_ptr<u64[]> words;
    std::size_t size = 0;  // words
  };

  // What was decoded stays where it is, but in `other`; the memory of `other` is for what comes next.
  void swap_records(Records& other);

 private:
  friend class TraceReader;
  std::unique_ptr<Parts> parts_;
};

// A chunk's records, some at a time: what is read soon after lies in a near cache. Filled by TraceReader::open_rows(); one thread at a time.
class ChunkRows {
 public:
  ChunkRows();
  ~ChunkRows();
  ChunkRows(ChunkRows&&) noexcept;
  ChunkRows& operator=(ChunkRows&&) noexcept;

  u32 left() const { return left_; }  // records
  // The next records, whole ones of about kBytes together, to `into`. `pieces` as decode() has it.
  static constexpr std::size_t kBytes = 64u << 10;
  RecordRange next(ChunkBuffer::Records& into, RecordPieces& pieces);
  void close() { left_ = 0; }
  bool has_memory() const { return parts_ != nullptr; }

 private:
  friend class TraceReader;
  struct Parts;
  std::unique_ptr<Parts> parts_;  // nullptr: nothing was opened yet
  u32 left_ = 0;
};

// A record as this build's struct: shorter ones (older writers) are zero-extended, longer tails (newer writers)
// ignored.
template <typename T>
T decode(const RecordHeader& record) {
  T value{};
  if (record.size >= sizeof(T)) [[likely]]
    std::memcpy(static_cast<void*>(&value), &record, sizeof(T));
  else
    std::memcpy(static_cast<void*>(&value), &record, record.size);
  return value;
}

class TraceReader {
 public:
  static Result<TraceReader, OpenError> open(const std::string& path);

  const FileHeader& header() const { return header_; }
  u64 file_size() const { return file_size_; }
  // Of those, bytes that lie in the file and are no hole: what bounds go by, since a hole costs nobody anything.
  u64 data_bytes() const { return data_bytes_; }
  const TraceSchema& schema() const { return schema_; }
  const ClockMap& clock() const { return clock_; }   // ticks → ns
  const TextTable& texts() const { return texts_; }  // text ids → strings

  // Info lines. info(): the newest value of a key, or nullptr. info_all(): every value, oldest first.
  const std::string* info(std::string_view key) const;
  std::vector<std::string> info_all(std::string_view key) const;
  const std::vector<std::pair<std::string, std::string>>& info_lines() const { return info_; }

  const std::vector<ThreadInfo>& threads() const { return threads_; }
  const std::vector<RecordChunk>& record_chunks() const { return chunks_; }
  const std::vector<OtherChunk>& other_chunks() const { return other_chunks_; }  // by sequence
  const std::vector<InFlightCallInfo>& in_flight() const { return in_flight_; }
  const std::optional<EndEntry>& end() const { return end_; }
  bool truncated() const { return !end_.has_value(); }  // still being written, sidecar killed, or cut

  // Decodes one chunk into `buffer`; what it returns is valid until the buffer's next use. Any thread.
  // Every record in the range has a size that is a multiple of 8, at least 24, and lies wholly within the range.
  // `pieces`: what it is made of is told there, too, and what stood there is gone.
  Result<RecordRange, Damage> decode(const RecordChunk& chunk, ChunkBuffer& buffer,
                                     RecordPieces* pieces = nullptr) const;

  // The same, of a chunk whose encoding is TransposedZstd, for who takes its records some at a time: what is returned has no data.
  Result<RecordRange, Damage> open_rows(const RecordChunk& chunk, ChunkBuffer& buffer, ChunkRows& rows) const;

  // The payload of one of other_chunks(). False: the file has changed under us.
  bool read(const OtherChunk& chunk, std::vector<u8>& payload) const;

  const std::vector<Damage>& damage() const { return damage_; }
  u64 unknown_chunks() const { return unknown_chunks_; }
  u64 chunks_read() const { return chunks_read_; }  // good chunks of every kind

  // The process as a whole: every thread, threads without a slot, threads whose slots were reclaimed.
  const Counters& conservation() const { return process_; }
  Ticks last_health() const { return last_health_; }  // counters are known up to here; 0: never reported
  Ticks counters_at() const { return counters_at_; }  // the process's; 0: not known

 private:
  friend class TraceIndexer;
  TraceReader() = default;
  const char* fetch(u64 offset, u64 stored_size, std::vector<u8>& into) const;

  Fd file_;
  u64 file_size_ = 0, data_bytes_ = 0;
  FileHeader header_{};
  TraceSchema schema_;
  ClockMap clock_;
  TextTable texts_;
  std::vector<std::pair<std::string, std::string>> info_;
  std::vector<ThreadInfo> threads_;
  std::vector<RecordChunk> chunks_;
  std::vector<OtherChunk> other_chunks_;
  std::vector<InFlightCallInfo> in_flight_;
  std::optional<EndEntry> end_;
  std::vector<Damage> damage_;
  u64 unknown_chunks_ = 0, chunks_read_ = 0;
  Counters process_;
  Ticks last_health_ = 0, counters_at_ = 0;
};

}  // namespace gputrace
