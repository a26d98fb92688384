// A Parquet file that is written front to back: rows are gathered column by column, and every kRowsOfGroup of them become a row group.
//   · Numbers near each other and texts by dictionary, times and other numbers that follow each other by what each has over the one before (DELTA_BINARY_PACKED, which no
//     compressor makes smaller), the rest plain; pages compressed by zstd. Signed numbers only.
//   · Texts are numbers of a pool that outlives the file: the same text costs one look at an array.
//   · Columns whose values go together (a kernel's name, its grid …) are told once for each key, and a row tells its key alone.
//   · Memory: one row group.
#pragma once

#include <limits>
#include <memory>
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
struct ParquetColumn {
  const char* name;
  ParquetType type = ParquetType::Int64;
  bool optional = false;
  bool by_key = false;  // told by the row's key; not with Bool, nor optional
};

class ParquetFile {
 public:
  static constexpr std::size_t kRowsOfGroup = 1u << 17;

  // `columns` and `texts` outlive it.
  ParquetFile(const std::string& path, const std::vector<ParquetColumn>& columns, const TextPool& texts);

  // A key for what the columns by key hold, in their order; texts: their numbers.
  u32 add_key(std::vector<i64> values);
  // Values of one row in the order of the other columns, its key where there are columns by key, then done().
  void key(u32 number) {
    u32& known = known_keys_[number];
    if (known == 0) {
      keys_of_group_.push_back(number);
      known = static_cast<u32>(keys_of_group_.size());
    }
    row_keys_.push_back(known - 1);
  }
  ParquetFile& number(i64 value) {  // Int64, Int32, Bool
    Buffer& buffer = *at_++;
    buffer.values.push_back(value);
    if (buffer.optional) buffer.there.push_back(1);
    return *this;
  }
  ParquetFile& text(u32 number);
  ParquetFile& null() {  // optional columns only
    (at_++)->there.push_back(0);
    return *this;
  }
  void done();

  void close();
  // Empty: all went well so far.
  const std::string& error() const { return error_; }

 private:
  struct Buffer {
    bool optional = false;
    std::vector<i64> values;      // without those that are not there; texts: their number in the group's dictionary
    std::vector<u8> there;        // optional columns: whether the row has one
    std::vector<u32> dictionary;  // texts: numbers in the pool
    std::vector<u32> known;       // texts: by number in the pool, 1 + number in the dictionary; 0: not yet
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

  void write_group();
  Chunk write_column(const ParquetColumn& column, Buffer& buffer);
  Chunk write_keyed_column(const ParquetColumn& column, std::size_t place);
  void add_text(u32 number);  // to the page of a dictionary
  void write_page(const std::string& content, bool dictionary, std::size_t values, Chunk& chunk);
  void write(std::string_view bytes);
  std::string footer() const;

  const std::vector<ParquetColumn>& columns_;
  const TextPool& texts_;
  Fd file_;
  std::string error_;
  std::vector<Buffer> buffers_;  // of the columns that are not by key
  std::vector<std::vector<i64>> keys_;
  std::vector<u32> known_keys_;                // by key, 1 + its place in the group's; 0: not yet
  std::vector<u32> keys_of_group_, row_keys_;  // by row: the place of its key in the group's
  std::vector<Group> groups_;
  std::string page_;                                             // of a column, used again
  std::vector<char> packed_;                                     // what became of it
  std::unique_ptr<ZSTD_CCtx_s, void (*)(ZSTD_CCtx_s*)> packer_;  // its tables are used again
  Buffer* at_ = nullptr;                                         // of the column that is next
  std::size_t rows_ = 0;
  i64 written_ = 0;
};

}  // namespace gputrace
