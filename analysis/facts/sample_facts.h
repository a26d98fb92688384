// What is known of a process's host side beside its calls: where threads were found when the sidecar looked at them from outside, what
// they used of the processors, and what libgputrace-host.so counted of its file calls and waits.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/facts/source_lines.h"
#include "base/types.h"
#include "trace/record.h"

namespace gputrace {

// What a sample stands for at most: a look that came much later than the others tells of no more than it saw.
inline constexpr Nanos kLongestLook = 100'000'000;

struct SamplePoint {
  Nanos at = 0;
  u32 frame = 0;                 // in SampleFacts::frames
  bool in_call = false;          // the thread was in a CUDA call
  bool ran = false;              // it was on a processor, or could have been
  std::optional<WaitFor> waits;  // what it slept for; neither: not known
};
// Of a thread of the traced process, or of a process that was forked from it.
struct SampledThread {
  u32 thread =
      0;  // index in the trace; of a worker: that of the thread that it was forked from; kNone: it calls no CUDA
  i32 process = 0;  // 0: the traced process itself
  i32 tid = 0;      // of one that calls no CUDA: looked at while none of those that do ran
  std::vector<SamplePoint> points;

  bool calls_cuda() const { return process == 0 && tid == 0; }
};

// Whose line it is: that of a thread that calls CUDA, of a process that was forked to work for it, of another thread of its own, or of one
// that calls CUDA as well and ran while the caller slept.
enum class LineOf : u8 { Caller, Worker, OtherThread, Peer };

// How often samples found a line while a device had nothing to do because of the host, before something was launched from
// `origin`; what it slept for there stands apart from what it slept for otherwise, and from running.
struct IdleLine {
  u32 origin = 0;  // number of a CallOrigin
  u32 frame = 0;
  bool ran = false;  // as SamplePoint has them
  std::optional<WaitFor> waits;
  LineOf of = LineOf::Caller;
  u64 count = 0;
};

// What a thread had used by then.
struct ThreadReading {
  Nanos at = 0;
  u64 cpu_ns = 0, ready_ns = 0;
};

// A thread of the traced process, or of one that comes from it, and what it has used of the processors until it was last looked at.
struct HostThread {
  i32 process = 0;  // 0: the traced process itself
  i32 tid = 0;
  i32 parent = 0;  // of another process: the one that made it
  std::string name;
  Nanos began = 0, seen = 0;
  u64 cpu_ns = 0;
  u64 ready_ns = 0;  // it could have run and had no processor
  bool ready_told = false;
  bool over = false;  // it was gone at the next look
  // Of the traced process's own: in order, its begin first; the last one is as above.
  std::vector<ThreadReading> readings;
};

// What one process's calls of one kind on one file came to, from one line (FileUse).
struct FileUses {
  u32 path = 0;     // in SampleFacts::paths
  i32 process = 0;  // 0: the traced process itself
  FileCall call = FileCall::Read;
  u32 frame = 0;  // in SourceLines::frames
  u64 count = 0, bytes = 0, total_ns = 0, longest_ns = 0;
};

// What one thread's waits of one kind came to, from one line (WaitUse).
struct WaitUses {
  i32 process = 0;  // 0: the traced process itself
  i32 tid = 0;
  u32 frame = 0;  // in SourceLines::frames
  WaitFor what = WaitFor::Condition;
  u64 count = 0, total_ns = 0, longest_ns = 0;
};

struct SampleFacts {
  static constexpr std::size_t kMostSeries = 4096;      // threads and processes: each gap looks at all of them
  static constexpr std::size_t kMostPoints = 2u << 20;  // of a process; what comes after them is counted alone
  std::vector<SourceFrame> frames{{}};                  // the first: none
  std::vector<SampledThread> threads;
  std::vector<IdleLine> idle;
  u64 taken = 0, of_workers = 0, of_others = 0;  // samples in the window: of callers, workers, other threads
  u64 left_out = 0;
  // Looks at a thread that slept while a device had nothing to do before its next launch; and those that found another one meanwhile, which
  // calls CUDA as well, running.
  u64 asleep = 0, peers_ran = 0;
  // What the sidecar counted: of all of the run.
  bool collected = false;
  Nanos newest = 0;  // when a thread was looked at last; the program may go on for long after its last call
  u64 outer_part = 0, torn = 0, cpu_ns = 0;

  static constexpr std::size_t kMostHostThreads = 1u << 16;
  static constexpr std::size_t kMostReadings = 1u << 18;  // of all threads; then only each one's newest is kept
  std::vector<HostThread> host_threads;                   // of all of the run
  u64 unseen_cpu_ns =
      0;  // that the process's threads used beyond what host_threads have: short-lived ones, and the end of others
  static constexpr std::size_t kMostUses = 1u << 16;
  std::vector<std::string> paths;              // empty: not known
  std::vector<FileUses> files;                 // of all of the run
  std::vector<WaitUses> waits;                 // likewise
  u64 files_left_out = 0, waits_left_out = 0;  // calls
};

}  // namespace gputrace
