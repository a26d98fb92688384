#include "analysis/timeline/timeline_feed.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace gputrace {

TimelineFeed::TimelineFeed(const TraceReader& reader, TimeWindow window, ProcessTrace& facts, FactsDoor& door)
    : door_(door), clock_(reader.clock()), timeline_(reader, window, facts, *this) {}

TimelineFeed::~TimelineFeed() {
  {
    std::lock_guard lock(mutex_);
    end_ = true;  // whom it asks may be gone by now
    waiting_.clear();
  }
  work_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void TimelineFeed::set_visitor(OperationVisitor* visitor) {
  direct_ = true;
  timeline_.set_visitor(visitor);
}

template <typename Told>
void TimelineFeed::tell(What what, const Told& told) {
  static_assert(std::is_trivially_copyable_v<Told>);
  constexpr std::size_t words = 1 + (sizeof told + 7) / 8;
  if (!open_) open_ = std::make_unique<Batch>();
  if (open_->used + words > open_->words.size()) hand_over();
  u64* at = open_->words.data() + open_->used;
  *at = static_cast<u64>(what);
  std::memcpy(at + 1, &told, sizeof told);
  open_->used += words;
}

void TimelineFeed::called(u32 thread, Nanos begin, Nanos end, u16 call, HostLog::What what) {
  if (direct_) return timeline_.called(thread, begin, end, call, what);
  tell(What::Called, Called{begin, end, thread, call, what});
}

void TimelineFeed::operation(const HostOperation& operation, const StreamName& stream) {
  if (direct_) return timeline_.operation(operation, stream);
  tell(What::Operation, Given{operation, stream});
}

void TimelineFeed::ordered(const StreamOrder& record, const StreamName& stream) {
  if (direct_) return timeline_.ordered(record, stream);
  tell(What::Ordered, Order{record, stream});
}

void TimelineFeed::object(const ObjectCall& record) {
  if (direct_) return timeline_.object(record);
  tell(What::Object, record);
}

void TimelineFeed::collective(u32 thread, Nanos begin) {
  if (direct_) return timeline_.collective(thread, begin);
  tell(What::Collective, Together{begin, thread});
}

void TimelineFeed::device(const u8* begin, const u8* end, const std::shared_ptr<const void>& chunk) {
  if (direct_) return take_run({begin, end});
  tell(What::Device, Run{begin, end});
  auto& chunks = open_->chunks;
  if (!chunks.empty() && chunks.back() == chunk) return;
  chunks.push_back(chunk);
  if (chunks.size() >= kChunks) hand_over();
}

// The pass waits, and holds still for the thread as long.
template <typename Done>
void TimelineFeed::wait_until(std::unique_lock<std::mutex>& lock, Done&& done) {
  still_ = true;
  if (asking_) work_.notify_one();
  room_.wait(lock, [&] { return failure_ || (!asking_ && done()); });
  still_ = false;
}

// Gives the open batch to the thread, and takes an empty one.
void TimelineFeed::hand_over() {
  std::unique_lock lock(mutex_);
  if (!thread_.joinable()) thread_ = std::thread([this] { take_batches(); });
  waiting_.push_back(std::move(open_));
  work_.notify_one();
  wait_until(lock, [this] { return waiting_.size() < kBatches; });
  if (spare_.empty()) return static_cast<void>(open_ = std::make_unique<Batch>());
  open_ = std::move(spare_.back());
  spare_.pop_back();
}

void TimelineFeed::settle() {
  if (direct_) return;
  if (thread_.joinable()) {
    std::unique_lock lock(mutex_);
    wait_until(lock, [this] { return waiting_.empty() && !busy_; });
    if (failure_) std::rethrow_exception(failure_);
  }
  if (!open_ || open_->used == 0) return;
  take(*open_);  // the thread has nothing to do: what is left is taken here
  open_->used = 0;
  open_->chunks.clear();
}

void TimelineFeed::finish() {
  settle();
  timeline_.finish();
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

template <typename Told>
Told TimelineFeed::told(const u64*& at) {
  Told value;
  std::memcpy(static_cast<void*>(&value), at, sizeof value);
  at += (sizeof value + 7) / 8;
  return value;
}

void TimelineFeed::take(const Batch& batch) {
  for (const u64 *at = batch.words.data(), *const end = at + batch.used; at != end;) {
    switch (static_cast<What>(*at++)) {
      case What::Called: {
        const auto value = told<Called>(at);
        timeline_.called(value.thread, value.begin, value.end, value.call, value.meaning);
        break;
      }
      case What::Operation: {
        const auto value = told<Given>(at);
        timeline_.operation(value.operation, value.stream);
        break;
      }
      case What::Ordered: {
        const auto value = told<Order>(at);
        timeline_.ordered(value.record, value.stream);
        break;
      }
      case What::Object:
        timeline_.object(told<ObjectCall>(at));
        break;
      case What::Collective: {
        const auto value = told<Together>(at);
        timeline_.collective(value.thread, value.begin);
        break;
      }
      case What::Device:
        take_run(told<Run>(at));
        break;
    }
  }
}

void TimelineFeed::take_run(const Run& run) {
  for (const u8* at = run.begin; at != run.end;) {
    const auto& record = *reinterpret_cast<const RecordHeader*>(at);
    const Nanos begin = clock_.nanos(record.begin);
    const Nanos end = record.end <= record.begin ? begin : std::max(begin, clock_.nanos(record.end));
    timeline_.device(record, begin, end);
    at += record.size;
  }
}

// Asked from the thread: the pass must hold still meanwhile.
template <typename Ask>
u32 TimelineFeed::while_still(Ask&& ask) {
  if (std::this_thread::get_id() != thread_.get_id()) return ask();
  std::unique_lock lock(mutex_);
  asking_ = true;
  work_.wait(lock, [this] { return still_ || end_; });
  if (end_) throw std::runtime_error("the pass has ended");  // only where it failed; nobody hears of it
  const u32 answer = ask();
  asking_ = false;
  room_.notify_one();
  return answer;
}

u32 TimelineFeed::kernel_of(const DeviceShape& shape, u32 context, u64 node, u64 exec) {
  return while_still([&] { return door_.kernel_of(shape, context, node, exec); });
}

u32 TimelineFeed::copies_of(const DeviceShape& shape, bool in_graph) {
  return while_still([&] { return door_.copies_of(shape, in_graph); });
}

u32 TimelineFeed::context_of(u64 handle) {
  return while_still([&] { return door_.context_of(handle); });
}

}  // namespace gputrace
