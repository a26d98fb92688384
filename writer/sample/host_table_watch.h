// What libgputrace-host.so counted in the segment's table (ringbuf/host_table.h), as records: FileUse and WaitUse, each again when it
// has grown, every few seconds and at the end; the newest one holds.
#pragma once

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/clock.h"
#include "ringbuf/host_table.h"
#include "ringbuf/segment_view.h"
#include "writer/process_info.h"
#include "writer/trace_sink.h"

namespace gputrace {

class HostTableWatch {
 public:
  // Of a segment that has a table. Both outlive this.
  HostTableWatch(const SegmentView& segment, TraceSink& sink);

  Nanos next() const { return next_; }  // CLOCK_MONOTONIC
  void look();
  // What became of it, for the trace; once, at the end.
  InfoLines result() const;

 private:
  template <typename Sum>
  const Sum* sums(u64 at) const {
    return reinterpret_cast<const Sum*>(table_ + at);
  }
  i32 other(u32 process) const { return static_cast<i32>(process) == process_ ? 0 : static_cast<i32>(process); }
  void write_file(const FileSum& sum, Ticks now);
  void write_wait(const WaitSum& sum, Ticks now);
  u64 path_of(u32 number, Ticks now);

  const char* const table_;
  const HostTableLayout layout_;
  const i32 process_;
  const ClockKind clock_;
  TraceSink& sink_;
  std::vector<u64> files_, waits_;  // counts that were written
  std::unordered_set<u64> paths_;   // ids of texts that were
  Nanos next_ = 0;
};

}  // namespace gputrace
