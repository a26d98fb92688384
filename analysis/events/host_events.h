// The host's side of one trace as slices: calls, operations of frameworks, NVTX ranges and marks.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <unordered_map>

#include "analysis/events/events.h"
#include "analysis/lines/sites.h"
#include "analysis/read/record_stream.h"
#include "analysis/read/tick_clock.h"

namespace gputrace {

class HostEvents {
 public:
  // `facts`: of the same trace, loaded; nullptr: it is being loaded, and slices have the numbers of frames instead of their names.
  HostEvents(const TraceReader& reader, TimeWindow window, const ProcessTrace* facts, Nanos shift, EventSink& sink);

  // The types of records that become slices.
  static TypeSet types_of(const TraceReader& reader);
  void add(const RecordStream::Span& span);
  // Ranges that were never closed end with the process, at `end`.
  void finish(Nanos end);
  u64 slices() const { return slices_; }

 private:
  struct OpenRange {
    Nanos begin = 0;
    u64 message = 0, domain = 0;
    u32 category = 0, color = 0, thread = 0;
    bool before = false;
  };
  struct ThreadState {
    Ticks last_begin = 0, last_end = 0;
    u16 last_call = 0;
    u32 frame = 0;
    std::map<u64, std::vector<OpenRange>> pushed;  // by domain
  };

  void add(const RecordHeader& record, u32 thread);
  void on_call(const RecordHeader& record, u32 thread);
  void on_operation(const Operation& value, u32 thread);
  void on_nvtx(const Nvtx& value, u32 thread);
  void close(const OpenRange& range, Nanos end, bool across, bool open);
  u32 thread_of(const RecordHeader& record, u32 lane) const;
  std::string_view site_of(u32 frame);
  void give(HostSlice& slice);

  const TraceReader& reader_;
  const TimeWindow window_;
  const ProcessTrace* const facts_;
  const Nanos shift_;
  EventSink& sink_;
  TickClock clock_;
  const std::optional<FileNames> names_;
  std::vector<ThreadState> threads_;
  std::unordered_map<u64, OpenRange> started_;  // by range id
  std::unordered_map<u32, std::string> sites_;  // by innermost frame
  Nanos newest_ = 0;
  u64 slices_ = 0;
};

}  // namespace gputrace
