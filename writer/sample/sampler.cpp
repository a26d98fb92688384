#include "writer/sample/sampler.h"

#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

#include "base/collect_parts.h"
#include "writer/host.h"
#include "writer/sample/thread_wait.h"

namespace gputrace {
namespace {

constexpr Nanos kInterval = 10'000'000;
constexpr Nanos kShare = 160;   // one part of it is ours
constexpr Nanos kUsualOf = 32;  // looks
// What one look took beyond that, on a machine that was held up, keeps nobody from looking for seconds.
constexpr Nanos kMostOwed = 4'000'000;
constexpr std::size_t kMostWorkers = 64;
constexpr Nanos kQuestionsEvery = 250'000'000, kQuestionsAtLeastEvery = 64'000'000'000;

// What would have to be otherwise, as far as it can be seen from here.
std::string why_refused(bool has_run) {
  const std::string scope = read_small_file("/proc/sys/kernel/yama/ptrace_scope", 8);
  if (scope.starts_with('1') && !has_run)
    return "kernel.yama.ptrace_scope is 1, by which only an ancestor of it may; gputrace run -- CMD is one";
  if (!scope.empty() && !scope.starts_with('0')) return "kernel.yama.ptrace_scope is " + scope.substr(0, 1);
  return "a container's seccomp profile, or a process that has made itself unreadable";
}

bool is_importing(const std::vector<PythonFrames::Frame>& frames) {
  return std::any_of(frames.begin(), frames.end(), [](const PythonFrames::Frame& frame) {
    return frame.code->file.starts_with("<frozen importlib");
  });
}

}  // namespace

std::unique_ptr<Sampler> Sampler::make(const SegmentView& segment, const InfoLines& info, const ProcessTree& tree,
                                       const Environment& environment, TraceSink& sink) {
  const std::string version(find_info(info, "python_version"));
  const std::string_view parts = find_info(info, "option.collect");
  u32 minor = 0;
  if (!(collect::parts_in_effect(parts.data(), parts.size()) & collect::kPython) ||
      !read_python_version(version.c_str(), minor))
    return nullptr;
  const PythonLayout* layout = layout_of(minor);
  if (!layout) return nullptr;
  return std::unique_ptr<Sampler>(new Sampler(segment, *layout, tree, MemoryOfRun::open(environment), sink));
}

Sampler::Sampler(const SegmentView& segment, const PythonLayout& layout, const ProcessTree& tree,
                 std::unique_ptr<MemoryOfRun> run, TraceSink& sink)
    : segment_(segment),
      layout_(layout),
      tree_(tree),
      sink_(sink),
      records_(sink),
      run_(std::move(run)),
      main_(layout, segment.header().pid, run_.get()),
      own_interpreter_(layout),
      looked_(segment.header().slot_count, 0),
      next_(monotonic_nanos() + kInterval),
      random_(segment.header().random_id | 1) {}

// Of all looks: what `run` did for them is ours too.
Nanos Sampler::cpu() const { return clock_nanos(CLOCK_THREAD_CPUTIME_ID) + (run_ ? run_->cpu() : 0); }

// Code objects that looks at the processes there are have met.
u64 Sampler::learned() const {
  u64 learned = main_.frames.learned();
  for (const auto& worker : workers_) learned += worker->frames.learned();
  return learned;
}

// A loop of the program's that takes as long as the pause must not be met at the same place each time: one to three halves of it.
Nanos Sampler::spread(Nanos pause) {
  random_ ^= random_ << 13, random_ ^= random_ >> 7, random_ ^= random_ << 17;
  return pause / 2 + static_cast<Nanos>(random_ % static_cast<u64>(pause));
}

void Sampler::look() {
  const auto state = static_cast<SessionState>(segment_.control().state.load(std::memory_order_relaxed));
  const Nanos begin = cpu();
  const u64 known = learned();
  if (state == SessionState::Recording && refused_.empty() && sink_.stop() == WriteStop::None) look_at_all();
  const Nanos took = cpu() - begin;
  cpu_ += took;
  // The pause must not go by what this look cost: a deep stack costs more than a sleeping thread's, and what comes after longer pauses is
  // another part of the loop. (It did: of a loop that computes for 66 % of its time 52 % of looks found it there.) But what looks learn, and
  // what they find while modules are imported, comes once: the next few pauses pay for it, and a loop behind a long start-up is looked at as
  // often as it can be from its begin on.
  if (imports_ || learned() != known) {
    owed_ = std::clamp<Nanos>(owed_ + took - usual_cost_, 0, kMostOwed);
  } else {
    looks_ = std::min(looks_ + 1, kUsualOf);
    usual_cost_ += (took - usual_cost_) / looks_;
  }
  const Nanos paid = (owed_ + 1) / 2;
  owed_ -= paid;
  const bool is_over = state == SessionState::Ended || !refused_.empty();
  next_ = is_over ? std::numeric_limits<Nanos>::max()
                  : monotonic_nanos() + spread(std::max(kInterval, (usual_cost_ + paid) * kShare));
}

// Threads of the traced process that have shown where their frames are.
std::vector<Sampler::Thread> Sampler::threads() const {
  std::vector<Thread> threads;
  for (u32 i = 1; i < segment_.header().slot_count; ++i) {
    const ThreadSlot& slot = segment_.slot(i);
    if (slot.state.load(std::memory_order_acquire) != static_cast<u32>(SlotState::Live)) continue;
    const u64 state = slot.python_thread.load(std::memory_order_acquire);
    if (state) threads.push_back({i, slot.incarnation, slot.tid, state, slot.python_thread_id});
  }
  return threads;
}

void Sampler::look_at_all() {
  const std::vector<Thread> all = threads();
  if (all.empty()) return;
  callers_sleep_ = true;
  for (const Thread& thread : all) {
    if (!sample(main_, thread, 0, looked_[thread.slot]) && !refused_.empty()) return;
  }
  if (callers_sleep_) look_at_other_thread(all);
  if (looks_at_tree_ != tree_.looks()) take_workers(all);
  for (const auto& worker : workers_) look_at_worker(*worker, all);
}

// Reading the mappings takes long where there are many: asked again the more seldom.
bool Sampler::prove_interpreter(const Thread& thread) {
  if (knows_interpreter_) return true;
  const Nanos now = monotonic_nanos();
  if (now < next_proof_) return false;
  proof_every_ = std::clamp(2 * proof_every_, kQuestionsEvery, kQuestionsAtLeastEvery);
  next_proof_ = now + proof_every_;
  knows_interpreter_ = own_interpreter_.prove(
      main_.memory, segment_.control().python_runtime.load(std::memory_order_relaxed), thread.state);
  return knows_interpreter_;
}

// One at a time: the calling threads' own looks must not become fewer.
void Sampler::look_at_other_thread(const std::vector<Thread>& calling) {
  if (!prove_interpreter(calling.front())) return;
  std::vector<OtherThreads::Calling> known;
  known.reserve(calling.size());
  for (const Thread& thread : calling) known.push_back({thread.state, thread.tid});
  const u64 runtime = segment_.control().python_runtime.load(std::memory_order_relaxed);
  const auto turn = other_threads_.next(own_interpreter_, main_.memory, runtime, known);
  if (turn) sample(main_, {0, 0, turn->tid, turn->python.state, turn->python.id}, 0, turn->looked);
}

// Whether there was something to be read. A thread of slot 0 is one that calls no CUDA: it may be gone.
bool Sampler::sample(Process& process, const Thread& thread, i32 pid, Nanos& looked) {
  const PythonFrames::Outcome outcome = process.frames.look(thread.state, thread.id, found_);
  const Nanos now = monotonic_nanos(), since = looked ? now - looked : 0;
  looked = now;
  switch (outcome) {
    case PythonFrames::Outcome::Nothing:
      return true;
    case PythonFrames::Outcome::Torn:
      ++torn_;
      callers_sleep_ = false;
      return true;
    case PythonFrames::Outcome::Unreadable:
      if (pid == 0 && thread.slot != 0) ++unreadable_, refuse(process.memory.error());
      return false;
    case PythonFrames::Outcome::OuterPart:
      ++parts_;
      break;
    case PythonFrames::Outcome::Whole:
      break;
  }
  if (thread.slot != 0 && pid == 0) imports_ = is_importing(found_);
  const Ticks ticks = ticks_of(segment_.header().clock);
  Sample record{};
  record.header = {static_cast<u16>(RecordType::Sample), sizeof record, 0, 0, ticks, ticks};
  record.interval = static_cast<u64>(since);
  record.frames = static_cast<u32>(found_.size());
  record.frame = records_.number(found_, ticks);
  record.slot = thread.slot;
  record.incarnation = thread.incarnation;
  record.process = pid;
  if (thread.slot == 0) record.tid = thread.tid;
  if (outcome == PythonFrames::Outcome::OuterPart) record.flags = kSampleOuterPart;
  tell_wait(process, pid ? pid : thread.tid, record);
  sink_.add_record(record.header);
  callers_sleep_ = callers_sleep_ && record.waits != 0;
  ++(pid ? of_workers_ : thread.slot ? taken_ : of_others_);
  return true;
}

// One that was started anew has its lock elsewhere.
void Sampler::tell_wait(const Process& process, i32 tid, Sample& record) const {
  const SegmentControl& control = segment_.control();
  InterpreterMemory interpreter;
  if (!process.first.state)
    interpreter = {control.python_runtime.load(std::memory_order_relaxed),
                   control.python_runtime_bytes.load(std::memory_order_relaxed)};
  const auto wait = wait_of_thread(process.memory.process(), tid, interpreter);
  if (!wait) return;
  if (wait->what)
    record.waits = static_cast<u32>(*wait->what);
  else
    record.flags |= kSampleRan;
}

// Whether the thread with that pthread_self() can be the one that a forked process goes on with: it has the process's number there, where this C
// library keeps numbers, as one of the traced process shows.
bool Sampler::may_go_on(Process& worker, u64 id, const Thread& known) {
  const bool has_numbers = number_of_thread(main_.memory, known.id) == known.tid;
  return !has_numbers || number_of_thread(worker.memory, id) == worker.memory.process();
}

// The thread that a forked process goes on with. Its interpreter lists that one alone, once it runs Python again: what the other threads of its parent were in
// lies there still, as it was. Nothing: it is not there yet, or another program was executed.
std::optional<Sampler::Thread> Sampler::thread_that_forked(Process& worker, const std::vector<Thread>& calling) {
  const u64 runtime = segment_.control().python_runtime.load(std::memory_order_relaxed);
  const auto listed = own_interpreter_.threads(worker.memory, runtime, std::numeric_limits<std::size_t>::max());
  if (listed.empty()) return {};
  const PythonThread oldest = listed.back();
  const i32 pid = worker.memory.process();
  if (!may_go_on(worker, oldest.id, calling.front())) return {};  // the others are listed still
  const auto same =
      std::find_if(calling.begin(), calling.end(), [&](const Thread& each) { return each.state == oldest.state; });
  const Thread& asks = same == calling.end() ? calling.front() : *same;
  return Thread{asks.slot, asks.incarnation, pid, oldest.state, oldest.id};
}

// Where the interpreter's threads are not known any of those that call may have forked a process, until that is seen.
void Sampler::look_at_worker(Process& worker, const std::vector<Thread>& threads) {
  if (worker.has_own_ring) return;
  const i32 pid = worker.memory.process();
  if (worker.first.state) {
    const Thread& asks = threads.front();
    if (!sample(worker, {asks.slot, asks.incarnation, pid, worker.first.state, worker.first.id}, pid, worker.looked))
      worker.first = {}, worker.ask_soon();
    return;
  }
  if (!worker.is_child) return;
  if (knows_interpreter_) {
    if (!worker.forker) worker.forker = thread_that_forked(worker, threads);
    worker.is_proven = worker.forker && sample(worker, *worker.forker, pid, worker.looked);
    if (!worker.is_proven) worker.forker = {}, worker.ask_soon();
    return;
  }
  for (const Thread& thread : threads) {
    if (worker.is_proven && thread.slot != worker.slot) continue;
    if (!may_go_on(worker, thread.id, thread)) continue;
    if (!sample(worker, thread, pid, worker.looked)) continue;
    worker.is_proven = true;
    worker.slot = thread.slot;
    return;
  }
  if (worker.is_proven) worker.ask_soon();
  worker.is_proven = false;  // it may have executed another program
}

// The longer it is known, the more seldom: whoever calls CUDA does so early.
void Sampler::ask_what_it_is(Process& worker, i32 parent, Nanos now) {
  if (now < worker.next_question || worker.has_own_ring) return;
  worker.question_every = std::clamp(2 * worker.question_every, kQuestionsEvery, kQuestionsAtLeastEvery);
  worker.next_question = now + worker.question_every;
  const i32 pid = worker.memory.process();
  if (worker.is_proven || !is_worker_begun_anew(pid, parent)) return;
  if (!worker.first.state) worker.first = own_interpreter_.first_thread(worker.memory);
  worker.has_own_ring = has_own_ring(pid);
}

// What the traced process forked, as far as it is its image still: what has executed another program has nothing to be read where
// its parent's interpreter is. And what multiprocessing or loky started anew, wherever in the tree it is.
void Sampler::take_workers(const std::vector<Thread>& threads) {
  looks_at_tree_ = tree_.looks();
  if (!tree_.descendants().empty()) prove_interpreter(threads.front());
  const Nanos now = monotonic_nanos();
  std::vector<std::unique_ptr<Process>> found;
  for (const ProcessTree::Process& child : tree_.descendants()) {
    if (found.size() == kMostWorkers) break;
    if (child.parent != main_.memory.process() && !knows_interpreter_) continue;
    const auto known = std::find_if(workers_.begin(), workers_.end(), [&](const auto& worker) {
      return worker && worker->memory.process() == child.pid;
    });
    found.push_back(known != workers_.end() ? std::move(*known)
                                            : std::make_unique<Process>(layout_, child.pid, run_.get()));
    found.back()->is_child = child.parent == main_.memory.process();
    if (knows_interpreter_) ask_what_it_is(*found.back(), child.parent, now);
  }
  workers_ = std::move(found);
}

void Sampler::refuse(int error) {
  if (error == EPERM || error == ENOSYS) refused_ = std::strerror(error);
}

InfoLines Sampler::result() const {
  if (!refused_.empty())
    return {{"not_collected", "samples: the kernel lets the sidecar not read this process (" + refused_ + "; " +
                                  why_refused(run_ != nullptr) + "): lines between two CUDA calls are not known"}};
  const auto text = [](u64 number) { return std::to_string(number); };
  return {{"samples", text(taken_)},
          {"samples_of_workers", text(of_workers_)},
          {"samples_of_other_threads", text(of_others_)},
          {"samples_outer_part", text(parts_)},
          {"samples_torn", text(torn_)},
          {"samples_unreadable", text(unreadable_)},
          {"samples_cpu_ns", text(static_cast<u64>(cpu_))}};
}

}  // namespace gputrace
