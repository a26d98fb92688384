// The strings of a trace: Text records joined by id.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

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

  std::size_t size() const { return entries_.size(); }
  u64 bytes() const { return bytes_; }  // of all strings
  u64 bad_pieces() const { return bad_pieces_; }
  u64 refused() const { return refused_; }

 private:
  struct Entry {
    std::string text;
    u32 total = 0;
  };
  std::unordered_map<u64, Entry, SeededHash> entries_;
  u64 bytes_ = 0;
  u64 bad_pieces_ = 0, refused_ = 0;
  u64 most_texts_ = 1u << 20, most_bytes_ = 512u << 20;
};

}  // namespace gputrace
