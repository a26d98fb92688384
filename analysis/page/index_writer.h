// Writes the index of a run's events while the run is loaded.
//
//   process ──▶ its devices' side, its threads' side: blocks that are being filled ──▶ the file (each at a place of its own: nobody waits)
//   finish: names, lines and devices get their numbers in the run; the strips' pieces begin at its origin
//
//   · Where the run begins and how long it is, is not known before it is loaded: strips have finer pieces than are likely to be wanted, and
//     are made anew from the events where these do not fit.
//   · Each side is of one thread at a time.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "analysis/events/events.h"
#include "analysis/events/run_outline.h"
#include "analysis/load.h"
#include "analysis/page/event_index.h"

namespace gputrace {

// The file that all sides write to.
class IndexFile {
 public:
  IndexFile(Fd file, u64 most_bytes) : file_(std::move(file)), most_bytes_(most_bytes) {}

  // Where the bytes lie; or failed() from now on.
  u64 write(const std::string& bytes);
  void fail() { failed_.store(true, std::memory_order_relaxed); }
  bool failed() const { return failed_.load(std::memory_order_relaxed); }
  Fd take() { return std::move(file_); }

 private:
  Fd file_;
  const u64 most_bytes_;
  std::atomic<u64> next_{0};
  std::atomic<bool> failed_{false};
};

class EventIndexWriter : public EventSinks {
 public:
  // Into `file`, which is empty and open for reading too. More than `most_bytes` it does not write: then it has failed.
  EventIndexWriter(const RunClock& clock, Fd file, u64 most_bytes);
  ~EventIndexWriter() override;

  EventSink* sink(std::size_t file, const ExportProcess& process) override;
  // After the load: what can be picked from. `files`: of the request. Nothing: it has failed.
  std::optional<EventIndex> finish(const LoadedRun& run, const std::vector<std::string>& files);

 private:
  class Side;
  class Process;

  void widen(EventDirectory::Block& block, const EventStrip& wanted, Nanos origin) const;

  const EventStrip fine_;
  IndexFile file_;
  std::mutex mutex_;                                 // guards processes_
  std::vector<std::unique_ptr<Process>> processes_;  // by file
};

// Whether a folder has room for so much, and as much again.
bool has_space(const std::string& folder, u64 bytes);
// A file without a name in /tmp, which goes when it is closed. Nothing: there is no room for so much.
Fd unnamed_file(u64 bytes);
// What an index may have, of traces of so many bytes: some 4 bytes an event are 80 % of them.
inline u64 most_bytes_of_index(u64 trace_bytes) { return trace_bytes + (16 << 20); }

struct IndexedRun {
  LoadedRun run;
  std::optional<EventIndex> index;  // nothing: it could not be written
};
// load_run(), and the index of its events in `file` from the same reading of the traces.
Result<IndexedRun, InputError> load_with_index(const LoadRequest& request, Fd file, u64 most_bytes);

}  // namespace gputrace
