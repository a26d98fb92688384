#include "trace/codec/chunk_codec.h"

#include <zstd.h>

#include <cstring>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "trace/codec/restore.h"

namespace gputrace {
namespace {

// Below 0 what stays of bytes when repetitions are taken out is kept as it is. Level 1 gives it a code of its own (Huffman): files are 4 to
// 10 % smaller then, and take 1.1 to 3 times as long to write and up to 3.6 times as long to read (docs/decisions/0162).
constexpr int kLevel = -1;
constexpr std::size_t kMinCompress = 128;  // below that a frame costs more than it saves

}  // namespace

u32 chunk_header_check(const ChunkHeader& header) {
  ChunkHeader copy = header;
  copy.checksum = 0;
  copy.header_check = 0;
  return static_cast<u32>(XXH3_64bits(&copy, sizeof copy));
}

u64 chunk_checksum(const ChunkHeader& header, const u8* payload) {
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  XXH3_64bits_update(&state, &header.sequence, sizeof header - offsetof(ChunkHeader, sequence));
  XXH3_64bits_update(&state, payload, header.stored_size);
  return XXH3_64bits_digest(&state);
}

u64 file_header_checksum(const void* header, std::size_t size) { return XXH3_64bits(header, size - 8); }

struct ChunkEncoder::State {
  ZSTD_CCtx* context = ZSTD_createCCtx();
  TransformScratch scratch;
  std::vector<u8> transformed;
  std::vector<u8> stored;
  ~State() { ZSTD_freeCCtx(context); }
};

ChunkEncoder::ChunkEncoder() : state_(std::make_unique<State>()) {}
ChunkEncoder::~ChunkEncoder() = default;
const std::vector<u8>& ChunkEncoder::payload() const { return state_->stored; }

Encoding ChunkEncoder::store(const void* data, std::size_t size) {
  const u8* bytes = static_cast<const u8*>(data);
  state_->stored.assign(bytes, bytes + size);
  return Encoding::Raw;
}

Encoding ChunkEncoder::encode(const void* data, std::size_t size, bool records) {
  State& s = *state_;
  const u8* bytes = static_cast<const u8*>(data);
  if (size >= kMinCompress && s.context) {
    s.transformed.clear();
    const bool transposed = records && transform_records(bytes, size, s.scratch, s.transformed);
    const u8* from = transposed ? s.transformed.data() : bytes;
    const std::size_t from_size = transposed ? s.transformed.size() : size;
    s.stored.resize(ZSTD_compressBound(from_size));
    const std::size_t stored = ZSTD_compressCCtx(s.context, s.stored.data(), s.stored.size(), from, from_size, kLevel);
    if (!ZSTD_isError(stored) && stored < size) {
      s.stored.resize(stored);
      return transposed ? Encoding::TransposedZstd : Encoding::Zstd;
    }
  }
  s.stored.assign(bytes, bytes + size);
  return Encoding::Raw;
}

struct ChunkDecoder::State {
  ZSTD_DCtx* context = ZSTD_createDCtx();
  RecordRestorer restorer;
  std::vector<u8> transformed;
  ~State() { ZSTD_freeDCtx(context); }
};

ChunkDecoder::ChunkDecoder() : state_(std::make_unique<State>()) {}
ChunkDecoder::~ChunkDecoder() = default;

bool ChunkDecoder::decode(Encoding encoding, const u8* stored, std::size_t stored_size, u8* raw, std::size_t raw_size,
                          RecordCounts* counts) {
  State& s = *state_;
  if (raw_size > kMaxChunkRaw || !s.context) return false;
  switch (encoding) {
    case Encoding::Raw:
      if (stored_size != raw_size) return false;
      if (raw_size) std::memcpy(raw, stored, raw_size);
      return !counts || count_records(raw, raw_size, *counts);
    case Encoding::Zstd: {
      const std::size_t got = ZSTD_decompressDCtx(s.context, raw, raw_size, stored, stored_size);
      return !ZSTD_isError(got) && got == raw_size && (!counts || count_records(raw, raw_size, *counts));
    }
    case Encoding::TransposedZstd:
      if (!open(stored, stored_size, raw_size, s.transformed, s.restorer, counts)) return false;
      s.restorer.next(raw, s.restorer.left(), counts ? counts->pieces : nullptr);
      return true;
  }
  return false;
}

bool ChunkDecoder::open(const u8* stored, std::size_t stored_size, std::size_t raw_size, std::vector<u8>& bytes,
                        RecordRestorer& restorer, RecordCounts* counts) {
  if (raw_size > kMaxChunkRaw || !state_->context) return false;
  const unsigned long long size = ZSTD_getFrameContentSize(stored, stored_size);
  if (size == ZSTD_CONTENTSIZE_UNKNOWN || size == ZSTD_CONTENTSIZE_ERROR || size > transformed_bound(raw_size))
    return false;
  if (bytes.size() < size) bytes.resize(size);
  const std::size_t got = ZSTD_decompressDCtx(state_->context, bytes.data(), size, stored, stored_size);
  return !ZSTD_isError(got) && got == size && restorer.open(bytes.data(), size, raw_size, counts);
}

}  // namespace gputrace
