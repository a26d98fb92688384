// Files: written and read back, refused by kind, stopped at their limit.
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "tests/unit/trace/helpers.h"
#include "trace/codec/chunk_codec.h"

namespace gputrace::test {
namespace {

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
      text.header = {
          static_cast<u16>(RecordType::Text), static_cast<u16>(align_up(sizeof text + bytes.size(), 8)), 0, 0, 0, 0};
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

// Many strings, of one piece and of several, in turn; none of them is lost or taken for another when the table grows.
TEST(TextTable, KeepsEveryStringAsItGrows) {
  TextTable table;
  constexpr u64 kTexts = 20'000;
  const auto add = [&](u64 id, std::string_view piece, u32 offset, u32 total) {
    alignas(8) char bytes[256] = {};
    Text text{};
    text.header.type = static_cast<u16>(RecordType::Text);
    text.header.size = static_cast<u16>(sizeof text + piece.size());
    text.id = id, text.offset = offset, text.total = total;
    std::memcpy(bytes, &text, sizeof text);
    std::memcpy(bytes + sizeof text, piece.data(), piece.size());
    table.add(*reinterpret_cast<const RecordHeader*>(bytes));
  };
  const auto name = [](u64 id) { return "string " + std::to_string(id * 7919); };
  for (u64 id = 1; id <= kTexts; ++id) {
    const std::string whole = name(id), half = whole.substr(0, id % 3 ? whole.size() : 5);
    add(id << 32, half, 0, static_cast<u32>(whole.size()));
    if (id % 500 == 0) {
      EXPECT_EQ(table.find(id << 32), half);
    }
  }
  for (u64 id = 3; id <= kTexts; id += 3) add(id << 32, name(id).substr(5), 5, static_cast<u32>(name(id).size()));
  EXPECT_EQ(table.size(), kTexts);
  for (u64 id = 1; id <= kTexts; ++id) {
    ASSERT_EQ(table.find(id << 32), name(id));
    ASSERT_TRUE(table.complete(id << 32));
  }
  EXPECT_EQ(table.find(1).data(), nullptr);
  EXPECT_EQ(table.find(0).data(), nullptr);
  EXPECT_FALSE(table.complete(0));
  add(1, "", 0, 0);
  EXPECT_NE(table.find(1).data(), nullptr) << "an empty string is one";
  add(2, "late", 3, 7);
  EXPECT_EQ(table.bad_pieces(), 1u) << "a piece before it is lost";
  table.limit(table.size(), 1u << 30);
  add(3, "one more", 0, 8);
  EXPECT_EQ(table.refused(), 1u);
}

}  // namespace
}  // namespace gputrace::test
