// The strings of a trace: Text records joined by id.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/types.h"
#include "trace/record.h"
#include "trace/seeded_hash.h"

namespace gputrace {

inline constexpr u32 kMaxTextBytes = 1u << 20;  // of one string

class TextTable {
 public:
  // How many strings there may be, and how many bytes of them: pieces beyond are counted in refused().
  void limit(u64 texts, u64 bytes) { most_texts_ = texts, most_bytes_ = bytes; }
  // Takes one Text record (its pieces come in order). Pieces that do not fit are counted in bad_pieces().
  void add(const RecordHeader& record);

  // The string, as far as its pieces are there; no string: an empty view with data() == nullptr.
  std::string_view find(u64 id) const;
  bool complete(u64 id) const;  // all `total` bytes are there

  std::size_t size() const { return size_; }
  u64 bytes() const { return bytes_; }  // of all strings
  u64 bad_pieces() const { return bad_pieces_; }
  u64 refused() const { return refused_; }

 private:
  struct Entry {
    u64 id = 0;  // 0: the place is free
    const char* text = nullptr;
    u32 size = 0, total = 0;
  };
  const Entry* place_of(u64 id) const;
  const char* keep(const char* bytes, std::size_t size);
  void grow();

  // Open addressing, at most half full, and the strings behind one another: a look-up reads two cache lines that nobody has read, where
  // a node of a map and a string take four; reading 10 million texts is what `dump` does.
  std::vector<Entry> entries_ = std::vector<Entry>(64);
  std::size_t size_ = 0;
  SeededHash hash_;
  std::vector<std::unique_ptr<char[]>> blocks_;  // never moved: find() hands out views
  char* room_ = nullptr;
  std::size_t room_size_ = 0;
  std::unordered_map<u64, std::string> in_pieces_;  // strings of more than one piece
  u64 bytes_ = 0;
  u64 bad_pieces_ = 0, refused_ = 0;
  u64 most_texts_ = 1u << 20, most_bytes_ = 512u << 20;
};

}  // namespace gputrace
