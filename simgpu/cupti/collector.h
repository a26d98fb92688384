// From notices to the client's buffers, with the manners of NVIDIA's CUPTI.
//
//   the program's threads ──add()──▶ a place in the thread's buffer, at the launch ──▶ its stamps, when the operation has ended
//                                    full ──▶ filled ── all its operations have ended, or a forced flush ──▶ the client
//
//   · Each thread has a buffer of its own (CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER, 1 by default), else all have one. A
//     thread's last buffer counts as full when the thread ends, and goes with the worker's next round: it wakes nobody.
//   · The client is asked for a buffer on the program's own thread, in the middle of its call, and under locks of the driver's; once
//     when a kind is enabled, on the client's thread.
//   · A buffer is handed out whole: one with an operation that has not ended is withheld, full or not, by cuptiActivityFlushAll(0) too.
//     A forced flush gives it with 0 for the stamps that are not known yet, and never again.
//   · Full buffers are handed out by one worker thread, which begins with the first record; a flush hands out on its own thread.
//   · Without a buffer from the client (NULL, too small) a record is dropped and counted.
#pragma once

#include <cstddef>
#include <cstdint>

#include "simgpu/cupti/headers.h"
#include "simgpu/driver/life/clock.h"

namespace simgpu::cupti {

// What the collector must know about a record beside its bytes.
struct RecordKind {
  Nanos known_at = 0;   // when its operation has ended, on the truth's clock; 0: it has
  bool device = false;  // drop=, zero= and late concern these
  uint32_t stream = 0;  // device records: their place when they come late
  // Where the stamps are in the record, up to the first 0. They are given on the truth's clock, and put on CUPTI's when the record goes into
  // a buffer; 0 stays 0. Of device records: start, end, completed, queued, submitted.
  uint16_t stamps[5] = {};
  Nanos start = 0;
};

// Largest record that any layout has.
inline constexpr size_t kLargestRecord = 320;

void add_record(const void* bytes, size_t size, const RecordKind& kind);
// The next number for jitter and the knobs that count records.
uint64_t next_record_number();

void set_buffer_callbacks(CUpti_BuffersCallbackRequestFunc request, CUpti_BuffersCallbackCompleteFunc complete);
bool has_buffer_callbacks();
// Asks the client for a buffer for this thread if it has none.
void want_buffer();
// A buffer for each thread, or one for all. What is open stays where it is.
void set_per_thread(bool each);
bool per_thread();
// False: called from within a callback of the client, which must not.
bool flush(bool forced);
void set_flush_period(Nanos period);  // 0: the worker's own rhythm
size_t take_dropped();
void drop(size_t records);
// Ends the worker; what has not been flushed is forgotten. For cuptiFinalize.
void reset_collector();

}  // namespace simgpu::cupti
