#include "trace/codec/transform.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "trace/codec/column_reader.h"
#include "trace/record.h"

namespace gputrace {
namespace {

constexpr std::size_t kHeaderWords = sizeof(RecordHeader) / 8;
constexpr std::size_t kTileRows = 256;
constexpr std::size_t kAhead = 1024;  // bytes

struct Class {
  u16 type;
  u16 size;
  u32 count;
};
static_assert(sizeof(Class) == 8);

void store(u8* at, u64 word) { std::memcpy(at, &word, 8); }
u64 zigzag(u64 difference) { return (difference << 1) ^ (0 - (difference >> 63)); }

template <typename T>
void put(std::vector<u8>& out, T value) {
  const auto at = out.size();
  out.resize(at + sizeof(T));
  std::memcpy(out.data() + at, &value, sizeof(T));
}

u8 plane_mask(u64 bits) {
  u8 mask = 0;
  for (int b = 0; b < 8; ++b)
    if (bits >> (8 * b) & 0xff) mask |= u8(1u << b);
  return mask;
}

void put_planes(std::vector<u8>& out, const u64* values, std::size_t rows, u8 mask) {
  for (int b = 0; b < 8; ++b) {
    if (!(mask >> b & 1)) continue;
    const auto at = out.size();
    out.resize(at + rows);
    u8* to = out.data() + at;
    for (std::size_t i = 0; i < rows; ++i) to[i] = static_cast<u8>(values[i] >> (8 * b));
  }
}

// Chooses whichever of the two modes leaves fewer planes. Overwrites the column.
void put_column(std::vector<u8>& out, u64* column, std::size_t rows) {
  const u64 base = rows ? column[0] : 0;
  u64 differs = 0, deltas = 0, before = base;
  for (std::size_t i = 0; i < rows; ++i) {
    differs |= column[i] ^ base;
    deltas |= zigzag(column[i] - before);
    before = column[i];
  }
  const u8 xor_mask = plane_mask(differs), delta_mask = plane_mask(deltas);
  const bool by_delta = __builtin_popcount(delta_mask) < __builtin_popcount(xor_mask);
  put<u8>(out, by_delta ? kDelta : kXor);
  put<u8>(out, by_delta ? delta_mask : xor_mask);
  put<u64>(out, base);
  if (by_delta) {
    for (std::size_t i = rows; i-- > 1;) column[i] = zigzag(column[i] - column[i - 1]);
    if (rows) column[0] = 0;
  } else {
    for (std::size_t i = 0; i < rows; ++i) column[i] ^= base;
  }
  put_planes(out, column, rows, by_delta ? delta_mask : xor_mask);
}

struct ClassTable {
  Class classes[kMaxTransformClasses];
  u32 used = 0;

  // Index of the class of that header, made where it is new; kMaxTransformClasses: the table is full.
  u32 find(u16 type, u16 size) {
    for (u32 i = 0; i < used; ++i)
      if (classes[i].type == type && classes[i].size == size) return i;
    if (used == kMaxTransformClasses) return used;
    classes[used] = {type, size, 0};
    return used++;
  }
};

// Fills table and order. False: no chain of records, or too many classes.
bool classify(const u8* records, std::size_t size, ClassTable& table, std::vector<u8>& order) {
  order.clear();
  order.reserve(size / sizeof(RecordHeader));
  u32 last = 0;
  for (std::size_t at = 0; at < size;) {
    if (size - at < sizeof(RecordHeader)) return false;
    RecordHeader header;
    std::memcpy(&header, records + at, sizeof header);
    if (header.size < sizeof(RecordHeader) || header.size % 8 || header.size > size - at) return false;
    if (!table.used || table.classes[last].type != header.type || table.classes[last].size != header.size) {
      last = table.find(header.type, header.size);
      if (last == kMaxTransformClasses) return false;
    }
    ++table.classes[last].count;
    order.push_back(static_cast<u8>(last));
    at += header.size;
  }
  return true;
}

// Columns lie one after the other: end, duration, then those of each class. An odd number of cache lines apart, so that
// rows do not collide.
std::size_t column_stride(std::size_t rows) { return (rows + 8) | 8; }
std::size_t class_columns(const Class& c) { return c.size / 8 - kHeaderWords + 1; }

void scatter(const u8* records, const ClassTable& table, const std::vector<u8>& order, std::vector<u64>& columns,
             const std::size_t* first) {
  u32 row[kMaxTransformClasses] = {};
  std::size_t stride[kMaxTransformClasses];
  for (u32 c = 0; c < table.used; ++c) stride[c] = column_stride(table.classes[c].count);
  u64* end_column = columns.data();
  u64* duration_column = end_column + column_stride(order.size());
  u64 before = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const u32 c = order[i];
    const u64 end = load_word(records + 16);
    end_column[i] = zigzag(end - before);
    duration_column[i] = end - load_word(records + 8);
    before = end;
    u64* to = columns.data() + first[c] + row[c]++;
    *to = load_word(records) >> 32;
    const std::size_t words = table.classes[c].size / 8;
    for (std::size_t w = kHeaderWords; w < words; ++w) {
      to += stride[c];
      *to = load_word(records + 8 * w);
    }
    records += table.classes[c].size;
  }
}

// A tile's times, begin and end of each record side by side: where columns are put. The first column is that of the ends.
struct TileTimes {
  alignas(16) u64 ends[kTileRows];
  alignas(16) u64 of[2 * kTileRows];
};

struct EndsSink {
  TileTimes& times;
  __m128i before;  // end of the record before, twice

  void two(std::size_t row, __m128i differences) {
    const __m128i pair = sums(unzigzag(differences), before);
    _mm_store_si128(reinterpret_cast<__m128i*>(times.ends + row), pair);
    before = _mm_unpackhi_epi64(pair, pair);
  }
  void one(std::size_t row, u64 difference) {
    before = _mm_add_epi64(before, both(unzigzag(difference)));
    times.ends[row] = static_cast<u64>(before[0]);
  }
};

struct DurationsSink {
  TileTimes& times;

  void two(std::size_t row, __m128i durations) {
    const __m128i end = _mm_load_si128(reinterpret_cast<const __m128i*>(times.ends + row));
    const __m128i begin = _mm_sub_epi64(end, durations);
    __m128i* const to = reinterpret_cast<__m128i*>(times.of + 2 * row);
    _mm_store_si128(to, _mm_unpacklo_epi64(begin, end));
    _mm_store_si128(to + 1, _mm_unpackhi_epi64(begin, end));
  }
  void one(std::size_t row, u64 duration) {
    times.of[2 * row] = times.ends[row] - duration;
    times.of[2 * row + 1] = times.ends[row];
  }
};

// How far a run of that class goes, from row `at` on.
u32 run_of(const u8* order, u32 at, u32 rows) {
  const u8 c = order[at++];
  const u64 eight = c * 0x0101010101010101ull;
  while (at + 8 <= rows && load_word(order + at) == eight) at += 8;
  while (at < rows && order[at] == c) ++at;
  return at;
}

// Places records of one size one behind the other, from `at` on, and writes their times. kNewest: returns the largest of them.
template <bool kNewest>
u64 place_records(u8* out, u32 at, u32 size, u32 records, const u64* times, u32* positions) {
  u64 newest = 0;
  for (u32 i = 0; i < records; ++i, at += size) {
    positions[i] = at;
    __builtin_prefetch(out + at + kAhead, 1);  // what is written then is in no cache: other threads had it last
    const __m128i both_times = _mm_load_si128(reinterpret_cast<const __m128i*>(times + 2 * i));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + at + 8), both_times);
    if constexpr (kNewest) newest = std::max(newest, std::max(times[2 * i], times[2 * i + 1]));
  }
  return newest;
}

// Times of every record, and its position, class by class (scratch.positions), from the order; false where counts or
// sizes do not add up.
bool restore_times(ColumnInput& in, const ClassTable& table, const u8* order, u32 records, std::size_t raw_size,
                   std::vector<u32>& positions, u32* first, u8* out, RecordPieces* pieces) {
  u64 rows = 0, bytes = 0;
  u32 left[kMaxTransformClasses], next[kMaxTransformClasses];
  for (u32 c = 0; c < table.used; ++c) {
    const Class& each = table.classes[c];
    if (each.size < sizeof(RecordHeader) || each.size % 8 || !each.count) return false;
    first[c] = next[c] = static_cast<u32>(rows);
    left[c] = each.count;
    rows += each.count;
    bytes += static_cast<u64>(each.count) * each.size;
  }
  if (rows != records || bytes != raw_size) return false;
  positions.resize(records);
  ColumnReader ends, durations;
  if (!ends.open(in, records) || !durations.open(in, records)) return false;
  TileTimes times;
  EndsSink ends_sink{times, _mm_setzero_si128()};
  u32 at = 0;
  for (u32 from = 0; from < records; from += kTileRows) {
    const u32 tile = std::min<u32>(kTileRows, records - from);
    ends.read(from, tile, ends_sink);
    durations.read(from, tile, DurationsSink{times});
    for (u32 i = 0; i < tile;) {
      // Records of one class come in runs: what they have in common stays in registers.
      const u32 c = order ? order[from + i] : 0;
      const u32 run = order ? run_of(order + from, i, tile) : tile;
      if (c >= table.used || left[c] < run - i) return false;
      const u32 size = table.classes[c].size;
      u32* place = positions.data() + next[c];
      left[c] -= run - i, next[c] += run - i;
      const bool wanted = pieces && pieces->types.has(table.classes[c].type);
      while (i < run) {
        RecordPieces::Piece piece{at, 0, std::min(run - i, RecordPieces::kLongest), wanted, 0};
        const u64* const own = times.of + 2 * i;
        if (wanted)
          piece.newest = place_records<true>(out, at, size, piece.records, own, place);
        else
          place_records<false>(out, at, size, piece.records, own, place);
        i += piece.records, place += piece.records, at += piece.records * size;
        piece.end = at;
        if (pieces) pieces->add(piece);
      }
    }
  }
  return true;
}

// Writes the words of `payload` behind the headers of records: as many as there are in the commonest classes stay in
// registers from one record to the next.
template <std::size_t kWords>
void lay_out(u8* out, const u32* positions, u32 rows, u64 head, const u64* payload) {
  constexpr std::size_t kPairs = kWords / 2;
  __m128i pairs[kPairs + 1];
  for (std::size_t i = 0; i < kPairs; ++i)
    pairs[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(payload + 2 * i));
  const u64 last = payload[kWords - 1];
  for (u32 row = 0; row < rows; ++row) {
    u8* record = out + positions[row];
    store(record, head);
    record += sizeof(RecordHeader);
    for (std::size_t i = 0; i < kPairs; ++i) _mm_storeu_si128(reinterpret_cast<__m128i*>(record + 16 * i), pairs[i]);
    if constexpr (kWords % 2) store(record + 16 * kPairs, last);
  }
}

template <std::size_t... kSizes>
void lay_out(u8* out, const u32* positions, u32 rows, u64 head, const std::vector<u64>& payload,
             std::index_sequence<kSizes...>) {
  using LayOut = void (*)(u8*, const u32*, u32, u64, const u64*);
  static constexpr LayOut by_words[] = {lay_out<kSizes + 1>...};
  const std::size_t words = payload.size();
  if (words != 0 && words <= sizeof...(kSizes)) return by_words[words - 1](out, positions, rows, head, payload.data());
  for (u32 row = 0; row < rows; ++row) {
    u8* record = out + positions[row];
    store(record, head);
    if (words != 0) std::memcpy(record + sizeof(RecordHeader), payload.data(), 8 * words);
  }
}

// Where a column's words are put in each record.
struct WordSink {
  u8* to;
  const u32* positions;

  void two(std::size_t row, __m128i pair) const {
    _mm_storel_epi64(reinterpret_cast<__m128i*>(to + positions[row]), pair);
    store(to + positions[row + 1], static_cast<u64>(pair[1]));
  }
  void one(std::size_t row, u64 word) const { store(to + positions[row], word); }
};

// ... and call and result, behind type and size.
struct HeadSink {
  u8* to;
  const u32* positions;
  u64 key;

  void two(std::size_t row, __m128i pair) const {
    WordSink{to, positions}.two(row, _mm_or_si128(_mm_slli_epi64(pair, 32), both(key)));
  }
  void one(std::size_t row, u64 word) const { store(to + positions[row], key | word << 32); }
};

// A class's columns: those with one value for all rows are laid out once, the others are read tile by tile.
class ClassReader {
 public:
  bool open(ColumnInput& in, const Class& c) {
    const std::size_t columns = class_columns(c);
    constant_.assign(columns - 1, 0);
    readers_.clear();
    // Not from the columns: the chain must hold whatever they say.
    key_ = head_ = c.type | static_cast<u64>(c.size) << 16;
    for (std::size_t w = 0; w < columns; ++w) {
      ColumnReader reader;
      if (!reader.open(in, c.count)) return false;
      if (!reader.constant())
        readers_.push_back({reader, w});
      else if (w == 0)
        head_ |= reader.base() << 32;
      else
        constant_[w - 1] = reader.base();
    }
    return true;
  }

  void restore(const Class& c, const u32* positions, u8* out) {
    for (u32 from = 0; from < c.count; from += kTileRows) {
      const u32 rows = std::min<u32>(kTileRows, c.count - from);
      lay_out(out, positions + from, rows, head_, constant_, std::make_index_sequence<24>());
      // Column by column: a tile's records are in the cache.
      for (Varying& each : readers_) {
        if (each.word == 0)
          each.column.read(from, rows, HeadSink{out, positions + from, key_});
        else
          each.column.read(from, rows, WordSink{out + sizeof(RecordHeader) + 8 * (each.word - 1), positions + from});
      }
    }
  }

 private:
  struct Varying {
    ColumnReader column;
    std::size_t word;
  };
  u64 key_ = 0, head_ = 0;  // the first word of each record: without call and result, and with what is constant of them
  std::vector<u64> constant_;  // the words behind the header; 0 where a column varies
  std::vector<Varying> readers_;
};

}  // namespace

bool transform_records(const u8* records, std::size_t size, TransformScratch& scratch, std::vector<u8>& out) {
  ClassTable table;
  if (!classify(records, size, table, scratch.order)) return false;
  const std::size_t count = scratch.order.size();
  std::size_t first[kMaxTransformClasses], total = 2 * column_stride(count), columns = 2;
  for (u32 c = 0; c < table.used; ++c) {
    first[c] = total;
    total += class_columns(table.classes[c]) * column_stride(table.classes[c].count);
    columns += class_columns(table.classes[c]);
  }
  if (columns * kColumnHeader > size / 8 + 32 * 1024) return false;
  if (scratch.columns.size() < total) scratch.columns.resize(total);
  scatter(records, table, scratch.order, scratch.columns, first);

  out.reserve(out.size() + transformed_bound(size));
  put<u32>(out, static_cast<u32>(count));
  put<u32>(out, table.used);
  for (u32 c = 0; c < table.used; ++c) put(out, table.classes[c]);
  if (table.used > 1) out.insert(out.end(), scratch.order.begin(), scratch.order.end());
  put_column(out, scratch.columns.data(), count);
  put_column(out, scratch.columns.data() + column_stride(count), count);
  for (u32 c = 0; c < table.used; ++c) {
    const std::size_t stride = column_stride(table.classes[c].count);
    for (std::size_t w = 0; w < class_columns(table.classes[c]); ++w)
      put_column(out, scratch.columns.data() + first[c] + w * stride, table.classes[c].count);
  }
  return true;
}

bool restore_records(const u8* data, std::size_t size, u8* records, std::size_t raw_size, TransformScratch& scratch,
                     RecordCounts* counts) {
  ColumnInput in{data, size};
  const u8* head = in.take(8);
  if (!head) return false;
  u32 count;
  ClassTable table;
  std::memcpy(&count, head, 4);
  std::memcpy(&table.used, head + 4, 4);
  if (table.used > kMaxTransformClasses || count > raw_size / sizeof(RecordHeader)) return false;
  const u8* classes = in.take(table.used * sizeof(Class));
  if (!classes) return false;
  std::memcpy(table.classes, classes, table.used * sizeof(Class));
  const u8* order = nullptr;
  if (table.used > 1 && !(order = in.take(count))) return false;
  u32 first[kMaxTransformClasses];
  RecordPieces* const pieces = counts ? counts->pieces : nullptr;
  if (!restore_times(in, table, order, count, raw_size, scratch.positions, first, records, pieces)) return false;
  ClassReader reader;
  RecordCounts counted{count, 0, {}, pieces};
  for (u32 c = 0; c < table.used; ++c) {
    if (!reader.open(in, table.classes[c])) return false;
    reader.restore(table.classes[c], scratch.positions.data() + first[c], records);
    if (class_of(table.classes[c].type) == RecordClass::Unknown) counted.unknown += table.classes[c].count;
    counted.types.add(table.classes[c].type);
  }
  if (counts) *counts = counted;
  return in.left == 0;
}

bool count_records(const u8* records, std::size_t size, RecordCounts& counts) {
  const i64 count = count_records(records, size);
  if (count < 0) return false;
  counts = {static_cast<u32>(count), 0, {}, counts.pieces};
  for (std::size_t at = 0; at < size;) {
    RecordHeader header;
    std::memcpy(&header, records + at, sizeof header);
    counts.unknown += class_of(header.type) == RecordClass::Unknown;
    counts.types.add(header.type);
    if (RecordPieces* const pieces = counts.pieces) {
      const u64 newest = std::max(header.begin, header.end);
      const u32 begin = static_cast<u32>(at);  // a chunk has 16 MiB at most
      pieces->add({begin, begin + header.size, 1, pieces->types.has(header.type), newest});
    }
    at += header.size;
  }
  return true;
}

i64 count_records(const u8* records, std::size_t size) {
  i64 count = 0;
  for (std::size_t at = 0; at < size; ++count) {
    if (size - at < sizeof(RecordHeader)) return -1;
    RecordHeader header;
    std::memcpy(&header, records + at, sizeof header);
    if (header.size < sizeof(RecordHeader) || header.size % 8 || header.size > size - at) return -1;
    at += header.size;
  }
  return count;
}

}  // namespace gputrace
