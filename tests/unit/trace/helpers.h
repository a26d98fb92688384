// Shared by the tests of trace/: random records, files in a temporary directory, everything that a reader gives.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "trace/reader.h"
#include "trace/schema.h"
#include "trace/writer.h"

namespace gputrace::test {

using Bytes8 = std::vector<u8>;
using Random = std::mt19937_64;

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    char name[] = "/tmp/gputrace-test-XXXXXX";
    path_ = ::mkdtemp(name);
  }
  ~TemporaryDirectory() { (void)!::system(("rm -rf '" + path_ + "'").c_str()); }
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline Bytes8 read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return Bytes8(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
}

inline void write_file(const std::string& path, const Bytes8& bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

// One record of any type of the schema, with random content; Text gets a tail.
inline void append_random_record(Bytes8& out, Random& random, u64& ticks) {
  const RecordSchema& schema = kRecordSchemas[random() % kRecordSchemaCount];
  u16 size = schema.size;
  if (schema.type == static_cast<u16>(RecordType::Text)) size = static_cast<u16>(size + 8 * (random() % 4));
  Bytes8 record(size);
  for (u8& byte : record)
    if (random() % 4 == 0) byte = static_cast<u8>(random());
  RecordHeader header{schema.type, size, static_cast<u16>(random() % 300), static_cast<u16>(random() % 50 ? 0 : 2),
                      0,           0};
  ticks += random() % 10000;
  header.begin = ticks;
  ticks += random() % 10000;
  header.end = ticks;
  std::memcpy(record.data(), &header, sizeof header);
  out.insert(out.end(), record.begin(), record.end());
}

struct Written {
  u32 slot, incarnation;
  u64 first_record;
  u32 count;
  Bytes8 records;
};

inline std::string schema_text() {
  std::string text(write_schema_text(nullptr, 0), '\0');
  write_schema_text(text.data(), text.size());
  return text + "call 1 cuMemAlloc driver cuMemAlloc_v2\ncall 2 cudaMalloc runtime cudaMalloc\n";
}

// A complete small trace: two threads and the definitions, `rounds` chunks of records each, counters, end.
// `whole_schema` false: a schema of one line, for tests that open the file thousands of times.
inline std::vector<Written> write_sample(const std::string& path, u32 rounds, u32 records_each,
                                         bool whole_schema = true) {
  Random random(1);
  FileHeader header{};
  header.random_id = 77;
  header.pid = 4242;
  header.clock = ClockKind::Tsc;
  const auto slash = path.rfind('/');
  Fd directory(::open(path.substr(0, slash).c_str(), O_RDONLY | O_DIRECTORY));
  auto created = TraceWriter::create(directory.get(), path.substr(slash + 1), header, 0);
  EXPECT_TRUE(created.ok());
  TraceWriter& writer = created.value();
  const std::string schema = whole_schema ? schema_text() : "call 1 cuMemAlloc driver cuMemAlloc_v2\n";
  writer.append(ChunkKind::Schema, schema.data(), schema.size());
  const std::string info = "executable\t/bin/x\nnote\ta\\tb\\nc\\\\d\noption\t1\noption\t2\n";
  writer.append(ChunkKind::Info, info.data(), info.size());
  std::vector<ThreadEntry> threads;
  for (u32 slot = 0; slot < 3; ++slot) {
    ThreadEntry entry{slot, 1, static_cast<i32>(slot ? 100 + slot : 0), 0, 10, 0, "worker"};
    threads.push_back(entry);
  }
  writer.append(ChunkKind::Thread, threads.data(), threads.size() * sizeof threads[0]);
  const Anchor anchors[] = {{1000, 5000, 1700000000000000000, 20}, {3001000, 1005000, 1700000000001000000, 30}};
  writer.append(ChunkKind::Anchors, anchors, sizeof anchors);
  std::vector<Written> all;
  u64 next[3] = {}, ticks[3] = {1000, 1000, 1000};
  for (u32 round = 0; round < rounds; ++round) {
    for (u32 slot = 0; slot < 3; ++slot) {
      Written chunk{slot, 1, next[slot], records_each, {}};
      for (u32 i = 0; i < records_each; ++i) append_random_record(chunk.records, random, ticks[slot]);
      EXPECT_TRUE(writer.append_records({slot, 1, chunk.first_record, chunk.count}, chunk.records.data(),
                                        chunk.records.size()));
      next[slot] += records_each;
      all.push_back(chunk);
    }
  }
  std::vector<HealthEntry> health;
  HealthEntry process{};
  process.slot = kProcessSlot;
  for (u32 slot = 0; slot < 3; ++slot) {
    HealthEntry entry{};
    entry.slot = slot;
    entry.incarnation = 1;
    entry.stored = next[slot];
    entry.dropped[0] = 5;
    entry.seen = next[slot] + 5;
    health.push_back(entry);
    process.seen += entry.seen;
    process.stored += entry.stored;
    process.dropped[0] += 5;
  }
  health.push_back(process);
  writer.append(ChunkKind::Health, health.data(), health.size() * sizeof health[0], 5000);
  const InFlightEntry open{1, 1, 101, 2, 900, 0xabc, 0, 0};
  writer.append(ChunkKind::InFlight, &open, sizeof open);
  const EndEntry end{EndReason::Vanished, 0, 6000, 7000};
  writer.append(ChunkKind::End, &end, sizeof end);
  return all;
}

// Every record that the reader gives: thread → bytes, in order. Chunks that do not decode are counted.
struct Everything {
  std::map<u64, Bytes8> records;
  std::map<u64, u64> counts;
  u64 undecoded = 0;
};
inline Everything read_everything(const TraceReader& trace) {
  Everything all;
  ChunkBuffer buffer;
  for (const ThreadInfo& thread : trace.threads()) {
    const u64 key = static_cast<u64>(thread.slot) << 32 | thread.incarnation;
    for (u32 index : thread.chunks) {
      const auto range = trace.decode(trace.record_chunks()[index], buffer);
      if (!range) {
        ++all.undecoded;
        continue;
      }
      all.counts[key] += range.value().count;
      all.records[key].insert(all.records[key].end(), range.value().data, range.value().data + range.value().size);
    }
  }
  return all;
}

inline std::map<u64, Bytes8> expected_records(const std::vector<Written>& written) {
  std::map<u64, Bytes8> all;
  for (const Written& chunk : written) {
    Bytes8& bytes = all[static_cast<u64>(chunk.slot) << 32 | chunk.incarnation];
    bytes.insert(bytes.end(), chunk.records.begin(), chunk.records.end());
  }
  return all;
}

inline u64 dropped_sum(const Counters& counters) {
  u64 sum = 0;
  for (u64 dropped : counters.dropped) sum += dropped;
  return sum;
}

}  // namespace gputrace::test
