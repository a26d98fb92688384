// Fatbin: a header, then entries, each with its own header (sizes in bytes, little-endian):
//
//   fatbin  0 u32 magic · 4 u16 version · 6 u16 header size · 8 u64 size of all that follows
//   entry   0 u16 kind (1 PTX, 2 ELF) · 4 u32 header size · 8 u32 payload, padded · 16 u32 payload, compressed
//           28 u32 sm · 40 u64 flags · 56 u64 payload, unpacked (only where compressed)
#include <lz4.h>
#include <zstd.h>

#include <algorithm>

#include "cubin/bytes.h"

namespace gputrace {
namespace {

constexpr std::uint32_t kWrapperMagic = 0x466243B1;
constexpr std::uint32_t kFatbinMagic = 0xBA55ED50;
constexpr std::uint32_t kElfMagic = 0x464C457F;
constexpr std::size_t kFatbinHeaderBytes = 16;
constexpr std::size_t kEntryHeaderBytes = 64;
constexpr std::size_t kMaxPrelinkedFatbins = 4096;

constexpr std::uint64_t kFlagLz4 = 0x2000;
constexpr std::uint64_t kFlagZstd = 0x8000;
constexpr std::uint64_t kFlagArchitecture = 0x100000;
constexpr std::uint64_t kFlagFamily = 0x200000;

struct Wrapper {
  std::uint32_t magic;
  std::uint32_t version;
  const void* data;
  const void* prelinked;  // version 2: NULL-ended array of fatbins
};

// The size that a fatbin's own header claims, or 0.
std::uint64_t claimed_fatbin_bytes(ByteSpan header) {
  if (read_at<std::uint32_t>(header, 0) != kFatbinMagic) return 0;
  const auto header_bytes = read_at<std::uint16_t>(header, 6);
  const auto rest = read_at<std::uint64_t>(header, 8);
  if (!header_bytes || !rest || *header_bytes < kFatbinHeaderBytes || *rest > UINT64_MAX - *header_bytes) return 0;
  return *header_bytes + *rest;
}

// The extent of an ELF file from its headers: the end of the last table or section. 0 if they do not lie in `elf`.
std::uint64_t claimed_elf_bytes(ByteSpan elf) {
  const auto program_offset = read_at<std::uint64_t>(elf, 32);
  const auto section_offset = read_at<std::uint64_t>(elf, 40);
  const auto program_entry = read_at<std::uint16_t>(elf, 54);
  const auto programs = read_at<std::uint16_t>(elf, 56);
  const auto entry_bytes = read_at<std::uint16_t>(elf, 58);
  const auto sections = read_at<std::uint16_t>(elf, 60);
  if (!sections || *section_offset == 0 || *section_offset > kMaxImageBytes || *entry_bytes != 64) return 0;
  std::uint64_t count = *sections;
  if (count == 0) count = read_at<std::uint64_t>(elf, *section_offset + 32).value_or(kMaxImageBytes);
  if (count > kMaxImageBytes / 64) return 0;
  std::uint64_t end = *section_offset + count * 64;
  if (*program_offset <= kMaxImageBytes) {
    end = std::max(end, *program_offset + std::uint64_t{*program_entry} * *programs);
  }
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto at = *section_offset + i * 64;
    const auto type = read_at<std::uint32_t>(elf, at + 4);
    const auto offset = read_at<std::uint64_t>(elf, at + 24);
    const auto size = read_at<std::uint64_t>(elf, at + 32);
    if (!size) return 0;
    if (*type == 8 || *type == 0x70000007 || *type == 0x70000009 || *type == 0x7000000a)
      continue;  // no bytes in the file
    if (*offset > kMaxImageBytes || *size > kMaxImageBytes) return 0;
    end = std::max(end, *offset + *size);
  }
  return end <= kMaxImageBytes ? end : 0;
}

bool looks_like_ptx(ByteSpan bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), std::min<std::size_t>(bytes.size(), 65536));
  std::size_t i = 0;
  while (i < text.size()) {
    if (std::string_view(" \t\r\n\f\v").find(text[i]) != std::string_view::npos) {
      ++i;
    } else if (text.substr(i, 2) == "//") {
      i = text.find('\n', i);
    } else if (text.substr(i, 2) == "/*") {
      const std::size_t end = text.find("*/", i + 2);
      i = end == std::string_view::npos ? end : end + 2;
    } else {
      return text.substr(i, 8) == ".version" || text.substr(i, 7) == ".target";
    }
  }
  return false;
}

std::optional<FatbinEntry> read_entry(ByteSpan rest, std::size_t& entry_bytes) {
  const auto kind = read_at<std::uint16_t>(rest, 0);
  const auto header_bytes = read_at<std::uint32_t>(rest, 4);
  const auto padded = read_at<std::uint32_t>(rest, 8);
  const auto compressed = read_at<std::uint32_t>(rest, 16);
  const auto sm = read_at<std::uint32_t>(rest, 28);
  const auto flags = read_at<std::uint64_t>(rest, 40);
  const auto raw = read_at<std::uint64_t>(rest, 56);
  if (!raw || *header_bytes < kEntryHeaderBytes) return std::nullopt;  // the last field present: all are
  FatbinEntry entry;
  entry.kind = *kind == 1 ? ContainerKind::kPtx : *kind == 2 ? ContainerKind::kCubin : ContainerKind::kUnknown;
  entry.sm.number = *sm;
  if (*flags & kFlagFamily) entry.sm.variant = SmVariant::kFamily;
  if (*flags & kFlagArchitecture) entry.sm.variant = SmVariant::kArchitecture;
  if (*flags & kFlagLz4) entry.compression = Compression::kLz4;
  if (*flags & kFlagZstd) entry.compression = Compression::kZstd;
  const bool packed = entry.compression != Compression::kNone;
  const auto payload = slice(rest, *header_bytes, *padded);
  if (!payload || (packed && *compressed > payload->size()) || (packed && *raw > kMaxImageBytes)) return std::nullopt;
  entry.payload = packed ? payload->first(*compressed) : *payload;
  if (!packed && entry.kind == ContainerKind::kCubin) {  // entries are padded to 8 bytes, cubins end anywhere
    const std::uint64_t cubin = claimed_elf_bytes(entry.payload);
    if (cubin <= entry.payload.size() && entry.payload.size() - cubin < 8) entry.payload = entry.payload.first(cubin);
  }
  entry.raw_bytes = packed ? static_cast<std::size_t>(*raw) : entry.payload.size();
  entry_bytes = *header_bytes + payload->size();
  return entry;
}

std::uint32_t major_of(std::uint32_t sm) { return sm / 10; }

// Chips that one family-specific image serves. 10.0 and 10.3 are one family, 12.0 and 12.1 another; 11.0 stands alone.
bool same_family(std::uint32_t code, std::uint32_t device) {
  return major_of(code) == major_of(device) && code <= device;
}

}  // namespace

ContainerKind identify_image(ByteSpan bytes) {
  const auto magic = read_at<std::uint32_t>(bytes, 0);
  if (!magic) return ContainerKind::kUnknown;
  if (*magic == kWrapperMagic) return ContainerKind::kFatbinWrapper;
  if (*magic == kFatbinMagic) return ContainerKind::kFatbin;
  if (*magic == kElfMagic) return ContainerKind::kCubin;
  return looks_like_ptx(bytes) ? ContainerKind::kPtx : ContainerKind::kUnknown;
}

ByteSpan image_at(const void* image) {
  if (image == nullptr) return {};
  const auto* bytes = static_cast<const std::byte*>(image);
  // Text first: a text may be shorter than any header, so nothing beyond its NUL may be touched.
  const std::size_t text_bytes = strnlen(static_cast<const char*>(image), kMaxImageBytes);
  const ByteSpan text(bytes, text_bytes);
  if (text_bytes < 4) return {};
  switch (identify_image(text.first(std::min<std::size_t>(text_bytes, 65536)))) {
    case ContainerKind::kFatbinWrapper: {
      const auto fatbins = fatbins_of_wrapper(image);
      return fatbins.empty() ? ByteSpan{} : fatbins.front();
    }
    case ContainerKind::kFatbin: {
      const std::uint64_t size = claimed_fatbin_bytes(ByteSpan(bytes, kFatbinHeaderBytes));
      return size == 0 || size > SIZE_MAX / 2 ? ByteSpan{} : ByteSpan(bytes, static_cast<std::size_t>(size));
    }
    case ContainerKind::kCubin:
      return ByteSpan(bytes, static_cast<std::size_t>(claimed_elf_bytes(ByteSpan(bytes, kMaxImageBytes))));
    case ContainerKind::kPtx:
      return text;
    case ContainerKind::kUnknown:
      break;
  }
  return {};
}

std::vector<ByteSpan> fatbins_of_wrapper(const void* wrapper) {
  std::vector<ByteSpan> found;
  Wrapper w;
  std::memcpy(&w, wrapper, sizeof w);
  if (w.magic != kWrapperMagic) return found;
  const auto add = [&found](const void* fatbin) {
    if (fatbin == nullptr) return;
    const auto* bytes = static_cast<const std::byte*>(fatbin);
    const std::uint64_t size = claimed_fatbin_bytes(ByteSpan(bytes, kFatbinHeaderBytes));
    if (size != 0 && size <= SIZE_MAX / 2) found.emplace_back(bytes, static_cast<std::size_t>(size));
  };
  add(w.data);
  if (w.version < 2 || w.prelinked == nullptr) return found;
  const auto* list = static_cast<const void* const*>(w.prelinked);
  for (std::size_t i = 0; i < kMaxPrelinkedFatbins && list[i] != nullptr; ++i) add(list[i]);
  return found;
}

std::optional<std::vector<FatbinEntry>> read_fatbin(ByteSpan bytes, std::string* why) {
  std::vector<FatbinEntry> entries;
  if (read_at<std::uint32_t>(bytes, 0) != kFatbinMagic) {
    explain(why, "not a fatbin");
    return std::nullopt;
  }
  // A section (.nv_fatbin) holds many fatbins one after the other, with zeroes between.
  while (const std::uint64_t claimed = claimed_fatbin_bytes(bytes)) {
    if (claimed > bytes.size()) explain(why, "the fatbin is truncated");
    const auto fatbin = bytes.first(static_cast<std::size_t>(std::min<std::uint64_t>(claimed, bytes.size())));
    ByteSpan rest = fatbin.subspan(std::min<std::size_t>(*read_at<std::uint16_t>(fatbin, 6), fatbin.size()));
    while (!rest.empty() && entries.size() < kMaxFatbinEntries) {
      std::size_t entry_bytes = 0;
      const auto entry = read_entry(rest, entry_bytes);
      if (!entry) {
        explain(why, "a fatbin entry is broken");
        return entries;
      }
      entries.push_back(*entry);
      rest = rest.subspan(entry_bytes);
    }
    bytes = bytes.subspan(fatbin.size());
    const auto next = std::find_if(bytes.begin(), bytes.end(), [](std::byte b) { return b != std::byte{0}; });
    bytes = bytes.subspan(static_cast<std::size_t>(next - bytes.begin()));
  }
  return entries;
}

bool runs_on(const FatbinEntry& entry, std::uint32_t device) {
  const std::uint32_t sm = entry.sm.number;
  switch (entry.sm.variant) {
    case SmVariant::kArchitecture:
      return sm == device;
    case SmVariant::kFamily:
      return same_family(sm, device);
    case SmVariant::kNone:
      break;
  }
  if (entry.kind == ContainerKind::kCubin) return major_of(sm) == major_of(device) && sm <= device;
  return entry.kind == ContainerKind::kPtx && sm <= device;
}

const FatbinEntry* pick_entry(std::span<const FatbinEntry> entries, std::uint32_t device) {
  const auto rank = [](const FatbinEntry& e) {
    return (e.kind == ContainerKind::kCubin ? 1u << 20 : 0u) + e.sm.number * 4 +
           static_cast<std::uint32_t>(e.sm.variant == SmVariant::kArchitecture ? 2
                                      : e.sm.variant == SmVariant::kFamily     ? 1
                                                                               : 0);
  };
  const FatbinEntry* best = nullptr;
  for (const FatbinEntry& entry : entries) {
    if (entry.kind == ContainerKind::kUnknown || entry.sm.number > 9999 || !runs_on(entry, device)) continue;
    if (best == nullptr || rank(entry) > rank(*best)) best = &entry;
  }
  return best;
}

std::optional<std::vector<std::byte>> unpack(const FatbinEntry& entry, std::string* why) {
  const auto* source = reinterpret_cast<const char*>(entry.payload.data());
  if (entry.compression == Compression::kNone) {
    return std::vector<std::byte>(entry.payload.begin(), entry.payload.end());
  }
  // The claimed size is not believed before the data support it: LZ4 expands at most 255-fold, zstd says itself.
  const bool zstd = entry.compression == Compression::kZstd;
  const bool absurd = zstd ? ZSTD_getFrameContentSize(source, entry.payload.size()) != entry.raw_bytes
                           : entry.raw_bytes / 256 > entry.payload.size() || entry.payload.size() > LZ4_MAX_INPUT_SIZE;
  if (absurd || entry.raw_bytes > kMaxImageBytes) {
    explain(why, "the unpacked size of a fatbin entry cannot be true");
    return std::nullopt;
  }
  std::vector<std::byte> out(entry.raw_bytes);
  auto* target = reinterpret_cast<char*>(out.data());
  const std::size_t got =
      zstd ? ZSTD_decompress(target, out.size(), source, entry.payload.size())
           : static_cast<std::size_t>(LZ4_decompress_safe(source, target, static_cast<int>(entry.payload.size()),
                                                          static_cast<int>(out.size())));
  if (got != out.size()) {
    explain(why, "a fatbin entry does not unpack");
    return std::nullopt;
  }
  return out;
}

}  // namespace gputrace
