// A segment as the consumer sees it: mapped with Boost.Interprocess from a descriptor that somebody else made, its
// layout checked once.
//   · The header is copied before it is checked, and only the copy is used afterwards: the producer cannot change the
//     layout under us.
//   · After map() every offset below lies within the mapping, whatever the producer writes later.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "base/result.h"
#include "base/types.h"
#include "ringbuf/segment.h"

namespace gputrace {

class SegmentView {
 public:
  // Maps the segment of a memfd or of a plain file; the descriptor stays the caller's. The error is one line.
  static Result<SegmentView, std::string> map(int fd);
  // A segment in memory of the caller's, 64-byte aligned (tests, fuzzing).
  static Result<SegmentView, std::string> over(void* memory, u64 size);

  const SegmentHeader& header() const { return header_; }  // the private copy
  // Processes that are forked from here on do not have the mapping.
  void keep_from_children() const;
  SegmentControl& control() const { return *reinterpret_cast<SegmentControl*>(base_ + header_.control_offset); }
  // Copies of the texts at the time of the call.
  std::string schema_text() const { return {base_ + header_.text_offset, header_.schema_size}; }
  std::string info_text() const { return {base_ + header_.text_offset + header_.schema_size, header_.info_size}; }

  ThreadSlot& slot(u32 index) const { return reinterpret_cast<ThreadSlot*>(base_ + header_.slots_offset)[index]; }
  std::atomic<u64>& state(u32 block) const {
    return reinterpret_cast<std::atomic<u64>*>(base_ + header_.block_states_offset)[block];
  }
  BlockHeader& block(u32 index) const {
    return *reinterpret_cast<BlockHeader*>(base_ + header_.blocks_offset + u64{index} * header_.block_size);
  }
  const u8* records(u32 block_index) const { return reinterpret_cast<const u8*>(&block(block_index) + 1); }
  // nullptr: there is none.
  const char* host_table() const { return header_.host_table_size ? base_ + header_.host_table_offset : nullptr; }
  u32 block_capacity() const { return header_.block_size - static_cast<u32>(sizeof(BlockHeader)); }

 private:
  SegmentView() = default;

  std::shared_ptr<void> mapping_;  // keeps the Boost region
  char* base_ = nullptr;
  SegmentHeader header_{};
};

}  // namespace gputrace
