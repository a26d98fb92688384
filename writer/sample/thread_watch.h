// What the threads of the traced process, and of processes that come from it, have used of the processors, as the kernel counts it:
// read from /proc, some four times a second.
//   · At most a 400th of a core, and some threads at a time: draining does not wait for a round through thousands.
//   · A thread is written down once it is gone, every second while it works and every five later on, and at the end: its newest record holds.
//   · What a thread did between the last look and its end is not seen; nor are threads that live between two looks. What the process
//     itself used beyond all that was seen is told in sum, for the kernel counts that too, in clock ticks.
#pragma once

#include <map>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "trace/record.h"
#include "writer/process_info.h"
#include "writer/sample/process_tree.h"
#include "writer/trace_sink.h"

namespace gputrace {

class ThreadWatch {
 public:
  // `tree`: what comes from that process; outlives this.
  ThreadWatch(i32 process, const ProcessTree& tree, ClockKind clock, TraceSink& sink)
      : process_(process), tree_(tree), clock_(clock), sink_(sink) {}

  Nanos next() const { return next_; }  // CLOCK_MONOTONIC
  void look();
  // A last look, at what is left of it, and all that is not written yet.
  void finish();
  // What became of it, for the trace; once, after finish().
  InfoLines result() const;

  static constexpr std::size_t kMostThreads = 4096;

 private:
  struct Use {
    ThreadUse record{};
    std::string name;
    u64 start = 0, ticks = 0;  // clock ticks after boot; of processor time
    Nanos looked = 0;
    u64 round = 0, identified = 0;  // in which it was seen last; with its name
    bool written = false;
  };
  struct Thread {
    ProcessTree::Process process;
    i32 tid;
  };

  void begin_round();
  void list_threads(const ProcessTree::Process& process);
  void look_at_thread(const ProcessTree::Process& process, i32 tid);
  Use* identify(const std::string& folder, i32 of, i32 tid);
  void drop_ended();
  void sum_up();
  void write(Use& use);
  void write_changed();

  const i32 process_;
  const ProcessTree& tree_;
  const ClockKind clock_;
  TraceSink& sink_;
  std::vector<Thread> to_look_at_;              // in this round
  std::map<std::pair<i32, i32>, Use> threads_;  // by process and thread
  std::unordered_set<u64> names_;
  Nanos next_ = 0, next_write_ = 0;
  Nanos began_ = 0;  // when threads were written first
  Nanos next_round_ = 0;
  u64 round_ = 0, left_out_ = 0;
  bool ever_read_ = false;
  u64 ticks_of_process_ = 0;  // of all its threads, ended ones too, at the begin of the round
  u64 ended_cpu_ = 0,
      unseen_cpu_ = 0;  // ns: of the process's threads that were seen and are over; of what was not seen
  Nanos cpu_ = 0;
};

}  // namespace gputrace
