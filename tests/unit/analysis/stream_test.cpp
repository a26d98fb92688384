// The stream of a trace's records: what it hands out lives as long as somebody keeps it.
#include "analysis/read/record_stream.h"

#include <gtest/gtest.h>

#include "tests/unit/trace_builder.h"

namespace gputrace::test {
namespace {

// Two threads with many chunks each.
TraceReader many_chunks(const TemporaryDirectory& directory) {
  TraceBuilder builder;
  for (const i32 tid : {10, 11}) {
    const auto thread = builder.thread(tid);
    for (Nanos at = 0; at < 40'000; ++at)
      builder.add_call(thread, "cuCtxSynchronize", at * 100 + tid, at * 100 + tid + 50);
  }
  builder.write(directory.file("t.gtrace"));
  return std::move(TraceReader::open(directory.file("t.gtrace")).value());
}

TEST(RecordStream, MayEndBeforeItsRecordsDo) {
  TemporaryDirectory directory;
  const TraceReader reader = many_chunks(directory);
  ASSERT_GE(reader.record_chunks().size(), 4u);
  for (int runs = 1; runs < 6'000; runs += 1'499) {
    int left = runs;
    RecordStream stream(reader);
    stream.for_each_span([&](const RecordStream::Span&) { return --left > 0; });
    EXPECT_EQ(left, 0);
  }
}

TEST(RecordStream, AChunkOutlivesItsStream) {
  TemporaryDirectory directory;
  const TraceReader reader = many_chunks(directory);
  std::shared_ptr<const void> kept;
  const u8* at = nullptr;
  {
    RecordStream stream(reader);
    stream.for_each_span([&](const RecordStream::Span& span) {
      kept = stream.chunk();
      at = span.begin;
      return false;
    });
  }
  ASSERT_NE(kept, nullptr);
  EXPECT_EQ(reinterpret_cast<const RecordHeader*>(at)->size, sizeof(Call));
}

}  // namespace
}  // namespace gputrace::test
