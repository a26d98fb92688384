// Writes traces of at most 1 MiB that cost as much as their writer could think of: what is cheap to store (columns that count up
// compress to nothing) and dear to read. One file for each way, NAME.gtrace:
//   hostile_traces FOLDER [--mib=N] [NAME...]        N: MiB instead of 1
//   hostile_traces --list
// Ways made by hand come first; then, for every type of record, one file in which everything is different from record to record
// and one in which everything is the same.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "trace/chunk_codec.h"
#include "trace/file.h"
#include "trace/record.h"
#include "trace/schema.h"

namespace {

using namespace gputrace;

std::size_t most_bytes = 1u << 20;
constexpr std::size_t kRoomForOthers = 48u << 10;  // what a way adds after the bulk of its file
constexpr std::size_t kChunk = 4u << 20;
constexpr u64 kMostRecords = 40'000'000;  // of one way
constexpr u64 kMostRaw = 224u << 20;      // of its records, decoded, for each MiB: more is refused unread
constexpr u16 kLaunchCall = 1, kOtherCall = 2, kLibraryCall = 3;

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

std::string own_schema() {
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
    file_.append(
        ChunkKind::Info,
        "executable\t/bin/hostile\nhost\th\nboot_id\tb\noption.collect\tapi,device,libs,nvtx,code,python,ops\n" + info);
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
  void write(const std::string& path) {
    const EndEntry end{EndReason::Exited, 0, 0, 0};
    file_.append(ChunkKind::End, &end, sizeof end);
    std::ofstream(path, std::ios::binary)
        .write(file_.bytes().data(), static_cast<std::streamsize>(file_.bytes().size()));
    if (file_.bytes().size() > most_bytes) std::abort();
  }

 private:
  File file_;
  std::vector<u64> next_;  // first record by slot
  u64 raw_ = 0;
};

constexpr u64 kContext = 0xc0, kFunction = 0xf00;
constexpr Nanos kBegin = 1000;
Nanos time_of(u64 i) { return kBegin + static_cast<Nanos>(i) * 100; }

void put_launch(std::string& bytes, u64 i, u64 function = kFunction, u64 stream = 0, u32 grid = 1) {
  Trace::put<KernelLaunch>(bytes, kLaunchCall, time_of(i), time_of(i) + 50, [&](auto& r) {
    r.function = function, r.context = kContext, r.stream = stream, r.grid_x = grid;
    r.grid_y = r.grid_z = r.block_x = r.block_y = r.block_z = 1;
  });
}
void put_key(std::string& bytes, u64 i, u32 callback = 307) {
  Trace::put<DeviceApi>(bytes, 0, time_of(i) + 60, time_of(i) + 60, [&](auto& r) {
    r.start = static_cast<u64>(time_of(i)) + 10, r.finish = static_cast<u64>(time_of(i)) + 40;
    r.correlation = static_cast<u32>(i + 1), r.thread = 101, r.callback = callback, r.level = 1;
  });
}
void put_kernel(std::string& bytes, u64 i, u64 name, u32 stream = 7, u32 device = 0, u32 grid = 1) {
  Trace::put<DeviceKernel>(bytes, 0, time_of(i) + 70, time_of(i) + 70, [&](auto& r) {
    r.start = static_cast<u64>(time_of(i)) + 20, r.finish = r.start + 30, r.name = name;
    r.correlation = static_cast<u32>(i + 1), r.device = device, r.context = 1, r.stream = stream;
    r.grid_x = grid, r.grid_y = r.grid_z = r.block_x = r.block_y = r.block_z = 1, r.registers = 32;
  });
}
void put_device(std::string& bytes, i32 ordinal, u64 name) {
  Trace::put<DeviceFacts>(bytes, 0, 2, 2, [&](auto& r) {
    r.device = ordinal, r.name = name, r.sms = 132, r.memory_bytes = 80ull << 30, r.capability_major = 9;
    r.max_threads_per_sm = 2048, r.max_blocks_per_sm = 32, r.registers_per_sm = 65536, r.warp_size = 32;
    r.shared_bytes_per_sm = 233472;
  });
}
void put_clock(std::string& bytes, Nanos at) {
  Trace::put<DeviceClock>(bytes, 0, at, at + 1, [&](auto& r) { r.device = static_cast<u64>(at), r.source = 1; });
}
void put_function(std::string& bytes, u64 function, u64 name, u64 module = 0, u32 thread = 0, Nanos at = 2) {
  Trace::put<FunctionGet>(bytes, 0, at, at,
                          [&](auto& r) { r.function = function, r.module = module, r.name = name, r.thread = thread; });
}

// A device with a context, a kernel with a name, and a clock: what makes launches and kernels meet.
Trace with_device() {
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

// ---------------------------------------------------------------------------------------------------------------------
// Ways made by hand.

Trace plain_calls() {
  Trace trace;
  trace.fill_up(1, [](std::string& bytes, u64 i) {
    Trace::put<Call>(bytes, kOtherCall, time_of(i), time_of(i) + 50, [](auto&) {});
  });
  return trace;
}

// Launches with their kernels; `vary` changes what may be different.
Trace joined(const std::function<void(std::string&, u64)>& launch, const std::function<void(std::string&, u64)>& kernel,
             u64 most = kMostRecords) {
  Trace trace = with_device();
  const u64 piece = 16'000;
  for (u64 first = 0; first < most; first += piece) {
    std::string calls, device;
    for (u64 i = first; i < first + piece; ++i) {
      launch(calls, i);
      put_key(device, i);
      kernel(device, i);
    }
    put_clock(device, time_of(first + piece));
    if (!trace.chunk(1, calls, 1, kRoomForOthers) || !trace.chunk(2, device, 1, kRoomForOthers)) break;
  }
  return trace;
}

Trace same_kernel() {
  return joined([](std::string& b, u64 i) { put_launch(b, i); }, [](std::string& b, u64 i) { put_kernel(b, i, 1); });
}
Trace shapes() {
  return joined([](std::string& b, u64 i) { put_launch(b, i, kFunction, 0, static_cast<u32>(i + 1)); },
                [](std::string& b, u64 i) { put_kernel(b, i, 1, 7, 0, static_cast<u32>(i + 1)); });
}
Trace streams() {
  return joined([](std::string& b, u64 i) { put_launch(b, i, kFunction, 0x1000 + i); },
                [](std::string& b, u64 i) { put_kernel(b, i, 1, static_cast<u32>(i + 7)); });
}
Trace devices() {
  return joined([](std::string& b, u64 i) { put_launch(b, i); },
                [](std::string& b, u64 i) { put_kernel(b, i, 1, 7, static_cast<u32>(i)); });
}
Trace handles() {
  return joined([](std::string& b, u64 i) { put_launch(b, i, kFunction + i); },
                [](std::string& b, u64 i) { put_kernel(b, i, 1); });
}
// Every kernel has a name of its own, and no call.
Trace kernel_names() {
  Trace trace = with_device();
  const u64 texts = trace.fill_up(
      0, [](std::string& bytes, u64 i) { Trace::put_text(bytes, 10 + i, "k" + std::to_string(i)); }, 100'000);
  trace.fill_up(2, [&](std::string& bytes, u64 i) { put_kernel(bytes, i, 10 + i % (texts + 1)); });
  return trace;
}

// One name of a megabyte, and as many functions with it as there is room for.
Trace long_name() {
  Trace trace;
  std::string bytes;
  Trace::put_long_text(bytes, 1, "_Z" + std::string(kMaxChunkRaw / 17, 'a'));
  trace.chunk(0, bytes);
  const u64 functions = trace.fill_up(
      0, [](std::string& b, u64 i) { put_function(b, kFunction + i, 1); }, 200'000);
  trace.fill_up(1, [&](std::string& b, u64 i) { put_launch(b, i, kFunction + i % (functions + 1)); });
  return trace;
}

// Names that grow when they are written out: each substitution stands for two of the one before.
Trace growing_names() {
  Trace trace;
  std::string bytes;
  const auto letter = [](u32 n) {
    constexpr char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    std::string word;
    for (u32 value = n;; value = value / 36 - 1) {
      word.insert(word.begin(), digits[value % 36]);
      if (value < 36) break;
    }
    return word;
  };
  for (u64 i = 0; i < 3000; ++i) {
    std::string name = "_Z" + std::to_string(10 + i % 90) + std::string(10 + i % 90, 'x') + "1aIiiE";
    for (u32 level = 0; level < 40; ++level) {
      const std::string before = "S" + letter(level) + "_";
      name += "S_I" + before + before + "E";
    }
    Trace::put_text(bytes, i + 1, name);
    put_function(bytes, kFunction + i, i + 1);
  }
  trace.chunk(0, bytes);
  trace.fill_up(1, [](std::string& b, u64 i) { put_launch(b, i, kFunction + i % 3000); });
  return trace;
}

// Modules come and go under one handle, functions of others stay: each time all are looked at.
Trace modules_again() {
  Trace trace;
  std::string bytes;
  Trace::put_text(bytes, 1, "kernel");
  for (u64 i = 0; i < 60'000; ++i) put_function(bytes, kFunction + i, 1);
  trace.chunk(0, bytes);
  trace.fill_up(0, [](std::string& b, u64 i) {
    Trace::put<ModuleLoad>(b, kOtherCall, time_of(i), time_of(i) + 1,
                           [&](auto& r) { r.module = 0xa0, r.thread = 101; });
  });
  return trace;
}
Trace images_of_one_module() {
  Trace trace;
  trace.fill_up(0, [](std::string& b, u64 i) {
    Trace::put<CodeImage>(b, 0, time_of(i), time_of(i), [&](auto& r) { r.module = 0xa0, r.image = i + 1; });
  });
  return trace;
}

// As many threads as there is room for, each with one chunk that lasts from the first moment to the last.
Trace threads() {
  Trace trace;
  std::string bytes;
  Trace::put<Call>(bytes, kOtherCall, kBegin, kBegin + 1, [](auto&) {});
  Trace::put<Call>(bytes, kOtherCall, Nanos{1} << 40, (Nanos{1} << 40) + 1, [](auto&) {});
  for (u32 i = 2; i < 1'000'000; ++i) {
    if (!trace.chunk(1, bytes, i, kRoomForOthers)) break;
  }
  return trace;
}
Trace thread_entries() {
  Trace trace;
  for (u32 first = 0;; first += 80'000) {
    std::vector<ThreadEntry> entries(80'000);
    for (u32 i = 0; i < entries.size(); ++i) entries[i] = {first + i + 10, 1, static_cast<i32>(first + i), 0, 1, 0, ""};
    ChunkHeader header{};
    header.kind = ChunkKind::Thread;
    if (!trace.file().append(header, entries.data(), entries.size() * sizeof entries[0], kRoomForOthers)) break;
  }
  return trace;
}
// Definitions name threads that are looked for among many.
Trace callers() {
  Trace trace;
  std::vector<ThreadEntry> entries(60'000);
  for (u32 i = 0; i < entries.size(); ++i) entries[i] = {i + 10, 1, static_cast<i32>(i + 1000), 0, 1, 0, ""};
  trace.file().append(ChunkKind::Thread, entries.data(), entries.size() * sizeof entries[0]);
  trace.fill_up(0, [](std::string& b, u64 i) {
    Trace::put<FunctionGet>(b, kOtherCall, time_of(i), time_of(i) + 1,
                            [&](auto& r) { r.function = kFunction, r.thread = 999; });
  });
  return trace;
}
// A few threads, each with one chunk as large as chunks may be.
Trace large_chunks() {
  Trace trace;
  std::string bytes;
  for (u64 i = 0; bytes.size() + 40 < kMaxChunkRaw; ++i)
    Trace::put<Call>(bytes, kOtherCall, time_of(i), time_of(i) + 50, [](auto&) {});
  for (u32 i = 2; i < 400; ++i) {
    if (!trace.chunk(1, bytes, i, kRoomForOthers)) break;
  }
  return trace;
}
// Chunks that do not decode to what they say.
Trace broken_chunks() {
  Trace trace;
  for (u32 i = 0; i < 1'000'000; ++i) {
    ChunkHeader header{};
    header.kind = i % 2 ? ChunkKind::Records : ChunkKind::InFlight;
    header.slot = 1, header.incarnation = 1, header.first_record = i * 2, header.record_count = 1;
    if (!trace.file().append(header, "12345678901234567890123456789012", 32, kRoomForOthers)) break;
  }
  return trace;
}

std::string bytes_of_texts(u64 count, std::size_t length) {
  std::string bytes;
  for (u64 i = 0; i < count; ++i) Trace::put_text(bytes, i + 1, std::string(length, 't'));
  return bytes;
}
Trace texts() {
  Trace trace;
  trace.fill_up(0, [](std::string& b, u64 i) { Trace::put_text(b, i + 1, "t"); });
  return trace;
}
// Ids that lie in one bucket of a table that takes them as they are.
Trace texts_in_one_bucket() {
  Trace trace;
  trace.fill_up(0, [](std::string& b, u64 i) { Trace::put_text(b, (i + 1) * 1056323ull, "t"); });
  return trace;
}
Trace handles_in_one_bucket() {
  Trace trace;
  trace.fill_up(1, [](std::string& b, u64 i) { put_launch(b, i, (i % 500'000 + 1) * 541241ull); });
  return trace;
}
Trace long_texts() {
  Trace trace;
  for (u64 id = 1; id < 2000; ++id) {
    std::string bytes;
    Trace::put_long_text(bytes, id, std::string(1'000'000, 't'));
    if (!trace.chunk(0, bytes, 1, kRoomForOthers)) break;
  }
  return trace;
}
// One long text that every record names.
Trace notes() {
  Trace trace;
  std::string bytes;
  Trace::put_long_text(bytes, 1, std::string(1'000'000, 'n'));
  trace.chunk(0, bytes);
  trace.fill_up(0, [](std::string& b, u64 i) {
    Trace::put<Note>(b, 0, time_of(i), time_of(i), [](auto& r) { r.text = 1, r.what = 1; });
  });
  return trace;
}
Trace nvtx_messages() {
  Trace trace;
  std::string bytes;
  Trace::put_long_text(bytes, 1, std::string(1'000'000, 'n'));
  trace.chunk(0, bytes);
  trace.fill_up(1, [](std::string& b, u64 i) {
    Trace::put<Nvtx>(b, 0, time_of(i), time_of(i), [&](auto& r) { r.message = 1, r.domain = 1, r.what = 1 + i % 2; });
  });
  return trace;
}

Trace schema_of(const std::function<void(std::string&, u64)>& line) {
  std::string text;
  for (u64 i = 0; text.size() + 100 < kMaxChunkRaw; ++i) line(text, i);
  Trace trace;
  trace.file().append(ChunkKind::Schema, text);
  for (int again = 0; again < 20; ++again) trace.file().append(ChunkKind::Schema, text);
  return trace;
}
Trace schema_values() {
  return schema_of([](std::string& text, u64 i) {
    if (i % 1000 == 0) text += "enum E" + std::to_string(i / 1000) + "\n";
    text += "value E" + std::to_string(i / 1000) + " " + std::to_string(i) + " w\n";
  });
}
Trace schema_fields() {
  return schema_of([](std::string& text, u64 i) {
    const std::string number = std::to_string(1000 + i / 4000);
    if (i % 4000 == 0) text += "record " + number + " R" + number + " 65528 Call \"d\"\n";
    text += "field R" + number + " f u8 24 none \"d\"\n";
  });
}
Trace schema_calls() {
  Trace trace = schema_of([](std::string& text, u64 i) {
    text += "call " + std::to_string(5 + i % 65'000) + " " + std::string(200, 'c') + " driver v\n";
  });
  trace.fill_up(1, [](std::string& b, u64 i) {
    Trace::put<Call>(b, static_cast<u16>(i), time_of(i), time_of(i) + 50,
                     [&](auto& r) { r.header.result = static_cast<u16>(i / 65536); });
  });
  return trace;
}
Trace schema_bad_lines() {
  return schema_of([](std::string& text, u64) { text += "\n?\n"; });
}

Trace info_of(const std::function<std::string(u64)>& line) {
  Trace trace;
  for (u64 i = 0;;) {
    std::string text;
    while (text.size() + 300 < kMaxChunkRaw / 2) text += line(i++) + "\n";
    ChunkHeader header{};
    header.kind = ChunkKind::Info;
    if (!trace.file().append(header, text.data(), text.size(), kRoomForOthers)) break;
  }
  return trace;
}
Trace info_not_collected() {
  return info_of([](u64 i) { return "not_collected\ta" + std::to_string(i) + ": why"; });
}
Trace info_options() {
  return info_of([](u64 i) { return "option.o" + std::to_string(i) + "\tv"; });
}
Trace info_warnings() {
  return info_of([](u64 i) { return "option_warning\tw" + std::to_string(i); });
}
Trace info_argv() {
  Trace trace;
  trace.file().append(ChunkKind::Info, "argv\t" + std::string(kMaxChunkRaw - 100, '\'') + "\n");
  trace.file().append(ChunkKind::Info, "argv\t" + std::string(kMaxChunkRaw - 100, '\x1f') + "\n");
  return trace;
}
Trace calls_in_flight() {
  Trace trace;
  for (u32 first = 0;; first += 80'000) {
    std::vector<InFlightEntry> entries(80'000);
    for (u32 i = 0; i < entries.size(); ++i) entries[i] = {1, 1, 101, kLaunchCall, first + i, i, 0, 0};
    ChunkHeader header{};
    header.kind = ChunkKind::InFlight;
    if (!trace.file().append(header, entries.data(), entries.size() * sizeof entries[0], kRoomForOthers)) break;
  }
  return trace;
}
Trace anchors() {
  Trace trace;
  for (u32 first = 0;; first += 200'000) {
    std::vector<Anchor> entries(200'000);
    for (u32 i = 0; i < entries.size(); ++i) {
      const u64 at = 1'000'000'002ull + first + i;
      entries[i] = {at, static_cast<Nanos>(at), 1'700'000'000'000'000'000 + static_cast<Nanos>(at), 2};
    }
    ChunkHeader header{};
    header.kind = ChunkKind::Anchors;
    if (!trace.file().append(header, entries.data(), entries.size() * sizeof entries[0], kRoomForOthers)) break;
  }
  return trace;
}
Trace health() {
  Trace trace;
  for (u32 first = 0;; first += 80'000) {
    std::vector<HealthEntry> entries(80'000);
    for (u32 i = 0; i < entries.size(); ++i) {
      entries[i].slot = first + i + 10, entries[i].incarnation = 1, entries[i].tid = static_cast<i32>(first + i);
      entries[i].seen = entries[i].dropped[0] = 1;
    }
    ChunkHeader header{};
    header.kind = ChunkKind::Health;
    if (!trace.file().append(header, entries.data(), entries.size() * sizeof entries[0], kRoomForOthers)) break;
  }
  return trace;
}

// Memory: as many live allocations, pools, devices as there is room for.
Trace allocations() {
  Trace trace;
  trace.fill_up(1, [](std::string& b, u64 i) {
    Trace::put<Alloc>(b, kOtherCall, time_of(i), time_of(i) + 50,
                      [&](auto& r) { r.address = 0x10000 + i * 512, r.bytes = 512, r.context = kContext, r.kind = 1; });
  });
  return trace;
}
Trace pools() {
  Trace trace;
  trace.fill_up(1, [](std::string& b, u64 i) {
    Trace::put<Alloc>(b, kOtherCall, time_of(i), time_of(i) + 50, [&](auto& r) {
      r.address = 0x10000 + i * 512, r.bytes = 512, r.context = kContext + i, r.kind = 1 + i % 8;
      r.pool = i + 1, r.device = static_cast<i32>(i);
    });
  });
  return trace;
}
// Contexts that go while much is allocated.
Trace contexts_that_go() {
  Trace trace;
  std::string bytes;
  for (u64 i = 0; i < 100'000; ++i)
    Trace::put<Alloc>(bytes, kOtherCall, time_of(i), time_of(i) + 50,
                      [&](auto& r) { r.address = 0x10000 + i * 512, r.bytes = 512, r.context = kContext, r.kind = 1; });
  trace.chunk(1, bytes);
  trace.fill_up(1, [](std::string& b, u64 i) {
    Trace::put<ObjectCall>(b, kOtherCall, time_of(100'000 + i), time_of(100'000 + i) + 50, [&](auto& r) {
      r.object = 0x9000 + i, r.kind = static_cast<u32>(ObjectKind::Context),
      r.what = static_cast<u32>(ObjectAct::Destroyed);
    });
  });
  return trace;
}

// Many streams have work; then the legacy stream, events and waits for the context, each of which means all of them.
Trace frontiers() {
  Trace trace = with_device();
  trace.fill_up(1, [](std::string& b, u64 i) {
    if (i < 200'000) return put_launch(b, i, kFunction, 0x1000 + i);
    if (i % 3 == 0) return put_launch(b, i, kFunction, 1);
    if (i % 3 == 1)
      return Trace::put<StreamOrder>(b, kOtherCall, time_of(i), time_of(i) + 1, [&](auto& r) {
        r.object = i, r.stream = 0x1000 + i % 200'000, r.context = kContext,
        r.what = static_cast<u32>(OrderKind::EventRecord);
      });
    Trace::put<Sync>(b, kOtherCall, time_of(i), time_of(i) + 1,
                     [&](auto& r) { r.context = kContext, r.what = static_cast<u32>(SyncKind::Context); });
  });
  return trace;
}

// One graph of many nodes, changed between replays: each time all nodes count.
Trace graph_changes() {
  Trace trace = with_device();
  std::string bytes;
  const auto node = [](std::string& b, u64 number, u32 kind, u64 at, u32 flags) {
    Trace::put<GraphNode>(b, kOtherCall, time_of(at), time_of(at) + 1, [&](auto& r) {
      r.exec = 0xe0, r.node = number, r.function = kFunction, r.kind = kind, r.flags = flags, r.bytes = 512;
      r.grid_x = r.grid_y = r.grid_z = r.block_x = r.block_y = r.block_z = 1, r.address = 0x10000 + number * 512;
    });
  };
  Trace::put<GraphInstantiate>(bytes, kOtherCall, 500, 501,
                               [](auto& r) { r.graph = 0xe1, r.exec = 0xe0, r.nodes = r.kernel_nodes = 100'000; });
  for (u64 i = 0; i < 100'000; ++i)
    node(bytes, i + 1, static_cast<u32>(i % 2 ? GraphNodeKind::Kernel : GraphNodeKind::MemAlloc), 6, 0);
  trace.chunk(1, bytes);
  trace.fill_up(1, [&](std::string& b, u64 i) {
    Trace::put<GraphLaunch>(b, kLaunchCall, time_of(i), time_of(i) + 50,
                            [](auto& r) { r.exec = 0xe0, r.context = kContext; });
    node(b, 1, static_cast<u32>(GraphNodeKind::Kernel), i, kNodeSet);
  });
  return trace;
}

Trace stacks() {
  Trace trace;
  std::string bytes = bytes_of_texts(2, 1000);
  for (u32 i = 1; i < 200'000; ++i)
    Trace::put<StackFrame>(bytes, 0, 5, 5, [&](auto& r) {
      r.function = 1, r.file = 2, r.id = i, r.parent = i - 1, r.line = i, r.language = 1;
    });
  trace.chunk(0, bytes);
  trace.fill_up(1, [](std::string& b, u64 i) {
    Trace::put<Stack>(b, 0, time_of(i), time_of(i), [&](auto& r) {
      r.frame = static_cast<u32>(i % 200'000), r.frames = r.frame, r.operation = static_cast<u32>(i % 200'000);
    });
    put_launch(b, i);
  });
  return trace;
}
Trace operations() {
  Trace trace;
  std::string bytes = bytes_of_texts(2, 1000);
  for (u32 i = 1; i < 200'000; ++i)
    Trace::put<StackFrame>(bytes, 0, 5, 5, [&](auto& r) {
      r.function = 1, r.file = 2, r.id = i, r.parent = i - 1, r.line = i, r.language = 2;
    });
  trace.chunk(0, bytes);
  trace.fill_up(1, [](std::string& b, u64 i) {
    put_launch(b, i);
    Trace::put<Operation>(b, 0, time_of(i), time_of(i) + 60,
                          [&](auto& r) { r.sequence = i, r.frame = static_cast<u32>(i % 200'000); });
  });
  return trace;
}

// Every call of a library is one of its own, and launches kernels of its own.
Trace library_rows() {
  Trace trace = with_device();
  trace.fill_up(1, [](std::string& b, u64 i) {
    put_launch(b, i, kFunction + i % 1000, 0, static_cast<u32>(i % 77));
    Trace::put<Matmul>(b, kLibraryCall, time_of(i) - 5, time_of(i) + 55,
                       [&](auto& r) { r.m = i, r.n = i, r.k = i, r.batch = 1, r.handle = i; });
  });
  return trace;
}
Trace communicators() {
  Trace trace = with_device();
  std::string bytes;
  for (u64 i = 0; i < 100'000; ++i)
    Trace::put<Communicator>(bytes, 0, 3, 3, [&](auto& r) {
      r.communicator = i + 1, r.id_hash = i, r.ranks = 1 << 30, r.rank = static_cast<i32>(i);
    });
  trace.chunk(0, bytes);
  trace.fill_up(1, [](std::string& b, u64 i) {
    put_launch(b, i);
    Trace::put<Collective>(b, kLibraryCall, time_of(i) - 5, time_of(i) + 55,
                           [&](auto& r) { r.communicator = i % 100'000 + 1, r.count = i, r.what = 1 + i % 5; });
  });
  return trace;
}

// Long gaps of the device, each over many calls of many threads.
Trace gaps() {
  Trace trace = with_device();
  for (u64 piece = 0; piece < 3000; ++piece) {
    std::string calls, device;
    for (u64 i = piece * 8000; i < (piece + 1) * 8000; ++i) {
      if (i % 100) {
        Trace::put<Sync>(calls, kOtherCall, time_of(i), time_of(i) + 90,
                         [&](auto& r) { r.context = kContext, r.what = static_cast<u32>(SyncKind::Context); });
        continue;
      }
      put_launch(calls, i);
      put_key(device, i);
      put_kernel(device, i, 1, static_cast<u32>(7 + i / 100 % 1000));
    }
    if (!trace.chunk(1, calls, 1, kRoomForOthers)) break;
    if (piece % 16) continue;
    put_clock(device, time_of((piece + 1) * 8000));
    if (!trace.chunk(2, device, 1, kRoomForOthers)) break;
  }
  return trace;
}
// No reading of the clock comes: all device records wait.
Trace no_clock() {
  Trace trace = with_device();
  trace.fill_up(2, [](std::string& b, u64 i) { put_kernel(b, i, 1); });
  return trace;
}
Trace clock_readings() {
  Trace trace = with_device();
  trace.fill_up(2, [](std::string& b, u64 i) { put_clock(b, time_of(i)); });
  return trace;
}
// Copies whose addresses lie in many allocations.
Trace copies() {
  Trace trace = with_device();
  trace.fill_up(1, [](std::string& b, u64 i) {
    Trace::put<Copy>(b, kOtherCall, time_of(i), time_of(i) + 50, [&](auto& r) {
      r.destination = i * 512, r.source = i * 1024, r.bytes = i, r.stream = 0x1000 + i, r.context = kContext + i,
      r.kind = static_cast<u8>(i % 6);
    });
  });
  return trace;
}

// ---------------------------------------------------------------------------------------------------------------------
// For every type of record.

bool is_word(std::string_view unit) {
  for (const char* plain :
       {"handle", "count", "bytes", "address", "text", "none", "index", "device_ns", "enum", "flags"})
    if (unit == plain) return false;
  return true;
}

Trace of_type(const RecordSchema& schema, bool distinct) {
  Trace trace = with_device();
  std::string texts;
  for (u64 i = 1; i < 3000; ++i) Trace::put_text(texts, i + 10, "text " + std::to_string(i));
  trace.chunk(0, texts);
  const RecordClass of = class_of(schema.type);
  const u32 slot = of == RecordClass::Definition ? 0 : of == RecordClass::Device ? 2 : 1;
  const u16 call = of == RecordClass::Call ? kOtherCall : of == RecordClass::Library ? kLibraryCall : 0;
  std::string record(schema.size, '\0');
  trace.fill_up(slot, [&](std::string& bytes, u64 i) {
    for (u32 f = 0; f < schema.field_count; ++f) {
      const auto& field = schema.fields[f];
      u64 value = distinct ? i + 1 : 1;
      if (is_word(field.unit)) value = distinct ? i % 7 : 1;
      if (std::string_view(field.unit) == "text") value = distinct ? 11 + i % 3000 : 1;
      if (std::string_view(field.unit) == "device_ns")
        value = static_cast<u64>(time_of(i)) + (std::string_view(field.name) == "finish" ? 20 : 0);
      std::memcpy(record.data() + field.offset, &value, std::min<std::size_t>(field.size, 8));
    }
    const RecordHeader header{schema.type, static_cast<u16>(record.size()), call,
                              0,           static_cast<Ticks>(time_of(i)),  static_cast<Ticks>(time_of(i) + 50)};
    std::memcpy(record.data(), &header, sizeof header);
    bytes += record;
  });
  return trace;
}

struct Way {
  std::string name;
  std::function<Trace()> make;
};

std::vector<Way> ways() {
#define WAY(name) {#name, name}
  std::vector<Way> all = {
      WAY(plain_calls),
      WAY(same_kernel),
      WAY(shapes),
      WAY(streams),
      WAY(devices),
      WAY(handles),
      WAY(kernel_names),
      WAY(long_name),
      WAY(growing_names),
      WAY(modules_again),
      WAY(threads),
      WAY(images_of_one_module),
      WAY(thread_entries),
      WAY(callers),
      WAY(large_chunks),
      WAY(broken_chunks),
      WAY(texts),
      WAY(long_texts),
      WAY(notes),
      WAY(nvtx_messages),
      WAY(schema_values),
      WAY(schema_fields),
      WAY(schema_calls),
      WAY(schema_bad_lines),
      WAY(info_options),
      WAY(info_not_collected),
      WAY(info_warnings),
      WAY(info_argv),
      WAY(calls_in_flight),
      WAY(anchors),
      WAY(health),
      WAY(allocations),
      WAY(pools),
      WAY(contexts_that_go),
      WAY(frontiers),
      WAY(graph_changes),
      WAY(stacks),
      WAY(operations),
      WAY(library_rows),
      WAY(communicators),
      WAY(gaps),
      WAY(no_clock),
      WAY(clock_readings),
      WAY(copies),
      WAY(texts_in_one_bucket),
      WAY(handles_in_one_bucket),
  };
#undef WAY
  for (u32 i = 0; i < kRecordSchemaCount; ++i) {
    for (const bool distinct : {true, false}) {
      const RecordSchema& schema = kRecordSchemas[i];
      all.push_back({std::string(schema.name) + (distinct ? "_distinct" : "_same"),
                     [&schema, distinct] { return of_type(schema, distinct); }});
    }
  }
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  std::vector<std::string> wanted(argv + 2, argv + argc);
  if (!wanted.empty() && wanted.front().rfind("--mib=", 0) == 0) {
    most_bytes = static_cast<std::size_t>(std::stoul(wanted.front().substr(6))) << 20;
    wanted.erase(wanted.begin());
  }
  const bool list = std::strcmp(argv[1], "--list") == 0;
  for (const Way& way : ways()) {
    if (list)
      std::puts(way.name.c_str());
    else if (wanted.empty() || std::find(wanted.begin(), wanted.end(), way.name) != wanted.end())
      way.make().write(std::string(argv[1]) + "/" + way.name + ".gtrace");
  }
}
