// `gputrace dump` of a newer file: its records, fields and values by the names that the file itself brings.
#include "analysis/read/record_text.h"

#include <gtest/gtest.h>

#include "analysis/load.h"
#include "analysis/report.h"
#include "tests/unit/trace/helpers.h"

namespace gputrace::test {
namespace {

struct Later {
  RecordHeader header;
  u32 mood;
  u32 bits;
};

constexpr u16 kLaterType = 900;
constexpr u16 kLaterCall = 77;

// One copy of a kind, and one call in a record of a type, that this version does not know.
std::string newer_trace(const TemporaryDirectory& directory) {
  FileHeader header{};
  header.clock = ClockKind::Monotonic;
  Fd folder(::open(directory.path().c_str(), O_RDONLY | O_DIRECTORY));
  auto writer = TraceWriter::create(folder.get(), "newer.gtrace", header, 0);
  EXPECT_TRUE(writer.ok());
  const std::string schema =
      "value CopyKind 77 HtoMoon \"new\"\n"
      "enum Mood \"\"\nvalue Mood 3 merry\nflags Bits \"\"\nvalue Bits 1 One\nvalue Bits 4 Four \"four\"\n"
      "record 900 Later 32 call \"a call of a later version\"\n"
      "field Later mood u32 24 Mood \"\"\nfield Later bits u32 28 Bits \"\"\n"
      "call 77 cuLater driver cuLater_v9\n";
  const std::string text = schema_text() + schema;
  EXPECT_TRUE(writer.value().append(ChunkKind::Schema, text.data(), text.size()));
  const ThreadEntry thread{1, 1, 100, 0, 10, 0, "worker"};
  writer.value().append(ChunkKind::Thread, &thread, sizeof thread);
  Copy copy{};
  copy.header = {static_cast<u16>(RecordType::Copy), sizeof copy, 1, 0, 1000, 2000};
  copy.kind = 77;
  copy.flags = kLaunchPerThread | kLaunchCaptured;
  const Later later{{kLaterType, sizeof later, kLaterCall, 0, 3000, 5000}, 3, 5};
  Bytes8 records(sizeof copy + sizeof later);
  std::memcpy(records.data(), &copy, sizeof copy);
  std::memcpy(records.data() + sizeof copy, &later, sizeof later);
  EXPECT_TRUE(writer.value().append_records({1, 1, 0, 2}, records.data(), records.size()));
  return directory.file("newer.gtrace");
}

std::string dump(const std::string& path, bool json) {
  const auto opened = TraceReader::open(path);
  const TraceReader& trace = opened.value();
  RecordText writer(trace, json);
  std::string lines;
  ChunkBuffer buffer;
  for (const RecordChunk& chunk : trace.record_chunks()) {
    const auto range = trace.decode(chunk, buffer);
    for (const RecordHeader& record : range.value()) writer.append(record, chunk.thread, lines);
  }
  return lines;
}

TEST(RecordText, NamesTheValuesOfANewerFile) {
  TemporaryDirectory directory;
  const std::string path = newer_trace(directory);
  const std::string text = dump(path, false);
  EXPECT_NE(text.find(" kind=77 kind_name=HtoMoon "), std::string::npos) << text;
  EXPECT_NE(text.find("flags_name=PerThread|Captured"), std::string::npos) << text;
  EXPECT_NE(text.find("\nLater tid=100 call=cuLater variant=cuLater_v9 level=driver"), std::string::npos) << text;
  EXPECT_NE(text.find(" mood=3 mood_name=merry bits=5 bits_name=One|Four\n"), std::string::npos) << text;
  const std::string json = dump(path, true);
  EXPECT_NE(json.find("\"mood\":3,\"mood_name\":\"merry\",\"bits\":5,\"bits_name\":\"One|Four\"}"), std::string::npos)
      << json;
}

TEST(RecordText, CallsOfANewerFileCount) {
  TemporaryDirectory directory;
  LoadRequest request;
  request.files = {newer_trace(directory)};
  const auto loaded = load_run(request);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  const ProcessTrace& process = loaded.value().processes.at(0);
  ASSERT_EQ(process.calls.size(), 2u);
  EXPECT_EQ(process.calls[1].name, "cuLater");
  EXPECT_EQ(process.calls[1].calls, 1u);
  const Report report = make_report(loaded.value(), {});
  EXPECT_EQ(report.coverage.unknown_records, 1u) << "counted as a call, and still said to be unknown";
}

}  // namespace
}  // namespace gputrace::test
