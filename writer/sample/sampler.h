// Looks from outside at the Python frames of the threads that call CUDA, some hundred times a second: where the program is
// between two calls. The program is not stopped, signalled or told, and nothing of ours runs in it.
//   · Processes that were forked from the traced one without calling CUDA (workers of a data loader) are looked at too: their
//     interpreter lies where their parent's does. So are those that multiprocessing ("spawn", "forkserver"), loky or Ray started anew, in
//     their first thread, until they call CUDA. No other process is.
//   · So are, in turn, other Python threads of the process that work, in rounds in which the kernel says that all that call CUDA sleep: what
//     these wait for.
//   · At most a 160th of a core, but for what comes once and takes more than 4 ms: where a round takes long, the next one comes later.
//   · What could not be read is counted. Where the kernel refuses, `gputrace run` reads for us, as an ancestor of the program; where
//     it refuses that too it ends for good, with the reason.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "ringbuf/segment_view.h"
#include "writer/process_info.h"
#include "writer/sample/frame_records.h"
#include "writer/sample/other_threads.h"
#include "writer/sample/own_interpreter.h"
#include "writer/sample/process_memory.h"
#include "writer/sample/process_tree.h"
#include "writer/sample/python_frames.h"

namespace gputrace {

class Sampler {
 public:
  // `tree`: what comes from the traced process; outlives this. nullptr: the process says of no interpreter that can be read.
  static std::unique_ptr<Sampler> make(const SegmentView& segment, const InfoLines& info, const ProcessTree& tree,
                                       const Environment& environment, TraceSink& sink);

  Nanos next() const { return next_; }  // CLOCK_MONOTONIC
  void look();
  // What became of it, for the trace; once, at the end.
  InfoLines result() const;

 private:
  struct Thread {
    u32 slot, incarnation;
    i32 tid;
    u64 state, id;
  };
  struct Process {
    Process(const PythonLayout& layout, i32 pid, MemoryOfRun* run) : memory(pid, run), frames(layout, memory) {}
    void ask_soon() { next_question = question_every = 0; }
    ProcessMemory memory;
    PythonFrames frames;
    u32 slot = 0;            // of a worker: the thread that forked it
    bool is_child = false;   // of the traced process: it may be a fork of it
    bool is_proven = false;  // to be one
    bool has_own_ring = false;
    PythonThread first;            // of one with an interpreter of its own
    std::optional<Thread> forker;  // of a fork, as the interpreter lists it there
    Nanos looked = 0;
    Nanos next_question = 0, question_every = 0;  // about what it is, CLOCK_MONOTONIC
  };

  Sampler(const SegmentView& segment, const PythonLayout& layout, const ProcessTree& tree,
          std::unique_ptr<MemoryOfRun> run, TraceSink& sink);
  void look_at_all();
  std::vector<Thread> threads() const;
  void look_at_other_thread(const std::vector<Thread>& calling);
  bool prove_interpreter(const Thread& thread);
  bool may_go_on(Process& worker, u64 id, const Thread& known);
  std::optional<Thread> thread_that_forked(Process& worker, const std::vector<Thread>& calling);
  void look_at_worker(Process& worker, const std::vector<Thread>& threads);
  void ask_what_it_is(Process& worker, i32 parent, Nanos now);
  bool sample(Process& process, const Thread& thread, i32 pid, Nanos& looked);
  void tell_wait(const Process& process, i32 tid, Sample& record) const;
  void take_workers(const std::vector<Thread>& threads);
  void refuse(int error);
  Nanos cpu() const;
  u64 learned() const;
  Nanos spread(Nanos pause);

  SegmentView segment_;
  const PythonLayout& layout_;
  const ProcessTree& tree_;
  TraceSink& sink_;
  FrameRecords records_;
  const std::unique_ptr<MemoryOfRun> run_;  // nullptr: there is none
  Process main_;
  std::vector<std::unique_ptr<Process>> workers_;
  OwnInterpreter own_interpreter_;
  bool knows_interpreter_ = false;  // own_interpreter_ is proven
  Nanos next_proof_ = 0, proof_every_ = 0;
  OtherThreads other_threads_;
  bool callers_sleep_ = false;  // all that were looked at in this round, as the kernel says
  std::vector<Nanos> looked_;   // by slot
  std::vector<PythonFrames::Frame> found_;
  Nanos next_ = 0;
  u64 looks_at_tree_ = 0;
  u64 random_;
  u64 taken_ = 0, parts_ = 0, torn_ = 0, unreadable_ = 0, of_workers_ = 0, of_others_ = 0;
  Nanos cpu_ = 0;
  // Of about the newest kUsualOf looks but for what comes once: their mean, and how many there were, up to those.
  Nanos usual_cost_ = 0, looks_ = 0;
  Nanos owed_ = 0;        // what looks took of what comes once, and no pause has paid yet
  bool imports_ = false;  // the newest calling thread whose frames were found was importing a module
  std::string refused_;
};

}  // namespace gputrace
