// From notices to the client's buffers.
//
//   the program's threads ──add()──▶ incoming ──drain──▶ waiting (until its operation has ended) ──▶ the open buffer
//                                                                       full, or flushed ──▶ completed ──▶ the client
//
//   · add() appends under a lock that nobody holds for long; it never calls the client.
//   · Draining and calling the client is done by one worker thread, and by the thread that flushes.
//   · A record is written into a buffer only once its operation has ended. A forced flush gives the others too, with
//     the stamps that are not known yet as 0, and never again.
//   · Without a buffer from the client (NULL, too small) a record is dropped and counted.
#pragma once

#include <cstddef>
#include <cstdint>

#include "simgpu/cupti/headers.h"
#include "simgpu/driver/life/clock.h"

namespace simgpu::cupti {

// What the collector must know about a record beside its bytes.
struct RecordKind {
  Nanos known_at = 0;         // when its operation has ended, on the truth's clock; 0: it has
  bool device = false;        // drop=, zero= and late concern these
  uint32_t stream = 0;        // device records: their place when they come late
  uint16_t start_offset = 0;  // of the stamps in the record; 0: none
  uint16_t end_offset = 0;
  uint16_t completed_offset = 0;
  Nanos start = 0;
};

// Largest record that any layout has.
inline constexpr size_t kLargestRecord = 320;

void add_record(const void* bytes, size_t size, const RecordKind& kind);
// The next number for jitter and the knobs that count records.
uint64_t next_record_number();

void set_buffer_callbacks(CUpti_BuffersCallbackRequestFunc request, CUpti_BuffersCallbackCompleteFunc complete);
bool has_buffer_callbacks();
// False: called from within a callback of the client, which must not.
bool flush(bool forced);
void set_flush_period(Nanos period);  // 0: the worker's own rhythm
size_t take_dropped();
void drop(size_t records);
void start_worker();
// Ends the worker; what has not been flushed is forgotten. For cuptiFinalize.
void reset_collector();

}  // namespace simgpu::cupti
