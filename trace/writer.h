// Writes one trace file: appends whole chunks, never goes back, never overwrites; but for one chunk of counters.
//   · One thread. No exception leaves it: bad allocation aside, a failure is a WriteStop.
//   · A chunk is in the file wholly or not at all, unless the writer is killed: after a failed write the file is cut
//     back to the last chunk.
//   · Room for the last chunks (kTailReserve) is kept free below the size limit, and on the disk where the file system
//     can reserve it.
#pragma once

#include <memory>
#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "base/types.h"
#include "trace/file.h"

namespace gputrace {

inline constexpr u64 kTailReserve = 256 << 10;

enum class WriteStop { None, DiskFull, SizeLimit, Error };

// Names a chunk of records.
struct RecordsOf {
  u32 slot = 0, incarnation = 0;
  u64 first_record = 0;
  u32 record_count = 0;
};

class TraceWriter {
 public:
  TraceWriter();
  ~TraceWriter();
  TraceWriter(TraceWriter&&) noexcept;
  TraceWriter& operator=(TraceWriter&&) noexcept;

  // Makes NAME in the directory (O_EXCL | O_NOFOLLOW, 0600) and writes the file header, whose magic, version, size and
  // checksum it fills in. `limit`: bytes that the file may take, 0 no limit. The error is an errno.
  static Result<TraceWriter, int> create(int directory, const std::string& name, FileHeader header, u64 limit);
  // The same on an empty file that is open for writing already.
  static Result<TraceWriter, int> start(Fd file, FileHeader header, u64 limit);

  // Goes on with a trace that another writer began, after its last whole chunk; what is behind that is cut off. `file`: open for
  // reading and writing.
  static Result<TraceWriter, int> resume(Fd file);

  // Appends a chunk of anything but records; `at`: the time it speaks of. False: not written, see stop(). Still tried
  // after a stop.
  bool append(ChunkKind kind, const void* data, std::size_t size, Ticks at = 0);
  // Appends records of one thread, whole records only, at most kMaxChunkRaw bytes. False: not written, see stop();
  // once stopped, every later call returns false at once, but for definitions (slot 0, the sidecar's own): half of the tail is theirs, since
  // what calls are about is worth more than the last calls.
  bool append_records(const RecordsOf& of, const void* data, std::size_t size);

  // A number that no chunk has: readers say that one is missing. For who copies a trace of which not all could be read.
  void leave_gap();

  // Makes room for the process's counters here, and writes them there from then on, as of `at`: one write within a page,
  // so that they are whole whenever the writer is killed. update_counters() does nothing without the room.
  bool begin_counters();
  void update_counters(const HealthEntry& process, Ticks at);

  WriteStop stop() const;
  int stop_errno() const;  // for DiskFull and Error
  u64 size() const;        // bytes of the file
  u64 chunks() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace gputrace
