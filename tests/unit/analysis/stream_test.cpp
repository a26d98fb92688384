// The stream of a trace's records: what it hands out lives as long as somebody keeps it.
#include "analysis/read/record_stream.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "tests/unit/trace_builder.h"

namespace gputrace::test {
namespace {

// Two threads with many chunks each, and so many records that belong to none, among theirs.
TraceReader many_chunks(const TemporaryDirectory& directory, int of_nobody = 0) {
  TraceBuilder builder;
  for (int i = 0; i < of_nobody; ++i) builder.name_function(0xf0, "kernel", 0xa0, 40'000 * Nanos{i} + 30);
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
      kept = stream.chunk(span);
      at = span.begin;
      return false;
    });
  }
  ASSERT_NE(kept, nullptr);
  EXPECT_EQ(reinterpret_cast<const RecordHeader*>(at)->size, sizeof(Call));
}

// Each record's thread and begin, in the order in which it came.
std::vector<std::pair<u32, Ticks>> order_of(RecordStream& stream) {
  std::vector<std::pair<u32, Ticks>> order;
  stream.for_each_span([&](const RecordStream::Span& span) {
    for (const u8* at = span.begin; at != span.end;) {
      const auto& record = *reinterpret_cast<const RecordHeader*>(at);
      order.emplace_back(span.thread, record.begin);
      at += record.size;
    }
    return true;
  });
  return order;
}

TEST(RecordStream, LeavesThreadsOutAndKeepsTheOrderOfTheOthers) {
  TemporaryDirectory directory;
  const TraceReader reader = many_chunks(directory);
  RecordStream whole(reader);
  auto wanted = order_of(whole);
  const u32 out = wanted.front().first;
  ASSERT_EQ(wanted.size(), 80'000u);
  std::erase_if(wanted, [&](const auto& one) { return one.first == out; });
  std::vector<bool> left_out(out + 1u, false);
  left_out[out] = true;
  RecordStream rest(reader, left_out);
  EXPECT_EQ(order_of(rest), wanted);
  EXPECT_EQ(wanted.size(), 40'000u);
}

TEST(RecordStream, KnowsOfThreadsThatItReadWholeWhatTheyLack) {
  TemporaryDirectory directory;
  const TraceReader reader = many_chunks(directory);
  TypeSet calls, others;
  calls.add(static_cast<u16>(RecordType::Call));
  others.add(static_cast<u16>(RecordType::Nvtx));
  others.add(TypeSet::kOthers);
  const auto number = [](const std::vector<bool>& of) { return std::count(of.begin(), of.end(), true); };
  RecordStream stream(reader);
  EXPECT_EQ(number(stream.without(others)), 0) << "nothing was read yet";
  order_of(stream);
  EXPECT_EQ(number(stream.without(others)), 2);
  EXPECT_EQ(number(stream.without(calls)), 0);
  RecordStream broken_off(reader);
  broken_off.for_each_span([](const RecordStream::Span&) { return false; });
  EXPECT_EQ(number(broken_off.without(others)), 0) << "what was not read may hold anything";
}

// Spans of bulk hold nothing else, and the order is what it is without: also where records of two threads end together.
TEST(RecordStream, GivesBulkInSpansOfItsOwnAndKeepsTheOrder) {
  TemporaryDirectory directory;
  TraceBuilder builder;
  const auto host = builder.thread(10), other = builder.thread(11), collector = builder.thread(12);
  for (Nanos at = 0; at < 60'000; at += 20) {
    builder.add_call(host, "cuCtxSynchronize", at + 1, at + 10);
    if (at % 60 == 0) builder.add_call(other, "cuCtxSynchronize", at + 2, at + 10);
    const Nanos now = at % 4000 < 2000 ? at + 10 : at - at % 4000 + 2000;  // one by one, then a burst at one time
    builder.add<DeviceApi>(collector, "", now, now, [&](auto& r) { r.correlation = static_cast<u32>(at + 1); });
    if (at % 6'000 == 0) builder.add<DeviceStream>(collector, "", now, now, [](auto&) {});
  }
  builder.write(directory.file("t.gtrace"));
  const TraceReader reader = std::move(TraceReader::open(directory.file("t.gtrace")).value());
  RecordStream plain(reader);
  const auto wanted = order_of(plain);
  TypeSet bulk;
  bulk.add(static_cast<u16>(RecordType::DeviceApi));
  RecordStream stream(reader, {}, RecordStream::Order::Time, bulk);
  std::vector<std::pair<u32, Ticks>> found;
  u32 longest = 0;
  stream.for_each_span([&](const RecordStream::Span& span) {
    u32 count = 0;
    for (const u8* at = span.begin; at != span.end; ++count) {
      const auto& record = *reinterpret_cast<const RecordHeader*>(at);
      EXPECT_EQ(bulk.has(record.type), span.bulk);
      found.emplace_back(span.thread, record.begin);
      at += record.size;
    }
    EXPECT_EQ(count, span.records);
    if (span.bulk) longest = std::max(longest, count);
    return true;
  });
  EXPECT_EQ(found, wanted);
  EXPECT_GT(longest, 60u);
}

// What belongs to no thread, or to one that its content tells, is in its place among each thread's records; of two threads nothing is said.
TEST(RecordStream, TellsThreadByThreadWhereThatIsAskedFor) {
  TemporaryDirectory directory;
  const TraceReader reader = many_chunks(directory, 90);
  const auto is_nobodys = [&](u32 thread) { return reader.threads()[thread].tid == 0; };
  u64 turns = 0, changes = 0;
  const auto seen_by = [&](RecordStream::Order order, u32 thread) {
    RecordStream stream(reader, {}, order);
    auto seen = order_of(stream);
    turns = seen.size(), changes = 0;
    for (std::size_t i = 1; i < seen.size(); ++i) changes += seen[i].first != seen[i - 1].first;
    std::erase_if(seen, [&](const auto& one) { return one.first != thread && !is_nobodys(one.first); });
    return seen;
  };
  for (u32 thread = 0; thread < reader.threads().size(); ++thread) {
    if (is_nobodys(thread)) continue;
    const auto in_time = seen_by(RecordStream::Order::Time, thread);
    EXPECT_GT(changes, 70'000u);
    EXPECT_EQ(seen_by(RecordStream::Order::Threads, thread), in_time);
    EXPECT_LT(changes, 1'000u);
    EXPECT_EQ(turns, 80'000u + 2 * 90u);  // a text and a function each
  }
}

}  // namespace
}  // namespace gputrace::test
