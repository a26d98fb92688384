#include "trace/writer.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "trace/codec/chunk_codec.h"

namespace gputrace {
namespace {

constexpr u64 kReserveStep = 4 << 20;

bool means_full(int error) { return error == ENOSPC || error == EDQUOT || error == EFBIG; }

// Writes everything at `offset`, or gives an errno.
int write_at(int fd, u64 offset, iovec* parts, int count) {
  while (count) {
    const ssize_t wrote = ::pwritev(fd, parts, count, static_cast<off_t>(offset));
    if (wrote < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    if (wrote == 0) return EIO;
    offset += static_cast<u64>(wrote);
    std::size_t done = static_cast<std::size_t>(wrote);
    while (count && done >= parts->iov_len) {
      done -= parts->iov_len;
      ++parts;
      --count;
    }
    if (count) {
      parts->iov_base = static_cast<u8*>(parts->iov_base) + done;
      parts->iov_len -= done;
    }
  }
  return 0;
}

// Smallest begin and largest end of a chain of whole records.
void find_span(const u8* records, std::size_t size, Ticks& begin, Ticks& end) {
  begin = ~Ticks{0};
  end = 0;
  RecordHeader header;
  for (std::size_t at = 0; at + sizeof header <= size; at += header.size) {
    std::memcpy(&header, records + at, sizeof header);
    if (header.begin) begin = std::min(begin, header.begin);
    end = std::max(end, header.end);
    if (!header.size) break;
  }
  if (begin == ~Ticks{0}) begin = 0;
}

}  // namespace

struct TraceWriter::State {
  Fd file;
  u64 position = 0;  // end of the last whole chunk
  u64 limit = 0;
  u64 tail_reserve = kTailReserve;
  u64 reserved = 0;  // bytes that the file system keeps for us
  bool can_reserve = true;
  u64 chunks = 0;
  u64 counters_at = 0;  // offset of that chunk; 0: there is none
  u64 counters_sequence = 0;
  WriteStop stop = WriteStop::None;
  int error = 0;
  ChunkEncoder encoder;

  void halt(WriteStop why, int why_errno) {
    if (stop != WriteStop::None) return;
    stop = why;
    error = why_errno;
  }
  bool reserve(u64 bytes);
  bool put(ChunkHeader& header, u64 kept_free);
};

// Makes sure that the disk has room for `bytes` more and for the tail after them.
bool TraceWriter::State::reserve(u64 bytes) {
  const u64 wanted = position + bytes + tail_reserve;
  if (!can_reserve || wanted <= reserved) return true;
  const u64 from = reserved;
  for (u64 to : {std::max(wanted, from + kReserveStep), wanted}) {
    if (limit && to > limit) to = std::max(wanted, std::min(to, limit));
    if (::fallocate(file.get(), FALLOC_FL_KEEP_SIZE, static_cast<off_t>(from), static_cast<off_t>(to - from)) == 0) {
      reserved = to;
      return true;
    }
    if (errno == EINTR) continue;
    if (!means_full(errno)) {
      can_reserve = false;  // this file system cannot: writes will tell
      return true;
    }
  }
  halt(WriteStop::DiskFull, errno == EINTR ? ENOSPC : errno);
  return false;
}

// `kept_free`: bytes of the tail that this chunk must not take.
bool TraceWriter::State::put(ChunkHeader& header, u64 kept_free) {
  const auto& payload = encoder.payload();
  const u64 bytes = align_up(sizeof header + payload.size(), 8);
  if (limit && position + bytes + kept_free > limit) {
    halt(WriteStop::SizeLimit, 0);
    return false;
  }
  if (kept_free == tail_reserve && !reserve(bytes)) return false;
  header.magic = kChunkMagic;
  header.sequence = chunks;
  header.stored_size = static_cast<u32>(payload.size());
  header.header_check = chunk_header_check(header);
  header.checksum = chunk_checksum(header, payload.data());
  static constexpr u8 kZeros[8] = {};
  iovec parts[3] = {{&header, sizeof header},
                    {const_cast<u8*>(payload.data()), payload.size()},
                    {const_cast<u8*>(kZeros), bytes - sizeof header - payload.size()}};
  if (const int failed = write_at(file.get(), position, parts, 3)) {
    (void)!::ftruncate(file.get(), static_cast<off_t>(position));
    halt(means_full(failed) ? WriteStop::DiskFull : WriteStop::Error, failed);
    return false;
  }
  position += bytes;
  ++chunks;
  return true;
}

TraceWriter::TraceWriter() = default;
TraceWriter::~TraceWriter() {
  if (state_ && state_->reserved > state_->position)
    (void)!::ftruncate(state_->file.get(), static_cast<off_t>(state_->position));
}
TraceWriter::TraceWriter(TraceWriter&&) noexcept = default;
TraceWriter& TraceWriter::operator=(TraceWriter&&) noexcept = default;

Result<TraceWriter, int> TraceWriter::create(int directory, const std::string& name, FileHeader header, u64 limit) {
  Fd file(::openat(directory, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY, 0600));
  if (!file) return Failure{errno};
  if (::fchmod(file.get(), 0600) != 0) return Failure{errno};  // whatever the umask says
  auto started = start(std::move(file), header, limit);
  if (!started) ::unlinkat(directory, name.c_str(), 0);  // ours, and empty
  return started;
}

Result<TraceWriter, int> TraceWriter::start(Fd file, FileHeader header, u64 limit) {
  TraceWriter writer;
  writer.state_ = std::make_unique<State>();
  State& s = *writer.state_;
  s.file = std::move(file);
  rlimit most{};
  if (::getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur != RLIM_INFINITY && (!limit || most.rlim_cur < limit))
    limit = most.rlim_cur;
  s.limit = limit;
  if (limit) s.tail_reserve = std::min(kTailReserve, limit / 4);
  std::memcpy(header.magic, kFileMagic, sizeof header.magic);
  header.major = kFileMajor;
  header.minor = kFileMinor;
  header.header_size = sizeof header;
  header.checksum = file_header_checksum(&header, sizeof header);
  s.position = 0;
  if (!s.reserve(sizeof header)) return Failure{s.error};
  iovec part{&header, sizeof header};
  if (const int failed = write_at(s.file.get(), 0, &part, 1)) return Failure{failed};
  s.position = sizeof header;
  return writer;
}

Result<TraceWriter, int> TraceWriter::resume(Fd file) {
  struct stat about {};
  if (!file || ::fstat(file.get(), &about) != 0) return Failure{errno};
  const u64 size = static_cast<u64>(about.st_size);
  TraceWriter writer;
  writer.state_ = std::make_unique<State>();
  State& s = *writer.state_;
  u64 at = sizeof(FileHeader);
  std::vector<u8> payload;
  for (ChunkHeader header; ::pread(file.get(), &header, sizeof header, static_cast<off_t>(at)) == sizeof header;) {
    const u64 bytes = align_up(sizeof header + header.stored_size, 8);
    if (header.magic != kChunkMagic || header.header_check != chunk_header_check(header) ||
        header.stored_size > kMaxChunkRaw || at + bytes > size)
      break;
    payload.resize(header.stored_size);
    if (::pread(file.get(), payload.data(), payload.size(), static_cast<off_t>(at + sizeof header)) !=
            static_cast<ssize_t>(payload.size()) ||
        chunk_checksum(header, payload.data()) != header.checksum)
      break;
    s.chunks = std::max(s.chunks, header.sequence + 1);
    at += bytes;
  }
  if (::ftruncate(file.get(), static_cast<off_t>(at)) != 0) return Failure{errno};
  s.file = std::move(file);
  s.position = at;
  return writer;
}

bool TraceWriter::append(ChunkKind kind, const void* data, std::size_t size, Ticks at) {
  if (size > kMaxChunkRaw) return false;
  ChunkHeader header{};
  header.kind = kind;
  header.raw_size = static_cast<u32>(size);
  header.begin = header.end = at;
  header.encoding = state_->encoder.encode(data, size, false);
  return state_->put(header, 0);
}

void TraceWriter::leave_gap() { ++state_->chunks; }

bool TraceWriter::begin_counters() {
  State& s = *state_;
  const HealthEntry nothing{};
  ChunkHeader header{};
  header.kind = ChunkKind::Counters;
  header.raw_size = sizeof nothing;
  header.encoding = s.encoder.store(&nothing, sizeof nothing);
  const u64 at = s.position, sequence = s.chunks;
  if (!s.put(header, 0)) return false;
  s.counters_at = at;
  s.counters_sequence = sequence;
  return true;
}

void TraceWriter::update_counters(const HealthEntry& process, Ticks at) {
  State& s = *state_;
  if (!s.counters_at) return;
  ChunkHeader header{};
  header.magic = kChunkMagic;
  header.kind = ChunkKind::Counters;
  header.encoding = Encoding::Raw;
  header.sequence = s.counters_sequence;
  header.stored_size = header.raw_size = sizeof process;
  header.begin = header.end = at;
  header.header_check = chunk_header_check(header);
  header.checksum = chunk_checksum(header, reinterpret_cast<const u8*>(&process));
  iovec parts[2] = {{&header, sizeof header}, {const_cast<HealthEntry*>(&process), sizeof process}};
  (void)write_at(s.file.get(), s.counters_at, parts, 2);
}

bool TraceWriter::append_records(const RecordsOf& of, const void* data, std::size_t size) {
  const bool definitions = of.slot == 0 || of.slot == kSidecarSlot, stopped = state_->stop != WriteStop::None;
  if ((stopped && !definitions) || size > kMaxChunkRaw) return false;
  ChunkHeader header{};
  header.kind = ChunkKind::Records;
  header.raw_size = static_cast<u32>(size);
  header.slot = of.slot;
  header.incarnation = of.incarnation;
  header.first_record = of.first_record;
  header.record_count = of.record_count;
  find_span(static_cast<const u8*>(data), size, header.begin, header.end);
  header.encoding = state_->encoder.encode(data, size, true);
  return state_->put(header, definitions && stopped ? state_->tail_reserve / 2 : state_->tail_reserve);
}

WriteStop TraceWriter::stop() const { return state_->stop; }
int TraceWriter::stop_errno() const { return state_->error; }
u64 TraceWriter::size() const { return state_->position; }
u64 TraceWriter::chunks() const { return state_->chunks; }

}  // namespace gputrace
