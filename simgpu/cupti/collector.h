// From notices to the client's buffers.
//
//   the program's threads ──add()──▶ incoming ──drain──▶ waiting (until its operation has ended) ──▶ the open buffer
//                                                                       full, or flushed ──▶ completed ──▶ the client
//
//   · add() appends under a lock that nobody holds for long; it never calls the client.
//   · Draining and calling the client is done by one worker thread, and by the thread that flushes.
//   · A record is written into a buffer only once its operation has ended. A forced flush gives the others too, with
//     the stamps that are not known yet as 0, and never again.
//   · The first buffer is asked for when a kind is enabled, and the next one by whoever leaves a recorded call and finds none open (clients
//     look at whether they were asked to know whether anything was recorded); else by whoever drains.
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
// Asks the client for a buffer where none is open. On the client's own threads, and under none of the driver's locks.
void want_buffer();
// False: called from within a callback of the client, which must not.
bool flush(bool forced);
void set_flush_period(Nanos period);  // 0: the worker's own rhythm
size_t take_dropped();
void drop(size_t records);
void start_worker();
// Ends the worker; what has not been flushed is forgotten. For cuptiFinalize.
void reset_collector();

}  // namespace simgpu::cupti
