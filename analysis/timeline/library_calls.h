// Which library call caused each kernel. One instance per trace file; one thread; one pass in the order of
// RecordStream, which per thread is the order of the calls' ends: when a library call comes, the launches nested in it
// have come already.
//
//   · A launch belongs to the innermost library call of its thread that contains it in time. What is launched at the
//     end of an NCCL group belongs to the operations of that group, in the ratio of their bytes.
//   · Device times come from the Timeline, before or after the call's end is seen, by thread and begin of the launch.
//   · Memory: 40 bytes for each of the last kKeep launches of a thread; beyond them, counted and forgotten.
#pragma once

#include <deque>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analysis/facts/library_facts.h"

namespace gputrace {

class LibraryCalls {
 public:
  static constexpr std::size_t kKeep = 256u << 10;

  LibraryCalls(std::size_t threads, LibraryFacts& facts) : facts_(facts), threads_(threads) {}

  // One call of the trace as it stands: its name is needed to tell groups from the rest.
  struct Ended {
    u32 thread = 0;
    u16 call = 0;
    std::string_view name;
    u16 result = 0;
    Nanos begin = 0, end = 0;
    bool counted = true;        // in the report's window of time
    bool first_of_call = true;  // not one more record of a call that was told already
    u32 origin = 0;             // from where it was made: number of a CallOrigin
  };

  // A launch that succeeded.
  struct Launched {
    Nanos begin = 0;
    u32 thread = 0;
    u32 kernel = 0;  // index in ProcessTrace::kernels
    bool captured = false, counted = true;
  };
  void launched(const Launched& made);
  // A library call has ended; record: what it left (Matmul ... Collective, or Call).
  void ended(const Ended& call, const RecordHeader& record);
  void communicator(const Communicator& record);
  // The kernel of that launch ran for so long.
  void executed(u32 thread, Nanos launch_begin, u64 duration);
  void finish();

 private:
  static constexpr u32 kNobody = 0xffffffffu;
  static constexpr u32 kGroupBit = 0x80000000u;

  struct Launch {
    Nanos begin = 0;
    u64 device_ns = 0;
    u32 kernel = 0;
    u32 owner = kNobody;  // row, or kGroupBit | index in groups_
    bool captured = false, counted = true, timed = false;
  };
  // One operation of several that share what was launched for them.
  struct Part {
    u32 row = 0;
    u32 instance = kNobody;  // index in facts_.collectives
    u64 weight = 0;          // bytes, or FLOPs
    bool counted = true;
  };
  // Operations and the launches made for them, until all their device times are known; then the place is free again.
  struct Group {
    std::vector<Part> parts;
    u64 device_ns = 0, launches = 0, timed = 0;
    bool open = false;  // more parts may come
  };
  struct Thread {
    std::deque<Launch> launches;
    u32 group_depth = 0;
    std::vector<Part> group;  // operations of the open NCCL group
    u32 grouped = kNobody;    // group of the grouped product that this thread told last
  };
  struct Claimed {
    u64 plain = 0, captured = 0;
  };

  void count_flops(u32 origin, const LibraryShape& shape);
  u32 row_of(u16 call, const LibraryShape& shape, u32 communicator);
  u32 communicator_of(u64 handle);
  void on_operation(const Ended& call, const RecordHeader& record);
  void on_grouped_product(const Ended& call, u32 row, u64 weight);
  u32 make_group(std::vector<Part> parts, bool open);
  void claim_for_group(Thread& thread, Nanos begin, u32 group);
  Claimed claim(Thread& thread, Nanos begin, u32 owner);
  void settle(u32 group);
  u32 first_row(u32 owner) const;
  void add_time(const Launch& launch);
  LibraryUse& use(u32 kernel, u32 row);

  LibraryFacts& facts_;
  std::vector<Thread> threads_;
  std::vector<Group> groups_;
  std::vector<u32> free_groups_;
  std::unordered_map<u64, std::vector<u32>> rows_;  // by hash of call, shape and communicator
  std::unordered_map<u64, u32> communicators_;      // by handle: the newest of that handle
  std::vector<u32> numbers_;                        // collectives so far, by communicator
  std::unordered_map<u64, u32> uses_;               // kernel << 32 | row
};

// What a record of a library call says, without addresses and handles.
LibraryShape library_shape(const RecordHeader& record);

}  // namespace gputrace
