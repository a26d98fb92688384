// A Parquet file that is written front to back: rows are gathered column by column, and every kRowsOfGroup of them become a row group.
//   · Numbers near each other and texts by dictionary, times and other numbers that follow each other by what each has over the one before (DELTA_BINARY_PACKED, which no
//     compressor makes smaller), the rest plain; pages compressed by zstd. Signed numbers only.
//   · Texts are numbers of a pool that outlives the file: the same text costs one look at an array.
//   · Columns whose values go together (a kernel's name, its grid …) are told once for each key, and a row tells its keys alone; what is the same in
//     all rows is told once, and a length is the difference of the two columns before it.
//   · Memory: one row group.
#pragma once

#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/fd.h"
#include "base/types.h"

struct ZSTD_CCtx_s;

namespace gputrace {

class TextPool {
 public:
  u32 number_of(std::string_view text);
  const std::string& text(u32 number) const { return *texts_[number]; }
  std::size_t size() const { return texts_.size(); }

 private:
  std::unordered_map<std::string, u32> numbers_;
  std::vector<const std::string*> texts_;
};

enum class ParquetType : u8 { Int64, Int32, Bool, Text };
// How a row's value is told. All but Each: not with Bool, nor optional.
enum class ParquetTold : u8 {
  Each,
  ByKey,       // by the row's key
  ByOtherKey,  // by a second one
  Once,        // a number, that of every row
  Length,      // what the column before it has over the one before that; both are Int64 and told each
};
struct ParquetColumn {
  const char* name;
  ParquetType type = ParquetType::Int64;
  bool optional = false;
  ParquetTold told = ParquetTold::Each;
};

class ParquetFile {
 public:
  static constexpr std::size_t kRowsOfGroup = 1u << 17;

  // `columns` and `texts` outlive it. `once`: what the columns told once hold.
  ParquetFile(const std::string& path, const std::vector<ParquetColumn>& columns, const TextPool& texts, i64 once = 0);

  // A key for what the columns by key hold, in their order; texts: their numbers.
  u32 add_key(std::vector<i64> values) { return keys_.add(std::move(values)); }
  u32 add_other_key(std::vector<i64> values) { return other_keys_.add(std::move(values)); }
  // Values of one row in the order of the columns told each, its keys where there are columns by key, then done().
  ParquetFile& key(u32 number) { return keys_.tell(number), *this; }
  ParquetFile& other_key(u32 number) { return other_keys_.tell(number), *this; }
  ParquetFile& number(i64 value) {  // Int64, Int32, Bool
    Buffer& buffer = *at_++;
    buffer.room[buffer.count++] = value;
    if (buffer.optional) buffer.there[rows_] = 1;
    return *this;
  }
  ParquetFile& text(u32 number);
  ParquetFile& null() {  // optional columns only
    (at_++)->there[rows_] = 0;
    return *this;
  }
  void done();

  void close();
  // Empty: all went well so far.
  const std::string& error() const { return error_; }

 private:
  // Room for a group, which takes memory only where it was written.
  struct Buffer {
    explicit Buffer(bool is_optional = false)
        : optional(is_optional), room(new i64[kRowsOfGroup]), there(is_optional ? new u8[kRowsOfGroup] : nullptr) {}

    bool optional;
    std::size_t count = 0;
    std::unique_ptr<i64[]>
        room;  // values without those that are not there; texts: their number in the group's dictionary
    std::unique_ptr<u8[]> there;  // optional columns: whether the row has one
    std::vector<u32> dictionary;  // texts: numbers in the pool
    std::vector<u32> known;       // texts: by number in the pool, 1 + number in the dictionary; 0: not yet

    std::span<const i64> values() const { return {room.get(), count}; }
  };
  enum class Encoding : u8 { Plain = 0, DeltaBinaryPacked = 5, RleDictionary = 8 };  // the format's numbers
  struct Chunk {
    i64 dictionary_at = 0, data_at = 0;  // in the file; dictionary_at 0: none
    i64 plain_bytes = 0, packed_bytes = 0;
    i64 values = 0, nulls = 0;
    Encoding encoding = Encoding::Plain;  // of its data; dictionaries are plain
    i64 least = std::numeric_limits<i64>::max(), most = std::numeric_limits<i64>::min();
    bool compressed() const { return encoding != Encoding::DeltaBinaryPacked; }
  };
  struct Group {
    std::vector<Chunk> chunks;
    i64 rows = 0;
  };

  struct Keys {
    std::vector<std::vector<i64>> values;  // by key
    std::vector<u32> known;                // by key, 1 + its place in the group's; 0: not yet
    std::vector<u32> of_group, of_rows;    // by row: the place of its key in the group's

    u32 add(std::vector<i64> of_key);
    void tell(u32 number) {
      u32& place = known[number];
      if (place == 0) {
        of_group.push_back(number);
        place = static_cast<u32>(of_group.size());
      }
      of_rows.push_back(place - 1);
    }
    void end_group();
  };

  void write_group();
  void fill_lengths();
  Chunk write_column(const ParquetColumn& column, Buffer& buffer);
  Chunk write_keyed_column(const ParquetColumn& column, const Keys& keys, std::size_t place);
  Chunk write_once(const ParquetColumn& column);
  void add_text(u32 number);  // to the page of a dictionary
  void write_page(const std::string& content, bool dictionary, std::size_t values, Chunk& chunk);
  void write(std::string_view bytes);
  std::string footer() const;

  const std::vector<ParquetColumn>& columns_;
  const TextPool& texts_;
  Fd file_;
  std::string error_;
  std::vector<Buffer> buffers_;  // of the columns told each
  Buffer lengths_;
  Keys keys_, other_keys_;
  const i64 once_;
  std::vector<Group> groups_;
  std::string page_;                                             // of a column, used again
  std::vector<char> packed_;                                     // what became of it
  std::unique_ptr<ZSTD_CCtx_s, void (*)(ZSTD_CCtx_s*)> packer_;  // its tables are used again
  Buffer* at_ = nullptr;                                         // of the column that is next
  std::size_t rows_ = 0;
  i64 written_ = 0;
};

}  // namespace gputrace
