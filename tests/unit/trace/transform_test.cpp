// The transform and the codec: what comes out is, bit for bit, what went in; what did not come from them is refused.
#include "trace/codec/transform.h"

#include <zstd.h>

#include "tests/unit/trace/helpers.h"
#include "trace/codec/chunk_codec.h"
#include "trace/codec/restore.h"

namespace gputrace::test {
namespace {

Bytes8 round_trip(const Bytes8& records, Encoding* used = nullptr, std::size_t* stored = nullptr) {
  ChunkEncoder encoder;
  ChunkDecoder decoder;
  const Encoding encoding = encoder.encode(records.data(), records.size(), true);
  if (used) *used = encoding;
  if (stored) *stored = encoder.payload().size();
  std::vector<u64> raw(records.size() / 8 + 1);
  EXPECT_TRUE(decoder.decode(encoding, encoder.payload().data(), encoder.payload().size(),
                             reinterpret_cast<u8*>(raw.data()), records.size()));
  const u8* bytes = reinterpret_cast<const u8*>(raw.data());
  return Bytes8(bytes, bytes + records.size());
}

TEST(Transform, GivesBackEveryRecordTypeBitForBit) {
  for (u32 type = 0; type < kRecordSchemaCount; ++type) {
    const RecordSchema& schema = kRecordSchemas[type];
    Random random(type);
    Bytes8 records;
    for (u32 i = 0; i < 500; ++i) {
      Bytes8 record(schema.size);
      for (u8& byte : record) byte = static_cast<u8>(random());
      const RecordHeader header{schema.type, schema.size, static_cast<u16>(random()), static_cast<u16>(random()),
                                random(),    random()};
      std::memcpy(record.data(), &header, sizeof header);
      records.insert(records.end(), record.begin(), record.end());
    }
    EXPECT_EQ(round_trip(records), records) << schema.name;
  }
}

TEST(Transform, GivesBackMixedRecordsOfEverySize) {
  Random random(7);
  for (u32 count : {0u, 1u, 2u, 3u, 255u, 256u, 257u, 511u, 513u, 4000u}) {
    Bytes8 records;
    u64 ticks = random();
    for (u32 i = 0; i < count; ++i) append_random_record(records, random, ticks);
    EXPECT_EQ(round_trip(records), records) << count;
    EXPECT_EQ(count_records(records.data(), records.size()), static_cast<i64>(count));
  }
}

// However many are asked for at a time, they are the same records, and each time the pieces tell which of them are wanted.
TEST(Transform, GivesBackRecordsSomeAtATime) {
  Random random(11);
  Bytes8 records;
  u64 ticks = random();
  for (u32 i = 0; i < 3000; ++i) append_random_record(records, random, ticks);
  TransformScratch scratch;
  Bytes8 transformed;
  ASSERT_TRUE(transform_records(records.data(), records.size(), scratch, transformed));
  RecordPieces pieces;
  pieces.types.add(static_cast<u16>(RecordType::Call));
  RecordRestorer restorer;
  for (const u32 at_once : {1u, 2u, 15u, 16u, 17u, 255u, 256u, 257u, 1000u, 5000u}) {
    RecordCounts counts;
    ASSERT_TRUE(restorer.open(transformed.data(), transformed.size(), records.size(), &counts));
    EXPECT_EQ(counts.records, 3000u);
    Bytes8 back;
    std::vector<u64> room(std::size_t{std::min(at_once, 3000u)} * restorer.largest() / 8);
    u8* const out = reinterpret_cast<u8*>(room.data());
    for (u32 left = restorer.left(); left != 0; left = restorer.left()) {
      pieces.all.clear();
      const std::size_t size = restorer.next(out, at_once, &pieces);
      ASSERT_EQ(left - restorer.left(), std::min(at_once, left));
      u32 told = 0, wanted = 0, there = 0;
      for (const RecordPieces::Piece& piece : pieces.all) told += piece.records, wanted += piece.wanted * piece.records;
      for (std::size_t at = 0; at < size; at += reinterpret_cast<const RecordHeader*>(out + at)->size)
        there += pieces.types.has(reinterpret_cast<const RecordHeader*>(out + at)->type);
      ASSERT_EQ(told, std::min(at_once, left));
      ASSERT_EQ(wanted, there);
      ASSERT_EQ(pieces.all.back().end, size);
      back.insert(back.end(), out, out + size);
    }
    EXPECT_TRUE(back == records) << at_once;
  }
}

TEST(Transform, TakesExtremesOfTime) {
  Bytes8 records;
  for (const auto& [begin, end] :
       {std::pair<u64, u64>{0, 0}, {~0ull, 0}, {0, ~0ull}, {1ull << 63, (1ull << 63) - 1}, {5, 3}}) {
    Call call{};
    call.header = {static_cast<u16>(RecordType::Call), sizeof call, 1, 0, begin, end};
    call.object = begin ^ end;
    const u8* bytes = reinterpret_cast<const u8*>(&call);
    for (int i = 0; i < 8; ++i) records.insert(records.end(), bytes, bytes + sizeof call);
  }
  Encoding used{};
  EXPECT_EQ(round_trip(records, &used), records);
  EXPECT_EQ(used, Encoding::TransposedZstd);
}

// Whatever the encoding: pieces follow each other to the end, and none mixes what is wanted with what is not.
TEST(Transform, TellsThePiecesOfWantedTypes) {
  Random random(17);
  Bytes8 records;
  u64 ticks = 1;
  for (u32 i = 0; i < 3000; ++i) {
    if (i % 1000 == 500) {
      for (u32 k = 0; k < 200; ++k) {
        DeviceApi key{};
        key.header = {static_cast<u16>(RecordType::DeviceApi), sizeof key, 0, 0, ticks + random() % 50, ticks};
        const u8* bytes = reinterpret_cast<const u8*>(&key);
        records.insert(records.end(), bytes, bytes + sizeof key);
      }
    }
    append_random_record(records, random, ticks);
  }
  RecordPieces pieces;
  pieces.types.add(static_cast<u16>(RecordType::DeviceApi));
  pieces.types.add(static_cast<u16>(RecordType::DeviceKernel));
  for (const bool transposed : {true, false}) {
    ChunkEncoder encoder;
    ChunkDecoder decoder;
    const Encoding encoding = encoder.encode(records.data(), records.size(), transposed);
    ASSERT_EQ(encoding, transposed ? Encoding::TransposedZstd : Encoding::Zstd);
    std::vector<u64> raw(records.size() / 8 + 1);
    u8* const out = reinterpret_cast<u8*>(raw.data());
    RecordCounts counts;
    counts.pieces = &pieces;
    pieces.all.clear();
    ASSERT_TRUE(
        decoder.decode(encoding, encoder.payload().data(), encoder.payload().size(), out, records.size(), &counts));
    u32 at = 0, number = 0;
    for (const RecordPieces::Piece& piece : pieces.all) {
      ASSERT_EQ(piece.begin, at);
      u64 newest = 0;
      u32 count = 0;
      for (; at < piece.end; ++count) {
        RecordHeader header;
        std::memcpy(&header, out + at, sizeof header);
        EXPECT_EQ(pieces.types.has(header.type), piece.wanted);
        newest = std::max({newest, header.begin, header.end});
        at += header.size;
      }
      EXPECT_EQ(count, piece.records);
      if (piece.wanted) {
        EXPECT_EQ(newest, piece.newest);
        EXPECT_LE(count, RecordPieces::kLongest);
      }
      number += count;
    }
    EXPECT_EQ(at, records.size());
    EXPECT_EQ(number, counts.records);
    EXPECT_GT(pieces.all.size(), 10u);
  }
}

TEST(Transform, FallsBackWhereClassesAreMany) {
  Bytes8 records;
  for (u16 size = 24, end = 24 + 8 * 100; size < end; size += 8) {
    Bytes8 record(size);
    const RecordHeader header{900, size, 0, 0, 1, 2};
    std::memcpy(record.data(), &header, sizeof header);
    records.insert(records.end(), record.begin(), record.end());
  }
  Encoding used{};
  EXPECT_EQ(round_trip(records, &used), records);
  EXPECT_EQ(used, Encoding::Zstd);
}

TEST(Transform, PacksLaunchesIntoSixteenBytes) {
  Random random(3);
  Bytes8 records;
  u64 now = 123456789012345;
  for (u32 i = 0; i < 10000; ++i) {
    KernelLaunch launch{};
    const u64 begin = now += 3000 + random() % 9000;
    now += 4000 + random() % 4000;
    launch.header = {static_cast<u16>(RecordType::KernelLaunch), sizeof launch, 33, 0, begin, now};
    const u32 function = static_cast<u32>(random() % 40);
    launch.function = 0x55a000000000 + function * 272;
    launch.stream = 0x55b012345670 + random() % 4 * 800;
    launch.context = 0x55c000001230;
    launch.grid_x = 64 * (1 + function % 9);
    launch.block_x = 256;
    launch.grid_y = launch.grid_z = launch.block_y = launch.block_z = 1;
    const u8* bytes = reinterpret_cast<const u8*>(&launch);
    records.insert(records.end(), bytes, bytes + sizeof launch);
  }
  std::size_t stored = 0;
  EXPECT_EQ(round_trip(records, nullptr, &stored), records);
  EXPECT_LE(static_cast<double>(stored) / 10000, 16.0);
}

TEST(Codec, RandomBytesNeverDecodeBeyondTheirRoom) {
  Random random(11);
  ChunkDecoder decoder;
  std::vector<u64> raw(4096 / 8 + 2);
  u64 accepted = 0;
  for (u32 i = 0; i < 20000; ++i) {
    Bytes8 junk(random() % 300);
    for (u8& byte : junk) byte = static_cast<u8>(random());
    raw[4096 / 8] = 0x1122334455667788;
    accepted +=
        decoder.decode(Encoding::TransposedZstd, junk.data(), junk.size(), reinterpret_cast<u8*>(raw.data()), 4096);
    ASSERT_EQ(raw[4096 / 8], 0x1122334455667788u);
  }
  EXPECT_EQ(accepted, 0u);
}

// The transformed bytes are what a hostile file chooses freely, behind a right checksum and a right zstd frame.
TEST(Codec, DamagedTransformsAreRefusedOrGiveChains) {
  Random random(13);
  Bytes8 records;
  u64 ticks = 1;
  for (u32 i = 0; i < 300; ++i) append_random_record(records, random, ticks);
  TransformScratch scratch;
  RecordRestorer restorer;
  Bytes8 transformed;
  ASSERT_TRUE(transform_records(records.data(), records.size(), scratch, transformed));
  std::vector<u64> raw(records.size() / 8 + 2);
  u8* out = reinterpret_cast<u8*>(raw.data());
  for (u32 i = 0; i < 30000; ++i) {
    Bytes8 damaged = transformed;
    for (u32 flips = 1 + random() % 3; flips; --flips)
      damaged[random() % (i % 2 ? 600 : damaged.size())] = static_cast<u8>(random());
    if (i % 5 == 0) damaged.resize(random() % damaged.size());
    raw.back() = 99;
    if (restorer.open(damaged.data(), damaged.size(), records.size())) {
      std::size_t size = 0;
      while (restorer.left()) size += restorer.next(out + size, i % 2 ? 300 : 1 + random() % 100, nullptr);
      ASSERT_EQ(size, records.size());
      ASSERT_GE(count_records(out, records.size()), 0);
    }
    ASSERT_EQ(raw.back(), 99u);
  }
}

TEST(Codec, BombsAreRefusedBeforeTheyGrow) {
  const Bytes8 zeros(256 << 20);
  Bytes8 bomb(ZSTD_compressBound(zeros.size()));
  bomb.resize(ZSTD_compress(bomb.data(), bomb.size(), zeros.data(), zeros.size(), 1));
  ASSERT_LT(bomb.size(), 64u << 10);
  ChunkDecoder decoder;
  std::vector<u64> raw(kMaxChunkRaw / 8);
  u8* out = reinterpret_cast<u8*>(raw.data());
  EXPECT_FALSE(decoder.decode(Encoding::Zstd, bomb.data(), bomb.size(), out, kMaxChunkRaw));
  EXPECT_FALSE(decoder.decode(Encoding::TransposedZstd, bomb.data(), bomb.size(), out, kMaxChunkRaw));
  EXPECT_FALSE(decoder.decode(Encoding::Raw, bomb.data(), bomb.size(), out, zeros.size()));
}

}  // namespace
}  // namespace gputrace::test
