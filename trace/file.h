// The trace file: FileHeader, then chunks, nothing else. Append-only; readable while written; a torn tail costs only
// itself.
//
//   FileHeader | Chunk | Chunk | ...
//   Chunk: ChunkHeader, then stored_size bytes of payload, then zeros up to 8 bytes
//
//   · Every chunk carries its own length, sequence and checksums: header_check over its header (so a damaged payload
//     still tells whose records are lost, and how many) and checksum over header fields and stored payload. A reader
//     that meets a bad header looks for the next good one on an 8-byte border and goes on; it reports exactly which
//     sequences are lost.
//   · A chunk may be transformed and compressed (encoding), never reinterpreted: decoding gives, bit for bit, what the
//     producer wrote.
//   · Unknown chunk kinds are skipped and counted. A file with a newer major is refused by name; a newer minor is read.
#pragma once

#include "base/clock.h"
#include "base/types.h"
#include "trace/record.h"

namespace gputrace {

inline constexpr char kFileMagic[8] = {'G', 'P', 'U', 'T', 'R', 'A', 'C', 'E'};
inline constexpr u16 kFileMajor = 1, kFileMinor = 0;
inline constexpr u32 kChunkMagic = 0x4b435447;  // "GTCK"
inline constexpr u32 kMaxChunkRaw = 16u << 20;  // a reader refuses more before it allocates

struct FileHeader {
  char magic[8];
  u16 major;
  u16 minor;
  u32 header_size;  // bytes; the last 8 of them are the checksum, in every version
  u64 random_id;    // of the traced process: segment identity
  u64 start_time;   // its start, clock ticks after boot
  u64 pid_namespace;
  i32 pid;
  ClockKind clock;
  u8 boot_id[16];
  u64 checksum;  // XXH3-64 of the bytes before it
};

enum class ChunkKind : u16 {
  Schema = 1,    // schema text (trace/schema.h)
  Info = 2,      // "key\tvalue\n" lines about process, host and options; later ones add or replace
  Thread = 3,    // ThreadEntry[]: threads as they appear
  Records = 4,   // records of one thread, in its order; the ChunkHeader names thread and first record
  Anchors = 5,   // Anchor[]
  Health = 6,    // HealthEntry[]: counters per thread, cumulative, then the process (tid 0); newest wins
  InFlight = 7,  // InFlightEntry[]: calls open when the process ended
  End = 8,       // EndEntry: how it ended; absent when the sidecar was killed
  Counters =
      9,  // HealthEntry of the process, at one place and written anew there many times a second: what was seen by
          // then, whatever dies later. Raw; the only chunk that ever changes
};

enum class Encoding : u16 {
  Raw = 0,
  Zstd = 1,            // zstd frame of the payload
  TransposedZstd = 2,  // records transposed by trace/codec/transform.h, then zstd
};

struct ChunkHeader {
  u32 magic;
  ChunkKind kind;
  Encoding encoding;
  u64 checksum;     // XXH3-64 over the rest of this header (from `sequence` on) and the stored payload
  u64 sequence;     // 0, 1, 2 ... in the file
  u32 stored_size;  // payload bytes in the file, without the padding to 8
  u32 raw_size;     // payload bytes after decoding
  u32 slot;         // Records: the thread (slot, incarnation), as in ThreadEntry
  u32 incarnation;
  u64 first_record;  // Records: ordinal of the first one within the thread; a jump means records overwritten or lost
  u32 record_count;  // Records
  u32 header_check;  // low 32 bits of XXH3-64 over this header with checksum and header_check set to 0
  Ticks begin;  // Records: smallest begin, largest end (0 where empty); other kinds: when it was written, 0 not known
  Ticks end;
};
static_assert(sizeof(ChunkHeader) == 72);

struct ThreadEntry {
  u32 slot;
  u32 incarnation;
  i32 tid;
  u32 reserved;
  Ticks begin;
  Ticks end;  // 0: still alive
  char name[16];
};

inline constexpr u32 kProcessSlot = 0xffffffffu;     // HealthEntry of the process as a whole
inline constexpr u32 kSidecarSlot = 0xfffffffeu;     // records that the sidecar wrote itself; tid 0
inline constexpr u32 kFirstSampledFrame = 1u << 31;  // StackFrames from this number on are the sidecar's, of samples

struct HealthEntry {
  u32 slot;  // kProcessSlot: the process as a whole, threads without a slot included
  u32 incarnation;
  i32 tid;
  u32 reserved;
  u64 seen;
  u64 stored;  // records written to this file
  u64 dropped[kDropReasons];
};

struct InFlightEntry {
  u32 slot;
  u32 incarnation;
  i32 tid;
  u32 call;
  Ticks begin;
  u64 argument;
  u32 depth;  // 0 outermost
  u32 reserved;
};

// Stopped and SidecarError are read; the sidecar of this version writes neither.
enum class EndReason : u32 {
  Exited = 1,        // exit handlers ran, or the exit code is known: EndEntry::detail
  Vanished = 2,      // the process is gone, no exit handler ran, and nobody could say how: _exit, a signal
  Signalled = 3,     // its parent saw the signal: EndEntry::detail
  Executed = 4,      // replaced by exec
  Stopped = 5,       // the sidecar was asked to stop
  SidecarError = 6,  // detail: errno
};

constexpr i32 kUnknownCode = -1;  // of EndReason::Exited: nobody could read the exit code
struct EndEntry {
  EndReason reason;
  i32 detail;          // exit code, signal or errno, where known
  Nanos monotonic_ns;  // when it was found to be gone
  Nanos realtime_ns;
};

}  // namespace gputrace
