// The reversible transform behind Encoding::TransposedZstd: records → columns of bytes that compress well and fast. Back: restore.h.
//
// Input: a chain of whole records. Output, little endian:
//   u32 records, u32 classes                             a class: records of one (type, size)
//   per class: u16 type, u16 size, u32 count
//   order: u8 class index per record                     only when classes > 1
//   column "end": over all records in order, zigzag difference of `end` to the record before it
//   column "duration": over all records in order, end - begin
//   per class: column of call | result << 16, then one column per further 8 bytes of the record (after the header)
// A column: u8 mode (0: XOR with the base; 1: zigzag difference to the row before, the first to the base), u8 mask, u64
// base, then for every bit b of the mask one plane: byte b of each row's value. Bytes whose bit is not set are 0 in
// every row: a constant column has no plane.
#pragma once

#include <cstddef>
#include <vector>

#include "base/types.h"

namespace gputrace {

inline constexpr u32 kMaxTransformClasses = 64;

// Which types of records there are, as far as they have small numbers; all others together.
class TypeSet {
 public:
  static constexpr u16 kOthers = 128;  // this number and all above are one

  void add(u16 type) { (type < kOthers ? words_[type / 64] : others_) |= type < kOthers ? 1ull << (type % 64) : 1; }
  void add(const TypeSet& other) {
    words_[0] |= other.words_[0], words_[1] |= other.words_[1], others_ |= other.others_;
  }
  bool has(u16 type) const { return type < kOthers ? words_[type / 64] >> (type % 64) & 1 : others_ != 0; }
  bool shares(const TypeSet& other) const {  // at least one
    return (words_[0] & other.words_[0]) || (words_[1] & other.words_[1]) || (others_ & other.others_);
  }
  bool within(const TypeSet& other) const {
    return !(words_[0] & ~other.words_[0]) && !(words_[1] & ~other.words_[1]) && !(others_ & ~other.others_);
  }

 private:
  u64 words_[2] = {}, others_ = 0;
};

// A chain of records in pieces of which all records are of wanted types, or none is. For who takes the wanted ones by the
// piece: the others are one piece from one wanted one to the next.
struct RecordPieces {
  static constexpr u32 kLongest = 64;  // records of a wanted piece
  struct Piece {
    u32 begin = 0, end = 0;  // bytes from the first record
    u32 records = 0;
    bool wanted = false;
    u64 newest = 0;  // largest begin or end; of wanted ones only
  };
  TypeSet types;  // that are wanted
  std::vector<Piece> all;

  void add(const Piece& piece) {
    if (piece.wanted || all.empty() || all.back().wanted) return all.push_back(piece);
    all.back().end = piece.end;
    all.back().records += piece.records;
  }
};

struct RecordCounts {
  u32 records = 0;
  u32 unknown = 0;  // of types that this build does not know
  TypeSet types;
  RecordPieces* pieces = nullptr;  // are to be found, too
};

// Scratch memory; reuse it. One thread at a time.
struct TransformScratch {
  std::vector<u8> order;
  std::vector<u64> columns;
};

// An upper bound of what a chain of `raw_size` bytes becomes.
constexpr std::size_t transformed_bound(std::size_t raw_size) { return raw_size + raw_size / 4 + 96 * 1024; }

// Appends to `out`. False: not a chain of records, or too many classes for this to pay (then `out` is as it was).
bool transform_records(const u8* records, std::size_t size, TransformScratch& scratch, std::vector<u8>& out);

// `counts` of a chain of whole records; false: it is none.
bool count_records(const u8* records, std::size_t size, RecordCounts& counts);

// Number of records if [records, size) is a chain of whole records (each at least a RecordHeader, a multiple of 8);
// else -1.
i64 count_records(const u8* records, std::size_t size);

}  // namespace gputrace
