// The collector's thread as a producer: a slot and a ring like any other thread's, but it may wait for room.
#pragma once

#include "base/types.h"
#include "ringbuf/producer.h"

namespace gputrace {

class DeviceRing {
 public:
  // The calling thread becomes untraced for good and a thread of the session under its own state.
  void join(u64 generation);
  // Hands over the block and ends the slot. On the thread that joined.
  void leave();
  // Fills header.begin and header.end. False: there was no room for a bounded time; dropped and counted.
  bool write(RecordHeader& record);
  // The same for a record whose header says already when it was.
  bool write_stamped(const RecordHeader& record);

 private:
  bool wait_for_room(u32 size);
  void make_room(u32 size);
  bool put(const RecordHeader& record);

  ThreadState state_{};
  u64 generation_ = 0;
  bool patient_ = true;  // false: nobody drains; no more waiting until there is room again
  Nanos next_look_ = 0;
  Nanos next_death_look_ = 0;  // whether threads have ended that still hold room
};

}  // namespace gputrace
