#include "trace/text_table.h"

#include <sys/random.h>

#include <algorithm>
#include <cstring>

namespace gputrace {

u64 hash_seed() {
  static const u64 seed = [] {
    u64 drawn = 0;
    if (::getrandom(&drawn, sizeof drawn, GRND_NONBLOCK) != sizeof drawn) drawn = reinterpret_cast<u64>(&drawn);
    return drawn;
  }();
  return seed;
}

// The entry of this id, or the free place where it would stand: there is always one.
const TextTable::Entry* TextTable::place_of(u64 id) const {
  const std::size_t mask = entries_.size() - 1;
  std::size_t at = hash_(id) & mask;
  while (entries_[at].id && entries_[at].id != id) at = (at + 1) & mask;
  return &entries_[at];
}

void TextTable::grow() {
  std::vector<Entry> before(entries_.size() * 2);
  before.swap(entries_);
  for (const Entry& entry : before)
    if (entry.id) const_cast<Entry&>(*place_of(entry.id)) = entry;
}

const char* TextTable::keep(const char* bytes, std::size_t size) {
  constexpr std::size_t kBlock = 64u << 10;
  if (size == 0) return "";
  if (size > room_size_) {
    room_size_ = std::max(kBlock, size);
    blocks_.push_back(std::make_unique<char[]>(room_size_));
    room_ = blocks_.back().get();
  }
  std::memcpy(room_, bytes, size);
  const char* kept = room_;
  room_ += size;
  room_size_ -= size;
  return kept;
}

void TextTable::add(const RecordHeader& record) {
  Text piece;
  if (record.size < sizeof piece) {
    ++bad_pieces_;
    return;
  }
  std::memcpy(&piece, &record, sizeof piece);
  const char* bytes = reinterpret_cast<const char*>(&record) + sizeof piece;
  const std::size_t room = record.size - sizeof piece;
  if (!piece.id || piece.total > kMaxTextBytes || piece.offset > piece.total) {
    ++bad_pieces_;
    return;
  }
  if (bytes_ + room > most_bytes_ || (size_ >= most_texts_ && !place_of(piece.id)->id)) {
    ++refused_;
    return;
  }
  if (size_ * 2 >= entries_.size()) grow();
  Entry& entry = const_cast<Entry&>(*place_of(piece.id));
  if (!entry.id) entry.id = piece.id, entry.text = "", ++size_;
  if (entry.size == 0) entry.total = piece.total;
  if (entry.total != piece.total || piece.offset != entry.size) {
    ++bad_pieces_;  // a piece before it is lost, or it is here twice
    return;
  }
  const std::size_t take = std::min<std::size_t>(room, piece.total - piece.offset);
  if (entry.size == 0) {
    entry.text = keep(bytes, take);
  } else {
    std::string& whole = in_pieces_[piece.id];
    if (whole.empty()) whole.assign(entry.text, entry.size);
    whole.append(bytes, take);
    entry.text = whole.data();
  }
  entry.size += static_cast<u32>(take);
  bytes_ += take;
}

std::string_view TextTable::find(u64 id) const {
  const Entry& entry = *place_of(id);
  return id && entry.id ? std::string_view(entry.text, entry.size) : std::string_view{};
}

bool TextTable::complete(u64 id) const {
  const Entry& entry = *place_of(id);
  return id && entry.id && entry.size == entry.total;
}

}  // namespace gputrace
