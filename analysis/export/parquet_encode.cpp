#include "analysis/export/parquet_encode.h"

#include <array>
#include <limits>

namespace gputrace::parquet {
namespace {

constexpr std::size_t kBlock = 128, kMiniBlocks = 4, kMiniBlock = kBlock / kMiniBlocks;

u64 zigzag(i64 value) { return static_cast<u64>(value) << 1 ^ static_cast<u64>(value >> 63); }

}  // namespace

void put_varint(std::string& out, u64 value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

void put_little(std::string& out, u64 value, unsigned bytes) {
  for (unsigned i = 0; i < bytes; ++i) out += static_cast<char>(value >> 8 * i);
}

void put_repeated(std::string& out, std::size_t count, unsigned width, u64 value) {
  put_varint(out, static_cast<u64>(count) << 1);
  put_little(out, value, (width + 7) / 8);
}

void put_plain(std::string& out, std::span<const i64> values, Plain as) {
  const std::size_t begin = out.size();
  if (as == Plain::Eight) {
    out.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(i64));
  } else if (as == Plain::Four) {
    out.resize(begin + values.size() * sizeof(i32));
    for (std::size_t i = 0; i < values.size(); ++i) {
      const i32 value = static_cast<i32>(values[i]);
      std::memcpy(&out[begin + i * sizeof value], &value, sizeof value);
    }
  } else {
    out.resize(begin + (values.size() + 7) / 8);
    for (std::size_t i = 0; i < values.size(); ++i)
      out[begin + i / 8] = static_cast<char>(out[begin + i / 8] | (values[i] != 0) << i % 8);
  }
}

void put_deltas(std::string& out, std::span<const i64> values) {
  put_varint(out, kBlock), put_varint(out, kMiniBlocks), put_varint(out, values.size());
  put_varint(out, zigzag(values.empty() ? 0 : values[0]));
  for (std::size_t at = 1; at < values.size(); at += kBlock) {
    const std::size_t count = std::min(kBlock, values.size() - at);
    std::array<u64, kBlock> over = {};
    i64 least = std::numeric_limits<i64>::max();
    for (std::size_t i = 0; i < count; ++i) {
      over[i] = static_cast<u64>(values[at + i]) - static_cast<u64>(values[at + i - 1]);
      least = std::min(least, static_cast<i64>(over[i]));
    }
    std::array<u64, kMiniBlocks> all = {};
    for (std::size_t i = 0; i < count; ++i) all[i / kMiniBlock] |= over[i] -= static_cast<u64>(least);
    put_varint(out, zigzag(least));
    for (const u64 bits : all) out += static_cast<char>(std::bit_width(bits));
    std::array<char, kBlock * sizeof(u64) + 8> packed;
    char* to = packed.data();
    for (std::size_t mini = 0; mini * kMiniBlock < count; ++mini)
      to = put_bits(to, kMiniBlock, static_cast<unsigned>(std::bit_width(all[mini])),
                    [&](std::size_t i) { return over[mini * kMiniBlock + i]; });
    out.append(packed.data(), to);
  }
}

void put_levels(std::string& page, std::span<const u8> there, std::size_t values) {
  std::string levels;
  if (values == there.size() || values == 0)
    put_repeated(levels, there.size(), 1, values != 0);
  else
    put_packed(levels, there.size(), 1, [&](std::size_t i) { return there[i]; });
  put_little(page, levels.size(), 4);
  page += levels;
}

}  // namespace gputrace::parquet
