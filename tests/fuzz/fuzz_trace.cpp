// A trace file is hostile input: any bytes must open or be refused, and every record that comes out must lie within its
// range.
//
// Random bytes never have a right checksum, so the first byte chooses: an even one takes the rest as a file as it is;
// an odd one takes it as a list of chunks {kind, encoding, header fields, length, payload}, and makes a file of them
// whose checksums are right.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "tests/fuzz/input.h"
#include "trace/codec/chunk_codec.h"
#include "trace/reader.h"

namespace {

using namespace gputrace;

// What the fuzzer chooses of a chunk's header; the rest is made right.
struct Choice {
  u8 kind, encoding, slot, incarnation;
  u16 length, record_count;
  u32 raw_size;
  u8 first_record, skip, begin, end;
};

std::string assemble(Input input) {
  FileHeader header{};
  std::memcpy(header.magic, kFileMagic, sizeof kFileMagic);
  header.major = kFileMajor;
  header.minor = kFileMinor;
  header.header_size = sizeof header;
  header.clock = ClockKind::Tsc;
  header.checksum = file_header_checksum(&header, sizeof header);
  std::string file(reinterpret_cast<const char*>(&header), sizeof header);
  u64 sequence = 0;
  Choice choice;
  while (input.take(&choice, sizeof choice)) {
    std::string payload(std::min<std::size_t>(choice.length, input.left), '\0');
    input.take(payload.data(), payload.size());
    ChunkHeader chunk{};
    chunk.magic = kChunkMagic;
    chunk.kind = static_cast<ChunkKind>(choice.kind % 10);
    chunk.encoding = static_cast<Encoding>(choice.encoding % 5);
    sequence += choice.skip % 4;
    chunk.sequence = sequence++;
    chunk.stored_size = static_cast<u32>(payload.size());
    chunk.raw_size = chunk.encoding == Encoding::Raw ? chunk.stored_size : choice.raw_size % (1u << 20);
    chunk.slot = choice.slot % 4;
    chunk.incarnation = choice.incarnation % 3;
    chunk.first_record = choice.first_record;
    chunk.record_count = choice.record_count;
    chunk.begin = choice.begin;
    chunk.end = choice.end;
    chunk.header_check = chunk_header_check(chunk);
    chunk.checksum = chunk_checksum(chunk, reinterpret_cast<const u8*>(payload.data()));
    file.append(reinterpret_cast<const char*>(&chunk), sizeof chunk).append(payload);
    file.resize((file.size() + 7) & ~std::size_t{7}, '\0');
  }
  return file;
}

// What the schema says of a type may be printed as it is.
void check_schema(const TraceSchema& schema, u16 type) {
  (void)schema.class_of(type);
  const TraceRecordType* said = schema.record(type);
  if (said == nullptr) return;
  for (const TraceField& field : said->fields) {
    const TraceEnum* words = schema.words(*said, field);
    if (words == nullptr) continue;
    for (const TraceValue& value : words->values)
      if (value.word.empty() || value.word.find_first_of("\"|= \x1b") != std::string::npos) __builtin_trap();
  }
}

void read_all(const TraceReader& trace) {
  ChunkBuffer buffer;
  for (const ThreadInfo& thread : trace.threads()) {
    for (u32 index : thread.chunks) {
      auto records = trace.decode(trace.record_chunks()[index], buffer);
      if (!records) continue;
      const u8* end = records.value().data + records.value().size;
      for (const RecordHeader& record : records.value()) {
        if (record.size < sizeof record || record.size % 8 || reinterpret_cast<const u8*>(&record) + record.size > end)
          __builtin_trap();
        (void)decode<KernelLaunch>(record);
        (void)trace.clock().nanos(record.begin);
        (void)trace.schema().call(record.call);
        check_schema(trace.schema(), record.type);
      }
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  if (size == 0) return 0;
  const Input input{data + 1, size - 1};
  const std::string file =
      data[0] % 2 ? assemble(input) : std::string(reinterpret_cast<const char*>(input.at), input.left);
  static const int fd = memfd_create("fuzz", MFD_CLOEXEC);
  if (ftruncate(fd, 0) != 0 || pwrite(fd, file.data(), file.size(), 0) != static_cast<ssize_t>(file.size())) return 0;
  auto opened = TraceReader::open("/proc/self/fd/" + std::to_string(fd));
  if (opened) read_all(opened.value());
  return 0;
}
