// Runs a Timeline on a thread of its own, behind the pass over the records: what the pass tells goes into batches, the
// thread takes them in order. So the statistics of the host and the timeline of the devices are made at the same time,
// and the Timeline sees exactly what it would see if it were called directly. Where other processes keep all processors busy
// the pass takes its batches itself.
//
//   pass ── called, operation, ordered, kernel_came, device, … ──▶ batch ──▶ (at most kBatches) ──▶ Timeline
//                                                                                                    │ finish()
//   pass ◀──────────────────────────────────────────────────────────── TimelineFacts, a value ◀──────┘
//
//   · Nothing is shared: what the Timeline must know of kernels, functions, copies, contexts and graphs it is told like
//     everything else, and what it finds out is its own until finish().
//   · Pointers that are told (records in a chunk, texts of the trace) stay good until the batch was taken.
//   · Memory: kBatches batches of kBatchBytes, and the chunks whose records wait in them (kChunks a batch).
//   · What the thread throws, finish() throws again.
#pragma once

#include <condition_variable>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <thread>
#include <type_traits>
#include <vector>

#include "analysis/read/allowance.h"
#include "analysis/read/tick_clock.h"
#include "analysis/timeline/timeline.h"

namespace gputrace {

class TimelineFeed {
 public:
  static constexpr std::size_t kBatchBytes = 1u << 20, kBatches = 8, kChunks = 4;

  // When the allowance is spent only tables are told on: what they are called, not what happened.
  TimelineFeed(const TraceReader& reader, TimeWindow window, Allowance& allowance, Witness* witness = nullptr);
  ~TimelineFeed();
  TimelineFeed(const TimelineFeed&) = delete;
  TimelineFeed& operator=(const TimelineFeed&) = delete;

  // Before the first record: calls of vendor libraries are in the trace.
  void collect_libraries();

  // As Timeline has them.
  void called(u32 thread, Nanos begin, Nanos end, u16 call, HostLog::Kind kind, u32 origin);
  // An operation to be filled in where it lies, before anything else is told. `as_call`: its call is told with it: an outermost or
  // nested call like any other, a launch.
  struct Given {
    HostOperation operation;
    StreamName stream;
    bool as_call = false;
    void operator()(TimelineFeed& feed) const;
  };
  Given& new_operation() { return *new (room_for<Given>()) Given; }
  void operation(const HostOperation& operation, const StreamName& stream) { new_operation() = {operation, stream}; }
  void ordered(const StreamOrder& record, const StreamName& stream, Nanos begin, Nanos end);
  void object(const ObjectCall& record);
  void waited(u32 thread, Nanos begin, Nanos end, const Timeline::WaitedFor& what);
  void wait_was_needless(u32 thread);
  void collective(u32 thread, Nanos begin);
  void own_work(u32 thread, Nanos begin, Nanos end, u64 counted);

  // As RangeProjection has them.
  void range_pushed(u32 thread, Nanos at, u32 totals);
  void range_popped(u32 thread, Nanos at);
  void ranges_lost(u32 thread, Nanos at);

  // As Targets has them.
  void function_came();
  void name_function(u32 function, std::string_view symbol);
  void function_is_gone(u32 function);
  void kernel_came(const KernelShape& shape);
  void copies_came(const CopyKey& key);
  void context_came(i32 device);
  void context_is_on(u32 context, i32 device);
  void graph_is_new(u64 exec, u32 version, bool own_nodes);
  void graph_is_gone(u64 exec);
  void node_is(u32 version, u64 node, u32 function, u32 origin);

  // As LibraryCalls has them; nothing where libraries were not collected.
  void library_launched(const LibraryCalls::Launched& launch) {
    if (libraries_) tell_library(launch);
  }
  void library_ended(const LibraryCalls::Ended& call, const RecordHeader& record,
                     const std::shared_ptr<const void>& chunk);
  void communicator(const Communicator& record);

  // Records of device activity between the two, none of them a DeviceStream; `chunk` keeps them where they are.
  void device(const u8* begin, const u8* end, const std::shared_ptr<const void>& chunk);
  void device_stream(const DeviceStream& record, u32 context);

  // Once, after everything was told.
  TimelineFacts finish();
  // As Timeline has them.
  GainFacts gains(const KernelChanges& kernels) { return timeline_.gains(kernels); }

 private:
  struct Batch {
    std::unique_ptr<u64[]> words =
        std::make_unique_for_overwrite<u64[]>(kBatchBytes / 8);  // touched where it is filled
    std::size_t used = 0;
    std::vector<std::shared_ptr<const void>> chunks;
  };
  // A thing that was told stands in a batch as a pointer to the function that takes it, then itself.
  using Take = const u64* (*)(TimelineFeed& feed, const u64* at);

  template <typename Item>
  u64* room_for();
  template <typename Item>
  void put(const Item& item);
  template <typename Item>
  void happened(const Item& item);
  template <typename Item>
  static const u64* take_one(TimelineFeed& feed, const u64* at);
  void keep(const std::shared_ptr<const void>& chunk);
  void hand_over();
  bool take_here();
  void take_batches();
  void take(const Batch& batch);
  struct Span {
    const u8* begin;
    const u8* end;
  };
  void take_span(const Span& span);
  bool spent(u32 steps = 1);
  void tell_library(const LibraryCalls::Launched& launch);

  TickClock clock_;
  Allowance::Meter meter_;  // of the thread
  u32 steps_ = 0;
  Timeline timeline_;
  bool libraries_ = false;
  std::unique_ptr<Batch> open_;  // being filled; the pass alone touches it

  std::mutex mutex_;
  std::condition_variable work_, room_;  // the thread waits for the one, the pass for the other
  std::vector<std::unique_ptr<Batch>> waiting_, spare_;
  bool busy_ = false;  // a batch is being taken
  bool end_ = false;
  std::exception_ptr failure_;
  std::thread thread_;
};

// Where an item is to be put: it is called with the feed, on the thread.
template <typename Item>
[[gnu::always_inline]] inline u64* TimelineFeed::room_for() {
  static_assert(std::is_trivially_copyable_v<Item>);
  constexpr std::size_t words = 1 + (sizeof(Item) + 7) / 8;
  if (!open_ || open_->used + words > kBatchBytes / 8) hand_over();
  u64* const at = open_->words.get() + open_->used;
  const Take take = &take_one<Item>;
  std::memcpy(at, &take, sizeof take);
  open_->used += words;
  return at + 1;
}

}  // namespace gputrace
