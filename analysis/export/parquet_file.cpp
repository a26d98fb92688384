#include "analysis/export/parquet_file.h"

#include <fcntl.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <optional>

#include "analysis/export/parquet_encode.h"
#include "analysis/export/thrift.h"

namespace gputrace {
namespace {

// Numbers of https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift
constexpr i64 kRle = 3;
constexpr i64 kDataPage = 0, kDictionaryPage = 2, kUncompressed = 0, kZstd = 6, kUtf8 = 0;
constexpr int kLevel = 1;
constexpr std::size_t kWorthIt =
    4;  // bytes a distance: where they take more, zstd does better with the numbers as they are
constexpr char kParquetMagic[] = "PAR1";

i64 physical(ParquetType type) {
  switch (type) {
    case ParquetType::Bool:
      return 0;
    case ParquetType::Int32:
      return 1;
    case ParquetType::Int64:
      return 2;
    case ParquetType::Text:
      break;
  }
  return 6;
}

parquet::Plain plain_of(ParquetType type) {
  using enum parquet::Plain;
  return type == ParquetType::Int64 ? Eight : type == ParquetType::Int32 ? Four : Flag;
}

// Numbers that lie near each other cost less by dictionary than as they are: the compressor sees an eighth of the bytes.
constexpr u64 kNear = 1u << 12;

struct NumberDictionary {
  std::vector<i64> numbers;
  std::vector<u32> places;  // by number - least: 1 + place in `numbers`

  NumberDictionary(std::span<const i64> values, i64 least, i64 most)
      : places(static_cast<u64>(most) - static_cast<u64>(least) + 1) {
    for (const i64 value : values) {
      u32& place = places[static_cast<u64>(value) - static_cast<u64>(least)];
      if (place != 0) continue;
      numbers.push_back(value);
      place = static_cast<u32>(numbers.size());
    }
  }
};

std::string eight_bytes(i64 value) {
  std::string out;
  parquet::put_little(out, static_cast<u64>(value), 8);
  return out;
}

}  // namespace

u32 TextPool::number_of(std::string_view text) {
  const auto [known, made] = numbers_.emplace(text, static_cast<u32>(texts_.size()));
  if (made) texts_.push_back(&known->first);
  return known->second;
}

ParquetFile::ParquetFile(const std::string& path, const std::vector<ParquetColumn>& columns, const TextPool& texts,
                         i64 once)
    : columns_(columns),
      texts_(texts),
      file_(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)),
      once_(once),
      packer_(ZSTD_createCCtx(), [](ZSTD_CCtx_s* used) { ZSTD_freeCCtx(used); }) {
  for (const ParquetColumn& column : columns) {
    if (column.told == ParquetTold::Each) buffers_.emplace_back(column.optional);
  }
  at_ = buffers_.data();
  if (!packer_) throw std::bad_alloc();
  if (!file_) error_ = path + ": " + std::strerror(errno);
  write(kParquetMagic);
}

ParquetFile& ParquetFile::text(u32 number) {
  Buffer& buffer = *at_;
  if (number >= buffer.known.size()) buffer.known.resize(texts_.size());
  u32& known = buffer.known[number];
  if (known == 0) {
    buffer.dictionary.push_back(number);
    known = static_cast<u32>(buffer.dictionary.size());
  }
  return this->number(known - 1);
}

u32 ParquetFile::Keys::add(std::vector<i64> of_key) {
  values.push_back(std::move(of_key));
  known.push_back(0);
  return static_cast<u32>(values.size() - 1);
}

void ParquetFile::Keys::end_group() {
  for (const u32 key : of_group) known[key] = 0;
  of_group.clear(), of_rows.clear();
}

void ParquetFile::done() {
  at_ = buffers_.data();
  if (++rows_ == kRowsOfGroup) write_group();
}

void ParquetFile::write_group() {
  if (rows_ == 0) return;
  Group group;
  group.rows = static_cast<i64>(rows_);
  fill_lengths();
  std::size_t each = 0, keyed = 0, other_keyed = 0;
  for (const ParquetColumn& column : columns_) {
    switch (column.told) {
      case ParquetTold::Each:
        group.chunks.push_back(write_column(column, buffers_[each++]));
        break;
      case ParquetTold::ByKey:
        group.chunks.push_back(write_keyed_column(column, keys_, keyed++));
        break;
      case ParquetTold::ByOtherKey:
        group.chunks.push_back(write_keyed_column(column, other_keys_, other_keyed++));
        break;
      case ParquetTold::Once:
        group.chunks.push_back(write_once(column));
        break;
      case ParquetTold::Length:
        group.chunks.push_back(write_column(column, lengths_));
        break;
    }
  }
  groups_.push_back(std::move(group));
  keys_.end_group(), other_keys_.end_group();
  rows_ = 0;
}

// Before the columns that it is made of are written, and let go.
void ParquetFile::fill_lengths() {
  std::size_t each = 0;
  for (const ParquetColumn& column : columns_) {
    each += column.told == ParquetTold::Each;
    if (column.told != ParquetTold::Length) continue;
    const auto from = buffers_[each - 2].values(), to = buffers_[each - 1].values();
    lengths_.count = rows_;
    for (std::size_t i = 0; i < rows_; ++i) lengths_.room[i] = to[i] - from[i];
  }
}

void ParquetFile::add_text(u32 number) {
  const std::string& text = texts_.text(number);
  parquet::put_little(page_, text.size(), 4);
  page_ += text;
}

// Of the group's keys alone a dictionary is made; a row's place in it is that of its key.
ParquetFile::Chunk ParquetFile::write_keyed_column(const ParquetColumn& column, const Keys& keys, std::size_t place) {
  Chunk chunk;
  chunk.values = static_cast<i64>(rows_);
  chunk.encoding = Encoding::RleDictionary;
  std::vector<i64> words;
  std::vector<u32> word_of_key;  // by its place in the group's
  std::unordered_map<i64, u32> known;
  for (const u32 key : keys.of_group) {
    const i64 value = keys.values[key][place];
    const auto [word, fresh] = known.emplace(value, static_cast<u32>(words.size()));
    if (fresh) words.push_back(value);
    word_of_key.push_back(word->second);
    chunk.least = std::min(chunk.least, value), chunk.most = std::max(chunk.most, value);
  }
  page_.clear();
  if (column.type == ParquetType::Text) {
    for (const i64 number : words) add_text(static_cast<u32>(number));
  } else {
    parquet::put_plain(page_, words, plain_of(column.type));
  }
  write_page(page_, true, words.size(), chunk);
  page_.clear();
  parquet::put_places(page_, words.size(), rows_, [&](std::size_t i) { return word_of_key[keys.of_rows[i]]; });
  write_page(page_, false, rows_, chunk);
  return chunk;
}

ParquetFile::Chunk ParquetFile::write_once(const ParquetColumn& column) {
  Chunk chunk;
  chunk.values = static_cast<i64>(rows_);
  chunk.encoding = Encoding::RleDictionary;
  chunk.least = chunk.most = once_;
  page_.clear();
  parquet::put_plain(page_, {&once_, 1}, plain_of(column.type));
  write_page(page_, true, 1, chunk);
  page_.clear();
  parquet::put_places(page_, 1, rows_, [](std::size_t) { return 0u; });
  write_page(page_, false, rows_, chunk);
  return chunk;
}

ParquetFile::Chunk ParquetFile::write_column(const ParquetColumn& column, Buffer& buffer) {
  const std::span<const i64> values = buffer.values();
  Chunk chunk;
  chunk.values = static_cast<i64>(rows_);
  chunk.nulls = chunk.values - static_cast<i64>(values.size());
  const bool texts = column.type == ParquetType::Text;
  std::string& page = page_;
  page.clear();
  std::optional<NumberDictionary> near;
  std::size_t words = buffer.dictionary.size();
  if (texts) {
    for (const u32 number : buffer.dictionary) {
      add_text(number);
      buffer.known[number] = 0;
    }
  } else {
    i64 least = chunk.least, most = chunk.most;
    for (const i64 value : values) least = std::min(least, value), most = std::max(most, value);
    chunk.least = least, chunk.most = most;
    const bool some = column.type != ParquetType::Bool && !values.empty();
    if (some && static_cast<u64>(chunk.most) - static_cast<u64>(chunk.least) < kNear) {
      near.emplace(values, chunk.least, chunk.most);
      parquet::put_plain(page, near->numbers, plain_of(column.type));
      words = near->numbers.size();
    }
  }
  if (texts || near) {
    chunk.encoding = Encoding::RleDictionary;
    write_page(page, true, words, chunk);
  }
  page.clear();
  if (column.optional) parquet::put_levels(page, {buffer.there.get(), rows_}, values.size());
  if (chunk.encoding == Encoding::RleDictionary) {
    if (texts)
      parquet::put_places(page, words, values.size(), [&](std::size_t i) { return values[i]; });
    else
      parquet::put_places(page, words, values.size(), [&](std::size_t i) {
        return near->places[static_cast<u64>(values[i]) - static_cast<u64>(chunk.least)] - 1;
      });
  } else {
    const std::size_t levels = page.size();
    if (column.type == ParquetType::Int64) {
      parquet::put_deltas(page, values);
      if (page.size() - levels <= values.size() * kWorthIt) chunk.encoding = Encoding::DeltaBinaryPacked;
    }
    if (chunk.encoding == Encoding::Plain) {
      page.resize(levels);
      parquet::put_plain(page, values, plain_of(column.type));
    }
  }
  write_page(page, false, rows_, chunk);
  buffer.count = 0;
  buffer.dictionary.clear();
  return chunk;
}

void ParquetFile::write_page(const std::string& content, bool dictionary, std::size_t values, Chunk& chunk) {
  std::string_view packed = content;
  if (chunk.compressed()) {
    packed_.resize(std::max(packed_.size(), ZSTD_compressBound(content.size())));
    packed = {packed_.data(),
              ZSTD_compressCCtx(packer_.get(), packed_.data(), packed_.size(), content.data(), content.size(), kLevel)};
  }
  Thrift header;
  header.structure([&] {
    header.i32_field(1, dictionary ? kDictionaryPage : kDataPage);
    header.i32_field(2, static_cast<i64>(content.size()));
    header.i32_field(3, static_cast<i64>(packed.size()));
    header.struct_field(dictionary ? 7 : 5, [&] {
      header.i32_field(1, static_cast<i64>(values));
      header.i32_field(2, static_cast<i64>(dictionary ? Encoding::Plain : chunk.encoding));
      if (dictionary) return;
      header.i32_field(3, kRle);
      header.i32_field(4, kRle);
    });
  });
  (dictionary ? chunk.dictionary_at : chunk.data_at) = written_;
  chunk.plain_bytes += static_cast<i64>(header.bytes.size() + content.size());
  chunk.packed_bytes += static_cast<i64>(header.bytes.size() + packed.size());
  write(header.bytes);
  write(packed);
}

void ParquetFile::write(std::string_view bytes) {
  written_ += static_cast<i64>(bytes.size());
  while (!bytes.empty() && error_.empty()) {
    const ssize_t done = ::write(file_.get(), bytes.data(), bytes.size());
    if (done < 0 && errno != EINTR) error_ = std::strerror(errno);
    if (done > 0) bytes.remove_prefix(static_cast<std::size_t>(done));
  }
}

void ParquetFile::close() {
  write_group();
  const std::string end = footer();
  write(end);
  std::string tail;
  parquet::put_little(tail, end.size(), 4);
  write(tail + kParquetMagic);
  file_.reset();
}

std::string ParquetFile::footer() const {
  i64 rows = 0;
  for (const Group& group : groups_) rows += group.rows;
  Thrift out;
  const auto schema = [&](std::size_t i) {
    out.structure([&] {
      if (i == 0) {
        out.text_field(4, "schema");
        out.i32_field(5, static_cast<i64>(columns_.size()));
        return;
      }
      const ParquetColumn& column = columns_[i - 1];
      out.i32_field(1, physical(column.type));
      out.i32_field(3, column.optional);
      out.text_field(4, column.name);
      if (column.type == ParquetType::Text) out.i32_field(6, kUtf8);
    });
  };
  const auto chunk = [&](const Chunk& one, const ParquetColumn& column) {
    const bool dictionary = one.encoding == Encoding::RleDictionary;
    out.i64_field(2, dictionary ? one.dictionary_at : one.data_at);
    out.struct_field(3, [&] {
      out.i32_field(1, physical(column.type));
      out.list_field(2, 5, dictionary ? 3 : 2, [&](std::size_t i) {
        out.zigzag(i == 0 ? kRle : static_cast<i64>(i == 1 ? one.encoding : Encoding::Plain));
      });
      out.list_field(3, 8, 1, [&](std::size_t) { out.text(column.name); });
      out.i32_field(4, one.compressed() ? kZstd : kUncompressed);
      out.i64_field(5, one.values);
      out.i64_field(6, one.plain_bytes);
      out.i64_field(7, one.packed_bytes);
      out.i64_field(9, one.data_at);
      if (dictionary) out.i64_field(11, one.dictionary_at);
      if (column.type != ParquetType::Int64 || one.most < one.least) return;
      out.struct_field(12, [&] {
        out.i64_field(3, one.nulls);
        out.text_field(5, eight_bytes(one.most));
        out.text_field(6, eight_bytes(one.least));
      });
    });
  };
  out.structure([&] {
    out.i32_field(1, 1);
    out.list_field(2, 12, columns_.size() + 1, schema);
    out.i64_field(3, rows);
    out.list_field(4, 12, groups_.size(), [&](std::size_t g) {
      out.structure([&] {
        const Group& group = groups_[g];
        i64 bytes = 0;
        out.list_field(1, 12, columns_.size(), [&](std::size_t i) {
          bytes += group.chunks[i].plain_bytes;
          out.structure([&] { chunk(group.chunks[i], columns_[i]); });
        });
        out.i64_field(2, bytes);
        out.i64_field(3, group.rows);
      });
    });
    out.text_field(6, "gputrace");
  });
  return out.bytes;
}

}  // namespace gputrace
