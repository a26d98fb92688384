// Pass 1 of the indexer: which chunks are there, and what is damaged.
#include "trace/indexer.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <unordered_set>

namespace gputrace {
namespace {

constexpr std::size_t kWindow = 1 << 20;
constexpr std::size_t kLookedAt = 64 << 10;  // a window is read once, however many bad chunks are in it
constexpr u64 kDropped = ~u64{0};

bool all_zero(FileWindow& file, u64 from, u64 to) {
  for (; (from = file.behind_hole(from)) < to; from += 4096) {
    const std::size_t bytes = static_cast<std::size_t>(std::min<u64>(4096, to - from));
    const u8* at = file.at(from, bytes);
    if (!at || std::any_of(at, at + bytes, [](u8 byte) { return byte != 0; })) return false;
  }
  return true;
}

u64 chunk_bytes(const ChunkHeader& header) { return align_up(sizeof header + header.stored_size, 8); }

}  // namespace

const u8* FileWindow::at(u64 offset, std::size_t bytes) {
  if (offset > size_ || bytes > size_ - offset) return nullptr;
  if (offset >= begin_ && offset - begin_ <= filled_ && bytes <= filled_ - (offset - begin_))
    return buffer_.data() + (offset - begin_);
  const std::size_t wanted = static_cast<std::size_t>(std::min<u64>(std::max(bytes, kWindow), size_ - offset));
  if (buffer_.size() < wanted) buffer_.resize(wanted);
  begin_ = offset;
  filled_ = 0;
  while (filled_ < wanted) {
    const ssize_t got = ::pread(fd_, buffer_.data() + filled_, wanted - filled_, static_cast<off_t>(offset + filled_));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) error_ = errno;
    if (got <= 0) break;
    filled_ += static_cast<std::size_t>(got);
  }
  return filled_ >= bytes ? buffer_.data() : nullptr;
}

u64 FileWindow::behind_hole(u64 offset) const {
  const off_t data = ::lseek(fd_, static_cast<off_t>(offset), SEEK_DATA);
  if (data < 0) return errno == ENXIO ? size_ : offset;  // a file system that cannot tell has no holes
  return std::min(static_cast<u64>(data), size_);
}

u64 FileWindow::data_bytes() const {
  u64 sum = 0;
  for (u64 at = behind_hole(0); at < size_; at = behind_hole(at)) {
    const off_t hole = ::lseek(fd_, static_cast<off_t>(at), SEEK_HOLE);
    const u64 end = hole < 0 || static_cast<u64>(hole) <= at ? size_ : std::min(static_cast<u64>(hole), size_);
    sum += end - at;
    at = end;
  }
  return sum;
}

bool read_chunk_header(FileWindow& file, u64 offset, ChunkHeader& header) {
  const u8* at = file.at(offset, sizeof header);
  if (!at) return false;
  std::memcpy(&header, at, sizeof header);
  return header.magic == kChunkMagic && header.header_check == chunk_header_check(header) &&
         header.raw_size <= kMaxChunkRaw && header.stored_size <= kMaxChunkRaw;
}

Damage& TraceIndexer::add_damage(DamageKind kind, u64 offset, u64 bytes, std::string reason) {
  static thread_local Damage spare;
  if (trace_.damage_.size() >= kMaxDamage) return spare = {};
  Damage& damage = trace_.damage_.emplace_back();
  damage.kind = kind;
  damage.offset = offset;
  damage.bytes = bytes;
  damage.reason = std::move(reason);
  return damage;
}

void TraceIndexer::run(u64 first_chunk) {
  find_chunks(first_chunk);
  check_places();
  check_sequences();
  for (const Found& found : found_)
    if (found.good) read_chunk(found);
  note_unread();
  trace_.clock_ = ClockMap(trace_.header_.clock, std::move(anchors_));
  order_chunks();
  read_definitions();
  settle_counters();
}

void TraceIndexer::find_chunks(u64 at) {
  const u64 size = file_.size(), first = at;
  while (at < size && !gave_up_) {
    ChunkHeader header;
    bool good = read_chunk_header(file_, at, header);
    if (!good && at == first) {  // counters may be written there just now
      file_.forget();
      good = read_chunk_header(file_, at, header);
    }
    if (good) {
      at = take_chunk(at, header);
      continue;
    }
    const u64 next = resync(at);
    note_lost_bytes(at, next);
    at = next;
  }
}

u64 TraceIndexer::take_chunk(u64 at, const ChunkHeader& header) {
  const u64 size = file_.size();
  const u64 bytes = chunk_bytes(header);
  const u64 lost_records = header.kind == ChunkKind::Records ? header.record_count : 0;
  if (bytes > size - at) {
    const u64 next = resync(at + 8);
    const bool tail = next == size;
    Damage& damage = add_damage(tail ? DamageKind::TornTail : DamageKind::BadChunk, at, next - at,
                                tail ? "the file ends within this chunk" : "this chunk is shorter than it says");
    damage.sequence = header.sequence;
    damage.sequence_count = 1;
    damage.records = lost_records;
    found_.push_back({at, header, false});
    return next;
  }
  if (header.kind == ChunkKind::Counters) return take_counters(at);
  stored_bytes_ += header.stored_size;
  if (stored_bytes_ > 2 * trace_.data_bytes_ + (64u << 20)) {  // payloads that lie in holes, one within another
    gave_up_ = true;
    add_damage(DamageKind::TooMuch, at, size - at,
               "chunks say that they are larger than the file; the rest was not read");
    return size;
  }
  const u8* payload = file_.at(at + sizeof header, header.stored_size);
  if (payload && chunk_checksum(header, payload) == header.checksum) {
    found_.push_back({at, header, true});
    ++trace_.chunks_read_;
    return at + bytes;
  }
  found_.push_back({at, header, false});
  Damage& damage = add_damage(DamageKind::BadChunk, at, bytes,
                              payload ? "this chunk fails its checksum" : "this chunk cannot be read");
  damage.sequence = header.sequence;
  damage.sequence_count = 1;
  damage.records = lost_records;
  wasted_bytes_ += header.stored_size;
  if (wasted_bytes_ > 2 * trace_.data_bytes_ + (64u << 20)) {
    gave_up_ = true;
    add_damage(DamageKind::TooMuch, at + bytes, size - std::min(size, at + bytes),
               "too much of the file is damaged; the rest was not read");
    return size;
  }
  ChunkHeader next;
  if (at + bytes == size || read_chunk_header(file_, at + bytes, next)) return at + bytes;
  return resync(at + 8);
}

// They are written anew while the program runs: what was read may be half of one and half of the next.
u64 TraceIndexer::take_counters(u64 at) {
  ChunkHeader header{};
  bool good = false;
  for (int attempt = 0; attempt < 4 && !good; ++attempt) {
    if (attempt) file_.forget();
    if (!read_chunk_header(file_, at, header)) continue;
    const u8* payload = file_.at(at + sizeof header, header.stored_size);
    good = payload && chunk_checksum(header, payload) == header.checksum;
  }
  found_.push_back({at, header, good});
  if (good) {
    ++trace_.chunks_read_;
  } else {
    Damage& damage = add_damage(DamageKind::BadChunk, at, chunk_bytes(header), "this chunk fails its checksum");
    damage.sequence = header.sequence;
    damage.sequence_count = 1;
  }
  return at + chunk_bytes(header);
}

u64 TraceIndexer::resync(u64 from) {
  const u64 size = file_.size();
  ChunkHeader header;
  for (u64 at = file_.behind_hole(align_up(from, 8)) & ~u64{7}; at + sizeof header <= size;) {
    const std::size_t span = static_cast<std::size_t>(std::min<u64>(kLookedAt, size - at));
    const u8* bytes = file_.at(at, span);
    if (!bytes) return size;
    std::size_t i = 0;
    for (; i + 8 <= span; i += 8) {
      u32 magic;
      std::memcpy(&magic, bytes + i, 4);
      if (magic == kChunkMagic) break;
    }
    if (i + 8 > span) {
      at = file_.behind_hole(at + std::max<std::size_t>(i, 8)) & ~u64{7};
      continue;
    }
    at += i;
    if (read_chunk_header(file_, at, header)) return at;
    at += 8;
  }
  return size;
}

void TraceIndexer::note_lost_bytes(u64 from, u64 to) {
  if (file_.error())
    add_damage(DamageKind::LostBytes, from, to - from, std::string("cannot be read: ") + std::strerror(file_.error()));
  else if (to == file_.size() && to - from < sizeof(ChunkHeader))
    add_damage(DamageKind::TornTail, from, to - from, "the file ends within the header of a chunk");
  else
    add_damage(DamageKind::LostBytes, from, to - from,
               all_zero(file_, from, to) ? "zeros where a chunk should be" : "no chunk begins here");
}

// In the order of the file: chunks that are there twice (the first one counts), and chunks that changed places.
void TraceIndexer::check_places() {
  std::unordered_set<u64, SeededHash> seen;
  u64 highest = 0;
  for (Found& found : found_) {
    const u64 sequence = found.header.sequence;
    const bool is_first = !found.good || seen.insert(sequence).second;
    if (found.good && (!is_first || sequence < highest)) {
      Damage& damage =
          add_damage(is_first ? DamageKind::OutOfOrder : DamageKind::Duplicate, found.offset, chunk_bytes(found.header),
                     is_first ? "this chunk is not where it was written" : "this chunk is in the file twice");
      damage.sequence = sequence;
      damage.sequence_count = 1;
    }
    if (!is_first) found.offset = kDropped;
    highest = std::max(highest, sequence);
  }
  std::erase_if(found_, [](const Found& found) { return found.offset == kDropped; });
}

// Sorts the chunks by their number and names the numbers that are missing: those of lost bytes where there are some,
// else by themselves.
void TraceIndexer::check_sequences() {
  std::vector<u32> lost;  // damage_ that is LostBytes, by offset
  for (u32 i = 0; i < trace_.damage_.size(); ++i)
    if (trace_.damage_[i].kind == DamageKind::LostBytes) lost.push_back(i);
  std::stable_sort(found_.begin(), found_.end(), [](const Found& a, const Found& b) {
    if (a.header.sequence != b.header.sequence) return a.header.sequence < b.header.sequence;
    return a.good > b.good;
  });
  u64 expected = 0, before = 0;  // before: where the last chunk is
  for (const Found& found : found_) {
    const u64 sequence = found.header.sequence;
    if (sequence > expected) {
      const auto at = std::lower_bound(lost.begin(), lost.end(), before,
                                       [&](u32 index, u64 offset) { return trace_.damage_[index].offset < offset; });
      const bool in_lost_bytes = at != lost.end() && trace_.damage_[*at].offset < found.offset;
      Damage& damage = in_lost_bytes ? trace_.damage_[*at]
                                     : add_damage(DamageKind::MissingSequence, found.offset, 0,
                                                  "chunks are missing before this one");
      damage.sequence = expected;
      damage.sequence_count = sequence - expected;
    }
    expected = std::max(expected, sequence + 1);
    before = found.offset;
  }
}

}  // namespace gputrace
