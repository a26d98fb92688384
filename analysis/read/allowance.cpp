#include "analysis/read/allowance.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "analysis/words/human.h"
#include "base/clock.h"

namespace gputrace {
namespace {

bool limited() {
  const char* said = std::getenv("GPUTRACE_READ_LIMITS");
  return said == nullptr || std::strcmp(said, "off") != 0;
}

// Half a second, and 0.6 us for each byte: honest traces take up to 45 % of it (docs/decisions/0083).
Nanos most_time(u64 bytes) {
  if (!limited()) return std::numeric_limits<Nanos>::max();
  return 500'000'000 + static_cast<Nanos>(std::min<u64>(bytes, u64{1} << 40)) * 600;
}

// Beside the tables, which grow with the file, there are windows over the newest operations, which fill up. A program that does
// little but launch fills them from a file of a third of a MiB: 56 MiB leave it as far from the fence as others are.
u64 most_memory(u64 bytes) {
  if (!limited()) return std::numeric_limits<u64>::max();
  return (56u << 20) + 64 * bytes + std::min<u64>(264u << 20, 32 * bytes);
}

u64 most_things(u64 bytes) { return limited() ? 8192 + bytes / 32 : std::numeric_limits<u64>::max(); }

Nanos time_of_this_thread() {
  timespec now{};
  if (::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) != 0) return 0;
  return now.tv_sec * Nanos{1'000'000'000} + now.tv_nsec;
}

// Up to when this thread's time is counted, whichever meter looked, and for which allowance.
struct Counted {
  u64 of = 0;
  Nanos until = 0;
};
thread_local Counted of_this_thread;

std::atomic<u64> newest{0};

}  // namespace

Allowance::Allowance(u64 file_bytes)
    : number_(++newest),
      most_time_(most_time(file_bytes)),
      most_memory_(most_memory(file_bytes)),
      most_things_(most_things(file_bytes)),
      statm_(::open("/proc/self/statm", O_RDONLY | O_CLOEXEC)) {
  memory_before_ = resident();
}

u64 Allowance::resident() const {
  char text[128];
  const ssize_t got = statm_ ? ::pread(statm_.get(), text, sizeof text - 1, 0) : -1;
  if (got <= 0) return 0;
  text[got] = '\0';
  const char* second = std::strchr(text, ' ');
  return second ? std::strtoull(second, nullptr, 10) * static_cast<u64>(::sysconf(_SC_PAGESIZE)) : 0;
}

void Allowance::spend(Nanos time) {
  Spent nothing = Spent::Nothing;
  if (time_.fetch_add(time, std::memory_order_relaxed) + time > most_time_)
    spent_.compare_exchange_strong(nothing, Spent::Time);
}

void Allowance::look_at_memory() {
  Spent nothing = Spent::Nothing;
  if (const u64 now = resident(); now > memory_before_ && now - memory_before_ > most_memory_)
    spent_.compare_exchange_strong(nothing, Spent::Memory);
}

void Allowance::add_things(u64 more) {
  Spent nothing = Spent::Nothing;
  if (things_.fetch_add(more, std::memory_order_relaxed) + more > most_things_)
    spent_.compare_exchange_strong(nothing, Spent::Things);
}

bool Allowance::Meter::look() {
  steps_ = kSteps;
  const Nanos here = monotonic_nanos();
  if (looked_ && here - looked_ < kSoon) return allowance_.spent();
  looked_ = here;
  const Nanos now = time_of_this_thread();
  const bool goes_on = begun_ && of_this_thread.of == allowance_.number_;  // what was done before is no part of it
  allowance_.spend(goes_on ? now - of_this_thread.until : 0);
  begun_ = true;
  of_this_thread = {allowance_.number_, now};
  if (looks_++ % kMemoryEvery == 0) allowance_.look_at_memory();
  return allowance_.spent();
}

std::string Allowance::why() const {
  switch (spent_.load()) {
    case Spent::Time:
      return "it takes more processor time than files of that size may (" + human_nanos(most_time_) + ")";
    case Spent::Memory:
      return "it takes more memory than files of that size may (" + std::to_string(most_memory_ >> 20) + " MiB)";
    case Spent::Things:
      return "more kernels, shapes, streams and the like are in it than files of that size may name (" +
             human_count(most_things_) + ")";
    case Spent::Nothing:
      break;
  }
  return {};
}

}  // namespace gputrace
