// Files: written and read back, cut at every byte, with every bit flipped, with chunks doubled, swapped, missing and zeroed.
#include <sys/resource.h>
#include <sys/stat.h>

#include <signal.h>

#include "tests/unit/trace_helpers.h"
#include "trace/chunk_codec.h"

namespace gputrace::test {
namespace {

std::map<u64, Bytes8> expected_records(const std::vector<Written>& written) {
  std::map<u64, Bytes8> all;
  for (const Written& chunk : written) {
    Bytes8& bytes = all[static_cast<u64>(chunk.slot) << 32 | chunk.incarnation];
    bytes.insert(bytes.end(), chunk.records.begin(), chunk.records.end());
  }
  return all;
}

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
  for (const ThreadInfo& thread : trace.threads()) ASSERT_EQ(thread.counters.seen, thread.counters.stored + dropped_sum(thread.counters));
  ASSERT_EQ(trace.conservation().seen, trace.conservation().stored + dropped_sum(trace.conservation()));
}

TEST(TraceFile, RoundTrip) {
  TemporaryDirectory directory;
  const std::string path = directory.file("a.gtrace");
  const auto written = write_sample(path, 4, 200);
  auto opened = TraceReader::open(path);
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  const TraceReader& trace = opened.value();
  EXPECT_TRUE(trace.damage().empty());
  EXPECT_FALSE(trace.truncated());
  EXPECT_EQ(trace.header().pid, 4242);
  EXPECT_EQ(read_everything(trace).records, expected_records(written));
  EXPECT_EQ(trace.record_chunks().size(), 12u);
  EXPECT_EQ(trace.chunks_read(), 4u + 12 + 3);
  EXPECT_EQ(trace.conservation().seen, 2400u + 15);
  EXPECT_EQ(trace.conservation().stored, 2400u);
  EXPECT_EQ(trace.conservation().dropped[0], 15u);
  EXPECT_TRUE(trace.conservation().exact);
  ASSERT_EQ(trace.in_flight().size(), 1u);
  EXPECT_EQ(trace.in_flight()[0].argument, 0xabcu);
  EXPECT_EQ(trace.threads()[trace.in_flight()[0].thread].tid, 101);
  EXPECT_EQ(*trace.info("note"), "a\tb\nc\\d");
  EXPECT_EQ(*trace.info("option"), "2");
  EXPECT_EQ(trace.info_all("option").size(), 2u);
  EXPECT_EQ(trace.info("absent"), nullptr);
  EXPECT_EQ(trace.schema().records().size(), kRecordSchemaCount);
  EXPECT_EQ(trace.schema().call(1)->variant, "cuMemAlloc_v2");
  EXPECT_EQ(trace.schema().call(2)->level, "runtime");
  EXPECT_EQ(trace.schema().record(static_cast<u16>(RecordType::Copy))->fields.size(), 10u);
  EXPECT_EQ(trace.schema().bad_lines(), 0u);
  EXPECT_EQ(trace.end()->reason, EndReason::Vanished);
  struct stat status {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  EXPECT_EQ(static_cast<u64>(status.st_size), trace.file_size());
}

TEST(TraceFile, NeverOverwrites) {
  TemporaryDirectory directory;
  write_sample(directory.file("a.gtrace"), 1, 1);
  Fd fd(::open(directory.path().c_str(), O_RDONLY | O_DIRECTORY));
  EXPECT_EQ(TraceWriter::create(fd.get(), "a.gtrace", FileHeader{}, 0).error(), EEXIST);
  ASSERT_EQ(::symlink("/tmp/gputrace-test-target", directory.file("link.gtrace").c_str()), 0);
  EXPECT_EQ(TraceWriter::create(fd.get(), "link.gtrace", FileHeader{}, 0).error(), EEXIST);
  EXPECT_NE(::access("/tmp/gputrace-test-target", F_OK), 0);
}

TEST(TraceFile, CutAtEveryByte) {
  TemporaryDirectory directory;
  const std::string path = directory.file("whole"), cut = directory.file("cut");
  const auto expected = expected_records(write_sample(path, 2, 12));
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
    const bool at_border = size == sizeof(FileHeader) || std::find(offsets.begin(), offsets.end(), size) != offsets.end();
    ASSERT_EQ(trace.damage().empty(), at_border) << size;
    if (!at_border) {
      ASSERT_EQ(trace.damage().back().kind, DamageKind::TornTail);
    }
    const u64 good = static_cast<u64>(std::upper_bound(offsets.begin(), offsets.end(), size) - offsets.begin()) - (size < whole.size() ? 1 : 0);
    ASSERT_EQ(trace.chunks_read(), size == sizeof(FileHeader) ? 0 : good) << size;
    expect_honest(trace, expected);
  }
  EXPECT_EQ(opened_count, whole.size() - sizeof(FileHeader));
}

TEST(TraceFile, EveryBitFlipIsSeenOrHarmless) {
  TemporaryDirectory directory;
  const std::string path = directory.file("whole"), flipped = directory.file("flipped");
  const auto expected = expected_records(write_sample(path, 1, 6));
  const Bytes8 whole = read_file(path);
  u64 refused = 0, damaged = 0, harmless = 0;
  for (std::size_t bit = 0; bit < whole.size() * 8; bit += bit < 2000 || bit % 3 ? 1 : 2) {
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
  EXPECT_GT(damaged, 10000u);
  EXPECT_LT(harmless, whole.size() / 10 * 8);
}

TEST(TraceFile, DamagedPayloadTellsWhoseRecordsAreLost) {
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

TEST(TraceFile, DoubledChunkIsUsedOnce) {
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

TEST(TraceFile, SwappedChunksLoseNothing) {
  TemporaryDirectory directory;
  const std::string path = directory.file("a");
  const auto expected = expected_records(write_sample(path, 2, 50));
  const Bytes8 file = read_file(path);
  const auto offsets = chunk_offsets(file);
  const auto at = [&](std::size_t i) { return file.begin() + static_cast<i64>(i < offsets.size() ? offsets[i] : file.size()); };
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

TEST(TraceFile, MissingAndZeroedChunksAreNamed) {
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

TEST(TraceFile, ZeroedTailIsSaid) {
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

TEST(TraceFile, WhatIsNoTraceIsRefusedByKind) {
  TemporaryDirectory directory;
  const auto kind = [](const std::string& path) { return TraceReader::open(path).error().kind; };
  EXPECT_EQ(kind(directory.file("absent")), OpenErrorKind::NoSuchFile);
  EXPECT_EQ(kind(directory.path()), OpenErrorKind::NotReadable);
  EXPECT_EQ(kind("/dev/null"), OpenErrorKind::NotATrace);
  write_file(directory.file("empty"), {});
  EXPECT_EQ(kind(directory.file("empty")), OpenErrorKind::Empty);
  write_file(directory.file("text"), {'h', 'e', 'l', 'l', 'o', ' ', 'w', 'o', 'r', 'l', 'd'});
  EXPECT_EQ(kind(directory.file("text")), OpenErrorKind::NotATrace);

  const std::string newer = directory.file("newer");
  write_sample(newer, 1, 1);
  Bytes8 file = read_file(newer);
  FileHeader header;
  std::memcpy(&header, file.data(), sizeof header);
  header.major = 2;
  header.minor = 7;
  header.checksum = file_header_checksum(&header, sizeof header);
  std::memcpy(file.data(), &header, sizeof header);
  write_file(newer, file);
  const auto refused = TraceReader::open(newer);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, OpenErrorKind::NewerMajor);
  EXPECT_EQ(refused.error().major, 2);
  EXPECT_NE(refused.error().message.find("2.7"), std::string::npos);
  header.major = kFileMajor;
  header.minor = 99;
  header.checksum = file_header_checksum(&header, sizeof header);
  std::memcpy(file.data(), &header, sizeof header);
  write_file(newer, file);
  EXPECT_TRUE(TraceReader::open(newer).ok()) << "a newer minor is read";
}

TEST(TraceFile, UnknownChunksAndRecordsAreCounted) {
  TemporaryDirectory directory;
  Fd fd(::open(directory.path().c_str(), O_RDONLY | O_DIRECTORY));
  {
    auto writer = TraceWriter::create(fd.get(), "a", FileHeader{}, 0);
    ASSERT_TRUE(writer.ok());
    EXPECT_TRUE(writer.value().append(static_cast<ChunkKind>(700), "future", 6));
    Bytes8 records(3 * 40);
    for (u32 i = 0; i < 3; ++i) {
      const RecordHeader header{static_cast<u16>(i == 1 ? 60000 : 1), 40, 0, 0, 1, 2};
      std::memcpy(records.data() + 40 * i, &header, sizeof header);
    }
    EXPECT_TRUE(writer.value().append_records({1, 1, 0, 3}, records.data(), records.size()));
  }
  auto opened = TraceReader::open(directory.file("a"));
  ASSERT_TRUE(opened.ok());
  EXPECT_EQ(opened.value().unknown_chunks(), 1u);
  ChunkBuffer buffer;
  auto range = opened.value().decode(opened.value().record_chunks()[0], buffer);
  ASSERT_TRUE(range.ok());
  EXPECT_EQ(range.value().unknown, 1u);
  EXPECT_EQ(range.value().count, 3u);
}

TEST(TraceFile, ShortRecordsAreExtendedLongTailsIgnored) {
  alignas(8) u8 bytes[256];
  std::memset(bytes, 0xff, sizeof bytes);
  KernelLaunch launch{};
  launch.header = {static_cast<u16>(RecordType::KernelLaunch), 40, 1, 0, 3, 4};
  launch.function = 5;
  launch.stream = 6;
  launch.grid_x = 99;
  std::memcpy(bytes, &launch, sizeof launch);
  const auto shorter = decode<KernelLaunch>(*reinterpret_cast<RecordHeader*>(bytes));
  EXPECT_EQ(shorter.stream, 6u);
  EXPECT_EQ(shorter.grid_x, 0u);
  launch.header.size = 240;
  std::memcpy(bytes, &launch, sizeof launch);
  EXPECT_EQ(decode<KernelLaunch>(*reinterpret_cast<RecordHeader*>(bytes)).grid_x, 99u);
}

TEST(TraceFile, TextsAreJoined) {
  TemporaryDirectory directory;
  Fd fd(::open(directory.path().c_str(), O_RDONLY | O_DIRECTORY));
  const std::string name(5000, 'k');
  {
    auto writer = TraceWriter::create(fd.get(), "a", FileHeader{}, 0);
    ASSERT_TRUE(writer.ok());
    Bytes8 records;
    u32 count = 0;
    const auto piece = [&](u64 id, u32 offset, u32 total, const std::string& bytes) {
      Text text{};
      text.header = {static_cast<u16>(RecordType::Text), static_cast<u16>(align_up(sizeof text + bytes.size(), 8)), 0, 0, 0, 0};
      text.id = id;
      text.offset = offset;
      text.total = total;
      const std::size_t at = records.size();
      records.resize(at + text.header.size);
      std::memcpy(records.data() + at, &text, sizeof text);
      std::memcpy(records.data() + at + sizeof text, bytes.data(), bytes.size());
      ++count;
    };
    piece(1, 0, 5000, name.substr(0, 2000));
    piece(2, 0, 3, "abc");
    piece(1, 2000, 5000, name.substr(2000));
    piece(3, 0, 0, "");
    piece(4, 0, 100, "torn");
    piece(5, 7, 100, "no beginning");
    piece(6, 0, 1u << 31, "too long");
    EXPECT_TRUE(writer.value().append_records({0, 1, 0, count}, records.data(), records.size()));
  }
  auto opened = TraceReader::open(directory.file("a"));
  ASSERT_TRUE(opened.ok());
  const TextTable& texts = opened.value().texts();
  EXPECT_EQ(texts.find(1), name);
  EXPECT_TRUE(texts.complete(1));
  EXPECT_EQ(texts.find(2), "abc");
  EXPECT_EQ(texts.find(3), "");
  EXPECT_NE(texts.find(3).data(), nullptr);
  EXPECT_EQ(texts.find(4).substr(0, 4), "torn");
  EXPECT_FALSE(texts.complete(4));
  EXPECT_EQ(texts.find(9).data(), nullptr);
  EXPECT_EQ(texts.bad_pieces(), 2u);
}

TEST(TraceFile, StopsAtAChunkBorderWhereTheLimitIs) {
  TemporaryDirectory directory;
  Fd fd(::open(directory.path().c_str(), O_RDONLY | O_DIRECTORY));
  Random random(5);
  u64 stored = 0, refused = 0;
  {
    auto writer = TraceWriter::create(fd.get(), "a", FileHeader{}, 100'000);
    ASSERT_TRUE(writer.ok());
    for (u32 i = 0; i < 100; ++i) {
      Bytes8 records;
      u64 ticks = 1;
      for (u32 r = 0; r < 100; ++r) append_random_record(records, random, ticks);
      (writer.value().append_records({1, 1, stored, 100}, records.data(), records.size()) ? stored : refused) += 100;
    }
    EXPECT_EQ(writer.value().stop(), WriteStop::SizeLimit);
    EXPECT_TRUE(writer.value().append(ChunkKind::Info, "disk_stop\tfull\n", 15)) << "the tail has its room";
    EXPECT_LE(writer.value().size(), 100'000u);
  }
  EXPECT_EQ(stored + refused, 10'000u);
  EXPECT_GT(stored, 500u);
  auto opened = TraceReader::open(directory.file("a"));
  ASSERT_TRUE(opened.ok());
  EXPECT_TRUE(opened.value().damage().empty());
  EXPECT_EQ(opened.value().conservation().stored, stored);
  EXPECT_EQ(*opened.value().info("disk_stop"), "full");
}

TEST(TraceFile, FileSizeLimitOfTheProcessIsADiskThatIsFull) {
  TemporaryDirectory directory;
  Fd fd(::open(directory.path().c_str(), O_RDONLY | O_DIRECTORY));
  ::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{200'000, before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  Random random(5);
  u64 stored = 0;
  {
    auto writer = TraceWriter::create(fd.get(), "a", FileHeader{}, 0);
    ASSERT_TRUE(writer.ok());
    for (u32 i = 0; i < 100; ++i) {
      Bytes8 records;
      u64 ticks = 1;
      for (u32 r = 0; r < 100; ++r) append_random_record(records, random, ticks);
      stored += writer.value().append_records({1, 1, stored, 100}, records.data(), records.size()) ? 100 : 0;
    }
    EXPECT_NE(writer.value().stop(), WriteStop::None);
  }
  ::setrlimit(RLIMIT_FSIZE, &before);
  auto opened = TraceReader::open(directory.file("a"));
  ASSERT_TRUE(opened.ok());
  EXPECT_TRUE(opened.value().damage().empty());
  EXPECT_EQ(opened.value().conservation().stored, stored);
}

TEST(TraceFile, HostileNumbersAllocateLittle) {
  TemporaryDirectory directory;
  const std::string path = directory.file("a");
  write_sample(path, 1, 10);
  Bytes8 file = read_file(path);
  const auto offsets = chunk_offsets(file);
  Random random(17);
  for (u32 i = 0; i < 3000; ++i) {
    Bytes8 copy = file;
    const u64 at = offsets[random() % offsets.size()];
    ChunkHeader header;
    std::memcpy(&header, copy.data() + at, sizeof header);
    constexpr u64 kNasty[] = {0, 1, 0x7fffffff, 0xffffffff, 1ull << 63, ~0ull, 1ull << 40};
    const u64 nasty = kNasty[random() % 7];
    switch (random() % 8) {
      case 0: header.raw_size = static_cast<u32>(nasty); break;
      case 1: header.slot = static_cast<u32>(nasty); break;
      case 2: header.first_record = nasty; break;
      case 3: header.record_count = static_cast<u32>(nasty); break;
      case 4: header.sequence = nasty; break;
      case 5: header.kind = static_cast<ChunkKind>(random() % 10); break;
      case 6: header.encoding = static_cast<Encoding>(random() % 5); break;
      default: header.stored_size = static_cast<u32>(nasty);
    }
    header.header_check = chunk_header_check(header);
    if (at + sizeof header + header.stored_size <= copy.size()) header.checksum = chunk_checksum(header, copy.data() + at + sizeof header);
    std::memcpy(copy.data() + at, &header, sizeof header);
    write_file(path, copy);
    auto opened = TraceReader::open(path);
    ASSERT_TRUE(opened.ok());
    read_everything(opened.value());
    for (const ThreadInfo& thread : opened.value().threads()) ASSERT_EQ(thread.counters.seen, thread.counters.stored + dropped_sum(thread.counters));
  }
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  EXPECT_LT(used.ru_maxrss, 700 * 1024);  // kB; the bomb test alone holds 256 MB
}

}  // namespace
}  // namespace gputrace::test
