#include "writer/sample/thread_watch.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <limits>

#include "writer/host.h"
#include "writer/sample/numbers_in.h"
#include "writer/sample/own_text.h"

namespace gputrace {
namespace {

constexpr Nanos kOneSecond = 1'000'000'000;
constexpr Nanos kLookAtThreadsEvery = kOneSecond / 4;
constexpr Nanos kWriteThreadsEvery = kOneSecond, kWriteThreadsAtLast = 5 * kOneSecond;
// So many parts of the time until now: a loop of seconds is told from the start-up before it.
constexpr Nanos kWritesOfAll = 10;
constexpr Nanos kThreadShare = 400;  // one part of it is ours
constexpr std::size_t kThreadsAtOnce = 16;
constexpr u64 kNameEvery = 4;                 // rounds: of a thread that is known, name and start are read again
constexpr std::size_t kThreadNameBytes = 64;  // the kernel's own limit is 15
constexpr u64 kThreadTexts = 0x7468726561640000ull;

struct ThreadStat {
  std::string name;
  u64 ticks = 0, start = 0;  // user's and kernel's time; since boot
};

bool read_stat(const std::string& folder, ThreadStat& stat) {
  const std::string text = read_small_file(folder + "/stat", 1024);
  const std::size_t from = text.find('('), to = text.rfind(')');  // the name may hold both
  if (from == std::string::npos || to == std::string::npos || to < from) return false;
  unsigned long long user = 0, kernel = 0, start = 0;
  if (std::sscanf(text.c_str() + to + 1,
                  " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d %*d %*d %llu", &user, &kernel,
                  &start) != 3)
    return false;
  stat.name = text.substr(from + 1, std::min(kThreadNameBytes, to - from - 1));
  stat.ticks = user + kernel;
  stat.start = start;
  return true;
}

u64 ticks_to_nanos(u64 ticks) { return ticks * static_cast<u64>(kOneSecond / ::sysconf(_SC_CLK_TCK)); }

}  // namespace

void ThreadWatch::look() {
  const Nanos begin = clock_nanos(CLOCK_THREAD_CPUTIME_ID);
  if (to_look_at_.empty()) begin_round();
  for (std::size_t i = 0; i < kThreadsAtOnce && !to_look_at_.empty(); ++i) {
    const Thread thread = to_look_at_.back();
    to_look_at_.pop_back();
    look_at_thread(thread.process, thread.tid);
  }
  const bool round_is_over = to_look_at_.empty();
  if (round_is_over) {
    drop_ended();
    sum_up();
    if (monotonic_nanos() >= next_write_) write_changed();
  }
  const Nanos took = clock_nanos(CLOCK_THREAD_CPUTIME_ID) - begin;
  cpu_ += took;
  next_ = monotonic_nanos() + took * kThreadShare;
  if (round_is_over) next_ = std::max(next_, next_round_);
  if (sink_.stop() != WriteStop::None) next_ = std::numeric_limits<Nanos>::max();
}

void ThreadWatch::begin_round() {
  const Nanos now = monotonic_nanos();
  ++round_;
  next_round_ = now + kLookAtThreadsEvery;
  ThreadStat stat;
  if (read_stat("/proc/" + std::to_string(process_), stat)) ticks_of_process_ = stat.ticks;
  list_threads({process_, 0});
  for (const ProcessTree::Process& each : tree_.descendants()) list_threads(each);
}

void ThreadWatch::list_threads(const ProcessTree::Process& process) {
  const std::string folder = "/proc/" + std::to_string(process.pid) + "/task";
  const bool read = numbers_in(folder, [&](i32 tid) {
    if (to_look_at_.size() < kMostThreads) to_look_at_.push_back({process, tid});
  });
  ever_read_ = ever_read_ || read;
}

// The thread as it is known, with its name and start read anew; nullptr: it is gone, or one too many.
ThreadWatch::Use* ThreadWatch::identify(const std::string& folder, i32 of, i32 tid) {
  ThreadStat stat;
  if (!read_stat(folder, stat)) return nullptr;
  auto known = threads_.find({of, tid});
  if (known != threads_.end() && known->second.start != stat.start) {  // another one has its number now
    if (!known->second.written) write(known->second);
    threads_.erase(known), known = threads_.end();
  }
  if (known == threads_.end()) {
    if (threads_.size() == kMostThreads) return ++left_out_, nullptr;
    known = threads_.emplace(std::pair{of, tid}, Use{}).first;
  }
  Use& use = known->second;
  use.written = use.written && use.name == stat.name;
  use.start = stat.start, use.name = stat.name, use.ticks = stat.ticks, use.identified = round_;
  return &use;
}

void ThreadWatch::look_at_thread(const ProcessTree::Process& process, i32 tid) {
  const std::string folder = "/proc/" + std::to_string(process.pid) + "/task/" + std::to_string(tid);
  const i32 of = process.pid == process_ ? 0 : process.pid;
  unsigned long long ran = 0, waited = 0;
  const bool exact =
      std::sscanf(read_small_file(folder + "/schedstat", 128).c_str(), "%llu %llu", &ran, &waited) == 2 && ran != 0;
  const auto known = threads_.find({of, tid});
  Use* use = known == threads_.end() ? nullptr : &known->second;
  // One that has used less than it had is another one.
  if (!use || !exact || ran < use->record.cpu || round_ - use->identified >= kNameEvery)
    use = identify(folder, of, tid);
  if (!use) return;
  ThreadUse record{};
  record.cpu = exact ? ran : ticks_to_nanos(use->ticks);
  record.ready = exact ? waited : ~u64{0};
  const u64 now = static_cast<u64>(clock_nanos(CLOCK_BOOTTIME)), began = ticks_to_nanos(use->start);
  record.age = now - std::min(now, began);
  record.tid = tid, record.process = of, record.parent = process.parent;
  use->written = use->written && use->record.cpu == record.cpu;
  use->record = record, use->round = round_;
  use->looked = monotonic_nanos();
}

void ThreadWatch::drop_ended() {
  for (auto each = threads_.begin(); each != threads_.end();) {
    if (each->second.round == round_) {
      ++each;
      continue;
    }
    each->second.record.flags = kThreadOver;
    if (each->first.first == 0) ended_cpu_ += each->second.record.cpu;
    write(each->second);
    each = threads_.erase(each);
  }
}

void ThreadWatch::sum_up() {
  u64 seen = ended_cpu_;
  for (const auto& [who, use] : threads_) seen += who.first == 0 ? use.record.cpu : 0;
  const u64 all = ticks_to_nanos(ticks_of_process_);
  unseen_cpu_ = std::max(unseen_cpu_, all - std::min(all, seen));
}

void ThreadWatch::write(Use& use) {
  const Ticks now = ticks_of(clock_);
  use.record.header = {static_cast<u16>(RecordType::ThreadUse), sizeof use.record, 0, 0, now, now};
  use.record.since = static_cast<u64>(monotonic_nanos() - use.looked);
  use.record.name = own_text(use.name, kThreadTexts, names_, sink_, now);
  sink_.add_record(use.record.header);
  use.written = true;
}

void ThreadWatch::write_changed() {
  const Nanos now = monotonic_nanos();
  if (began_ == 0) began_ = now;
  next_write_ = now + std::clamp((now - began_) / kWritesOfAll, kWriteThreadsEvery, kWriteThreadsAtLast);
  for (auto& [who, use] : threads_) {
    if (!use.written) write(use);
  }
}

void ThreadWatch::finish() {
  // While nobody has asked for its end its first thread can still be read; then its number may be another's.
  const auto first = threads_.find({0, process_});
  if (first != threads_.end() && process_stat(process_).start_time == first->second.start)
    look_at_thread({process_, 0}, process_);
  write_changed();
}

InfoLines ThreadWatch::result() const {
  if (!ever_read_)
    return {{"not_collected", "threads: /proc/PID/task of the process cannot be read (another user's /proc, hidepid)"}};
  InfoLines lines{{"thread_looks", std::to_string(round_)},
                  {"thread_looks_cpu_ns", std::to_string(cpu_ + tree_.cpu())},
                  {"thread_unseen_cpu_ns", std::to_string(unseen_cpu_)}};
  if (left_out_) lines.emplace_back("thread_looks_left_out", std::to_string(left_out_));
  return lines;
}

}  // namespace gputrace
