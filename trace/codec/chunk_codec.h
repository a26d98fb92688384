// Payload of a chunk ⇄ bytes as they were: transform and zstd, both ways. Checksums of headers and payloads.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "base/types.h"
#include "trace/codec/restore.h"
#include "trace/file.h"

namespace gputrace {

u32 chunk_header_check(const ChunkHeader& header);
u64 chunk_checksum(const ChunkHeader& header, const u8* payload);  // header.stored_size bytes
u64 file_header_checksum(const void* header, std::size_t size);    // over all but its last 8 bytes

// Encodes payloads. Owns its contexts and scratch memory; one thread at a time.
class ChunkEncoder {
 public:
  ChunkEncoder();
  ~ChunkEncoder();
  // The stored bytes are in payload() until the next call. `records`: a chain of whole records of one thread.
  Encoding encode(const void* data, std::size_t size, bool records);
  Encoding store(const void* data, std::size_t size);  // as the bytes are
  const std::vector<u8>& payload() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Decodes payloads; one thread at a time.
class ChunkDecoder {
 public:
  ChunkDecoder();
  ~ChunkDecoder();
  // Of Encoding::TransposedZstd, for who restores records some at a time: `bytes` is what `restorer` then reads. False as decode().
  bool open(const u8* stored, std::size_t stored_size, std::size_t raw_size, std::vector<u8>& bytes,
            RecordRestorer& restorer, RecordCounts* counts);
  // Decodes to exactly `raw_size` bytes (≤ kMaxChunkRaw) in `raw`, which is 8-byte aligned and has room for them.
  // False: damaged, or a bomb; with `counts`, also what is no chain of whole records.
  bool decode(Encoding encoding, const u8* stored, std::size_t stored_size, u8* raw, std::size_t raw_size,
              RecordCounts* counts = nullptr);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace gputrace
