// Builds small traces from C++ literals, through the real writer. Ticks are nanoseconds: begin and end are what reports
// must give back.
//
//   TraceBuilder trace;
//   auto main = trace.thread(100);
//   trace.name_function(0xf1, "kernel", 0xa0);
//   trace.add<KernelLaunch>(main, "cuLaunchKernel", 1000, 2000, [](auto& r) { r.function = 0xf1; r.grid_x = 4; });
//   ProcessTrace process = trace.load();
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cctype>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "analysis/load.h"
#include "analysis/table/table.h"
#include "tests/unit/trace/helpers.h"

namespace gputrace::test {

class TraceBuilder {
 public:
  struct Thread {
    std::size_t index;
  };

  TraceBuilder() { threads_.push_back({0, {}, 0, {}}); }  // the definitions

  Thread thread(i32 tid) {
    threads_.push_back({tid, {}, 0, {}});
    return {threads_.size() - 1};
  }
  static Thread definitions() { return {0}; }

  // The id of a call; made known to the schema when first used. Runtime calls begin with "cuda".
  u16 call(const std::string& variant) {
    const auto [it, fresh] = calls_.emplace(variant, static_cast<u16>(calls_.size() + 1));
    if (!fresh) return it->second;
    std::string name = variant;
    const std::size_t suffix = name.find('_');
    if (suffix != std::string::npos) name.resize(suffix);
    schema_ += "call " + std::to_string(it->second) + " " + name +
               (name.rfind("cuda", 0) == 0                                                      ? " runtime "
                : name.rfind("cu", 0) == 0 && std::isupper(static_cast<unsigned char>(name[2])) ? " driver "
                                                                                                : " library ") +
               variant + "\n";
    return it->second;
  }

  template <typename Record, typename Fill>
  void add(Thread thread, const std::string& variant, Nanos begin, Nanos end, Fill&& fill, u16 result = 0) {
    Record record{};
    record.header = {
        static_cast<u16>(Record::kType), sizeof(Record),         variant.empty() ? u16{0} : call(variant), result,
        static_cast<Ticks>(begin),       static_cast<Ticks>(end)};
    fill(record);
    append(thread, &record, sizeof record);
  }
  void add_call(Thread thread, const std::string& variant, Nanos begin, Nanos end, u16 result = 0) {
    add<Call>(
        thread, variant, begin, end, [](auto&) {}, result);
  }

  u64 text(const std::string& value) {
    const u64 id = ++texts_;
    std::vector<u8> bytes(align_up(sizeof(Text) + value.size(), 8));
    Text record{};
    record.header = {static_cast<u16>(RecordType::Text), static_cast<u16>(bytes.size()), 0, 0, 1, 1};
    record.id = id;
    record.total = static_cast<u32>(value.size());
    std::memcpy(bytes.data(), &record, sizeof record);
    std::memcpy(bytes.data() + sizeof record, value.data(), value.size());
    append(definitions(), bytes.data(), bytes.size());
    return id;
  }
  void name_function(u64 function, const std::string& symbol, u64 module, Nanos at = 2) {
    const u64 name = text(symbol);
    add<FunctionGet>(definitions(), "", at, at,
                     [&](auto& r) { r.function = function, r.module = module, r.name = name; });
  }
  void device(i32 ordinal, u64 memory, u64 context) {
    const u64 name = text("Test GPU");
    add<DeviceFacts>(definitions(), "", 2, 2, [&](auto& r) {
      r.device = ordinal, r.memory_bytes = memory, r.name = name, r.sms = 132, r.capability_major = 9,
      r.uuid_low = 7u + static_cast<u32>(ordinal);
      r.max_threads_per_sm = 2048, r.max_blocks_per_sm = 32, r.registers_per_sm = 65536, r.shared_bytes_per_sm = 233472;
      r.reserved_shared_bytes = 1024, r.warp_size = 32;
    });
    add<ContextFacts>(definitions(), "", 2, 2, [&](auto& r) { r.context = context, r.device = ordinal, r.flags = 1; });
  }

  void info(const std::string& key, const std::string& value) { info_ += key + "\t" + value + "\n"; }
  void drop(Thread thread, DropReason reason, u64 count) { threads_[thread.index].dropped[reason] += count; }
  void in_flight(Thread thread, const std::string& variant, Nanos begin, u32 depth = 0) {
    open_.push_back({static_cast<u32>(thread.index), 1, threads_[thread.index].tid, call(variant),
                     static_cast<Ticks>(begin), 0x5ea, depth, 0});
  }
  void end(EndReason reason, i32 detail = 0, Nanos realtime = 0) { end_ = {reason, detail, 0, realtime}; }
  void no_end() { has_end_ = false; }
  void identity(i32 pid, u64 random_id) { pid_ = pid, random_id_ = random_id; }

  void write(const std::string& path) const {
    FileHeader header{};
    header.random_id = random_id_;
    header.pid = pid_;
    header.clock = ClockKind::Monotonic;
    const auto slash = path.rfind('/');
    Fd directory(::open(path.substr(0, slash).c_str(), O_RDONLY | O_DIRECTORY));
    auto created = TraceWriter::create(directory.get(), path.substr(slash + 1), header, 0);
    ASSERT_TRUE(created.ok());
    TraceWriter& writer = created.value();
    std::string schema(write_schema_text(nullptr, 0), '\0');
    write_schema_text(schema.data(), schema.size());
    schema += schema_;
    writer.append(ChunkKind::Schema, schema.data(), schema.size());
    writer.append(ChunkKind::Info, info_.data(), info_.size());
    write_threads(writer);
    if (!open_.empty()) writer.append(ChunkKind::InFlight, open_.data(), open_.size() * sizeof open_[0]);
    if (has_end_) writer.append(ChunkKind::End, &end_, sizeof end_);
  }

  // Through a file and back.
  ProcessTrace load(TimeWindow window = {}) const {
    TemporaryDirectory directory;
    write(directory.file("t.gtrace"));
    auto opened = TraceReader::open(directory.file("t.gtrace"));
    EXPECT_TRUE(opened.ok());
    return load_process(opened.value(), window);
  }
  LoadedRun load_all() const {
    TemporaryDirectory directory;
    write(directory.file("t.gtrace"));
    LoadRequest request;
    request.files = {directory.file("t.gtrace")};
    auto loaded = load_run(request);
    EXPECT_TRUE(loaded.ok());
    return std::move(loaded).value();
  }

 private:
  struct Lane {
    i32 tid;
    Bytes8 records;
    u32 count;
    std::map<DropReason, u64> dropped;
  };

  void append(Thread thread, const void* record, std::size_t size) {
    Lane& lane = threads_[thread.index];
    const auto* bytes = static_cast<const u8*>(record);
    lane.records.insert(lane.records.end(), bytes, bytes + size);
    ++lane.count;
  }

  void write_threads(TraceWriter& writer) const {
    std::vector<ThreadEntry> entries;
    std::vector<HealthEntry> health;
    HealthEntry process{};
    process.slot = kProcessSlot;
    for (u32 slot = 0; slot < threads_.size(); ++slot) {
      entries.push_back({slot, 1, threads_[slot].tid, 0, 1, 0, "worker"});
      HealthEntry entry{};
      entry.slot = slot, entry.incarnation = 1, entry.tid = threads_[slot].tid;
      entry.stored = entry.seen = threads_[slot].count;
      for (const auto& [reason, count] : threads_[slot].dropped) {
        entry.dropped[static_cast<u32>(reason)] = count;
        entry.seen += count;
        process.dropped[static_cast<u32>(reason)] += count;
      }
      process.seen += entry.seen;
      process.stored += entry.stored;
      health.push_back(entry);
    }
    health.push_back(process);
    writer.append(ChunkKind::Thread, entries.data(), entries.size() * sizeof entries[0]);
    const Anchor anchors[] = {{1, 1, 1'700'000'000'000'000'001, 2},
                              {1'000'000'001, 1'000'000'001, 1'700'000'001'000'000'001, 2}};
    writer.append(ChunkKind::Anchors, anchors, sizeof anchors);
    for (u32 slot = 0; slot < threads_.size(); ++slot) {
      if (threads_[slot].count) write_records(writer, slot);
    }
    writer.append(ChunkKind::Health, health.data(), health.size() * sizeof health[0]);
  }

  void write_records(TraceWriter& writer, u32 slot) const {
    constexpr std::size_t kMost = 1u << 16;
    const Lane& lane = threads_[slot];
    u64 first = 0;
    std::size_t begin = 0;
    while (begin < lane.records.size()) {
      std::size_t at = begin;
      u32 count = 0;
      while (at < lane.records.size() && at - begin < kMost) {
        at += reinterpret_cast<const RecordHeader*>(lane.records.data() + at)->size;
        ++count;
      }
      ASSERT_TRUE(writer.append_records({slot, 1, first, count}, lane.records.data() + begin, at - begin));
      first += count;
      begin = at;
    }
  }

  std::vector<Lane> threads_;
  std::map<std::string, u16> calls_;
  std::string schema_, info_ = "executable\t/bin/test\nhost\thost1\nboot_id\tb1\noption.collect\tapi\n";
  std::vector<InFlightEntry> open_;
  EndEntry end_{EndReason::Exited, 0, 0, 0};
  bool has_end_ = true;
  i32 pid_ = 4242;
  u64 random_id_ = 77, texts_ = 0;
};

// The row of a table whose column has that value; fails the test where there is none.
inline const Row& row_with(const Table& table, const std::string& key, const Value& value) {
  const int at = table.column(key);
  for (const Row& row : table.rows) {
    if (at >= 0 && row[static_cast<std::size_t>(at)] == value) return row;
  }
  ADD_FAILURE() << table.section << " has no row with that " << key;
  static const Row kNone(64);
  return kNone;
}
inline Value cell(const Table& table, const Row& row, const std::string& key) {
  const int at = table.column(key);
  EXPECT_GE(at, 0) << table.section << " has no column " << key;
  return at < 0 ? Value() : row[static_cast<std::size_t>(at)];
}
inline Value whole(i64 value) { return value; }
inline Value text_value(const char* value) { return std::string(value); }

}  // namespace gputrace::test
