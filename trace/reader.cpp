#include "trace/reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "trace/codec/chunk_codec.h"
#include "trace/codec/restore.h"
#include "trace/codec/transform.h"
#include "trace/indexer.h"

namespace gputrace {
namespace {

Failure<OpenError> refuse(OpenErrorKind kind, std::string message, int system_error = 0) {
  OpenError error;
  error.kind = kind;
  error.system_error = system_error;
  error.message = std::move(message);
  return Failure{std::move(error)};
}

Failure<OpenError> refuse_errno(int error) {
  return refuse(error == ENOENT || error == ENOTDIR ? OpenErrorKind::NoSuchFile : OpenErrorKind::NotReadable,
                std::strerror(error), error);
}

// The first bytes of the file, whatever its version: magic, version, header size and, in the last 8 bytes of the
// header, a checksum.
struct Prologue {
  FileHeader header{};
  bool sound = false;  // checksum is right
  u64 first_chunk = 0;
};

Prologue parse_prologue(const u8* bytes, std::size_t size) {
  Prologue prologue;
  std::memcpy(&prologue.header, bytes, std::min(size, sizeof(FileHeader)));
  const u32 header_size = prologue.header.header_size;
  prologue.first_chunk = sizeof(FileHeader);
  if (header_size < 32 || header_size % 8 || header_size > size) return prologue;
  u64 checksum;
  std::memcpy(&checksum, bytes + header_size - 8, 8);
  prologue.sound = checksum == file_header_checksum(bytes, header_size);
  if (prologue.sound) {
    prologue.first_chunk = header_size;
    if (header_size < sizeof(FileHeader))
      std::memset(reinterpret_cast<u8*>(&prologue.header) + header_size - 8, 0, sizeof(FileHeader) - header_size + 8);
  }
  return prologue;
}

}  // namespace

struct ChunkBuffer::Parts {
  std::vector<u8> stored;
  Records raw;
  ChunkDecoder decoder;
};

ChunkBuffer::ChunkBuffer() : parts_(std::make_unique<Parts>()) {}
ChunkBuffer::~ChunkBuffer() = default;
void ChunkBuffer::swap_records(Records& other) { std::swap(parts_->raw, other); }
ChunkBuffer::ChunkBuffer(ChunkBuffer&&) noexcept = default;
ChunkBuffer& ChunkBuffer::operator=(ChunkBuffer&&) noexcept = default;

Result<TraceReader, OpenError> TraceReader::open(const std::string& path) {
  TraceReader trace;
  trace.file_ = Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!trace.file_) return refuse_errno(errno);
  struct stat status {};
  if (::fstat(trace.file_.get(), &status) != 0) return refuse_errno(errno);
  if (S_ISDIR(status.st_mode)) return refuse(OpenErrorKind::NotReadable, "is a directory", EISDIR);
  if (!S_ISREG(status.st_mode)) return refuse(OpenErrorKind::NotATrace, "is not a regular file");
  trace.file_size_ = static_cast<u64>(status.st_size);
  trace.data_bytes_ = FileWindow(trace.file_.get(), trace.file_size_).data_bytes();

  FileWindow window(trace.file_.get(), std::min<u64>(trace.file_size_, 4096));
  const std::size_t head_size = static_cast<std::size_t>(window.size());
  const u8* head = window.at(0, head_size);
  if (!head_size) return refuse(OpenErrorKind::Empty, "is empty");
  if (!head) return refuse_errno(window.error() ? window.error() : EIO);
  if (std::memcmp(head, kFileMagic, std::min(head_size, sizeof kFileMagic)) != 0)
    return refuse(OpenErrorKind::NotATrace, "is not a gputrace trace");
  if (head_size < sizeof(FileHeader))
    return refuse(OpenErrorKind::Empty, "holds nothing: it was cut before its header ended");

  const Prologue prologue = parse_prologue(head, head_size);
  trace.header_ = prologue.header;
  if (prologue.sound && prologue.header.major > kFileMajor) {
    auto failure = refuse(OpenErrorKind::NewerMajor,
                          "was written by a newer gputrace (format " + std::to_string(prologue.header.major) + "." +
                              std::to_string(prologue.header.minor) + "; this one reads up to " +
                              std::to_string(kFileMajor) + ".x)");
    failure.error.major = prologue.header.major;
    failure.error.minor = prologue.header.minor;
    return failure;
  }
  if (!prologue.sound) {
    Damage& damage = trace.damage_.emplace_back();
    damage.kind = DamageKind::BadHeader;
    damage.bytes = sizeof(FileHeader);
    damage.reason = "the file header fails its checksum";
    if (trace.header_.clock != ClockKind::Monotonic)
      trace.header_.clock = ClockKind::Tsc;  // what nearly every trace has
  }
  TraceIndexer(trace).run(prologue.first_chunk);
  return trace;
}

const std::string* TraceReader::info(std::string_view key) const {
  for (auto line = info_.rbegin(); line != info_.rend(); ++line)
    if (line->first == key) return &line->second;
  return nullptr;
}

std::vector<std::string> TraceReader::info_all(std::string_view key) const {
  std::vector<std::string> values;
  for (const auto& [name, value] : info_)
    if (name == key) values.push_back(value);
  return values;
}

// The chunk with its header, as it lies in the file. Null, or why it cannot be had any more.
const char* TraceReader::fetch(u64 offset, u64 stored_size, std::vector<u8>& into) const {
  const std::size_t bytes = sizeof(ChunkHeader) + stored_size;
  if (into.size() < bytes) into.resize(bytes);
  for (std::size_t filled = 0; filled < bytes;) {
    const ssize_t got = ::pread(file_.get(), into.data() + filled, bytes - filled, static_cast<off_t>(offset + filled));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return "this chunk cannot be read any more";
    filled += static_cast<std::size_t>(got);
  }
  ChunkHeader header;
  std::memcpy(&header, into.data(), sizeof header);
  const bool same =
      header.stored_size == stored_size && header.checksum == chunk_checksum(header, into.data() + sizeof header);
  return same ? nullptr : "this chunk has changed since the file was opened";
}

bool TraceReader::read(const OtherChunk& chunk, std::vector<u8>& payload) const {
  std::vector<u8> stored;
  if (fetch(chunk.offset, chunk.stored_size, stored)) return false;
  std::vector<u64> raw(chunk.raw_size / 8 + 1);  // aligned
  u8* const bytes = reinterpret_cast<u8*>(raw.data());
  const u8* const packed = stored.data() + sizeof(ChunkHeader);
  if (!ChunkDecoder().decode(chunk.encoding, packed, chunk.stored_size, bytes, chunk.raw_size)) return false;
  payload.assign(bytes, bytes + chunk.raw_size);
  return true;
}

namespace {

constexpr const char* kDoesNotDecode = "this chunk does not decode";

Failure<Damage> damaged(const RecordChunk& chunk, const char* reason) {
  Damage damage;
  damage.kind = DamageKind::BadContent;
  damage.sequence = chunk.sequence;
  damage.sequence_count = 1;
  damage.offset = chunk.offset;
  damage.bytes = sizeof(ChunkHeader) + chunk.stored_size;
  damage.records = chunk.record_count;
  damage.reason = reason;
  return {std::move(damage)};
}

Result<RecordRange, Damage> range_of(const RecordChunk& chunk, const RecordCounts& counts, const u8* data) {
  if (counts.records != chunk.record_count) return damaged(chunk, "this chunk's records do not add up");
  RecordRange range;
  range.data = data;
  range.size = chunk.raw_size;
  range.first_record = chunk.first_record;
  range.count = chunk.record_count;
  range.unknown = counts.unknown;
  range.types = counts.types;
  return range;
}

u8* room_for(ChunkBuffer::Records& records, std::size_t bytes) {
  if (const std::size_t words = bytes / 8 + 1; records.size < words)
    records = {std::make_unique_for_overwrite<u64[]>(words), words};
  return reinterpret_cast<u8*>(records.words.get());
}

}  // namespace

Result<RecordRange, Damage> TraceReader::decode(const RecordChunk& chunk, ChunkBuffer& buffer,
                                                RecordPieces* pieces) const {
  ChunkBuffer::Parts& parts = *buffer.parts_;
  if (const char* why = fetch(chunk.offset, chunk.stored_size, parts.stored)) return damaged(chunk, why);
  const u8* payload = parts.stored.data() + sizeof(ChunkHeader);
  u8* const raw = room_for(parts.raw, chunk.raw_size);
  RecordCounts counts;
  counts.pieces = pieces;
  if (pieces) pieces->all.clear();
  if (!parts.decoder.decode(chunk.encoding, payload, chunk.stored_size, raw, chunk.raw_size, &counts))
    return damaged(chunk, kDoesNotDecode);
  return range_of(chunk, counts, raw);
}

struct ChunkRows::Parts {
  std::vector<u8> bytes;  // what the restorer reads
  RecordRestorer restorer;
};

ChunkRows::ChunkRows() = default;
ChunkRows::~ChunkRows() = default;
ChunkRows::ChunkRows(ChunkRows&&) noexcept = default;
ChunkRows& ChunkRows::operator=(ChunkRows&&) noexcept = default;

Result<RecordRange, Damage> TraceReader::open_rows(const RecordChunk& chunk, ChunkBuffer& buffer,
                                                   ChunkRows& rows) const {
  rows.close();
  if (!rows.parts_) rows.parts_ = std::make_unique<ChunkRows::Parts>();
  ChunkBuffer::Parts& parts = *buffer.parts_;
  if (const char* why = fetch(chunk.offset, chunk.stored_size, parts.stored)) return damaged(chunk, why);
  const u8* payload = parts.stored.data() + sizeof(ChunkHeader);
  RecordCounts counts;
  if (!parts.decoder.open(payload, chunk.stored_size, chunk.raw_size, rows.parts_->bytes, rows.parts_->restorer,
                          &counts))
    return damaged(chunk, kDoesNotDecode);
  auto range = range_of(chunk, counts, nullptr);
  if (range) rows.left_ = counts.records;
  return range;
}

RecordRange ChunkRows::next(ChunkBuffer::Records& into, RecordPieces& pieces) {
  RecordRestorer& restorer = parts_->restorer;
  const u32 records =
      static_cast<u32>(std::min<std::size_t>(left_, std::max<std::size_t>(1, kBytes / restorer.largest())));
  u8* const data = room_for(into, std::size_t{records} * restorer.largest());
  pieces.all.clear();
  RecordRange range;
  range.data = data;
  range.size = restorer.next(data, records, &pieces);
  range.count = records;
  left_ -= records;
  return range;
}

}  // namespace gputrace
