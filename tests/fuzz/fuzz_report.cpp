// A file whose chunks are whole may still hold any records: damaged ones, hostile ones, of a version that did other
// things. Whatever they say, every section of the report comes out, in every form, and its identities hold.
//
// The input is a list of records, short to write: {thread and type, times, call, result}, then its fields, each one
// byte where the value is small, so that handles and ids meet.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "analysis/load.h"
#include "analysis/render/render.h"
#include "analysis/report.h"
#include "tests/fuzz/input.h"
#include "trace/codec/chunk_codec.h"
#include "trace/reader.h"
#include "trace/schema.h"

namespace {

using namespace gputrace;

constexpr u32 kThreads = 4;  // the first are the definitions
constexpr const char* kCalls[] = {"cuLaunchKernel",      "cuMemAlloc_v2", "cuMemcpyHtoDAsync_v2", "cuGraphLaunch",
                                  "cuStreamSynchronize", "cuEventRecord", "cuModuleLoadData",     "cudaLaunchKernel",
                                  "cudaMemcpy",          "cublasGemmEx",  "ncclAllReduce",        "cufftExecC2C"};

struct Choice {
  u8 thread, type, call, result;
  u16 after, lasts;
};

// Small values in one byte; 0xf0 and above: this many bytes of a whole one follow, or one of the corners.
u64 take_value(Input& input) {
  u8 byte = 0;
  input.take(&byte, 1);
  if (byte < 0xf0) return byte;
  static constexpr u64 kCorners[] = {~0ull,         1ull << 63, 1ull << 32, 0xffffffffull,
                                     0x7fffffffull, 1ull << 48, 1ull << 16};
  if (byte >= 0xf8) return kCorners[(byte - 0xf8) % 7];
  u64 value = 0;
  input.take(&value, 1 + byte % 8u);
  return value;
}

struct Lane {
  std::string records;
  u32 count = 0;
  Ticks now = 1000;
  Ticks begin = ~0ull, end = 0;
};

bool append_record(Input& input, Lane (&lanes)[kThreads]) {
  Choice choice;
  if (!input.take(&choice, sizeof choice)) return false;
  Lane& lane = lanes[choice.thread % kThreads];
  const RecordSchema& schema = kRecordSchemas[choice.type % kRecordSchemaCount];
  std::string record(schema.size, '\0');
  for (u32 i = 0; i < schema.field_count; ++i) {
    const u64 value = take_value(input);
    std::memcpy(record.data() + schema.fields[i].offset, &value, std::min<std::size_t>(schema.fields[i].size, 8));
  }
  if (schema.type == static_cast<u16>(RecordType::Text)) {
    u8 length = 0;
    input.take(&length, 1);
    std::string tail(std::min<std::size_t>(length % 64, input.left), '\0');
    input.take(tail.data(), tail.size());
    tail.resize((tail.size() + 7) & ~std::size_t{7}, '\0');
    record += tail;
  }
  RecordHeader header{schema.type,
                      static_cast<u16>(record.size()),
                      static_cast<u16>(choice.call % 14),
                      choice.result < 200 ? u16{0} : u16{choice.result},
                      0,
                      0};
  // Device times lie around the host's, in nanoseconds: the anchors say one tick is one.
  lane.now += choice.after < 0xfff0 ? choice.after : 1ull << 4 * (choice.after % 16);
  header.begin = lane.now;
  header.end = choice.lasts == 0xffff ? header.begin - 10 : header.begin + choice.lasts;
  lane.begin = std::min(lane.begin, header.begin);
  lane.end = std::max(lane.end, header.end);
  std::memcpy(record.data(), &header, sizeof header);
  lane.records += record;
  ++lane.count;
  return true;
}

class File {
 public:
  File() {
    FileHeader header{};
    std::memcpy(header.magic, kFileMagic, sizeof kFileMagic);
    header.major = kFileMajor;
    header.minor = kFileMinor;
    header.header_size = sizeof header;
    header.clock = ClockKind::Monotonic;
    header.pid = 4242;
    header.checksum = file_header_checksum(&header, sizeof header);
    bytes_.assign(reinterpret_cast<const char*>(&header), sizeof header);
  }
  void append(ChunkKind kind, const void* data, std::size_t size) {
    ChunkHeader chunk{};
    chunk.kind = kind;
    append(chunk, data, size);
  }
  void append_records(u32 slot, const Lane& lane) {
    ChunkHeader chunk{};
    chunk.kind = ChunkKind::Records;
    chunk.slot = slot;
    chunk.incarnation = 1;
    chunk.record_count = lane.count;
    chunk.begin = lane.begin;
    chunk.end = lane.end;
    append(chunk, lane.records.data(), lane.records.size());
  }
  const std::string& bytes() const { return bytes_; }

 private:
  void append(ChunkHeader& chunk, const void* data, std::size_t size) {
    chunk.magic = kChunkMagic;
    chunk.encoding = Encoding::Raw;
    chunk.sequence = sequence_++;
    chunk.stored_size = chunk.raw_size = static_cast<u32>(size);
    chunk.header_check = chunk_header_check(chunk);
    chunk.checksum = chunk_checksum(chunk, static_cast<const u8*>(data));
    bytes_.append(reinterpret_cast<const char*>(&chunk), sizeof chunk).append(static_cast<const char*>(data), size);
    bytes_.resize((bytes_.size() + 7) & ~std::size_t{7}, '\0');
  }
  std::string bytes_;
  u64 sequence_ = 0;
};

std::string schema_of_calls() {
  std::string text(write_schema_text(nullptr, 0), '\0');
  write_schema_text(text.data(), text.size());
  for (u32 id = 1; const char* variant : kCalls) {
    std::string name = variant;
    if (const std::size_t suffix = name.find('_'); suffix != std::string::npos) name.resize(suffix);
    const char* level = name.compare(0, 4, "cuda") == 0                    ? "runtime"
                        : name.compare(0, 3, "cub") == 0 || name[0] == 'n' ? "library"
                                                                           : "driver";
    text += "call " + std::to_string(id++) + " " + name + " " + level + " " + variant + "\n";
  }
  return text;
}

std::string assemble(Input input) {
  Lane lanes[kThreads];
  while (append_record(input, lanes)) {
  }
  File file;
  static const std::string schema = schema_of_calls();
  file.append(ChunkKind::Schema, schema.data(), schema.size());
  static const std::string info = "executable\t/bin/fuzz\nhost\th\nboot_id\tb\noption.collect\tapi,device,libs,nvtx\n";
  file.append(ChunkKind::Info, info.data(), info.size());
  ThreadEntry threads[kThreads]{};
  for (u32 slot = 0; slot < kThreads; ++slot) {
    threads[slot].slot = slot;
    threads[slot].incarnation = 1;
    threads[slot].tid = static_cast<i32>(slot ? 100 + slot : 0);
    threads[slot].begin = 1;
  }
  file.append(ChunkKind::Thread, threads, sizeof threads);
  const Anchor anchors[] = {{1, 1, 1'700'000'000'000'000'001, 2},
                            {1'000'000'001, 1'000'000'001, 1'700'000'001'000'000'001, 2}};
  file.append(ChunkKind::Anchors, anchors, sizeof anchors);
  for (u32 slot = 0; slot < kThreads; ++slot) {
    if (lanes[slot].count) file.append_records(slot, lanes[slot]);
  }
  return file.bytes();
}

void check_text(const Report& report) {
  if (!nlohmann::json::accept(render_json(report))) __builtin_trap();
  (void)render_text(report, {});
  for (const Table& table : report.tables) {
    for (const Row& row : table.rows) {
      if (row.size() != table.columns.size()) __builtin_trap();
    }
    (void)render_csv(table);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  if (size < 2) return 0;
  const std::string file = assemble({data + 1, size - 1});
  static const int fd = memfd_create("fuzz", MFD_CLOEXEC);
  if (ftruncate(fd, 0) != 0 || pwrite(fd, file.data(), file.size(), 0) != static_cast<ssize_t>(file.size())) return 0;
  LoadRequest request;
  request.files = {"/proc/self/fd/" + std::to_string(fd)};
  if (data[0] & 1) request.from = data[0] * 16;
  if (data[0] & 2) request.to = data[0] * 1000;
  if (data[0] & 32) request.rank = data[0] & 64 ? "0" : "";
  const auto loaded = load_run(request);
  if (!loaded) return 0;
  ReportRequest wanted;
  if (data[0] & 4) wanted.device = data[0] >> 3 & 3;
  check_text(make_report(loaded.value(), wanted));
  return 0;
}
