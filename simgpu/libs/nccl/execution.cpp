#include "simgpu/libs/nccl/execution.h"

#include <time.h>

#include <algorithm>

#include "simgpu/libs/nccl/cost.h"

namespace simlibs {
namespace {

constexpr uint64_t kLookAround = 10'000'000;  // between looks at the other ranks' lives, ns
constexpr size_t kPiece = size_t{1} << 18;    // bytes that are reduced at a time

uint64_t clock_now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

char* at(void* base, size_t offset) { return static_cast<char*>(base) + offset; }

}  // namespace

void Execution::fail(ncclResult_t error) {
  ncclResult_t none = ncclSuccess;
  comm_.error.compare_exchange_strong(none, error);
}

void Execution::look_after_others() {
  const uint64_t now = clock_now();
  if (now < comm_.next_look) return;
  comm_.next_look = now + kLookAround;
  if (comm_.meeting->lost_rank()) fail(ncclRemoteError);
}

// A communicator's kernels run one after the other, in the order in which they were launched.
bool Execution::may_begin() {
  if (comm_.busy || (plan_.ticket && comm_.served != *plan_.ticket)) return false;
  comm_.busy = true;
  begun_ = true;
  now_ = std::max(start_.start, comm_.last_end);
  if (start_.ruled == 0) now_ += kKernelStart;
  return true;
}

bool Execution::at_end(uint64_t* end) {
  // A rule says what the kernel takes once all have come.
  *end = comm_.last_end = now_ + start_.ruled;
  comm_.busy = false;
  if (plan_.ticket) ++comm_.served, comm_.pending.fetch_sub(1, std::memory_order_release);
  return true;
}

bool Execution::ended(uint64_t* end) {
  if (!begun_ && !may_begin()) return false;
  while (at_ < plan_.operations.size()) {
    if (comm_.aborted.load(std::memory_order_acquire)) {
      now_ = std::max(now_, clock_now());
      break;
    }
    if (!step()) {
      look_after_others();
      return false;
    }
  }
  return at_end(end);
}

uint64_t Execution::bytes_time(uint64_t bytes) const {
  return start_.ruled != 0 ? 0 : transfer_time(static_cast<double>(bytes), start_.copy_bandwidth);
}

bool Execution::step() {
  const Operation& operation = plan_.operations[at_];
  if (!operation.to_one_peer()) {
    if (!collective(operation)) return false;
    ++at_;
    return true;
  }
  if (messages_.empty()) gather_messages();
  if (!messages()) return false;
  at_ = after_;
  messages_.clear();
  return true;
}

// ------------------------------------------------------------------ all ranks

bool Execution::collective(const Operation& operation) {
  Meeting& meeting = *comm_.meeting;
  if (!posted_) {
    posted_ = true;
    position_ = comm_.collectives++;
    const size_t bytes = operation.own_bytes(comm_.ranks);
    const bool gives = operation.kind != Kind::Broadcast || operation.root == comm_.rank;
    if (gives && !meeting.write_collective(position_, operation.send, bytes)) fail(ncclUnhandledCudaError);
    meeting.own().collective[position_ % 2] = {now_, gives ? bytes : 0, operation.what()};
    meeting.own().published.store(position_ + 1, std::memory_order_release);
  }
  uint64_t last_start = 0;
  if (!all_published(operation, &last_start)) return false;
  // So all have ended the one before, and read what it gave.
  if (position_ > 0) meeting.forget_collective(position_ - 1, meeting.own().collective[(position_ - 1) % 2].bytes);
  take_results(operation);
  now_ = last_start;
  if (start_.ruled == 0)
    now_ += ring_time(operation.kind, operation.all_bytes(comm_.ranks), comm_.ranks, start_.copy_bandwidth);
  posted_ = false;
  return true;
}

bool Execution::all_published(const Operation& operation, uint64_t* last_start) {
  Meeting& meeting = *comm_.meeting;
  for (int i = 0; i < comm_.ranks; ++i) {
    if (meeting.line(i).published.load(std::memory_order_acquire) <= position_) return false;
  }
  const uint64_t own_bytes = operation.own_bytes(comm_.ranks);
  for (int i = 0; i < comm_.ranks; ++i) {
    const Posting& posting = meeting.line(i).collective[position_ % 2];
    *last_start = std::max(*last_start, posting.start);
    // Ranks that do different things are a fault of the program, which the vendor's library answers with a hang or worse.
    const bool agrees =
        posting.what == operation.what() && (posting.bytes == own_bytes || operation.kind == Kind::Broadcast);
    if (!agrees) fail(ncclInvalidUsage);
  }
  return true;
}

void Execution::take_results(const Operation& operation) {
  Meeting& meeting = *comm_.meeting;
  const size_t bytes = operation.count_bytes();
  bool fine = true;
  switch (operation.kind) {
    case Kind::Broadcast:
      fine = meeting.read_collective(operation.root, position_, 0, operation.receive, bytes);
      break;
    case Kind::AllGather:
      for (int i = 0; i < comm_.ranks; ++i) {
        fine &= meeting.read_collective(i, position_, 0, at(operation.receive, static_cast<size_t>(i) * bytes), bytes);
      }
      break;
    case Kind::ReduceScatter:
      reduce(operation, static_cast<size_t>(comm_.rank) * bytes, operation.receive, operation.count);
      break;
    default:
      if (operation.kind == Kind::AllReduce || operation.root == comm_.rank)
        reduce(operation, 0, operation.receive, operation.count);
  }
  if (!fine) fail(ncclUnhandledCudaError);
}

// `count` numbers, from that byte of what each rank gave.
void Execution::reduce(const Operation& operation, size_t offset_bytes, void* receive, size_t count) {
  const size_t element = size_of(operation.type);
  const size_t piece = kPiece / element;
  std::vector<char> sum(std::min(count, piece) * element), numbers(sum.size());
  for (size_t done = 0; done < count; done += piece) {
    const size_t now = std::min(piece, count - done), bytes = now * element;
    for (int i = 0; i < comm_.ranks; ++i) {
      if (!comm_.meeting->read_collective(i, position_, offset_bytes + done * element, numbers.data(), bytes)) {
        return fail(ncclInternalError);
      }
      take_in(operation.type, operation.reduction, i == 0, sum.data(), numbers.data(), now);
    }
    finish(operation.type, operation.reduction, comm_.ranks, sum.data(), now);
    std::copy_n(sum.data(), bytes, at(receive, done * element));
  }
}

// ------------------------------------------------------------------ two ranks

void Execution::gather_messages() {
  for (after_ = at_; after_ < plan_.operations.size() && plan_.operations[after_].to_one_peer(); ++after_) {
    const Operation& operation = plan_.operations[after_];
    auto& positions = operation.kind == Kind::Send ? comm_.sends : comm_.receives;
    messages_.push_back({&operation, positions[operation.root]++});
  }
  met_ = sent_bytes_ = received_bytes_ = 0;
}

bool Execution::messages() {
  bool all = true;
  for (Message& message : messages_) {
    if (!message.done) message.done = message.operation->kind == Kind::Send ? send(message) : receive(message);
    all &= message.done;
  }
  if (!all) return false;
  now_ = std::max(met_, now_) + bytes_time(std::max(sent_bytes_, received_bytes_)) + (start_.ruled == 0 ? kHop : 0);
  return true;
}

// Two messages of a pair may be under way: the place of the one before the last must have been read.
bool Execution::send(Message& message) {
  const Operation& operation = *message.operation;
  Pair& pair = comm_.meeting->pair(comm_.rank, operation.root);
  const uint64_t position = message.position, bytes = operation.count_bytes();
  if (!message.posted) {
    if (pair.sent.load(std::memory_order_relaxed) != position ||
        pair.consumed.load(std::memory_order_acquire) + 2 <= position)
      return false;
    if (!comm_.meeting->write_message(operation.root, position, operation.send, bytes)) fail(ncclUnhandledCudaError);
    pair.send[position % 2] = {now_, bytes, operation.what() >> 8};
    pair.sent.store(position + 1, std::memory_order_release);
    message.posted = true;
  }
  if (pair.awaited.load(std::memory_order_acquire) <= position) return false;
  met_ = std::max(met_, pair.receive[position % 2].start);
  sent_bytes_ += bytes;
  pair.acknowledged.store(position + 1, std::memory_order_release);
  return true;
}

bool Execution::receive(Message& message) {
  const Operation& operation = *message.operation;
  Pair& pair = comm_.meeting->pair(operation.root, comm_.rank);
  const uint64_t position = message.position;
  if (!message.posted) {
    if (pair.awaited.load(std::memory_order_relaxed) != position ||
        pair.acknowledged.load(std::memory_order_acquire) + 2 <= position) {
      return false;
    }
    pair.receive[position % 2] = {now_, operation.count_bytes(), 0};
    pair.awaited.store(position + 1, std::memory_order_release);
    message.posted = true;
  }
  if (pair.sent.load(std::memory_order_acquire) <= position) return false;
  const Posting& posting = pair.send[position % 2];
  if (posting.bytes != operation.count_bytes()) fail(ncclInvalidUsage);
  const uint64_t bytes = std::min<uint64_t>(posting.bytes, operation.count_bytes());
  if (!comm_.meeting->read_message(operation.root, position, operation.receive, bytes)) fail(ncclUnhandledCudaError);
  met_ = std::max(met_, posting.start);
  received_bytes_ += bytes;
  comm_.meeting->forget_message(operation.root, position, bytes);
  pair.consumed.store(position + 1, std::memory_order_release);
  return true;
}

}  // namespace simlibs
