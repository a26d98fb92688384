#include "trace/transform.h"

#include <algorithm>
#include <cstring>

#include "trace/record.h"

namespace gputrace {
namespace {

constexpr std::size_t kHeaderWords = sizeof(RecordHeader) / 8;
constexpr std::size_t kTileRows = 256;
constexpr std::size_t kColumnHeader = 10;
enum ColumnMode : u8 { kXor = 0, kDelta = 1 };

struct Class {
  u16 type;
  u16 size;
  u32 count;
};
static_assert(sizeof(Class) == 8);

u64 load(const u8* at) {
  u64 word;
  std::memcpy(&word, at, 8);
  return word;
}
void store(u8* at, u64 word) { std::memcpy(at, &word, 8); }
u64 zigzag(u64 difference) { return (difference << 1) ^ (0 - (difference >> 63)); }
u64 unzigzag(u64 value) { return (value >> 1) ^ (0 - (value & 1)); }

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
    const u64 end = load(records + 16);
    end_column[i] = zigzag(end - before);
    duration_column[i] = end - load(records + 8);
    before = end;
    u64* to = columns.data() + first[c] + row[c]++;
    *to = load(records) >> 32;
    const std::size_t words = table.classes[c].size / 8;
    for (std::size_t w = kHeaderWords; w < words; ++w) {
      to += stride[c];
      *to = load(records + 8 * w);
    }
    records += table.classes[c].size;
  }
}

// Reads the transformed bytes; every take() checks.
struct Input {
  const u8* at;
  std::size_t left;

  const u8* take(std::size_t bytes) {
    if (bytes > left) return nullptr;
    const u8* here = at;
    at += bytes;
    left -= bytes;
    return here;
  }
};

// A column being restored, tile by tile.
class ColumnReader {
 public:
  bool open(Input& in, std::size_t rows) {
    const u8* head = in.take(kColumnHeader);
    if (!head || head[0] > kDelta) return false;
    delta_ = head[0] == kDelta;
    base_ = load(head + 2);
    planes_ = 0;
    for (int b = 0; b < 8; ++b) {
      if (!(head[1] >> b & 1)) continue;
      shift_[planes_] = 8 * b;
      plane_[planes_] = in.take(rows);
      if (!plane_[planes_++]) return false;
    }
    return true;
  }
  bool constant() const { return planes_ == 0; }
  u64 base() const { return base_; }
  // Rows [from, from + count) → values; rows must be asked for in order.
  void read(std::size_t from, std::size_t count, u64* values) {
    if (constant()) return static_cast<void>(std::fill_n(values, count, base_));
    const u8* first = plane_[0] + from;
    for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<u64>(first[i]) << shift_[0];
    for (int p = 1; p < planes_; ++p) {
      const u8* plane = plane_[p] + from;
      const int shift = shift_[p];
      for (std::size_t i = 0; i < count; ++i) values[i] |= static_cast<u64>(plane[i]) << shift;
    }
    if (delta_) {
      for (std::size_t i = 0; i < count; ++i) values[i] = base_ += unzigzag(values[i]);
    } else {
      for (std::size_t i = 0; i < count; ++i) values[i] ^= base_;
    }
  }

 private:
  bool delta_ = false;
  int planes_ = 0;
  u64 base_ = 0;
  int shift_[8];
  const u8* plane_[8];
};

// Positions of every record, class by class (scratch.positions), from the order; false where counts or sizes do not add
// up.
bool place(const ClassTable& table, const u8* order, u32 records, std::size_t raw_size, std::vector<u32>& positions,
           u32* first) {
  u64 rows = 0, bytes = 0;
  for (u32 c = 0; c < table.used; ++c) {
    const Class& each = table.classes[c];
    if (each.size < sizeof(RecordHeader) || each.size % 8 || !each.count) return false;
    first[c] = static_cast<u32>(rows);
    rows += each.count;
    bytes += static_cast<u64>(each.count) * each.size;
  }
  if (rows != records || bytes != raw_size) return false;
  positions.resize(records);
  u32 row[kMaxTransformClasses] = {};
  u32 at = 0;
  for (u32 i = 0; i < records; ++i) {
    const u32 c = order ? order[i] : 0;
    if (c >= table.used || row[c] == table.classes[c].count) return false;
    positions[first[c] + row[c]++] = at;
    at += table.classes[c].size;
  }
  return true;
}

bool restore_times(Input& in, const ClassTable& table, const u8* order, u32 records, u8* out) {
  ColumnReader ends, durations;
  if (!ends.open(in, records) || !durations.open(in, records)) return false;
  u64 difference[kTileRows], duration[kTileRows], before = 0;
  for (u32 from = 0; from < records; from += kTileRows) {
    const u32 rows = std::min<u32>(kTileRows, records - from);
    ends.read(from, rows, difference);
    durations.read(from, rows, duration);
    for (u32 i = 0; i < rows; ++i) {
      before += unzigzag(difference[i]);
      store(out + 8, before - duration[i]);
      store(out + 16, before);
      out += table.classes[order ? order[from + i] : 0].size;
    }
  }
  return true;
}

// A class's columns: those with one value for all rows are laid out once, the others are read tile by tile.
class ClassReader {
 public:
  bool open(Input& in, const Class& c) {
    columns_ = class_columns(c);
    constant_.assign(columns_, 0);
    readers_.clear();
    for (std::size_t w = 0; w < columns_; ++w) {
      ColumnReader reader;
      if (!reader.open(in, c.count)) return false;
      if (reader.constant())
        constant_[w] = reader.base();
      else
        readers_.push_back({reader, w});
    }
    // Not from the columns: the chain must hold whatever they say.
    key_ = c.type | static_cast<u64>(c.size) << 16;
    return true;
  }

  void restore(const Class& c, const u32* positions, u8* out, std::vector<u64>& scratch) {
    scratch.resize(std::max(scratch.size(), readers_.size() * kTileRows));
    const std::size_t payload = columns_ - 1;
    const u64 head = key_ | constant_[0] << 32;
    for (u32 from = 0; from < c.count; from += kTileRows) {
      const u32 rows = std::min<u32>(kTileRows, c.count - from);
      for (std::size_t i = 0; i < readers_.size(); ++i)
        readers_[i].column.read(from, rows, scratch.data() + i * kTileRows);
      for (u32 row = 0; row < rows; ++row) {
        u8* record = out + positions[from + row];
        store(record, head);
        std::memcpy(record + sizeof(RecordHeader), constant_.data() + 1, 8 * payload);
      }
      // Column by column: a tile's records are in the cache.
      const u64* tile = scratch.data();
      for (const Varying& each : readers_) {
        const std::size_t offset = each.word ? sizeof(RecordHeader) + 8 * (each.word - 1) : 0;
        if (each.word == 0) {
          for (u32 row = 0; row < rows; ++row) store(out + positions[from + row], key_ | tile[row] << 32);
        } else {
          for (u32 row = 0; row < rows; ++row) store(out + positions[from + row] + offset, tile[row]);
        }
        tile += kTileRows;
      }
    }
  }

 private:
  struct Varying {
    ColumnReader column;
    std::size_t word;
  };
  std::size_t columns_ = 0;
  u64 key_ = 0;
  std::vector<u64> constant_;  // 0 where the column varies
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
  Input in{data, size};
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
  if (!place(table, order, count, raw_size, scratch.positions, first)) return false;
  if (!restore_times(in, table, order, count, records)) return false;
  ClassReader reader;
  RecordCounts counted{count, 0, {}};
  for (u32 c = 0; c < table.used; ++c) {
    if (!reader.open(in, table.classes[c])) return false;
    reader.restore(table.classes[c], scratch.positions.data() + first[c], records, scratch.columns);
    if (class_of(table.classes[c].type) == RecordClass::Unknown) counted.unknown += table.classes[c].count;
    counted.types.add(table.classes[c].type);
  }
  if (counts) *counts = counted;
  return in.left == 0;
}

bool count_records(const u8* records, std::size_t size, RecordCounts& counts) {
  const i64 count = count_records(records, size);
  if (count < 0) return false;
  counts = {static_cast<u32>(count), 0, {}};
  for (std::size_t at = 0; at < size;) {
    RecordHeader header;
    std::memcpy(&header, records + at, sizeof header);
    counts.unknown += class_of(header.type) == RecordClass::Unknown;
    counts.types.add(header.type);
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
