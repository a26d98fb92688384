#include "analysis/page/packed.h"

#include <lz4.h>

#include <algorithm>

namespace gputrace {

void PackedColumn::grow(std::size_t more) {
  const std::size_t room = std::max<std::size_t>({64, 2 * room_, size_ + more});
  auto wider = std::make_unique_for_overwrite<char[]>(room);
  std::copy_n(bytes_.get(), size_, wider.get());
  bytes_ = std::move(wider);
  room_ = room;
}

PackedBlock::Extent PackedBlock::add(const PackedColumn& column) {
  const std::string_view raw = column.bytes();
  const std::size_t before = bytes_.size();
  const int most = LZ4_compressBound(static_cast<int>(raw.size()));
  bytes_.resize(before + static_cast<std::size_t>(most));
  const int packed = LZ4_compress_default(raw.data(), bytes_.data() + before, static_cast<int>(raw.size()), most);
  bytes_.resize(before + static_cast<std::size_t>(packed));
  return {raw.size(), static_cast<std::size_t>(packed)};
}

std::string PackedBlock::base64() const {
  static const char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve(bytes_.size() / 3 * 4 + 4);
  for (std::size_t i = 0; i < bytes_.size(); i += 3) {
    u32 bits = 0;
    for (std::size_t k = 0; k < 3; ++k)
      bits = bits << 8 | (i + k < bytes_.size() ? static_cast<u8>(bytes_[i + k]) : 0u);
    for (std::size_t k = 0; k < 4; ++k) text += i + k <= bytes_.size() ? kDigits[bits >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

}  // namespace gputrace
