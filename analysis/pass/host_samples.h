// Samples of one process in the order of the records: where each thread was between its calls, and which line the idle time of
// the devices before its launches belongs to. And the sums of which the newest record holds: of threads, files and waits.
#pragma once

#include <map>
#include <string_view>
#include <tuple>
#include <unordered_map>

#include "analysis/facts/facts.h"
#include "trace/reader.h"

namespace gputrace {

class HostSamples {
 public:
  HostSamples(const TraceReader& reader, ProcessTrace& facts);

  static bool is_sampled_frame(const StackFrame& frame) { return frame.id >= kFirstSampledFrame; }
  void frame(const StackFrame& value, std::string_view function, std::string_view file);
  void sample(const Sample& value, Nanos at, bool counted);
  void thread_use(const ThreadUse& value, Nanos at, std::string_view name);
  void file_use(const FileUse& value, std::string_view path);
  void wait_use(const WaitUse& value);
  // The thread was in a call: what was found then is no line between two. Calls of a thread come in the order of their ends.
  void called(u32 thread, Nanos begin, Nanos end) {
    if (newest_[thread] >= begin) [[unlikely]]
      mark(thread, begin, end);
  }
  // The devices' gaps are known.
  void finish();

 private:
  void add_reading(HostThread& thread);
  u32 index_of(u32 number) const;
  u32 thread_of(const Sample& value);
  SampledThread* series_of(u32 thread, i32 process, i32 tid);
  void mark(u32 thread, Nanos begin, Nanos end);
  const SampledThread* thread_to_ask(const IdleGap& gap) const;
  void tell_gap(IdleGap& gap);
  bool tell_peers(const IdleGap& gap, const SampledThread& asked);

  SampleFacts& samples_;
  ProcessTrace& facts_;
  std::unordered_map<u64, u32> threads_;             // by slot and incarnation
  std::map<std::tuple<u32, i32, i32>, u32> series_;  // by thread, process and number
  std::vector<Nanos> newest_;                        // by thread: when it was looked at last
  using Found = std::map<std::tuple<u32, bool, std::optional<WaitFor>>,
                         u64>;                           // samples by frame, whether it ran, and what it waited for
  std::map<std::pair<u32, LineOf>, Found> idle_;         // by origin
  std::unordered_map<u64, u32> paths_;                   // by text
  std::map<std::tuple<u64, i32, u32, u32>, u32> files_;  // by path, process, frame and call
  std::map<std::tuple<i32, i32, u32, u32>, u32> waits_;  // by process, thread, frame and kind
  std::unordered_map<u64, u32> uses_;                    // by process and thread: the newest of that number
  std::size_t points_ = 0, readings_ = 0;
};

}  // namespace gputrace
