#include "trace/codec/transform.h"

#include <algorithm>
#include <cstring>

#include "trace/codec/restore.h"
#include "trace/record.h"

namespace gputrace {
namespace {

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
  RecordSort classes[kMaxTransformClasses];
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
std::size_t class_columns(const RecordSort& c) { return c.size / 8 - kHeaderWords + 1; }

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
