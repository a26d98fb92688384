// Writes a trace as a process with device records leaves it, for measuring the analyzer without a driver:
//   device_trace FILE LAUNCHES
// Four threads launch 64 kernels in turn on a stream each, 5 us apart; CUPTI's records (a key and a kernel for each
// launch) come in buffers of 4096, a reading of the clock every 100 ms. Three records a launch.
#include <fcntl.h>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "trace/record.h"
#include "trace/schema.h"
#include "trace/writer.h"

namespace {

using namespace gputrace;

constexpr u32 kThreads = 4, kFunctions = 64, kBuffer = 4096;
constexpr u32 kCollector = kThreads + 1;  // its slot
constexpr std::size_t kChunk = 1u << 20;

class Lanes {
 public:
  explicit Lanes(TraceWriter& writer) : writer_(writer), lanes_(kCollector + 1) {}

  template <typename Record, typename Fill>
  void add(u32 slot, u16 call, Ticks begin, Ticks end, Fill&& fill) {
    Record record{};
    record.header = {static_cast<u16>(Record::kType), sizeof(Record), call, 0, begin, end};
    fill(record);
    append(slot, &record, sizeof record);
  }
  void append(u32 slot, const void* record, std::size_t size) {
    Lane& lane = lanes_[slot];
    lane.bytes.insert(lane.bytes.end(), static_cast<const u8*>(record), static_cast<const u8*>(record) + size);
    ++lane.count;
    if (lane.bytes.size() >= kChunk) flush(slot);
  }
  void flush(u32 slot) {
    Lane& lane = lanes_[slot];
    if (lane.count == 0) return;
    if (!writer_.append_records({slot, 1, lane.first, lane.count}, lane.bytes.data(), lane.bytes.size())) std::exit(1);
    lane.first += lane.count;
    lane.count = 0;
    lane.bytes.clear();
  }
  u64 written(u32 slot) const { return lanes_[slot].first; }

 private:
  struct Lane {
    std::vector<u8> bytes;
    u64 first = 0;
    u32 count = 0;
  };
  TraceWriter& writer_;
  std::vector<Lane> lanes_;
};

void define(Lanes& lanes) {
  for (u32 i = 0; i < kFunctions; ++i) {
    const std::string name = "kernel_" + std::to_string(i);
    std::vector<u8> bytes(align_up(sizeof(Text) + name.size(), 8));
    Text text{};
    text.header = {static_cast<u16>(RecordType::Text), static_cast<u16>(bytes.size()), 0, 0, 1, 1};
    text.id = 1000 + i;
    text.total = static_cast<u32>(name.size());
    std::memcpy(bytes.data(), &text, sizeof text);
    std::memcpy(bytes.data() + sizeof text, name.data(), name.size());
    lanes.append(0, bytes.data(), bytes.size());
    lanes.add<FunctionGet>(0, 0, 2, 2, [&](auto& r) { r.function = 0xf00 + i, r.module = 0xa0, r.name = 1000 + i; });
  }
  lanes.add<ContextFacts>(0, 0, 2, 2, [](auto& r) { r.context = 0xc0, r.flags = 1; });
}

struct Launch {
  Ticks begin, end, start, finish;
  u32 thread, function, correlation;
};

void report(Lanes& lanes, std::vector<Launch>& buffer, Ticks now) {
  for (const Launch& launch : buffer) {
    lanes.add<DeviceApi>(kCollector, 0, now, now, [&](auto& r) {
      r.start = launch.begin + 100, r.finish = launch.end - 100, r.correlation = launch.correlation;
      r.thread = 100 + launch.thread, r.callback = 307, r.level = 1;
    });
  }
  for (const Launch& launch : buffer) {
    lanes.add<DeviceKernel>(kCollector, 0, now, now, [&](auto& r) {
      r.start = launch.start, r.finish = launch.finish, r.name = 1000 + launch.function;
      r.correlation = launch.correlation, r.context = 1, r.stream = 7 + launch.thread;
      r.grid_x = 8, r.grid_y = r.grid_z = 1, r.block_x = 256, r.block_y = r.block_z = 1, r.registers = 32;
    });
  }
  buffer.clear();
}

void write_launches(Lanes& lanes, u64 count) {
  std::vector<Launch> buffer;
  Ticks stream_end[kThreads] = {}, next_reading = 0;
  u64 random = 1;
  for (u64 i = 0; i < count; ++i) {
    random = random * 6364136223846793005ull + 1442695040888963407ull;
    Launch launch{};
    launch.thread = static_cast<u32>(i % kThreads);
    launch.function = static_cast<u32>(random >> 40) % kFunctions;
    launch.begin = 1'000'000 + i * 1250;
    launch.end = launch.begin + 2000 + (random >> 54);
    launch.start = std::max(stream_end[launch.thread], launch.begin + 5000) + (random >> 55);
    launch.finish = launch.start + 1000 + (random >> 33) % 4000;
    stream_end[launch.thread] = launch.finish;
    launch.correlation = static_cast<u32>(10 + i * 2);
    lanes.add<KernelLaunch>(launch.thread + 1, 1, launch.begin, launch.end, [&](auto& r) {
      r.function = 0xf00 + launch.function, r.context = 0xc0, r.stream = 0x500 + launch.thread;
      r.grid_x = 8, r.grid_y = r.grid_z = 1, r.block_x = 256, r.block_y = r.block_z = 1;
    });
    buffer.push_back(launch);
    const Ticks now = launch.finish + 10'000;
    if (buffer.size() == kBuffer) report(lanes, buffer, now);
    if (now < next_reading) continue;
    lanes.add<DeviceClock>(kCollector, 0, now - 50, now + 50, [&](auto& r) { r.device = now; });
    next_reading = now + 100'000'000;
  }
  const Ticks end = 1'000'000 + count * 1250 + 10'000'000;
  report(lanes, buffer, end);
  lanes.add<DeviceClock>(kCollector, 0, end, end + 100, [&](auto& r) { r.device = end + 50; });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return std::fprintf(stderr, "usage: device_trace FILE LAUNCHES\n"), 2;
  const std::string path = argv[1];
  const u64 count = std::strtoull(argv[2], nullptr, 10);
  const auto slash = path.rfind('/');
  Fd folder(::open(slash == std::string::npos ? "." : path.substr(0, slash).c_str(), O_RDONLY | O_DIRECTORY));
  FileHeader header{};
  header.random_id = 1;
  header.pid = 1;
  header.clock = ClockKind::Monotonic;
  auto created = TraceWriter::create(folder.get(), path.substr(slash + 1), header, 0);
  if (!created.ok()) return std::fprintf(stderr, "cannot write %s\n", argv[1]), 1;
  TraceWriter& writer = created.value();
  std::string schema(write_schema_text(nullptr, 0), '\0');
  write_schema_text(schema.data(), schema.size());
  schema += "call 1 cuLaunchKernel driver cuLaunchKernel\n";
  writer.append(ChunkKind::Schema, schema.data(), schema.size());
  const std::string info = "executable\t/bin/bench\nhost\tbench\noption.collect\tapi,device\n";
  writer.append(ChunkKind::Info, info.data(), info.size());
  std::vector<ThreadEntry> threads;
  for (u32 slot = 0; slot <= kCollector; ++slot)
    threads.push_back({slot, 1, static_cast<i32>(slot ? 99 + slot : 0), 0, 1, 0, "thread"});
  writer.append(ChunkKind::Thread, threads.data(), threads.size() * sizeof threads[0]);
  const Anchor anchors[] = {{1, 1, 1'700'000'000'000'000'001, 2},
                            {1'000'000'000'001, 1'000'000'000'001, 1'700'001'000'000'000'001, 2}};
  writer.append(ChunkKind::Anchors, anchors, sizeof anchors);
  Lanes lanes(writer);
  define(lanes);
  write_launches(lanes, count);
  std::vector<HealthEntry> health;
  HealthEntry process{};
  process.slot = kProcessSlot;
  for (u32 slot = 0; slot <= kCollector; ++slot) {
    lanes.flush(slot);
    HealthEntry entry{};
    entry.slot = slot, entry.incarnation = 1, entry.tid = threads[slot].tid;
    entry.seen = entry.stored = lanes.written(slot);
    process.seen += entry.seen, process.stored += entry.stored;
    health.push_back(entry);
  }
  health.push_back(process);
  writer.append(ChunkKind::Health, health.data(), health.size() * sizeof health[0]);
  const EndEntry end{EndReason::Exited, 0, 0, 0};
  writer.append(ChunkKind::End, &end, sizeof end);
  return 0;
}
