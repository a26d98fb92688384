#include "trace/codec/restore.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "trace/record.h"

namespace gputrace {
namespace {

static_assert(kHeaderWords * 8 == sizeof(RecordHeader));
constexpr std::size_t kAhead = 1024;  // bytes

void store(u8* at, u64 word) { std::memcpy(at, &word, 8); }

// How far a run of that sort goes, from row `at` on.
u32 run_of(const u8* order, u32 at, u32 rows) {
  const u8 sort = order[at++];
  const u64 eight = sort * 0x0101010101010101ull;
  while (at + 8 <= rows && load_word(order + at) == eight) at += 8;
  while (at < rows && order[at] == sort) ++at;
  return at;
}

// Places records of one size one behind the other, from `at` on, and writes their times. kNewest: returns the largest of them.
template <bool kNewest>
u64 place_records(u8* out, u32 at, u32 size, u32 records, const u64* times, u32* positions) {
  u64 newest = 0;
  for (u32 i = 0; i < records; ++i, at += size) {
    positions[i] = at;
    __builtin_prefetch(out + at + kAhead, 1);  // what is written then may be in no cache: other threads had it last
    const __m128i both_times = _mm_load_si128(reinterpret_cast<const __m128i*>(times + 2 * i));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + at + 8), both_times);
    if constexpr (kNewest) newest = std::max(newest, std::max(times[2 * i], times[2 * i + 1]));
  }
  return newest;
}

// Writes the words of `payload` behind the headers of records: as many as there are in the commonest sorts stay in
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

}  // namespace

struct RecordRestorer::EndsSink {
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

struct RecordRestorer::DurationsSink {
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

bool RecordRestorer::SortReader::open(ColumnInput& in, const RecordSort& sort) {
  const std::size_t columns = sort.size / 8 - kHeaderWords + 1;
  constant_.assign(columns - 1, 0);
  varying_.clear();
  done_ = 0;
  // Not from the columns: the chain must hold whatever they say.
  key_ = head_ = sort.type | static_cast<u64>(sort.size) << 16;
  for (std::size_t word = 0; word < columns; ++word) {
    ColumnReader reader;
    if (!reader.open(in, sort.count)) return false;
    if (!reader.constant())
      varying_.push_back({reader, word});
    else if (word == 0)
      head_ |= reader.base() << 32;
    else
      constant_[word - 1] = reader.base();
  }
  return true;
}

void RecordRestorer::SortReader::restore(u8* out, const u32* positions, u32 rows) {
  lay_out(out, positions, rows, head_, constant_, std::make_index_sequence<24>());
  // Column by column: a tile's records are in the cache.
  for (Varying& each : varying_) {
    if (each.word == 0)
      each.column.read(done_, rows, HeadSink{out, positions, key_});
    else
      each.column.read(done_, rows, WordSink{out + sizeof(RecordHeader) + 8 * (each.word - 1), positions});
  }
  done_ += rows;
}

// Sizes and numbers of the sorts, against the whole and against the order.
bool RecordRestorer::add_up(std::size_t raw_size) const {
  u64 rows = 0, bytes = 0;
  for (u32 i = 0; i < used_; ++i) {
    const RecordSort& each = sorts_[i];
    if (each.size < sizeof(RecordHeader) || each.size % 8 || !each.count) return false;
    rows += each.count;
    bytes += static_cast<u64>(each.count) * each.size;
  }
  if (rows != records_ || bytes != raw_size) return false;
  if (!order_) return true;
  u32 found[256] = {};
  for (u32 i = 0; i < records_; ++i) ++found[order_[i]];
  for (u32 i = 0; i < used_; ++i) {
    if (found[i] != sorts_[i].count) return false;  // together they are all: then no other number is there
  }
  return true;
}

bool RecordRestorer::open(const u8* data, std::size_t size, std::size_t raw_size, RecordCounts* counts) {
  records_ = done_ = largest_ = 0;
  newest_end_ = 0;
  ColumnInput in{data, size};
  const u8* const head = in.take(8);
  if (!head) return false;
  u32 records;
  std::memcpy(&records, head, 4);
  std::memcpy(&used_, head + 4, 4);
  if (used_ > kMaxTransformClasses || records > raw_size / sizeof(RecordHeader)) return false;
  const u8* const sorts = in.take(used_ * sizeof(RecordSort));
  if (!sorts) return false;
  std::memcpy(sorts_, sorts, used_ * sizeof(RecordSort));
  order_ = nullptr;
  if (used_ > 1 && !(order_ = in.take(records))) return false;
  records_ = records;
  if (!add_up(raw_size) || !ends_.open(in, records) || !durations_.open(in, records)) return false;
  RecordCounts counted{records, 0, {}, nullptr};
  for (u32 i = 0; i < used_; ++i) {
    if (!readers_[i].open(in, sorts_[i])) return false;
    largest_ = std::max<u32>(largest_, sorts_[i].size);
    if (class_of(sorts_[i].type) == RecordClass::Unknown) counted.unknown += sorts_[i].count;
    counted.types.add(sorts_[i].type);
  }
  if (counts) counted.pieces = counts->pieces, *counts = counted;
  if (positions_.size() < used_ * kTileRows) positions_.resize(used_ * kTileRows);
  return in.left == 0;
}

std::size_t RecordRestorer::next(u8* out, u32 records, RecordPieces* pieces) {
  u32 at = 0;
  for (u32 left_over = std::min(records, left()); left_over != 0;) {
    const u32 rows = std::min<u32>(kTileRows, left_over);
    at = tile(out, at, rows, pieces);
    left_over -= rows;
  }
  return at;
}

// The next rows, from byte `at` of `out` on. Where they end.
u32 RecordRestorer::tile(u8* out, u32 at, u32 rows, RecordPieces* pieces) {
  EndsSink ends{times_, both(newest_end_)};
  ends_.read(done_, rows, ends);
  newest_end_ = static_cast<u64>(ends.before[0]);
  durations_.read(done_, rows, DurationsSink{times_});
  const u8* const order = order_ ? order_ + done_ : nullptr;
  u32 placed[kMaxTransformClasses];
  std::fill_n(placed, used_, 0);
  for (u32 i = 0; i < rows;) {
    // Records of one sort come in runs: what they have in common stays in registers.
    const u32 sort = order ? order[i] : 0;
    const u32 run = order ? run_of(order, i, rows) : rows;
    const u32 size = sorts_[sort].size;
    u32* place = positions_.data() + sort * kTileRows + placed[sort];
    placed[sort] += run - i;
    const bool wanted = pieces && pieces->types.has(sorts_[sort].type);
    while (i < run) {
      RecordPieces::Piece piece{at, 0, std::min(run - i, RecordPieces::kLongest), wanted, 0};
      const u64* const own = times_.of + 2 * i;
      if (wanted)
        piece.newest = place_records<true>(out, at, size, piece.records, own, place);
      else
        place_records<false>(out, at, size, piece.records, own, place);
      i += piece.records, place += piece.records, at += piece.records * size;
      piece.end = at;
      if (pieces) pieces->add(piece);
    }
  }
  for (u32 sort = 0; sort < used_; ++sort) {
    if (placed[sort] != 0) readers_[sort].restore(out, positions_.data() + sort * kTileRows, placed[sort]);
  }
  done_ += rows;
  return at;
}

}  // namespace gputrace
