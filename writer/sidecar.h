// The sidecar: drains one segment into one trace file until the traced process is gone, then ends by itself.
//   · Writes to nothing but the segment's consumer words, the trace and its log. Never signals anybody.
//   · Whatever happens to the file, it keeps draining and counting.
#pragma once

#include <memory>
#include <string>

#include "base/fd.h"
#include "base/types.h"
#include "writer/code/scanner.h"
#include "writer/code/watch.h"
#include "writer/host.h"
#include "writer/log.h"
#include "writer/process_info.h"
#include "writer/process_watch.h"
#include "writer/run_notes.h"
#include "writer/sample/host_table_watch.h"
#include "writer/sample/process_tree.h"
#include "writer/sample/sampler.h"
#include "writer/sample/thread_watch.h"
#include "writer/trace_sink.h"

namespace gputrace {

inline constexpr u64 kDefaultMaxSize = 10ull << 30;

// What a trace of that process begins with; the writer fills in the rest.
FileHeader file_header(const SegmentHeader& segment);

class Sidecar {
 public:
  // `process`: a pidfd of the traced process, or empty.
  Sidecar(Fd segment, Fd process, Environment environment, char** variables);

  // Returns the exit code: 0, or 1 where there was nothing to drain.
  int run();

 private:
  bool open_trace(const SegmentView& segment);
  void begin(const SegmentView& segment);
  void start_scanner(const SegmentView& segment);
  void take_scan(const RecordHeader& record);
  ProcessWatch::State follow();
  void open_ring_file();
  void remove_ring_file();
  void write_held();
  void finish(ProcessWatch::State how);
  void say_stop();
  void look_at_user();
  void say_unwritable(const OutputError& error);
  std::string why_never_open() const;
  EndEntry how_it_ended(ProcessWatch::State how) const;
  Nanos next_pause(Nanos pause, u64 bytes) const;
  Nanos next_look() const;
  void look();
  ProcessWatch::State wait(Nanos length);

  Fd segment_fd_, process_fd_;
  Fd ring_directory_;  // where the segment is a file
  std::string ring_name_;
  Environment environment_;
  char** variables_;
  Log log_;
  RunNotes notes_;
  bool run_started_it_ = false;  // `gputrace run` is the traced process's parent, and will say how it ended
  InfoLines info_;
  OutputNames names_;
  OutputDirectory directory_;
  std::string trace_path_;
  ClockKind clock_ = ClockKind::Monotonic;
  std::unique_ptr<TraceSink> sink_;
  // Where machine code is collected. The watch stands between the consumer and the sink.
  std::unique_ptr<CodeScanner> scanner_;
  std::unique_ptr<CodeWatch> watch_code_;
  std::unique_ptr<Consumer> consumer_;
  std::unique_ptr<ProcessWatch> watch_;
  std::unique_ptr<ProcessTree> tree_;           // where Python lines are collected
  std::unique_ptr<Sampler> sampler_;            // likewise, of an interpreter that is known
  std::unique_ptr<ThreadWatch> thread_watch_;   // likewise
  std::unique_ptr<HostTableWatch> host_table_;  // where file calls or waits are
  bool said_stop_ = false;
  bool user_given_up_ = false;
};

}  // namespace gputrace
