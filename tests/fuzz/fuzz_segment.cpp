// The traced process may be broken or hostile: whatever stands in the segment, header included, the consumer ends,
// stays within the mapping, and what it gives to its sink is whole records.
//
// The input is a list of steps on a sound segment: write anything anywhere, make a block with a header that is nearly
// right, drain.
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

#include "ringbuf/consumer.h"
#include "ringbuf/segment_create.h"
#include "ringbuf/segment_view.h"
#include "tests/fuzz/input.h"

namespace {

using namespace gputrace;

struct CheckingSink final : RecordSink {
  void thread_began(const RingThread&) override {}
  void records(const RingThread&, u64, u32 count, const u8* data, u32 size) override {
    u32 at = 0, seen = 0;
    for (; at < size; ++seen) {
      RecordHeader header;
      if (size - at < sizeof header) std::abort();
      std::memcpy(&header, data + at, sizeof header);
      if (header.size < sizeof header || header.size % 8 || header.size > size - at) std::abort();
      at += header.size;
    }
    if (seen != count) std::abort();
  }
  void thread_ended(const RingThread& thread) override {
    u64 sum = thread.taken;
    for (u64 dropped : thread.dropped) sum += dropped;
    if (sum != thread.seen) std::abort();
  }
};

struct Patch {
  u16 step;
  u8 length;
  u32 offset;
};

struct BlockChoice {
  u8 block, state, slot, incarnation, sequence, first_record;
  u16 committed;
};

struct Segment {
  char* memory;
  SegmentHeader header;
};

Segment sound_segment() {
  static char* memory =
      static_cast<char*>(mmap(nullptr, kMinSegment, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  std::memset(memory, 0, kMinSegment);
  SegmentRequest request;
  request.budget = kMinSegment;
  request.schema = "record 1 Call 32 \"\"\n";
  request.schema_size = std::strlen(request.schema);
  SegmentHeader header{};
  if (!plan_segment(request, header)) std::abort();
  begin_segment(memory, header, request);
  return {memory, header};
}

void make_block(const Segment& segment, const BlockChoice& choice) {
  const u32 index = choice.block % segment.header.block_count;
  const u32 slot = choice.slot % 4;
  auto* block = reinterpret_cast<BlockHeader*>(segment.memory + segment.header.blocks_offset +
                                               u64{index} * segment.header.block_size);
  block->slot = slot;
  block->incarnation = choice.incarnation % 3;
  block->sequence = choice.sequence % 8;
  block->first_record = choice.first_record;
  block->committed = static_cast<u32>(choice.committed & ~7u) % segment.header.block_size;
  for (u32 at = 0; at + sizeof(RecordHeader) <= block->committed; at += 32) {
    const RecordHeader record{1, 32, 1, 0, 1, 2};
    std::memcpy(reinterpret_cast<char*>(block + 1) + at, &record, sizeof record);
  }
  auto* owner = reinterpret_cast<ThreadSlot*>(segment.memory + segment.header.slots_offset) + slot;
  owner->state = choice.state / 4 % 3;
  owner->incarnation = choice.incarnation % 3;
  owner->current_block = choice.state % 4 == 1 ? index : kNoBlock;
  owner->seen = owner->seen + block->committed / 32;
  auto* states = reinterpret_cast<std::atomic<u64>*>(segment.memory + segment.header.block_states_offset);
  states[index] = next_block_word(states[index], static_cast<BlockState>(choice.state % 4));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  Input input{data, size};
  const Segment segment = sound_segment();
  // The first patches come before the header is checked.
  u8 early = 0;
  input.take(&early, 1);
  Patch patch{};
  for (int i = 0; i < early % 4 && input.take(&patch, sizeof patch); ++i) {
    input.take(segment.memory + patch.offset % 512, patch.length % 9);
  }
  auto view = SegmentView::over(segment.memory, kMinSegment);
  if (!view) return 0;
  CheckingSink sink;
  Consumer consumer(view.value(), sink);
  if (!Consumer::acquire(view.value(), 1)) return 0;
  while (input.take(&patch, sizeof patch)) {
    BlockChoice choice;
    switch (patch.step % 4) {
      case 0:
        input.take(segment.memory + patch.offset % (kMinSegment - 256), patch.length);
        break;
      case 1:
      case 2:
        if (input.take(&choice, sizeof choice)) make_block(segment, choice);
        break;
      default:
        consumer.drain();
        break;
    }
  }
  (void)consumer.open_calls();
  (void)consumer.threads();
  (void)consumer.process();
  consumer.drain_last();
  return 0;
}
