// What loading trace files may cost, by their size: processor time, memory, and how many different things (kernels, streams,
// places in the code, ...) they name, each of which is a row in reports. Whatever a file makes the analyzer do, in ways that nobody
// thought of too, ends here; ReadLimits bounds before what can be known before.
//
//   Allowance allowance(bytes_of_all_files);            // before the first of them is read
//   Allowance::Meter meter(allowance);                  // one for each part of the work, on one thread at a time
//   for (...) if (meter.spent()) break;                 // after each step; cheap
//   every now and then: meter.things(tables.size());
//   if (allowance.spent()) say(allowance.why());
//
//   · Honest traces stay below half of the time and nine tenths of the memory (docs/decisions/0083 has figures);
//     GPUTRACE_READ_LIMITS=off takes it away (a processor twenty times slower, a debugger).
//   · Once spent it stays spent. Any thread. A thread's time is counted once, whichever of several meters looks.
#pragma once

#include <atomic>
#include <string>

#include "base/fd.h"
#include "base/types.h"

namespace gputrace {

class Allowance {
 public:
  explicit Allowance(u64 file_bytes);
  Allowance(const Allowance&) = delete;
  Allowance& operator=(const Allowance&) = delete;

  bool spent() const { return spent_.load(std::memory_order_relaxed) != Spent::Nothing; }
  std::string why() const;  // one clause: what was more than such a file may take; empty: it is not spent

  class Meter {
   public:
    explicit Meter(Allowance& allowance) : allowance_(allowance) {}
    // `steps`: how much was done since the last question, in records.
    bool spent(u32 steps = 1) {
      if (steps_ > steps) [[likely]] {
        steps_ -= steps;
        return allowance_.spent();
      }
      return look();
    }
    // `now`: how many there are that this thread makes; no less than before.
    void things(u64 now) {
      if (now > things_) allowance_.add_things(now - things_);
      things_ = now;
    }

   private:
    // Steps between two looks; at memory more seldom: it is asked of /proc. Not more of them where steps have been cheap: a file chooses
    // when they become dear.
    static constexpr u32 kSteps = 128, kMemoryEvery = 8;
    static constexpr Nanos kSoon = 500'000;  // before that no look: neither time nor memory can have grown by much
    bool look();

    Allowance& allowance_;
    u32 steps_ = 0, looks_ = 0;
    u64 things_ = 0;
    bool begun_ = false;
    Nanos looked_ = 0;  // when that was, on the monotonic clock, which costs a tenth of the other
  };

 private:
  enum class Spent : u8 { Nothing, Time, Memory, Things };
  void spend(Nanos time);
  void look_at_memory();
  void add_things(u64 more);
  u64 resident() const;  // bytes; 0: not known

  const u64 number_;  // no other one of this program has it
  const Nanos most_time_;
  const u64 most_memory_, most_things_;
  Fd statm_;
  u64 memory_before_ = 0;
  std::atomic<Nanos> time_{0};
  std::atomic<u64> things_{0};
  std::atomic<Spent> spent_{Spent::Nothing};
};

}  // namespace gputrace
