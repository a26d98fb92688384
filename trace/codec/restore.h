// The transform (transform.h) undone, some records at a time: what is read soon after lies in a near cache, and no more of a chunk's
// records than that takes memory.
//
//   RecordRestorer rows;                                       // reuse it
//   if (!rows.open(bytes, size, raw_size, &counts)) …          // not what transform_records() makes
//   while (rows.left()) out += rows.next(out, 512, nullptr);
//
// The bytes come from a file: open() checks all of them, so that next() cannot fail. One thread at a time.
#pragma once

#include <cstddef>
#include <vector>

#include "trace/codec/column_reader.h"
#include "trace/codec/transform.h"

namespace gputrace {

inline constexpr std::size_t kHeaderWords = 3;  // of a RecordHeader

// Records of one type and size: what transform.h calls a class. (RecordClass, of the schema, is another thing.)
struct RecordSort {
  u16 type;
  u16 size;
  u32 count;
};
static_assert(sizeof(RecordSort) == 8);

class RecordRestorer {
 public:
  // `data` stays where it is until all was restored. `counts`: of all records; its pieces are left alone.
  bool open(const u8* data, std::size_t size, std::size_t raw_size, RecordCounts* counts = nullptr);
  u32 left() const { return records_ - done_; }  // records
  u32 largest() const { return largest_; }       // bytes of the largest one
  // The next `records`, or those that are left, to `out`, which is 8-byte aligned and has room for them. How many bytes they have.
  // `pieces`, in bytes from `out`, are added to those that there are.
  std::size_t next(u8* out, u32 records, RecordPieces* pieces);

 private:
  static constexpr std::size_t kTileRows = 256;

  // A tile's times, begin and end of each record side by side: where columns are put. The first column is that of the ends.
  struct TileTimes {
    alignas(16) u64 ends[kTileRows];
    alignas(16) u64 of[2 * kTileRows];
  };
  struct EndsSink;
  struct DurationsSink;

  // A sort's columns: those with one value for all rows are laid out once, the others are read tile by tile.
  class SortReader {
   public:
    bool open(ColumnInput& in, const RecordSort& sort);
    // The next rows, to where their records begin.
    void restore(u8* out, const u32* positions, u32 rows);

   private:
    struct Varying {
      ColumnReader column;
      std::size_t word;
    };
    u64 key_ = 0,
        head_ = 0;  // the first word of each record: without call and result, and with what is constant of them
    u32 done_ = 0;  // rows
    std::vector<u64> constant_;  // the words behind the header; 0 where a column varies
    std::vector<Varying> varying_;
  };

  bool add_up(std::size_t raw_size) const;
  u32 tile(u8* out, u32 at, u32 rows, RecordPieces* pieces);

  u32 records_ = 0, done_ = 0, used_ = 0, largest_ = 0;
  RecordSort sorts_[kMaxTransformClasses];
  SortReader readers_[kMaxTransformClasses];
  const u8* order_ = nullptr;  // of records, by the number of their sort; nullptr: there is one sort
  ColumnReader ends_, durations_;
  u64 newest_end_ = 0;  // of the record before
  TileTimes times_;
  std::vector<u32> positions_;  // of a tile, kTileRows of each sort
};

}  // namespace gputrace
