#include "analysis/timeline/timeline_feed.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "analysis/read/processors.h"

namespace gputrace {

TimelineFeed::TimelineFeed(const TraceReader& reader, TimeWindow window, Allowance& allowance, Witness* witness)
    : clock_(reader.clock()), meter_(allowance), timeline_(reader, window, witness) {}

TimelineFeed::~TimelineFeed() {
  {
    std::lock_guard lock(mutex_);
    end_ = true;
    waiting_.clear();
  }
  work_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void TimelineFeed::collect_libraries() {
  libraries_ = true;
  timeline_.collect_libraries();
}

template <typename Item>
void TimelineFeed::put(const Item& item) {
  std::memcpy(room_for<Item>(), &item, sizeof item);
}

// What is left out when the allowance is spent.
template <typename Item>
void TimelineFeed::happened(const Item& item) {
  put([item](TimelineFeed& feed) {
    if (!feed.spent()) item(feed);
  });
}

template <typename Item>
const u64* TimelineFeed::take_one(TimelineFeed& feed, const u64* at) {
  static_assert(alignof(Item) <= alignof(u64));
  (*std::launder(reinterpret_cast<const Item*>(at)))(feed);  // where put() has copied it to
  return at + (sizeof(Item) + 7) / 8;
}

void TimelineFeed::called(u32 thread, Nanos begin, Nanos end, u16 call, HostLog::Kind kind, u32 origin) {
  happened([=](TimelineFeed& feed) { feed.timeline_.called(thread, begin, end, call, kind, origin); });
}

void TimelineFeed::Given::operator()(TimelineFeed& feed) const {
  if (!feed.spent()) feed.timeline_.operation(operation, stream, as_call);
}

// For new_operation(), which is put into whoever calls it.
template const u64* TimelineFeed::take_one<TimelineFeed::Given>(TimelineFeed& feed, const u64* at);

void TimelineFeed::ordered(const StreamOrder& record, const StreamName& stream, Nanos begin, Nanos end) {
  happened([=](TimelineFeed& feed) { feed.timeline_.ordered(record, stream, begin, end); });
}

void TimelineFeed::object(const ObjectCall& record) {
  happened([=](TimelineFeed& feed) { feed.timeline_.object(record); });
}

void TimelineFeed::waited(u32 thread, Nanos begin, Nanos end, const Timeline::WaitedFor& what) {
  happened([=](TimelineFeed& feed) { feed.timeline_.waited(thread, begin, end, what); });
}

void TimelineFeed::wait_was_needless(u32 thread) {
  happened([=](TimelineFeed& feed) { feed.timeline_.wait_was_needless(thread); });
}

void TimelineFeed::collective(u32 thread, Nanos begin) {
  happened([=](TimelineFeed& feed) { feed.timeline_.collective(thread, begin); });
}

void TimelineFeed::own_work(u32 thread, Nanos begin, Nanos end, u64 counted) {
  happened([=](TimelineFeed& feed) { feed.timeline_.own_work(thread, begin, end, counted); });
}

void TimelineFeed::range_pushed(u32 thread, Nanos at, u32 totals) {
  put([=](TimelineFeed& feed) { feed.timeline_.ranges().pushed(thread, at, totals); });
}

void TimelineFeed::range_popped(u32 thread, Nanos at) {
  put([=](TimelineFeed& feed) { feed.timeline_.ranges().popped(thread, at); });
}

void TimelineFeed::ranges_lost(u32 thread, Nanos at) {
  put([=](TimelineFeed& feed) { feed.timeline_.ranges().lost(thread, at); });
}

void TimelineFeed::function_came() {
  put([](TimelineFeed& feed) { feed.timeline_.targets().function_came(); });
}

void TimelineFeed::name_function(u32 function, std::string_view symbol) {
  put([=](TimelineFeed& feed) { feed.timeline_.targets().name_function(function, symbol); });
}

void TimelineFeed::function_is_gone(u32 function) {
  put([=](TimelineFeed& feed) { feed.timeline_.targets().function_is_gone(function); });
}

void TimelineFeed::kernel_came(const KernelShape& shape) {
  put([=](TimelineFeed& feed) { feed.timeline_.targets().kernel_came(shape); });
}

void TimelineFeed::copies_came(const CopyKey& key) {
  put([=](TimelineFeed& feed) { feed.timeline_.targets().copies_came(key); });
}

void TimelineFeed::context_came(i32 device) {
  put([=](TimelineFeed& feed) { feed.timeline_.targets().context_came(device); });
}

void TimelineFeed::context_is_on(u32 context, i32 device) {
  put([=](TimelineFeed& feed) { feed.timeline_.targets().context_is_on(context, device); });
}

void TimelineFeed::graph_is_new(u64 exec, u32 version, bool own_nodes) {
  put([=](TimelineFeed& feed) { feed.timeline_.targets().graph_is_new(exec, version, own_nodes); });
}

void TimelineFeed::graph_is_gone(u64 exec) {
  put([=](TimelineFeed& feed) { feed.timeline_.targets().graph_is_gone(exec); });
}

void TimelineFeed::node_is(u32 version, u64 node, u32 function, u32 origin) {
  put([=](TimelineFeed& feed) { feed.timeline_.targets().node_is(version, node, function, origin); });
}

void TimelineFeed::tell_library(const LibraryCalls::Launched& launch) {
  happened([=](TimelineFeed& feed) {
    LibraryCalls::Launched own = launch;
    own.kernel = feed.timeline_.targets().kernel(launch.kernel);
    feed.timeline_.libraries().launched(own);
  });
}

void TimelineFeed::library_ended(const LibraryCalls::Ended& call, const RecordHeader& record,
                                 const std::shared_ptr<const void>& chunk) {
  happened([call, record = &record](TimelineFeed& feed) { feed.timeline_.libraries().ended(call, *record); });
  keep(chunk);
}

void TimelineFeed::communicator(const Communicator& record) {
  put([=](TimelineFeed& feed) { feed.timeline_.libraries().communicator(record); });
}

void TimelineFeed::device(const u8* begin, const u8* end, const std::shared_ptr<const void>& chunk) {
  put([=](TimelineFeed& feed) { feed.take_span({begin, end}); });
  keep(chunk);
}

void TimelineFeed::device_stream(const DeviceStream& record, u32 context) {
  happened([=](TimelineFeed& feed) {
    const Nanos begin = feed.clock_.nanos(record.header.begin), end = feed.clock_.nanos(record.header.end);
    feed.timeline_.device_stream(record, context, std::max(begin, end));
  });
}

// The newest thing that was told points into that chunk. What is taken here is taken at once; the thread is not woken for each run of a
// chunk's records, of which it has several.
void TimelineFeed::keep(const std::shared_ptr<const void>& chunk) {
  auto& chunks = open_->chunks;
  if (chunks.empty() || chunks.back() != chunk) chunks.push_back(chunk);
  if (chunks.size() >= kChunks || processors_are_busy()) hand_over();
}

// Gives the open batch to the thread and takes an empty one; where all processors are busy it is taken here.
[[gnu::noinline]] void TimelineFeed::hand_over() {
  if (!open_) return static_cast<void>(open_ = std::make_unique<Batch>());
  if (processors_are_busy() && take_here()) return;
  std::unique_lock lock(mutex_);
  if (!thread_.joinable()) thread_ = std::thread([this] { take_batches(); });
  waiting_.push_back(std::move(open_));
  work_.notify_one();
  room_.wait(lock, [this] { return failure_ || waiting_.size() < kBatches; });
  if (spare_.empty()) return static_cast<void>(open_ = std::make_unique<Batch>());
  open_ = std::move(spare_.back());
  spare_.pop_back();
}

// Takes the open batch on the thread of the pass. False: the other thread has some to take before.
bool TimelineFeed::take_here() {
  {
    std::lock_guard lock(mutex_);
    if (failure_ || busy_ || !waiting_.empty()) return false;
  }
  take(*open_);
  open_->used = 0;
  open_->chunks.clear();
  return true;
}

TimelineFacts TimelineFeed::finish() {
  if (thread_.joinable()) {
    std::unique_lock lock(mutex_);
    room_.wait(lock, [this] { return failure_ || (waiting_.empty() && !busy_); });
    if (failure_) std::rethrow_exception(failure_);
  }
  if (open_) take(*open_);  // the thread has nothing to do: what is left is taken here
  open_.reset();
  return timeline_.finish();
}

void TimelineFeed::take_batches() {
  for (std::unique_lock lock(mutex_);;) {
    work_.wait(lock, [this] { return end_ || !waiting_.empty(); });
    if (end_) return;
    std::unique_ptr<Batch> batch = std::move(waiting_.front());
    waiting_.erase(waiting_.begin());
    busy_ = true;
    const bool failed = failure_ != nullptr;
    lock.unlock();
    room_.notify_one();
    std::exception_ptr failure;
    try {
      if (!failed) take(*batch);
    } catch (...) {
      failure = std::current_exception();
    }
    batch->used = 0;
    batch->chunks.clear();
    lock.lock();
    if (failure) failure_ = failure;
    busy_ = false;
    spare_.push_back(std::move(batch));
    room_.notify_one();
  }
}

void TimelineFeed::take(const Batch& batch) {
  for (const u64 *at = batch.words.get(), *const end = at + batch.used; at != end;) {
    Take take;
    std::memcpy(&take, at, sizeof take);
    at = take(*this, at + 1);
  }
}

bool TimelineFeed::spent(u32 steps) {
  constexpr u32 kSteps = 128;
  if ((steps_ += steps) >= kSteps) {
    steps_ = 0;
    meter_.things(timeline_.things());
  }
  return meter_.spent(steps);
}

void TimelineFeed::take_span(const Span& span) {
  constexpr u32 kAtOnce = 16;  // records between two looks at the allowance
  for (const u8* at = span.begin; at != span.end;) {
    const Timeline::Stopped here = timeline_.device(at, span.end, kAtOnce, clock_);
    if (spent(here.taken)) return;
    at = here.at;
  }
}

}  // namespace gputrace
