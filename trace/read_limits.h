// What a trace file may make its reader hold and do, by its size. A file can say much in few bytes (a column that counts up
// compresses to nothing), so every amount that it names is held against these before the work is done; what is beyond them is
// not read, and is damage of kind TooMuch.
//   · Honest traces are below: records compress to 4 … 60 times, of a loop that only asks whether an event is done 130 times,
//     of calls of a driver that does nothing 230 times (0.3 bytes a record). Two clocks that move by a bit a record are 256.
//   · docs/decisions/0083 has the figures.
#pragma once

#include "base/types.h"

namespace gputrace {

struct ReadLimits {
  explicit constexpr ReadLimits(u64 file_bytes)
      : record_bytes((32u << 20) + 512 * file_bytes),
        open_bytes((32u << 20) + 32 * file_bytes),
        other_bytes((16u << 20) + 64 * file_bytes),
        info_bytes((4u << 20) + 2 * file_bytes),
        threads(1024 + file_bytes / 32),
        anchors(4096 + file_bytes / 8),
        open_calls(256 + file_bytes / 32),
        info_lines(4096 + file_bytes / 64),
        texts(4096 + file_bytes / 8),
        text_bytes((8u << 20) + 16 * file_bytes) {}

  u64 record_bytes;  // of records, decoded, in all
  u64 open_bytes;    // of chunks of records that are decoded at one time
  u64 other_bytes;   // of all other chunks, decoded
  u64 info_bytes;    // of those, of information
  u64 threads, anchors, open_calls, info_lines, texts, text_bytes;
};

}  // namespace gputrace
