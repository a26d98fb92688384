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
  if (bytes_ + room > most_bytes_ || (entries_.size() >= most_texts_ && !entries_.count(piece.id))) {
    ++refused_;
    return;
  }
  Entry& entry = entries_[piece.id];
  if (entry.text.empty()) entry.total = piece.total;
  if (entry.total != piece.total || piece.offset != entry.text.size()) {
    ++bad_pieces_;  // a piece before it is lost, or it is here twice
    return;
  }
  const std::size_t take = std::min<std::size_t>(room, piece.total - piece.offset);
  entry.text.append(bytes, take);
  bytes_ += take;
}

std::string_view TextTable::find(u64 id) const {
  const auto found = entries_.find(id);
  return found == entries_.end() ? std::string_view{} : std::string_view(found->second.text);
}

bool TextTable::complete(u64 id) const {
  const auto found = entries_.find(id);
  return found != entries_.end() && found->second.text.size() == found->second.total;
}

}  // namespace gputrace
