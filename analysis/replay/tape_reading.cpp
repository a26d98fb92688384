// Replay: from a tape to what a replay needs.
#include <algorithm>

#include "analysis/replay/replay.h"

namespace gputrace {
namespace {

constexpr u64 kLoopTimes = 16;                                             // allocations with launches before them
constexpr Nanos kUsualWay = 5'000, kUsualOwn = 2'000, kUsualWake = 2'000;  // where the run shows none

// The value below which that share of them lies.
Nanos quantile(std::vector<Nanos>& values, double share, Nanos none) {
  if (values.empty()) return none;
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

bool earlier(const TapeCall& a, const TapeCall& b) {
  return a.thread != b.thread ? a.thread < b.thread : a.begin < b.begin;
}

bool never_waits(const CopyKey& key) {
  return key.asynchronous && key.memory != HostMemory::Pageable && key.memory != HostMemory::Unknown;
}

// Each thread's calls one after the other, in their order.
void put_in_order(std::vector<TapeCall>& calls) {
  const auto before = [](const TapeCall& a, const TapeCall& b) {
    return a.thread == b.thread && a.begin == b.begin ? a.end < b.end : earlier(a, b);
  };
  if (std::is_sorted(calls.begin(), calls.end(), before)) return;
  u32 threads = 0;
  for (const TapeCall& each : calls) threads = std::max(threads, each.thread + 1);
  std::vector<u32> next(threads + 1u);
  for (const TapeCall& each : calls) ++next[each.thread + 1];
  for (u32 thread = 0; thread < threads; ++thread) next[thread + 1] += next[thread];
  std::vector<TapeCall> ordered(calls.size());
  for (const TapeCall& each : calls) ordered[next[each.thread]++] = each;
  // They came as the threads ended them, so in order already but for what the clock did.
  if (!std::is_sorted(ordered.begin(), ordered.end(), before)) std::stable_sort(ordered.begin(), ordered.end(), before);
  calls.swap(ordered);
}

// Finds calls by thread and time. What is asked for comes mostly in the order of time: it is looked for close to what was found
// last, a few calls on.
class CallFinder {
 public:
  // Among the first `count` calls, which are in order and stay where they are.
  CallFinder(const std::vector<TapeCall>& calls, std::size_t count) : calls_(calls) {
    for (u32 i = 0; i < count; ++i) {
      if (calls[i].thread >= threads_.size()) threads_.resize(calls[i].thread + 1u);
      Thread& thread = threads_[calls[i].thread];
      if (thread.end == 0) thread.begin = thread.after = i;
      thread.end = i + 1;
    }
  }

  // The call in which an operation was given, or a wait lies; kNone: none.
  template <typename Inner>
  u32 around(const Inner& inner) {
    if (inner.thread >= threads_.size()) return kNone;
    Thread& thread = threads_[inner.thread];
    thread.after = first_after(thread, inner.begin);
    return thread.after > thread.begin && calls_[thread.after - 1].end >= inner.end ? thread.after - 1 : kNone;
  }

 private:
  struct Thread {
    u32 begin = 0, end = 0;  // of its calls
    u32 after = 0;           // the first that began after what was asked for last
  };
  u32 first_after(const Thread& thread, Nanos time) const {
    constexpr u32 kClose = 8;
    u32 low = thread.begin, high = thread.end;
    if (thread.after > low && calls_[thread.after - 1].begin > time) {
      high = thread.after - 1;
    } else {
      low = thread.after;
      for (const u32 close = std::min(high, low + kClose); low < close; ++low) {
        if (calls_[low].begin > time) return low;
      }
    }
    const auto from = calls_.begin();
    return static_cast<u32>(std::upper_bound(from + low, from + high, time,
                                             [](Nanos at, const TapeCall& each) { return at < each.begin; }) -
                            from);
  }

  const std::vector<TapeCall>& calls_;
  std::vector<Thread> threads_;
};

}  // namespace

// What waits must end for; nothing where it began after `until`, for that cannot have been waited for.
Nanos Replay::end_of_waits(const JoinedTape& tape, std::span<const u32> waits, Nanos until) const {
  Nanos end = 0;
  for (const u32 before : waits) {
    if (before != kNone && tape.operations[before].start <= until) end = std::max(end, tape.operations[before].finish);
  }
  return end;
}

Replay::Replay(JoinedTape tape, const std::vector<TimelineCopies>& copies, const KernelChanges& kernels)
    : kernels_(kernels), waits_(std::move(tape.waits)) {
  for (u32& wait : waits_) {
    const bool here = wait >= tape.first && wait - tape.begin < tape.operations.size();
    wait = here ? wait - tape.begin : kNone;
  }
  operations_.resize(tape.operations.size());
  mend_order(tape);
  put_in_order(tape.calls);
  if (join_threads(tape)) put_in_order(tape.calls);
  tie_operations(tape);
  infer_functions(tape);
  take_calls(tape);
  find_sequences(tape, copies);
  find_blocking(tape, copies);
  find_lags(tape);
  find_copies(tape, copies);
  find_kernels(tape);
  order(tape);
  count_touched();
}

// Of calls of several threads it is not known which one the driver took first: an operation that began before the one that it is said to stand behind
// stands behind that which began before it on their stream.
void Replay::mend_order(const JoinedTape& tape) {
  const TapeOperations& operations = tape.operations;
  const auto came_later = [&](u32 wait, const TapeOperation& than) {
    if (wait == kNone) return false;
    const TapeOperation& other = operations[wait];
    return other.stream == than.stream && other.start > than.start;
  };
  const auto is_out_of_order = [&](const TapeOperation& each) {
    const std::span<const u32> waits = waits_of(tape, each);
    return each.finish != 0 &&
           std::any_of(waits.begin(), waits.end(), [&](u32 wait) { return came_later(wait, each); });
  };
  std::size_t known = 0;
  while (known < operations.size() && !is_out_of_order(operations[known])) ++known;
  if (known == operations.size()) return;
  std::vector<u32> order;
  for (u32 i = 0; i < operations.size(); ++i)
    if (operations[i].finish != 0) order.push_back(i);
  std::sort(order.begin(), order.end(), [&](u32 a, u32 b) {
    const TapeOperation &one = operations[a], &other = operations[b];
    if (one.stream != other.stream) return one.stream < other.stream;
    return one.start != other.start ? one.start < other.start : a < b;
  });
  for (std::size_t place = 1; place < order.size(); ++place) {
    const TapeOperation& each = operations[order[place]];
    const u32 before = order[place - 1];
    if (operations[before].stream != each.stream) continue;
    for (u32& wait : waits_of(tape, each)) {
      if (came_later(wait, each)) wait = before;
    }
  }
}

// By thread and time. Operations whose call is not among them get one of their own.
void Replay::tie_operations(JoinedTape& tape) {
  const std::size_t known = tape.calls.size();
  CallFinder told(tape.calls, known);
  for (std::size_t i = 0; i < operations_.size(); ++i) {
    const TapeOperation& each = tape.operations[i];
    if (each.end == 0 || told.around(each) != kNone) continue;
    tape.calls.push_back({each.begin, each.end, each.thread, HostLog::Kind::Launch});
  }
  if (tape.calls.size() != known) {
    const auto made = tape.calls.begin() + static_cast<std::ptrdiff_t>(known);
    std::stable_sort(made, tape.calls.end(), earlier);
    std::inplace_merge(tape.calls.begin(), made, tape.calls.end(), earlier);
    const auto same = [](const TapeCall& a, const TapeCall& b) { return a.thread == b.thread && a.begin == b.begin; };
    tape.calls.erase(std::unique(tape.calls.begin(), tape.calls.end(), same), tape.calls.end());
  }
  CallFinder finder(tape.calls, tape.calls.size());
  for (std::size_t i = 0; i < operations_.size(); ++i) {
    if (tape.operations[i].end != 0) operations_[i].call = finder.around(tape.operations[i]);
  }
}

// A function of the host runs from the end of what it waits for until the first one behind it started, or a wait for it ended.
void Replay::infer_functions(JoinedTape& tape) {
  constexpr Nanos kEver = Nanos{1} << 62;
  bool any = false;
  for (std::size_t i = 0; i < operations_.size(); ++i) {
    TapeOperation& each = tape.operations[i];
    if (is_reported(each.kind) || each.end == 0) continue;
    any = operations_[i].function = true;
    each.start = each.finish = std::max(each.end, end_of_waits(tape, waits_of(tape, each), kEver));
  }
  if (!any) return;
  std::vector<Nanos> ends(operations_.size(), kEver);
  const auto ended = [&](std::span<const u32> waits, Nanos at) {
    for (const u32 before : waits) {
      if (before != kNone) ends[before] = std::min(ends[before], at);
    }
  };
  for (std::size_t i = 0; i < operations_.size(); ++i) {
    const TapeOperation& behind = tape.operations[i];
    if (behind.finish != 0) ended(waits_of(tape, behind), behind.start);
  }
  for (const TapeWait& wait : tape.waited) ended(waits_of(tape, wait), wait.end);
  for (std::size_t i = 0; i < operations_.size(); ++i) {
    TapeOperation& each = tape.operations[i];
    if (operations_[i].function && ends[i] != kEver) each.finish = std::max(each.start, ends[i]);
  }
}

void Replay::take_calls(JoinedTape& tape) {
  first_ = last_ = 0;
  for (std::size_t i = 0; i < operations_.size(); ++i) {
    const TapeOperation& each = tape.operations[i];
    if (each.finish == 0 || operations_[i].call == kNone || !is_reported(each.kind)) continue;
    const Nanos begin = tape.calls[operations_[i].call].begin;
    first_ = first_ == 0 ? begin : std::min(first_, begin);
    last_ = std::max(last_, each.finish);
  }
  calls_.resize(tape.calls.size());
  for (std::size_t i = 0; i < calls_.size(); ++i) {
    const TapeCall& each = tape.calls[i];
    Call& call = calls_[i];
    call.thread = call.follows = each.thread;
    call.kind = each.kind;
    const bool behind = i > 0 && tape.calls[i - 1].thread == each.thread && tape.calls[i - 1].begin >= first_;
    call.first = !behind;
    call.work = std::max<Nanos>(0, each.begin - (behind ? std::max(first_, tape.calls[i - 1].end) : first_));
    call.own = std::max<Nanos>(0, each.end - each.begin);
  }
  find_turns(tape);
  u32 threads = 0;
  for (const Call& each : calls_) threads = std::max(threads, each.thread + 1);
  threads_.resize(threads);
}

Replay::Block& Replay::block_of(u32 call) {
  if (calls_[call].block == kNone) {
    calls_[call].block = static_cast<u32>(blocks_.size());
    blocks_.emplace_back();
  }
  return blocks_[calls_[call].block];
}

// The call ends when those operations do, if they were what held it.
void Replay::block(u32 call, u32 waits, u32 count, const JoinedTape& tape) {
  Block& made = block_of(call);
  const TapeCall& as_it_was = tape.calls[call];
  made.waits = waits, made.waits_count = count;
  const Nanos until = end_of_waits(tape, waits_of(made), as_it_was.end);
  if (until <= as_it_was.begin) {
    made.wake = kNotSeen;
    return;
  }
  made.wake = as_it_was.end - until;  // less than nothing where the clocks differ
  calls_[call].own = kNotSeen;
}

bool is_small_result(const JoinedTape& tape, u32 operation, const std::vector<TimelineCopies>& copies) {
  if (tape.operations[operation].kind != OperationKind::Copy) return false;
  const TapeCopy& copy = tape.copy(tape.operations[operation]);
  return copy.bytes <= LaunchLoops::kResultBytes && copy.group < copies.size() &&
         copies[copy.group].key.kind == TransferKind::DtoH;
}

// What the call that gives it waits for: the copy had ended when it returned; or nearly so, as the driver returns from a copy out of pageable memory once its
// last piece lies in its own buffer (8 MiB on an H200: 7 to 14 us before the copy's end). Then it has waited for the copy to start, too: a small one's call is over before.
bool held_by(const TapeCall& call, const TapeOperation& copy) {
  constexpr Nanos kLastPiece = 20'000;
  return copy.finish <= call.end || (copy.start < call.end && copy.start > call.begin + kLastPiece &&
                                     copy.finish - call.end <= std::max(kLastPiece, (copy.finish - copy.start) / 10));
}

// Waits and queries that were told, by thread and time; and copies that held their call, but for those that are asynchronous by
// what CUDA promises, however short they are.
void Replay::find_waits(const JoinedTape& tape, const std::vector<TimelineCopies>& copies) {
  CallFinder finder(tape.calls, tape.calls.size());
  for (const TapeWait& each : tape.waited) {
    const u32 call = finder.around(each);
    if (call == kNone) continue;
    block(call, each.waits - tape.first_wait, each.waits_count, tape);
    Block& made = block_of(call);
    made.needless = each.needless;
    for (const u32 before : waits_of(made)) {
      if (before != kNone && is_small_result(tape, before, copies)) made.reads = true;
    }
  }
  for (u32 i = 0; i < operations_.size(); ++i) {
    const TapeOperation& each = tape.operations[i];
    if ((each.kind != OperationKind::Copy && each.kind != OperationKind::Memset) || each.finish == 0) continue;
    const u32 call = operations_[i].call;
    if (call == kNone || !held_by(tape.calls[call], each)) continue;
    if (calls_[call].kind != HostLog::Kind::Copy) continue;
    const u32 group = each.kind == OperationKind::Copy ? tape.copy(each).group : each.target;
    if (group < copies.size() && never_waits(copies[group].key)) continue;
    waits_.push_back(i);
    block(call, static_cast<u32>(waits_.size()) - 1, 1, tape);
    block_of(call).reads = is_small_result(tape, i, copies);
  }
}

// Allocating, freeing and loading may wait for all that the device was given: where the call ends soon after that did.
void Replay::find_implicit_waits(const JoinedTape& tape) {
  constexpr Nanos kSoon = 20'000;
  std::vector<u32> calls;
  u64 looped = 0;
  for (u32 i = 0; i < calls_.size(); ++i) {
    const HostLog::Kind kind = calls_[i].kind;
    if (kind == HostLog::Kind::Allocation || kind == HostLog::Kind::Module) calls.push_back(i);
  }
  std::sort(calls.begin(), calls.end(), [&](u32 a, u32 b) { return tape.calls[a].begin < tape.calls[b].begin; });
  u32 next = 0, latest = kNone, given = 0, given_before = 0;
  for (const u32 call : calls) {
    const TapeCall& each = tape.calls[call];
    for (; next < operations_.size() && tape.operations[next].end <= each.begin; ++next) {
      if (tape.operations[next].finish == 0) continue;
      ++given;
      if (latest == kNone || tape.operations[next].finish > tape.operations[latest].finish) latest = next;
    }
    if (latest == kNone) continue;
    if (each.kind == HostLog::Kind::Allocation) {
      calls_[call].looped = true;
      looped += given != given_before;
      given_before = given;
    }
    const Nanos until = tape.operations[latest].finish;
    if (until <= each.begin || until > each.end || each.end - until > std::max(kSoon, (until - each.begin) / 2))
      continue;
    waits_.push_back(latest);
    Block& made = block_of(call);
    made.waits = static_cast<u32>(waits_.size()) - 1, made.waits_count = 1;
    calls_[call].own = made.wake = each.end - until;
  }
  for (const u32 call : calls) calls_[call].looped = calls_[call].looped && looped >= kLoopTimes;
}

void Replay::find_blocking(const JoinedTape& tape, const std::vector<TimelineCopies>& copies) {
  find_waits(tape, copies);
  std::vector<Nanos> owns, wakes;
  for (const Call& each : calls_) {
    if (!blocks(each) || each.kind == HostLog::Kind::Query) continue;
    const Nanos wake = blocks_[each.block].wake;
    if (wake == kNotSeen) owns.push_back(each.own);
    if (each.own == kNotSeen) wakes.push_back(wake);
  }
  usual_own_ = quantile(owns, 0.5, kUsualOwn);
  usual_wake_ = std::max<Nanos>(0, quantile(wakes, 0.5, kUsualWake));
  for (u32 i = 0; i < calls_.size(); ++i) {
    Call& each = calls_[i];
    if (!blocks(each)) continue;
    Block& block = blocks_[each.block];
    // It did not wait: what it would have waited for ended before, so a wake-up is no longer than from there to its end.
    if (block.wake == kNotSeen) {
      const Nanos until = end_of_waits(tape, waits_of(block), tape.calls[i].end);
      block.wake = std::min(usual_wake_, tape.calls[i].end - until);
    }
    if (each.own == kNotSeen) each.own = std::min(usual_own_, tape.calls[i].end - tape.calls[i].begin);
  }
  find_implicit_waits(tape);
}

void Replay::find_lags(const JoinedTape& tape) {
  constexpr unsigned kKinds = 6;
  std::vector<Nanos> ways[kKinds], chains[kKinds];
  const auto visit = [&](auto&& what) {
    for (u32 i = 0; i < operations_.size(); ++i) {
      const TapeOperation& each = tape.operations[i];
      if (each.finish == 0 || operations_[i].call == kNone) continue;
      what(i, each, tape.calls[operations_[i].call].begin, end_of_waits(tape, waits_of(tape, each), each.start));
    }
  };
  visit([&](u32, const TapeOperation& each, Nanos begin, Nanos ready) {
    const unsigned kind = static_cast<unsigned>(each.kind);
    if (ready <= begin) ways[kind].push_back(each.start - begin);
    if (ready > each.end) chains[kind].push_back(each.start - ready);
  });
  Nanos usual_way[kKinds], usual_chain[kKinds];
  for (unsigned kind = 0; kind < kKinds; ++kind) {
    usual_way[kind] = quantile(ways[kind], 0.25, kUsualWay);
    usual_chain[kind] = quantile(chains[kind], 0.25, 0);
  }
  visit([&](u32 i, const TapeOperation& each, Nanos begin, Nanos ready) {
    const unsigned kind = static_cast<unsigned>(each.kind);
    Operation& made = operations_[i];
    made.waits = each.waits - tape.first_wait, made.waits_count = each.waits_count;
    made.length = each.finish - each.start;
    made.way = each.start - begin;
    if (ready == 0) {
      const auto is_untold = [&](u32 before) { return before == kNone || tape.operations[before].finish == 0; };
      const std::span<const u32> waits = waits_of(tape, each);
      if (std::any_of(waits.begin(), waits.end(), is_untold)) more_of(i).no_sooner = each.start;
      return;
    }
    made.chain = each.start - ready;
    const bool device_bound = made.chain - usual_chain[kind] <= made.way - usual_way[kind];
    if (device_bound)
      made.way = std::min(made.way, usual_way[kind]);
    else
      made.chain = std::min(made.chain, usual_chain[kind]);
  });
}

// What copies would take from pinned memory: at the best bandwidth that such copies had here.
void Replay::find_copies(const JoinedTape& tape, const std::vector<TimelineCopies>& copies) {
  constexpr u64 kLarge = 64 << 10;  // below it the latency is what counts
  double best[2] = {};              // bytes a ns, to the device and to the host
  const auto key_of = [&](u32 i) -> const CopyKey* {
    const TapeOperation& each = tape.operations[i];
    if (each.kind != OperationKind::Copy || each.finish == 0) return nullptr;
    const u32 group = tape.copy(each).group;
    return group < copies.size() ? &copies[group].key : nullptr;
  };
  const auto bytes_of = [&](u32 i) { return tape.copy(tape.operations[i]).bytes; };
  for (u32 i = 0; i < operations_.size(); ++i) {
    const CopyKey* key = key_of(i);
    if (!key || key->memory != HostMemory::Pinned || bytes_of(i) < kLarge || operations_[i].length <= 0) continue;
    if (key->kind != TransferKind::HtoD && key->kind != TransferKind::DtoH) continue;
    double& known = best[key->kind == TransferKind::DtoH];
    known = std::max(known, static_cast<double>(bytes_of(i)) / static_cast<double>(operations_[i].length));
  }
  for (u32 i = 0; i < operations_.size(); ++i) {
    Operation& made = operations_[i];
    // Nothing waits for a memset but the device.
    const bool set = tape.operations[i].kind == OperationKind::Memset && made.call != kNone;
    if (set && blocks(calls_[made.call])) calls_[made.call].unneeded_copy = true;
    const CopyKey* key = key_of(i);
    if (!key) continue;
    made.to_device = key->kind == TransferKind::HtoD;
    made.to_host = key->kind == TransferKind::DtoH;
    if (made.call != kNone && made.to_device && blocks(calls_[made.call])) calls_[made.call].unneeded_copy = true;
    const double rate = best[made.to_host];
    if (key->memory != HostMemory::Pageable || rate <= 0 || !(made.to_device || made.to_host)) continue;
    const auto pinned = static_cast<Nanos>(static_cast<double>(bytes_of(i)) / rate);
    if (pinned < made.length) more_of(i).pinned_length = pinned;
  }
}

Replay::More& Replay::more_of(u32 operation) {
  if (operations_[operation].more == kNone) {
    operations_[operation].more = static_cast<u32>(more_.size());
    more_.emplace_back();
  }
  return more_[operations_[operation].more];
}

Nanos Replay::pinned_length(const Operation& operation) const {
  const bool known = operation.more != kNone && more_[operation.more].pinned_length != kNotSeen;
  return known ? more_[operation.more].pinned_length : operation.length;
}

void Replay::find_kernels(const JoinedTape& tape) {
  for (u32 i = 0; i < operations_.size(); ++i) {
    const TapeOperation& each = tape.operations[i];
    if (each.kind != OperationKind::Kernel || each.finish == 0) continue;
    for (unsigned k = kFirstOfKernels; k < kWhatIfs; ++k) {
      if (kernels_.of(static_cast<WhatIf>(k), each.target) > 0) operations_[i].kernel = each.target;
    }
  }
}

void Replay::count_touched() {
  const auto count = [this](WhatIf what, bool touched) { touched_[static_cast<unsigned>(what)] += touched; };
  for (const Call& each : calls_) {
    count(WhatIf::HostWork, !each.first && each.work > 0);
    count(WhatIf::Launches, each.in_sequence);
    count(WhatIf::Waits, blocks(each) && blocks_[each.block].needless);
    count(WhatIf::Results, blocks(each) && blocks_[each.block].reads);
    count(WhatIf::Polling, each.kind == HostLog::Kind::Query && blocks(each));
    count(WhatIf::Copies, each.unneeded_copy);
    count(WhatIf::Allocations, each.looped);
    count(WhatIf::Modules, each.kind == HostLog::Kind::Module);
  }
  for (const Operation& each : operations_) {
    count(WhatIf::Copies, pinned_length(each) < each.length);
    count(WhatIf::HostFunctions, each.function);
    count(WhatIf::Overlap, each.to_device || each.to_host);
    for (unsigned i = kFirstOfKernels; i < kWhatIfs && each.kernel != kNone; ++i)
      count(static_cast<WhatIf>(i), kernels_.of(static_cast<WhatIf>(i), each.kernel) > 0);
  }
}

}  // namespace gputrace
