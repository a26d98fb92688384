// Where the ranks of one communicator meet: a memory file that all of them have open, whose first part is mapped. It
// belongs to no process: whoever has the id opens it as /proc/PID/fd/N of its maker, and nothing is left behind when
// the last rank is gone.
//   · Each rank writes its own line, and its own side of its pairs; the others only read those.
//   · Bytes travel through the file itself (pread, pwrite): what is sent is kept apart from the sender's memory, which
//     may change as soon as its kernel has ended.
//   · Positions count up for ever, two places are used in turn; "published" and the like are released after the place
//     is written and acquired before it is read.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "simgpu/libs/nccl/types.h"

namespace simlibs {

// What an ncclUniqueId holds.
struct MeetingId {
  uint64_t magic = 0, secret = 0;
  int32_t pid = 0, file = -1;
};
static_assert(sizeof(MeetingId) <= NCCL_UNIQUE_ID_BYTES);

enum class RankState : uint32_t { Absent, Present, Left, Aborted };

// One side of an operation: when the rank came to it, and what it wants.
struct Posting {
  uint64_t start = 0;  // CLOCK_MONOTONIC, ns
  uint64_t bytes = 0;
  uint64_t what = 0;  // kind, type, reduction and root of a collective
};
struct SplitPosting {
  int32_t color = 0, key = 0;
  MeetingId meeting;  // made by this rank, for its color if it comes first there
};
struct alignas(512) RankLine {
  std::atomic<RankState> state;
  int32_t pid, device;
  std::atomic<uint64_t> published;  // collectives
  Posting collective[2];
  std::atomic<uint64_t> splits;
  SplitPosting split[2];
};
// From one rank to another. `sent` and `acknowledged` are the sender's, the others the receiver's.
struct alignas(128) Pair {
  std::atomic<uint64_t> sent, acknowledged, awaited, consumed;
  Posting send[2], receive[2];
};

class Meeting {
 public:
  // A new file, kept open by this process under the id until it is forgotten.
  static bool make(MeetingId& id);
  static void forget(const MeetingId& id);
  // Null: the id is of no meeting (errno says why). Does not announce the rank.
  static std::unique_ptr<Meeting> open(const MeetingId& id, int rank, int ranks);
  ~Meeting();
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  bool announce(int device);    // false: another has this rank already
  bool complete();              // all ranks have been announced
  void leave(RankState state);  // Left or Aborted
  bool lost_rank();             // one that has neither left nor lives

  RankLine& line(int rank) { return lines_[rank]; }
  RankLine& own() { return lines_[rank_]; }
  Pair& pair(int from, int to) {
    return pairs_[static_cast<size_t>(from) * static_cast<size_t>(ranks_) + static_cast<size_t>(to)];
  }

  // The bytes of a collective's and a pair's places. False: no such memory (EFAULT) or no room.
  bool write_collective(uint64_t position, const void* data, size_t bytes);
  bool read_collective(int rank, uint64_t position, size_t offset, void* data, size_t bytes);
  void forget_collective(uint64_t position, size_t bytes);  // no rank will read it again
  bool write_message(int to, uint64_t position, const void* data, size_t bytes);
  bool read_message(int from, uint64_t position, void* data, size_t bytes);
  void forget_message(int from, uint64_t position, size_t bytes);

 private:
  Meeting(int file, int rank, int ranks, void* mapped, size_t bytes);
  void watch(int rank);

  int file_, rank_, ranks_;
  void* mapped_;
  size_t mapped_bytes_;
  RankLine* lines_;
  Pair* pairs_;
  std::atomic<bool> complete_{false};
  std::mutex mutex_;          // guards watched_
  std::vector<int> watched_;  // by rank: a descriptor of its process; -1: not yet, or none to be had
};

}  // namespace simlibs
