// Takes records from the consumer and turns them into the chunks of a trace file. One thread.
//   · Records of one thread are gathered into chunks of up to kChunkBytes; flush() writes what there is, and is called
//     at least once a second.
//   · Conservation: every record given is stored, or counted as Disk. Without a file (it could not be made) all of them
//     are Disk.
//   · Memory is bounded: kStagedBytes of records, and a few words per living thread.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "ringbuf/consumer.h"
#include "trace/writer.h"

namespace gputrace {

inline constexpr u32 kChunkBytes = 1 << 20;
inline constexpr u64 kStagedBytes = 32 << 20;

class TraceSink final : public RecordSink {
 public:
  // No writer: nothing can be written; records are counted.
  explicit TraceSink(std::optional<TraceWriter> writer) : writer_(std::move(writer)) {}

  void thread_began(const RingThread& thread) override;
  void records(const RingThread& thread, u64 first_record, u32 count, const u8* data, u32 size) override;
  void thread_ended(const RingThread& thread) override;

  // A record of the sidecar's own, on a thread of its own (kSidecarSlot).
  void add_record(const RecordHeader& record);
  void add_anchor(const Anchor& anchor) { anchors_.push_back(anchor); }
  void add_info(const std::string& text);
  void add_schema(const std::string& text);
  void add_in_flight(const std::vector<Consumer::OpenCall>& calls);

  // A trace is gone on with that another one began. Of this thread it holds `stored` records, the first `next_record` are behind it;
  // of threads that are over, `gone`. Before the first record.
  void expect(u32 slot, u32 incarnation, u64 next_record, u64 stored);
  void count_earlier(const HealthEntry& gone) { earlier_ = gone; }

  // Writes staged records and news about threads.
  void flush();
  // flush(), then anchors and the counters that changed. `last`: everything, changed or not.
  void checkpoint(Consumer& consumer, Ticks now, bool last);
  // The process's counters as of now, in their place at the front of the file.
  void update_counters(Consumer& consumer, Ticks now);
  void end(const EndEntry& entry);
  // Writes what it was given; records that come from now on, definitions too, are counted as `reason`.
  void refuse(DropReason reason);

  WriteStop stop() const;
  const TraceWriter* writer() const { return writer_ ? &*writer_ : nullptr; }
  u64 stored() const { return stored_; }
  u64 disk() const { return disk_; }        // records that could not be written
  u64 refused() const { return refused_; }  // records that came after refuse()

 private:
  struct Stage {
    std::vector<u8> bytes;
    RecordsOf of;
    u64 stored = 0;
    u64 disk = 0;
    u64 refused = 0;
    u64 reported = 0;  // what the newest Health said, as one number
  };

  HealthEntry health_of_process(Consumer& consumer) const;
  void write_definitions();
  void write_stage(Stage& stage);
  void write_threads();
  void report_health(const RingThread& thread, bool last, std::vector<HealthEntry>& entries);
  void write_anchors(bool last);
  HealthEntry health_of(const RingThread& thread, const Stage& stage) const;
  static u64 key_of(const RingThread& thread) { return static_cast<u64>(thread.slot) << 32 | thread.incarnation; }

  std::optional<TraceWriter> writer_;
  std::unordered_map<u64, Stage> stages_;
  Stage* definitions_ = nullptr;  // that of slot 0
  u64 staged_ = 0;                // bytes in all stages
  u64 stored_ = 0, disk_ = 0, refused_ = 0, told_ = 0, counted_ = 0;
  std::optional<DropReason> refusal_;
  std::unordered_map<u64, std::pair<u64, u64>> expected_;  // by thread: next record, stored
  HealthEntry earlier_{};
  u64 expected_stored_ = 0;
  RingThread own_;  // counts what add_record() was given
  std::vector<ThreadEntry> thread_news_;
  std::vector<HealthEntry> ended_;
  std::vector<Anchor> anchors_;
  u64 chunks_at_anchors_ = 0;
};

}  // namespace gputrace
