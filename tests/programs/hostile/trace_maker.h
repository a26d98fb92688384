// What the ways of making dear traces are made with: a file of chunks, records, and a device on which launches and kernels meet.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "trace/codec/chunk_codec.h"
#include "trace/file.h"
#include "trace/record.h"
#include "trace/schema.h"

namespace gputrace::hostile {

inline std::size_t most_bytes = 1u << 20;
inline constexpr std::size_t kRoomForOthers = 48u << 10;  // what a way adds after the bulk of its file
inline constexpr std::size_t kChunk = 4u << 20;
inline constexpr u64 kMostRecords = 40'000'000;  // of one way
inline constexpr u64 kMostRaw = 224u << 20;      // of its records, decoded, for each MiB: more is refused unread
inline constexpr u16 kLaunchCall = 1, kOtherCall = 2, kLibraryCall = 3;

class File {
 public:
  File() {
    FileHeader header{};
    std::memcpy(header.magic, kFileMagic, sizeof kFileMagic);
    header.major = kFileMajor, header.minor = kFileMinor;
    header.header_size = sizeof header;
    header.clock = ClockKind::Monotonic;
    header.pid = 4242, header.random_id = 4242;
    header.checksum = file_header_checksum(&header, sizeof header);
    bytes_.assign(reinterpret_cast<const char*>(&header), sizeof header);
  }

  // False, and nothing appended: there is no room for it.
  bool append(ChunkHeader chunk, const void* data, std::size_t size, std::size_t room = 0) {
    chunk.magic = kChunkMagic;
    chunk.encoding = encoder_->encode(data, size, chunk.kind == ChunkKind::Records);
    const auto& payload = encoder_->payload();
    if (bytes_.size() + sizeof chunk + payload.size() + 8 + room > most_bytes) return false;
    chunk.sequence = sequence_++;
    chunk.stored_size = static_cast<u32>(payload.size());
    chunk.raw_size = static_cast<u32>(size);
    chunk.header_check = chunk_header_check(chunk);
    chunk.checksum = chunk_checksum(chunk, payload.data());
    bytes_.append(reinterpret_cast<const char*>(&chunk), sizeof chunk);
    bytes_.append(reinterpret_cast<const char*>(payload.data()), payload.size());
    bytes_.resize((bytes_.size() + 7) & ~std::size_t{7}, '\0');
    return true;
  }
  bool append(ChunkKind kind, const void* data, std::size_t size) {
    ChunkHeader chunk{};
    chunk.kind = kind;
    return append(chunk, data, size);
  }
  bool append(ChunkKind kind, const std::string& text) { return append(kind, text.data(), text.size()); }

  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
  std::unique_ptr<ChunkEncoder> encoder_ = std::make_unique<ChunkEncoder>();
  u64 sequence_ = 0;
};

inline std::string own_schema() {
  std::string text(write_schema_text(nullptr, 0), '\0');
  write_schema_text(text.data(), text.size());
  return text +
         "call 1 cuLaunchKernel driver cuLaunchKernel\ncall 2 cuMemAlloc driver cuMemAlloc_v2\n"
         "call 3 cublasGemmEx library cublasGemmEx\ncall 4 cudaLaunchKernel runtime cudaLaunchKernel\n";
}

class Trace {
 public:
  Trace(const std::string& schema = own_schema(), const std::string& info = "") {
    file_.append(ChunkKind::Schema, schema);
    file_.append(ChunkKind::Info,
                 "executable\t/bin/"
                 "hostile\nhost\th\nboot_id\tb\noption.collect\tapi,device,libs,nvtx,code,python,ops,io,waits\n" +
                     info);
    const ThreadEntry threads[] = {{0, 1, 0, 0, 1, 0, ""}, {1, 1, 101, 0, 1, 0, "one"}, {2, 1, 102, 0, 1, 0, "two"}};
    file_.append(ChunkKind::Thread, threads, sizeof threads);
    const Anchor anchors[] = {{1, 1, 1'700'000'000'000'000'001, 2},
                              {1'000'000'001, 1'000'000'001, 1'700'000'001'000'000'001, 2}};
    file_.append(ChunkKind::Anchors, anchors, sizeof anchors);
  }
  File& file() { return file_; }

  template <typename Record, typename Fill>
  static void put(std::string& bytes, u16 call, Nanos begin, Nanos end, Fill&& fill) {
    Record record{};
    record.header = {static_cast<u16>(Record::kType), sizeof(Record),         call, 0,
                     static_cast<Ticks>(begin),       static_cast<Ticks>(end)};
    fill(record);
    bytes.append(reinterpret_cast<const char*>(&record), sizeof record);
  }
  static void put_text(std::string& bytes, u64 id, const std::string& words, u32 offset = 0, u32 total = 0) {
    Text text{};
    const std::size_t size = align_up(sizeof text + words.size(), 8);
    text.header = {static_cast<u16>(RecordType::Text), static_cast<u16>(size), 0, 0, 1, 1};
    text.id = id, text.offset = offset;
    text.total = total ? total : static_cast<u32>(words.size());
    const std::size_t at = bytes.size();
    bytes.append(reinterpret_cast<const char*>(&text), sizeof text).append(words);
    bytes.resize(at + size);
  }
  // A text longer than a record, in pieces.
  static void put_long_text(std::string& bytes, u64 id, const std::string& words) {
    constexpr std::size_t kPiece = 60'000;
    for (std::size_t at = 0; at < words.size(); at += kPiece)
      put_text(bytes, id, words.substr(at, kPiece), static_cast<u32>(at), static_cast<u32>(words.size()));
  }

  // One chunk of whole records.
  bool chunk(u32 slot, const std::string& bytes, u32 incarnation = 1, std::size_t room = 0, Ticks begin = 1) {
    ChunkHeader header{};
    header.kind = ChunkKind::Records;
    header.slot = slot, header.incarnation = incarnation;
    if (slot >= next_.size()) next_.resize(slot + 1u);
    header.first_record = incarnation == 1 ? next_[slot] : 0;
    header.record_count = static_cast<u32>(count_records(reinterpret_cast<const u8*>(bytes.data()), bytes.size()));
    header.begin = begin, header.end = ~0ull >> 2;
    if (room && raw_ + bytes.size() > kMostRaw * (most_bytes >> 20)) return false;
    if (!file_.append(header, bytes.data(), bytes.size(), room)) return false;
    raw_ += bytes.size();
    if (incarnation == 1) next_[slot] += header.record_count;
    return true;
  }
  // `make(bytes, i)` for i = 0, 1, 2 ... until the file is full.
  template <typename Make>
  u64 fill_up(u32 slot, Make&& make, u64 most = kMostRecords) {
    u64 i = 0;
    while (i < most) {
      std::string bytes;
      const u64 first = i;
      while (bytes.size() < kChunk && i < most) make(bytes, i++);
      if (!chunk(slot, bytes, 1, kRoomForOthers)) return first;
    }
    return i;
  }
  // `fill`: what bounds grow with is as large as it may be.
  void write(const std::string& path, bool fill) {
    if (fill) add_noise();
    const EndEntry end{EndReason::Exited, 0, 0, 0};
    file_.append(ChunkKind::End, &end, sizeof end);
    std::ofstream(path, std::ios::binary)
        .write(file_.bytes().data(), static_cast<std::streamsize>(file_.bytes().size()));
    if (file_.bytes().size() > most_bytes) std::abort();
  }

 private:
  // Chunks of a kind that nobody knows, which do not compress.
  void add_noise() {
    std::mt19937_64 random(1);
    for (std::size_t size = 256u << 10; size >= 1024;) {
      std::vector<u64> noise(size / sizeof(u64));
      for (u64& word : noise) word = random();
      ChunkHeader header{};
      header.kind = static_cast<ChunkKind>(999);
      if (!file_.append(header, noise.data(), size, 1024)) size /= 2;
    }
  }

  File file_;
  std::vector<u64> next_;  // first record by slot
  u64 raw_ = 0;
};

inline constexpr u64 kContext = 0xc0, kFunction = 0xf00;
inline constexpr Nanos kBegin = 1000;
inline Nanos time_of(u64 i) { return kBegin + static_cast<Nanos>(i) * 100; }

inline void put_launch(std::string& bytes, u64 i, u64 function = kFunction, u64 stream = 0, u32 grid = 1) {
  Trace::put<KernelLaunch>(bytes, kLaunchCall, time_of(i), time_of(i) + 50, [&](auto& r) {
    r.function = function, r.context = kContext, r.stream = stream, r.grid_x = grid;
    r.grid_y = r.grid_z = r.block_x = r.block_y = r.block_z = 1;
  });
}
inline void put_key(std::string& bytes, u64 i, u32 callback = 307) {
  Trace::put<DeviceApi>(bytes, 0, time_of(i) + 60, time_of(i) + 60, [&](auto& r) {
    r.start = static_cast<u64>(time_of(i)) + 10, r.finish = static_cast<u64>(time_of(i)) + 40;
    r.correlation = static_cast<u32>(i + 1), r.thread = 101, r.callback = callback, r.level = 1;
  });
}
inline void put_kernel(std::string& bytes, u64 i, u64 name, u32 stream = 7, u32 device = 0, u32 grid = 1) {
  Trace::put<DeviceKernel>(bytes, 0, time_of(i) + 70, time_of(i) + 70, [&](auto& r) {
    r.start = static_cast<u64>(time_of(i)) + 20, r.finish = r.start + 30, r.name = name;
    r.correlation = static_cast<u32>(i + 1), r.device = device, r.context = 1, r.stream = stream;
    r.grid_x = grid, r.grid_y = r.grid_z = r.block_x = r.block_y = r.block_z = 1, r.registers = 32;
  });
}
inline void put_device(std::string& bytes, i32 ordinal, u64 name) {
  Trace::put<DeviceFacts>(bytes, 0, 2, 2, [&](auto& r) {
    r.device = ordinal, r.name = name, r.sms = 132, r.memory_bytes = 80ull << 30, r.capability_major = 9;
    r.max_threads_per_sm = 2048, r.max_blocks_per_sm = 32, r.registers_per_sm = 65536, r.warp_size = 32;
    r.shared_bytes_per_sm = 233472;
  });
}
inline void put_clock(std::string& bytes, Nanos at) {
  Trace::put<DeviceClock>(bytes, 0, at, at + 1, [&](auto& r) { r.device = static_cast<u64>(at), r.source = 1; });
}
inline void put_function(std::string& bytes, u64 function, u64 name, u64 module = 0, u32 thread = 0, Nanos at = 2) {
  Trace::put<FunctionGet>(bytes, 0, at, at,
                          [&](auto& r) { r.function = function, r.module = module, r.name = name, r.thread = thread; });
}

// A device with a context, a kernel with a name, and a clock: what makes launches and kernels meet.
inline Trace with_device() {
  Trace trace;
  std::string bytes;
  Trace::put_text(bytes, 1, "kernel");
  Trace::put_text(bytes, 2, "Device");
  put_device(bytes, 0, 2);
  Trace::put<ContextFacts>(bytes, 0, 2, 2, [](auto& r) { r.context = kContext, r.device = 0, r.flags = 1; });
  put_function(bytes, kFunction, 1);
  trace.chunk(0, bytes);
  std::string state;
  Trace::put<DeviceState>(state, 0, 2, 2, [](auto& r) { r.state = 1, r.kinds = ~0ull; });
  put_clock(state, 10);
  trace.chunk(2, state);
  return trace;
}

inline std::string bytes_of_texts(u64 count, std::size_t length) {
  std::string bytes;
  for (u64 i = 0; i < count; ++i) Trace::put_text(bytes, i + 1, std::string(length, 't'));
  return bytes;
}

// One way: its name, and the trace.
struct Way {
  std::string name;
  std::function<Trace()> make;
};

std::vector<Way> ways_of_calls();
std::vector<Way> ways_of_chunks();
std::vector<Way> ways_of_kernels();
std::vector<Way> ways_of_texts();

}  // namespace gputrace::hostile
