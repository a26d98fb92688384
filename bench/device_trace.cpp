// Writes the traces of a run as three processes with device records leave it, for measuring the analyzer without a
// driver:
//   device_trace FOLDER RECORDS [rows | queries]
// With `rows` the kernels are there a second time, as FOLDER/kernels-N.csv (process, name, start, finish), for programs
// that are asked the same. With `queries` an event is asked for behind each launch: two calls for each kernel.
// In each process four threads launch 64 kernels in turn on two streams each, 5 us apart; CUPTI's records (a key and a
// kernel for each launch) come in buffers of 4096, a reading of the clock every 100 ms. One record in a hundred is of
// another kind: copies, memsets, allocations, waits, events, graphs, NVTX, modules, functions, and what CUPTI tells
// beside operations.
#include <fcntl.h>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "trace/record.h"
#include "trace/schema.h"
#include "trace/writer.h"

namespace {

using namespace gputrace;

constexpr u32 kProcesses = 3, kThreads = 4, kStreams = 8, kFunctions = 64, kBuffer = 4096;
constexpr u32 kCollector = kThreads + 1;  // its slot
constexpr std::size_t kChunk = 1u << 20;
constexpr u64 kOthersEvery = 200;  // launches between two groups of other records, some six in each
constexpr Nanos kBegin = 1'000'000'000, kBetween = 1250;
constexpr u64 kExec = 0xe0, kGraph = 0xe1, kContext = 0xc0;
constexpr Nanos kClockReadings = 100'000'000;

enum Id : u16 {
  kLaunchId = 1,
  kCopyId,
  kMemsetId,
  kAllocId,
  kFreeId,
  kSyncId,
  kEventId,
  kGraphId,
  kQueryId,
  kModuleId
};
constexpr const char* kCalls[] = {"cuLaunchKernel", "cuMemcpyHtoDAsync_v2", "cuMemsetD8Async", "cuMemAlloc_v2",
                                  "cuMemFree_v2",   "cuStreamSynchronize",  "cuEventRecord",   "cuGraphLaunch",
                                  "cuEventQuery",   "cuModuleLoad"};
enum Callback : u32 { kLaunchCallback = 307, kCopyCallback = 279, kMemsetCallback = 218, kGraphCallback = 514 };

// Of the TSC of a 2.5 GHz processor.
Ticks ticks(Nanos time) { return static_cast<Ticks>(time) * 5 / 2; }

// The file of one process: records by thread, in chunks.
class Lanes {
 public:
  explicit Lanes(TraceWriter& writer) : writer_(writer), lanes_(kCollector + 1) {}

  template <typename Record, typename Fill>
  void add(u32 slot, u16 call, Nanos begin, Nanos end, Fill&& fill) {
    Record record{};
    record.header = {static_cast<u16>(Record::kType), sizeof(Record), call, 0, ticks(begin), ticks(end)};
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

void define_text(Lanes& lanes, u64 id, const std::string& words) {
  Text text{};
  const std::size_t size = align_up(sizeof text + words.size(), 8);
  text.header = {static_cast<u16>(RecordType::Text), static_cast<u16>(size), 0, 0, ticks(1), ticks(1)};
  text.id = id;
  text.total = static_cast<u32>(words.size());
  std::string bytes(reinterpret_cast<const char*>(&text), sizeof text);
  bytes += words;
  bytes.resize(size);
  lanes.append(0, bytes.data(), bytes.size());
}

void define_function(Lanes& lanes, u32 function, Nanos at) {
  lanes.add<FunctionGet>(0, 0, at, at,
                         [&](auto& r) { r.function = 0xf00 + function, r.module = 0xa0, r.name = 1000 + function; });
  lanes.add<FunctionFacts>(0, 0, at, at, [&](auto& r) {
    r.function = 0xf00 + function, r.context = kContext, r.registers = 32, r.max_threads = 1024;
    r.static_shared_bytes = r.local_bytes = r.const_bytes = 0, r.ptx_version = r.binary_version = 90;
  });
}

void instantiate_graph(Lanes& lanes, u32 slot, Nanos at, u32 flags) {
  lanes.add<GraphInstantiate>(slot, 0, at, at, [&](auto& r) {
    r.graph = kGraph, r.exec = kExec, r.nodes = r.kernel_nodes = 1, r.flags = flags;
  });
  lanes.add<GraphNode>(slot, 0, at, at, [&](auto& r) {
    r.exec = kExec, r.node = 1, r.function = 0xf00, r.grid_x = 8, r.grid_y = r.grid_z = 1;
    r.block_x = 256, r.block_y = r.block_z = 1;
  });
}

void define(Lanes& lanes) {
  for (u32 i = 0; i < kFunctions; ++i) {
    define_text(lanes, 1000 + i, "kernel_" + std::to_string(i));
    define_function(lanes, i, kBegin);
  }
  define_text(lanes, 2000, "a range");
  define_text(lanes, 2001, "libcupti.so");
  lanes.add<ContextFacts>(0, 0, kBegin, kBegin, [](auto& r) { r.context = kContext, r.flags = 1; });
  lanes.add<DeviceState>(kCollector, 0, kBegin, kBegin, [](auto& r) { r.reason = 2001, r.state = 2; });
  instantiate_graph(lanes, 1, kBegin, 0);
}

// What was given to a device: the call, and when it ran.
struct Work {
  enum Kind : u8 { Kernel, Copy, Memset, Replay } kind;
  u32 thread, stream, function, correlation;
  Nanos begin, end, start, finish;
};

void report(Lanes& lanes, std::vector<Work>& buffer, Nanos now) {
  constexpr u32 kCallbacks[] = {kLaunchCallback, kCopyCallback, kMemsetCallback, kGraphCallback};
  for (const Work& work : buffer) {
    lanes.add<DeviceApi>(kCollector, 0, now, now, [&](auto& r) {
      r.start = static_cast<u64>(work.begin) + 100, r.finish = static_cast<u64>(work.end) - 100;
      r.correlation = work.correlation, r.thread = 100 + work.thread, r.callback = kCallbacks[work.kind], r.level = 1;
    });
  }
  for (const Work& work : buffer) {
    const auto common = [&](auto& r) {
      r.start = static_cast<u64>(work.start), r.finish = static_cast<u64>(work.finish);
      r.correlation = work.correlation, r.context = 1, r.stream = 7 + work.stream;
    };
    if (work.kind == Work::Copy) {
      lanes.add<DeviceCopy>(kCollector, 0, now, now, [&](auto& r) {
        common(r), r.bytes = 4096, r.kind = 1, r.source_memory = 2, r.destination_memory = 3, r.asynchronous = 1;
        r.source_device = r.destination_device = -1;
      });
    } else if (work.kind == Work::Memset) {
      lanes.add<DeviceMemset>(kCollector, 0, now, now, [&](auto& r) { common(r), r.bytes = 4096, r.memory = 3; });
    } else {
      lanes.add<DeviceKernel>(kCollector, 0, now, now, [&](auto& r) {
        common(r), r.name = 1000 + work.function, r.graph = work.kind == Work::Replay ? 5 : 0;
        r.grid_x = 8, r.grid_y = r.grid_z = 1, r.block_x = 256, r.block_y = r.block_z = 1, r.registers = 32;
      });
    }
  }
  buffer.clear();
}

// A program of one process.
class Process {
 public:
  // `rows`: where its kernels are written as rows; nullptr: nowhere. `queries`: a call more for each launch.
  Process(Lanes& lanes, u32 number, std::FILE* rows, bool queries)
      : lanes_(lanes), rows_(rows), queries_(queries), number_(number), random_(number * 2 + 1) {}

  void run(u64 records) {
    u64 launches = 0;
    for (u64 others = 0; launches * (queries_ ? 4 : 3) + others < records; ++launches) {
      launch(launches);
      if (launches % kOthersEvery == 0) others += other(launches);
      if (buffer_.size() >= kBuffer) report(lanes_, buffer_, collector_now());
      if (time_ >= next_reading_) read_clock();
    }
    time_ += 10'000'000;
    report(lanes_, buffer_, collector_now());
    read_clock();
  }
  Nanos end() const { return time_ + 1'000'000; }

 private:
  u64 next_random() { return random_ = random_ * 6364136223846793005ull + 1442695040888963407ull; }

  Work work(Work::Kind kind, u32 thread, u32 stream) {
    const u64 random = next_random();
    Work made{kind, thread, stream, static_cast<u32>(random >> 40) % kFunctions, correlation_ += 2, time_, 0, 0, 0};
    made.end = made.begin + 2000 + static_cast<Nanos>(random >> 54);
    made.start = std::max(stream_end_[stream], made.begin + 5000) + static_cast<Nanos>(random >> 55);
    made.finish = made.start + 1000 + static_cast<Nanos>((random >> 33) % 4000);
    stream_end_[stream] = made.finish;
    buffer_.push_back(made);
    const bool kernel = kind == Work::Kernel || kind == Work::Replay;
    if (rows_ && kernel)
      std::fprintf(rows_, "%u,kernel_%u,%lld,%lld\n", number_, made.function, static_cast<long long>(made.start),
                   static_cast<long long>(made.finish));
    return made;
  }

  void launch(u64 number) {
    const u32 thread = static_cast<u32>(number % kThreads), stream = static_cast<u32>(number % kStreams);
    time_ += kBetween;
    const Work made = work(Work::Kernel, thread, stream);
    lanes_.add<KernelLaunch>(thread + 1, kLaunchId, made.begin, made.end, [&](auto& r) {
      r.function = 0xf00 + made.function, r.context = kContext, r.stream = 0x500 + stream;
      r.grid_x = 8, r.grid_y = r.grid_z = 1, r.block_x = 256, r.block_y = r.block_z = 1;
    });
    free_at_ = made.end + 10;
    if (!queries_) return;
    lanes_.add<Call>(thread + 1, kQueryId, free_at_, free_at_ + 80, [&](auto& r) { r.object = 0x900 + stream; });
    free_at_ += 90;
  }

  // Records of other kinds, by the thread that launched last. Returns how many.
  u64 other(u64 number) {
    const u32 thread = static_cast<u32>(number % kThreads), slot = thread + 1;
    const u32 stream = static_cast<u32>(number % kStreams);
    time_ = free_at_;
    switch (number / kOthersEvery % 6) {
      case 0:
        return transfers(thread, slot, stream);
      case 1:
        return memory(slot);
      case 2:
        return order(slot, stream);
      case 3:
        return graph(thread, slot, stream);
      case 4:
        return of_the_device();
      default:
        return definitions(number, slot);
    }
  }

  u64 transfers(u32 thread, u32 slot, u32 stream) {
    const Work copy = work(Work::Copy, thread, stream);
    lanes_.add<gputrace::Copy>(slot, kCopyId, copy.begin, copy.end, [&](auto& r) {
      r.destination = 0x70000000, r.source = 0x1000, r.bytes = 4096, r.stream = 0x500 + stream, r.context = kContext;
      r.kind = static_cast<u8>(CopyKind::HtoD), r.asynchronous = 1;
    });
    time_ = copy.end + 10;
    const Work set = work(Work::Memset, thread, stream);
    lanes_.add<gputrace::Memset>(slot, kMemsetId, set.begin, set.end, [&](auto& r) {
      r.destination = 0x70000000, r.bytes = 4096, r.stream = 0x500 + stream, r.context = kContext, r.asynchronous = 1;
    });
    time_ = set.end + 10;
    return 6;
  }

  u64 memory(u32 slot) {
    for (u64 i = 0; i < 3; ++i) {
      const u64 address = 0x70000000 + i * 0x10000;
      lanes_.add<Alloc>(slot, kAllocId, time_, time_ + 500, [&](auto& r) {
        r.address = address, r.bytes = 4096, r.context = kContext, r.kind = 1, r.device = -1;
      });
      lanes_.add<Free>(slot, kFreeId, time_ + 510, time_ + 600,
                       [&](auto& r) { r.address = address, r.context = kContext, r.kind = 1; });
      time_ += 610;
    }
    return 6;
  }

  u64 order(u32 slot, u32 stream) {
    const u64 event = 0x900 + stream;
    for (const u32 what : {1u, 2u}) {
      lanes_.add<StreamOrder>(slot, kEventId, time_, time_ + 100, [&](auto& r) {
        r.object = event, r.stream = 0x500 + (stream + what - 1) % kStreams, r.context = kContext, r.what = what;
      });
      time_ += 110;
    }
    lanes_.add<Sync>(slot, kSyncId, time_, time_ + 900, [&](auto& r) {
      r.object = 0x500 + stream, r.context = kContext, r.what = static_cast<u32>(SyncKind::Stream);
    });
    lanes_.add<Call>(slot, kQueryId, time_ + 910, time_ + 990, [&](auto& r) { r.object = event; });
    for (const ObjectAct what : {ObjectAct::Destroyed, ObjectAct::Created}) {
      lanes_.add<ObjectCall>(slot, kEventId, time_ + 1000, time_ + 1010, [&](auto& r) {
        r.object = event, r.parent = kContext, r.kind = static_cast<u32>(ObjectKind::Event);
        r.what = static_cast<u32>(what);
      });
    }
    time_ += 1020;
    return 6;
  }

  u64 graph(u32 thread, u32 slot, u32 stream) {
    instantiate_graph(lanes_, slot, time_, 1);
    const Work replay = work(Work::Replay, thread, stream);
    lanes_.add<GraphLaunch>(slot, kGraphId, replay.begin, replay.end,
                            [&](auto& r) { r.exec = kExec, r.stream = 0x500 + stream, r.context = kContext; });
    time_ = replay.end + 10;
    return 5;
  }

  // What the collector writes beside operations.
  u64 of_the_device() {
    const u64 at = static_cast<u64>(time_);
    const Nanos now = collector_now();
    const auto add = [&](auto record, auto&& fill) { lanes_.add<decltype(record)>(kCollector, 0, now, now, fill); };
    add(DeviceOverhead{}, [&](auto& r) { r.start = at, r.finish = at + 100, r.kind = 1u << 16; });
    add(DeviceEnvironment{}, [&](auto& r) { r.at = at, r.kind = 1, r.first = 1500, r.second = 2600; });
    add(DeviceSync{}, [&](auto& r) { r.start = at, r.finish = at + 900, r.correlation = 1, r.stream = 7; });
    add(DeviceJit{}, [&](auto& r) { r.start = at, r.finish = at + 900, r.bytes = 100; });
    add(DevicePool{}, [&](auto& r) { r.at = at, r.bytes = 100; });
    add(DeviceStream{}, [&](auto& r) { r.stream = 0x500, r.context_handle = kContext, r.context = 1, r.id = 7; });
    return 6;
  }

  u64 definitions(u64 number, u32 slot) {
    define_function(lanes_, static_cast<u32>(number % kFunctions), time_);
    for (const NvtxAct what : {NvtxAct::Push, NvtxAct::Pop}) {
      lanes_.add<Nvtx>(slot, 0, time_, time_, [&](auto& r) { r.message = 2000, r.what = static_cast<u32>(what); });
      time_ += 10;
    }
    lanes_.add<ModuleLoad>(0, kModuleId, time_, time_ + 100, [&](auto& r) {
      r.module = 0xb0, r.bytes = 1000, r.what = static_cast<u32>(ModuleAct::Module), r.thread = 99 + slot;
    });
    lanes_.add<ModuleLoad>(0, kModuleId, time_ + 110, time_ + 120, [&](auto& r) {
      r.module = 0xb0, r.what = static_cast<u32>(ModuleAct::Unload), r.thread = 99 + slot;
    });
    time_ += 130;
    return 6;
  }

  // The collector is behind by what a buffer waits.
  Nanos collector_now() const { return time_ + 20'000; }

  void read_clock() {
    const Nanos now = collector_now() + 100;
    lanes_.add<DeviceClock>(kCollector, 0, now - 50, now + 50, [&](auto& r) { r.device = static_cast<u64>(now); });
    next_reading_ = now + kClockReadings;
  }

  Lanes& lanes_;
  std::vector<Work> buffer_;
  Nanos stream_end_[kStreams] = {};
  Nanos time_ = kBegin, free_at_ = kBegin, next_reading_ = 0;
  u32 correlation_ = 10;
  std::FILE* rows_;
  bool queries_;
  u32 number_;
  u64 random_;
};

void write_frame(TraceWriter& writer, std::vector<ThreadEntry>& threads, u32 process) {
  std::string schema(write_schema_text(nullptr, 0), '\0');
  write_schema_text(schema.data(), schema.size());
  for (std::size_t i = 0; i < std::size(kCalls); ++i)
    schema += "call " + std::to_string(i + 1) + " " + kCalls[i] + " driver " + kCalls[i] + "\n";
  writer.append(ChunkKind::Schema, schema.data(), schema.size());
  const std::string info =
      "executable\t/bin/bench\nhost\tbench\noption.collect\tapi,device\nrank\t" + std::to_string(process) + "\n";
  writer.append(ChunkKind::Info, info.data(), info.size());
  for (u32 slot = 0; slot <= kCollector; ++slot)
    threads.push_back({slot, 1, static_cast<i32>(slot ? 99 + slot : 0), 0, 1, 0, "thread"});
  writer.append(ChunkKind::Thread, threads.data(), threads.size() * sizeof threads[0]);
}

void write_end(TraceWriter& writer, Lanes& lanes, const std::vector<ThreadEntry>& threads, Nanos end) {
  std::vector<Anchor> anchors;  // twice a second, as the sidecar takes them
  for (Nanos at = kBegin / 2; at < end + 500'000'000; at += 500'000'000)
    anchors.push_back({ticks(at), at, 1'700'000'000'000'000'000 + at, 40});
  writer.append(ChunkKind::Anchors, anchors.data(), anchors.size() * sizeof anchors[0]);
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
  const EndEntry ended{EndReason::Exited, 0, 0, 0};
  writer.append(ChunkKind::End, &ended, sizeof ended);
}

void write_process(const char* folder, u32 process, u64 records, bool with_rows, bool queries) {
  const Fd place(::open(folder, O_RDONLY | O_DIRECTORY));
  FileHeader header{};
  header.random_id = process + 1;
  header.pid = static_cast<i32>(process + 1);
  header.clock = ClockKind::Tsc;
  auto created = TraceWriter::create(place.get(), "made-up-" + std::to_string(process) + ".gtrace", header, 0);
  if (!created.ok()) {
    std::fprintf(stderr, "cannot write into %s\n", folder);
    std::exit(1);
  }
  std::vector<ThreadEntry> threads;
  write_frame(created.value(), threads, process);
  Lanes lanes(created.value());
  define(lanes);
  struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  const std::string name = std::string(folder) + "/kernels-" + std::to_string(process) + ".csv";
  const std::unique_ptr<std::FILE, CloseFile> rows(with_rows ? std::fopen(name.c_str(), "we") : nullptr);
  Process program(lanes, process, rows.get(), queries);
  program.run(records);
  write_end(created.value(), lanes, threads, program.end());
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view more = argc == 4 ? argv[3] : "";
  const bool rows = more == "rows", queries = more == "queries";
  if (argc < 3 || argc > 4 || (argc == 4 && !rows && !queries))
    return std::fprintf(stderr, "usage: device_trace FOLDER RECORDS [rows | queries]\n"), 2;
  const u64 records = std::strtoull(argv[2], nullptr, 10) / kProcesses;
  std::vector<std::thread> writers;
  for (u32 i = 0; i < kProcesses; ++i)
    writers.emplace_back([&, i] { write_process(argv[1], i, records, rows, queries); });
  for (std::thread& writer : writers) writer.join();
  return 0;
}
