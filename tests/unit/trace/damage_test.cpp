// Files cut at every byte, with every bit flipped, with chunks doubled, swapped, missing and zeroed: what is lost is
// said, and nothing else.
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

#include "tests/unit/trace/helpers.h"
#include "trace/codec/chunk_codec.h"

namespace gputrace::test {
namespace {

// Offsets of the chunks of a good file.
std::vector<u64> chunk_offsets(const Bytes8& file) {
  std::vector<u64> offsets;
  for (u64 at = sizeof(FileHeader); at < file.size();) {
    offsets.push_back(at);
    ChunkHeader header;
    std::memcpy(&header, file.data() + at, sizeof header);
    at += align_up(sizeof header + header.stored_size, 8);
  }
  return offsets;
}

u64 lost_records(const TraceReader& trace) {
  u64 lost = 0;
  for (const Damage& damage : trace.damage()) lost += damage.records;
  return lost;
}

// Whatever a file holds: what it gives is a part of what was written, in order, and seen = stored + dropped.
void expect_honest(const TraceReader& trace, const std::map<u64, Bytes8>& expected) {
  for (const auto& [key, bytes] : read_everything(trace).records) {
    const auto whole = expected.find(key);
    ASSERT_NE(whole, expected.end());
    ASSERT_LE(bytes.size(), whole->second.size());
  }
  for (const ThreadInfo& thread : trace.threads())
    ASSERT_EQ(thread.counters.seen, thread.counters.stored + dropped_sum(thread.counters));
  ASSERT_EQ(trace.conservation().seen, trace.conservation().stored + dropped_sum(trace.conservation()));
}

// A terabyte that nobody wrote, behind the chunks and between them: it is passed over, said, and no measure of what the file may cost.
TEST(TraceDamage, HolesAreNotRead) {
  TemporaryDirectory directory;
  const std::string path = directory.file("whole"), sparse = directory.file("sparse");
  const auto expected = expected_records(write_sample(path, 1, 6, false));
  const Bytes8 whole = read_file(path);
  const auto offsets = chunk_offsets(whole);
  constexpr u64 kHole = 1ull << 40;
  const u64 cut = offsets[offsets.size() - 2];
  write_file(sparse, Bytes8(whole.begin(), whole.begin() + static_cast<i64>(cut)));
  const int fd = ::open(sparse.c_str(), O_WRONLY);
  ASSERT_GE(fd, 0);
  const auto rest = static_cast<ssize_t>(whole.size() - cut);
  const bool room = ::pwrite(fd, whole.data() + cut, static_cast<std::size_t>(rest), kHole) == rest &&
                    ::ftruncate(fd, static_cast<off_t>(2 * kHole)) == 0;
  ::close(fd);
  if (!room) GTEST_SKIP() << "this file system takes no file of two terabytes";
  auto opened = TraceReader::open(sparse);
  ASSERT_TRUE(opened.ok());
  const TraceReader& trace = opened.value();
  EXPECT_EQ(trace.file_size(), 2 * kHole);
  EXPECT_LE(trace.data_bytes(), whole.size() + (128u << 10));
  ASSERT_EQ(trace.damage().size(), 2u);
  EXPECT_EQ(trace.damage()[0].offset, cut);
  EXPECT_EQ(trace.damage()[0].bytes, kHole - cut);
  EXPECT_EQ(trace.damage()[0].reason, "zeros where a chunk should be");
  EXPECT_EQ(trace.damage()[1].bytes, kHole - static_cast<u64>(rest));
  EXPECT_EQ(read_everything(trace).records, expected) << "what is behind the hole is read";
}

// Chunks of 64 bytes that say that the 16 MiB behind them are theirs: nearly all of that are holes, in which the next ones lie.
TEST(TraceDamage, PayloadsThatAreHolesAreBounded) {
  TemporaryDirectory directory;
  const std::string path = directory.file("whole"), sparse = directory.file("sparse");
  write_sample(path, 1, 6, false);
  const Bytes8 whole = read_file(path);
  write_file(sparse, Bytes8(whole.begin(), whole.begin() + sizeof(FileHeader)));
  const int fd = ::open(sparse.c_str(), O_WRONLY);
  ASSERT_GE(fd, 0);
  ChunkHeader header;
  std::memcpy(&header, whole.data() + sizeof(FileHeader), sizeof header);
  header.stored_size = kMaxChunkRaw - sizeof header;
  const std::vector<u8> zeros(header.stored_size);
  constexpr u64 kChunks = 64;
  for (u64 i = 0; i < kChunks; ++i) {
    header.sequence = i;
    header.checksum = chunk_checksum(header, zeros.data());
    header.header_check = chunk_header_check(header);
    const off_t at = static_cast<off_t>(sizeof(FileHeader) + i * kMaxChunkRaw);
    ASSERT_EQ(::pwrite(fd, &header, sizeof header, at), static_cast<ssize_t>(sizeof header));
  }
  ASSERT_EQ(::ftruncate(fd, static_cast<off_t>(sizeof(FileHeader) + kChunks * kMaxChunkRaw)), 0);
  ::close(fd);
  auto opened = TraceReader::open(sparse);
  ASSERT_TRUE(opened.ok());
  ASSERT_LE(opened.value().data_bytes(), 2u << 20);
  EXPECT_LE(opened.value().chunks_read(), 6u);
  bool said = false;
  for (const Damage& damage : opened.value().damage()) said = said || damage.kind == DamageKind::TooMuch;
  EXPECT_TRUE(said);
}

// Calls of a driver that does nothing: the clock goes on evenly but for a bit now and then.
TEST(TraceDamage, EvenCallsAreReadWholeHoweverWellTheyPack) {
  TemporaryDirectory directory;
  const std::string path = directory.file("even");
  Fd folder(::open(directory.path().c_str(), O_RDONLY | O_DIRECTORY));
  auto created = TraceWriter::create(folder.get(), "even", FileHeader{}, 0);
  ASSERT_TRUE(created.ok());
  TraceWriter& writer = created.value();
  constexpr u32 kChunks = 64, kEach = 65536;
  Random random(5);
  std::vector<RecordHeader> records(kEach);
  Ticks now = 1000;
  for (u32 chunk = 0; chunk < kChunks; ++chunk) {
    for (RecordHeader& record : records) {
      now += 200 + (random() % 32 == 0);
      record = {static_cast<u16>(RecordType::Call), sizeof record, 3, 0, now, now + 90};
    }
    ASSERT_TRUE(writer.append_records({1, 1, u64{chunk} * kEach, kEach}, records.data(), kEach * sizeof records[0]));
  }
  const EndEntry end{EndReason::Exited, 0, 6000, 7000};
  writer.append(ChunkKind::End, &end, sizeof end);
  constexpr u64 kDecoded = u64{kChunks} * kEach * sizeof(RecordHeader);
  ASSERT_GT(kDecoded, (32u << 20) + 192 * writer.size()) << "packed better than 192 to 1";
  auto opened = TraceReader::open(path);
  ASSERT_TRUE(opened.ok());
  EXPECT_TRUE(opened.value().damage().empty());
  EXPECT_EQ(opened.value().record_chunks().size(), kChunks);
}

TEST(TraceDamage, CutAtEveryByte) {
  TemporaryDirectory directory;
  const std::string path = directory.file("whole"), cut = directory.file("cut");
  const auto expected = expected_records(write_sample(path, 1, 6, false));
  const Bytes8 whole = read_file(path);
  const auto offsets = chunk_offsets(whole);
  u64 opened_count = 0;
  for (std::size_t size = 0; size < whole.size(); ++size) {
    write_file(cut, Bytes8(whole.begin(), whole.begin() + static_cast<i64>(size)));
    auto opened = TraceReader::open(cut);
    if (size < sizeof(FileHeader)) {
      ASSERT_FALSE(opened.ok());
      ASSERT_EQ(opened.error().kind, OpenErrorKind::Empty) << size;
      continue;
    }
    ASSERT_TRUE(opened.ok()) << size;
    const TraceReader& trace = opened.value();
    ++opened_count;
    // The last chunk is the End; its padding may go without loss.
    ChunkHeader last;
    std::memcpy(&last, whole.data() + offsets.back(), sizeof last);
    ASSERT_TRUE(trace.truncated()) << size;
    const bool at_border =
        size == sizeof(FileHeader) || std::find(offsets.begin(), offsets.end(), size) != offsets.end();
    ASSERT_EQ(trace.damage().empty(), at_border) << size;
    if (!at_border) {
      ASSERT_EQ(trace.damage().back().kind, DamageKind::TornTail);
    }
    const u64 good = static_cast<u64>(std::upper_bound(offsets.begin(), offsets.end(), size) - offsets.begin()) -
                     (size < whole.size() ? 1 : 0);
    ASSERT_EQ(trace.chunks_read(), size == sizeof(FileHeader) ? 0 : good) << size;
    expect_honest(trace, expected);
  }
  EXPECT_EQ(opened_count, whole.size() - sizeof(FileHeader));
}

TEST(TraceDamage, EveryBitFlipIsSeenOrHarmless) {
  TemporaryDirectory directory;
  const std::string path = directory.file("whole"), flipped = directory.file("flipped");
  const auto expected = expected_records(write_sample(path, 1, 3, false));
  const Bytes8 whole = read_file(path);
  u64 refused = 0, damaged = 0, harmless = 0;
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    Bytes8 copy = whole;
    copy[bit / 8] ^= static_cast<u8>(1u << (bit % 8));
    write_file(flipped, copy);
    auto opened = TraceReader::open(flipped);
    if (!opened) {
      ASSERT_LT(bit / 8, 8u);  // only the magic
      ASSERT_EQ(opened.error().kind, OpenErrorKind::NotATrace);
      ++refused;
      continue;
    }
    const TraceReader& trace = opened.value();
    expect_honest(trace, expected);
    if (!trace.damage().empty()) {
      ++damaged;
      ASSERT_EQ(trace.damage().size(), 1u) << "bit " << bit;
      continue;
    }
    ASSERT_EQ(read_everything(trace).records, expected) << "bit " << bit;  // padding
    ASSERT_FALSE(trace.truncated());
    ++harmless;
  }
  EXPECT_EQ(refused, 64u);
  EXPECT_GT(damaged, 5000u);
  EXPECT_LT(harmless, whole.size() / 10 * 8);
}

TEST(TraceDamage, DamagedPayloadTellsWhoseRecordsAreLost) {
  TemporaryDirectory directory;
  const std::string path = directory.file("a");
  write_sample(path, 3, 100);
  Bytes8 file = read_file(path);
  const auto offsets = chunk_offsets(file);
  file[offsets[4 + 4] + sizeof(ChunkHeader) + 3] ^= 1;  // round 1, slot 1
  write_file(path, file);
  auto opened = TraceReader::open(path);
  ASSERT_TRUE(opened.ok());
  ASSERT_EQ(opened.value().damage().size(), 1u);
  const Damage& damage = opened.value().damage()[0];
  EXPECT_EQ(damage.kind, DamageKind::BadChunk);
  EXPECT_EQ(damage.sequence, 8u);
  EXPECT_EQ(damage.records, 100u);
  EXPECT_EQ(damage.offset, offsets[8]);
  EXPECT_EQ(lost_records(opened.value()), 100u);
  for (const ThreadInfo& thread : opened.value().threads()) {
    EXPECT_EQ(thread.counters.stored, thread.slot == 1 ? 200u : 300u);
    EXPECT_EQ(thread.counters.dropped[static_cast<u32>(DropReason::Lost)], thread.slot == 1 ? 100u : 0u);
    EXPECT_EQ(thread.counters.seen, 305u);
  }
  EXPECT_EQ(opened.value().conservation().dropped[static_cast<u32>(DropReason::Lost)], 100u);
  EXPECT_TRUE(opened.value().conservation().exact);
}

TEST(TraceDamage, DoubledChunkIsUsedOnce) {
  TemporaryDirectory directory;
  const std::string path = directory.file("a");
  const auto expected = expected_records(write_sample(path, 2, 50));
  const Bytes8 file = read_file(path);
  const auto offsets = chunk_offsets(file);
  for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
    Bytes8 doubled(file.begin(), file.begin() + static_cast<i64>(offsets[i + 1]));
    doubled.insert(doubled.end(), file.begin() + static_cast<i64>(offsets[i]), file.end());
    write_file(path, doubled);
    auto opened = TraceReader::open(path);
    ASSERT_TRUE(opened.ok());
    ASSERT_EQ(opened.value().damage().size(), 1u);
    EXPECT_EQ(opened.value().damage()[0].kind, DamageKind::Duplicate);
    EXPECT_EQ(opened.value().damage()[0].sequence, i);
    EXPECT_EQ(read_everything(opened.value()).records, expected);
    EXPECT_EQ(opened.value().conservation().stored, 300u);
  }
}

TEST(TraceDamage, SwappedChunksLoseNothing) {
  TemporaryDirectory directory;
  const std::string path = directory.file("a");
  const auto expected = expected_records(write_sample(path, 2, 50));
  const Bytes8 file = read_file(path);
  const auto offsets = chunk_offsets(file);
  const auto at = [&](std::size_t i) {
    return file.begin() + static_cast<i64>(i < offsets.size() ? offsets[i] : file.size());
  };
  for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
    Bytes8 swapped(file.begin(), at(i));
    swapped.insert(swapped.end(), at(i + 1), at(i + 2));
    swapped.insert(swapped.end(), at(i), at(i + 1));
    swapped.insert(swapped.end(), at(i + 2), file.end());
    write_file(path, swapped);
    auto opened = TraceReader::open(path);
    ASSERT_TRUE(opened.ok());
    ASSERT_EQ(opened.value().damage().size(), 1u);
    EXPECT_EQ(opened.value().damage()[0].kind, DamageKind::OutOfOrder);
    EXPECT_EQ(read_everything(opened.value()).records, expected);
  }
}

TEST(TraceDamage, MissingAndZeroedChunksAreNamed) {
  TemporaryDirectory directory;
  const std::string path = directory.file("a");
  write_sample(path, 3, 100);
  const Bytes8 file = read_file(path);
  const auto offsets = chunk_offsets(file);
  Bytes8 without(file.begin(), file.begin() + static_cast<i64>(offsets[6]));
  without.insert(without.end(), file.begin() + static_cast<i64>(offsets[8]), file.end());
  write_file(path, without);
  {
    auto opened = TraceReader::open(path);
    ASSERT_TRUE(opened.ok());
    ASSERT_EQ(opened.value().damage().size(), 1u);
    EXPECT_EQ(opened.value().damage()[0].kind, DamageKind::MissingSequence);
    EXPECT_EQ(opened.value().damage()[0].sequence, 6u);
    EXPECT_EQ(opened.value().damage()[0].sequence_count, 2u);
    EXPECT_EQ(opened.value().conservation().dropped[static_cast<u32>(DropReason::Lost)], 200u);
  }
  Bytes8 zeroed = file;
  std::fill(zeroed.begin() + static_cast<i64>(offsets[6]), zeroed.begin() + static_cast<i64>(offsets[8]), 0);
  write_file(path, zeroed);
  auto opened = TraceReader::open(path);
  ASSERT_TRUE(opened.ok());
  ASSERT_EQ(opened.value().damage().size(), 1u);
  const Damage& damage = opened.value().damage()[0];
  EXPECT_EQ(damage.kind, DamageKind::LostBytes);
  EXPECT_EQ(damage.reason, "zeros where a chunk should be");
  EXPECT_EQ(damage.offset, offsets[6]);
  EXPECT_EQ(damage.bytes, offsets[8] - offsets[6]);
  EXPECT_EQ(damage.sequence, 6u);
  EXPECT_EQ(damage.sequence_count, 2u);
}

TEST(TraceDamage, ZeroedTailIsSaid) {
  TemporaryDirectory directory;
  const std::string path = directory.file("a");
  const auto expected = expected_records(write_sample(path, 3, 100));
  Bytes8 file = read_file(path);
  std::fill(file.end() - std::min<i64>(4096, static_cast<i64>(file.size()) / 2), file.end(), 0);
  write_file(path, file);
  auto opened = TraceReader::open(path);
  ASSERT_TRUE(opened.ok());
  EXPECT_TRUE(opened.value().truncated());
  EXPECT_FALSE(opened.value().damage().empty());
  expect_honest(opened.value(), expected);
}

TEST(TraceDamage, HostileNumbersAllocateLittle) {
  TemporaryDirectory directory;
  const std::string path = directory.file("a");
  write_sample(path, 1, 10, false);
  Bytes8 file = read_file(path);
  const auto offsets = chunk_offsets(file);
  Random random(17);
  for (u32 i = 0; i < 1500; ++i) {
    Bytes8 copy = file;
    const u64 at = offsets[random() % offsets.size()];
    ChunkHeader header;
    std::memcpy(&header, copy.data() + at, sizeof header);
    constexpr u64 kNasty[] = {0, 1, 0x7fffffff, 0xffffffff, 1ull << 63, ~0ull, 1ull << 40};
    const u64 nasty = kNasty[random() % 7];
    switch (random() % 8) {
      case 0:
        header.raw_size = static_cast<u32>(nasty);
        break;
      case 1:
        header.slot = static_cast<u32>(nasty);
        break;
      case 2:
        header.first_record = nasty;
        break;
      case 3:
        header.record_count = static_cast<u32>(nasty);
        break;
      case 4:
        header.sequence = nasty;
        break;
      case 5:
        header.kind = static_cast<ChunkKind>(random() % 10);
        break;
      case 6:
        header.encoding = static_cast<Encoding>(random() % 5);
        break;
      default:
        header.stored_size = static_cast<u32>(nasty);
    }
    header.header_check = chunk_header_check(header);
    if (at + sizeof header + header.stored_size <= copy.size())
      header.checksum = chunk_checksum(header, copy.data() + at + sizeof header);
    std::memcpy(copy.data() + at, &header, sizeof header);
    write_file(path, copy);
    auto opened = TraceReader::open(path);
    ASSERT_TRUE(opened.ok());
    read_everything(opened.value());
    for (const ThreadInfo& thread : opened.value().threads())
      ASSERT_EQ(thread.counters.seen, thread.counters.stored + dropped_sum(thread.counters));
  }
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  EXPECT_LT(used.ru_maxrss, 700 * 1024);  // kB; the bomb test alone holds 256 MB
}

}  // namespace
}  // namespace gputrace::test
