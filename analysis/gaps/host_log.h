// What each thread did lately in CUDA calls: the outermost calls, in order, kept until no gap can ask for them any
// more.
//   · A call comes when it ends; the calls nested in it came before and are replaced by it. A call of a vendor's library
//     keeps them, and is what lies between them.
//   · Queries that follow each other within kPollPause, with no other call between, are one entry: polling.
//   · Memory: 24 bytes a call, at most kMost calls in all threads; beyond that the oldest go and forgotten() counts.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "analysis/facts/source_lines.h"
#include "base/types.h"

namespace gputrace {

class HostLog {
 public:
  // What a call does, as far as it can make a device wait.
  enum class Kind : u8 { Other, Launch, Copy, Synchronization, Allocation, Module, Order, Query, Library };
  struct Entry {
    Nanos begin, end;
    u16 call;         // id of the outermost call
    u16 inner;        // id of the nested call that gave it its meaning; = call where it has none
    u32 origin : 24;  // from where the outermost call was made: number of a CallOrigin
    Kind kind : 8;
    Nanos length() const { return end - begin; }
  };
  static_assert(sizeof(Entry) == 24 && offsetof(Entry, call) == 16 && kMostOrigins <= 1u << 24);
  static constexpr std::size_t kMost = 4u << 20;
  static constexpr Nanos kPollPause = 2'000'000;  // what lies longer between two queries is the program's own work

  explicit HostLog(std::size_t threads) : threads_(threads) {}

  void add(u32 thread, Nanos begin, Nanos end, u16 call, Kind kind, u32 origin) {
    auto& log = threads_[thread];
    const bool follows = !log.empty() && log.back().kind != Kind::Query && log.back().begin < begin;
    if (follows && kind != Kind::Library) [[likely]]
      return push(log, begin, end, call, call, origin, kind);
    add_to(log, begin, end, call, kind, origin);
  }

  // Calls `visit(entry)` for the thread's outermost calls that overlap [begin, end), in order. Entries may lie partly
  // outside.
  template <typename Visit>
  void between(u32 thread, Nanos begin, Nanos end, Visit&& visit) const {
    if (thread >= threads_.size()) return;
    const Queue& log = threads_[thread];
    for (std::size_t low = first_after(log, begin); low != log.size() && log[low].begin < end; ++low) visit(log[low]);
  }

  // The thread's last call that had ended by `time` and acts on a device or waits (neither Other nor Library); nullptr: not known.
  const Entry* acted_before(u32 thread, Nanos time) const {
    if (thread >= threads_.size()) return nullptr;
    const Queue& log = threads_[thread];
    std::size_t low = first_after(log, time);
    for (unsigned looked = 0; low != 0; --low) {
      if (acts(log[low - 1].kind)) return &log[low - 1];
      if (++looked == kLookBack) return nullptr;
    }
    return log.gone.end != 0 ? &log.gone : nullptr;
  }
  static bool acts(Kind kind) { return kind != Kind::Other && kind != Kind::Library; }

  // No gap that begins before `time` will be asked about any more.
  void trim(Nanos time) {
    trim(time, [](u32, const Entry&) {});
  }
  // Calls `gone(thread, entry)` for each that goes, thread by thread in order.
  template <typename Gone>
  void trim(Nanos time, Gone&& gone) {
    for (u32 thread = 0; thread < threads_.size(); ++thread) {
      Queue& log = threads_[thread];
      for (; !log.empty() && log.front().end < time; log.pop_front(), --size_) {
        if (acts(log.front().kind)) log.gone = log.front();
        gone(thread, log.front());
      }
    }
  }
  u64 forgotten() const { return forgotten_; }

 private:
  static constexpr unsigned kLookBack =
      64;  // calls that neither act nor wait; more of them in a row are no launch's preparation

  // Which of two meanings a call takes that holds both.
  static int rank(Kind kind) {
    switch (kind) {
      case Kind::Module:
        return 6;
      case Kind::Allocation:
        return 5;
      case Kind::Synchronization:
        return 4;
      case Kind::Copy:
        return 3;
      case Kind::Launch:
        return 2;
      case Kind::Order:
        return 1;
      case Kind::Query:
        return 1;
      default:
        return 0;
    }
  }
  // A queue in blocks: what grew in one piece was copied, and a ring takes memory all around for what is short most of the time.
  class Queue {
   public:
    bool empty() const { return begin_ == end_; }
    std::size_t size() const { return end_ - begin_; }
    const Entry& operator[](std::size_t at) const { return entry(begin_ + at); }
    const Entry& front() const { return entry(begin_); }
    const Entry& back() const { return entry(end_ - 1); }
    Entry& back() { return entry(end_ - 1); }
    void pop_front() {
      if (++begin_ % kBlock == 0) give_back();
    }
    void pop_back() { --end_; }
    // Put together where it lies: a copy would read it while it is still being stored.
    void push_back(Nanos begin, Nanos end, u16 call, u16 inner, u32 origin, Kind kind) {
      if (end_ % kBlock == 0) open_block();
      Entry& made = entry(end_++);
      made.begin = begin, made.end = end;
      // As one word: a part of it would be read first, from memory that is far.
      const u64 rest = call | static_cast<u64>(inner) << 16 | static_cast<u64>(origin & 0xffffff) << 32 |
                       static_cast<u64>(kind) << 56;
      std::memcpy(&made.call, &rest, sizeof rest);
    }

    // The index that was found last, as it is now.
    std::size_t found() const { return found_ > begin_ ? found_ - begin_ : 0; }
    void set_found(std::size_t at) const { found_ = begin_ + at; }

    Entry gone{};  // the newest that acted and is no longer here; no end: there was none

   private:
    static constexpr std::size_t kBlock = 1024;
    using Block = std::unique_ptr<Entry[]>;

    Entry& entry(std::size_t at) const { return blocks_[at / kBlock & mask_][at % kBlock]; }
    // For the entry at end_.
    [[gnu::noinline]] void open_block() {
      const std::size_t first = begin_ / kBlock, next = end_ / kBlock;
      if (next - first == blocks_.size()) {
        std::vector<Block> larger(std::max<std::size_t>(1, 2 * blocks_.size()));
        for (std::size_t i = first; i < next; ++i) larger[i & (larger.size() - 1)] = std::move(blocks_[i & mask_]);
        blocks_ = std::move(larger);
        mask_ = blocks_.size() - 1;
      }
      Block& block = blocks_[next & mask_];
      if (block) return;
      if (free_.empty()) return static_cast<void>(block = std::make_unique_for_overwrite<Entry[]>(kBlock));
      block = std::move(free_.back());
      free_.pop_back();
    }
    // The block before begin_.
    [[gnu::noinline]] void give_back() { free_.push_back(std::move(blocks_[(begin_ / kBlock - 1) & mask_])); }

    std::vector<Block> blocks_;  // a ring: a power of two of them
    std::vector<Block> free_;    // had their turn
    std::size_t mask_ = 0, begin_ = 0, end_ = 0;
    mutable std::size_t found_ = 0;  // counted as begin_ is
  };
  // Index of the first call that ends after `time`. Gaps are asked about in their order: it lies close to where the one before it
  // was found, which saves the many far steps of a search through all.
  static std::size_t first_after(const Queue& log, Nanos time) {
    std::size_t low = 0, high = log.size();
    if (const std::size_t hint = log.found(); hint < high) {
      if (log[hint].end > time) {
        high = hint;
        for (std::size_t step = 1; high > step; high -= step, step *= 2) {
          if (log[high - step].end > time) continue;
          low = high - step + 1;
          break;
        }
      } else {
        low = hint + 1;
        for (std::size_t step = 1; high - low > step; low += step, step *= 2) {
          if (log[low + step - 1].end <= time) continue;
          high = low + step - 1;
          break;
        }
      }
    }
    while (low < high) {
      const std::size_t middle = low + (high - low) / 2;
      if (log[middle].end <= time)
        low = middle + 1;
      else
        high = middle;
    }
    log.set_found(low);
    return low;
  }
  // One more query, or the runtime's call around the last one.
  static bool continues_polling(const Entry& last, Nanos begin, Nanos end, Kind kind) {
    if (kind == Kind::Query) return begin >= last.begin && begin - last.end <= kPollPause;
    return kind == Kind::Other && begin > last.begin && begin < last.end && end >= last.end;
  }
  [[gnu::noinline]] void add_to(Queue& log, Nanos begin, Nanos end, u16 call, Kind kind, u32 origin) {
    if (!log.empty() && log.back().kind == Kind::Query && continues_polling(log.back(), begin, end, kind)) {
      log.back().end = std::max(log.back().end, end);
      return;
    }
    if (kind == Kind::Library) return add_around(log, begin, end, call, origin);
    Entry made{begin, end, call, call, origin, kind};
    while (!log.empty() && log.back().begin >= begin) {  // nested in the new one
      const Entry& nested = log.back();
      if (rank(nested.kind) > rank(made.kind)) made.kind = nested.kind, made.inner = nested.inner;
      log.pop_back();
      --size_;
    }
    push(log, made.begin, made.end, made.call, made.inner, made.origin, made.kind);
  }
  void push(Queue& log, Nanos begin, Nanos end, u16 call, u16 inner, u32 origin, Kind kind) {
    log.push_back(begin, end, call, inner, origin, kind);
    if (++size_ > kMost) forget_oldest(log);
  }
  void add_around(Queue& log, Nanos begin, Nanos end, u16 call, u32 origin) {
    nested_.clear();
    while (!log.empty() && log.back().begin >= begin) nested_.push_back(log.back()), log.pop_back(), --size_;
    for (auto entry = nested_.rbegin(); entry != nested_.rend(); ++entry) {
      if (entry->begin > begin) push(log, begin, entry->begin, call, call, origin, Kind::Library);
      push(log, entry->begin, entry->end, entry->call, entry->inner, entry->origin, entry->kind);
      begin = std::max(begin, entry->end);
    }
    if (end > begin) push(log, begin, end, call, call, origin, Kind::Library);
  }
  void forget_oldest(Queue& log) {
    log.pop_front();
    --size_;
    ++forgotten_;
  }

  std::vector<Queue> threads_;
  std::vector<Entry> nested_;
  std::size_t size_ = 0;
  u64 forgotten_ = 0;
};

}  // namespace gputrace
