#include "interpose/code/code_extent.h"

#include <elf.h>

#include <cstring>

#include "interpose/code/code_mapping.h"

namespace gputrace {
namespace {

constexpr u32 kElfMagic = 0x464c457f, kWrapperMagic = 0x466243b1, kFatbinMagic = 0xba55ed50;
constexpr u64 kMaxImage = 2ull << 30;
constexpr u64 kMaxText = 64ull << 20;
constexpr u32 kMaxSections = 1u << 16;

struct Wrapper {
  u32 magic, version;
  u64 data;
  u64 prelinked;  // version 2: a list of fatbins that ends with 0
};

bool has_bytes_in_file(u32 section_type) {
  return section_type != SHT_NOBITS && section_type != 0x70000007 && section_type != 0x70000009 &&
         section_type != 0x7000000a;
}

void extend(u64& end, u64 offset, u64 bytes) {
  if (offset <= kMaxImage && bytes <= kMaxImage && offset + bytes > end) end = offset + bytes;
}

u64 elf_bytes(u64 address) {
  Elf64_Ehdr header;
  if (read_memory(address, &header, sizeof header) != sizeof header) return 0;
  u64 end = 0;
  extend(end, header.e_shoff, u64{header.e_shnum} * header.e_shentsize);
  extend(end, header.e_phoff, u64{header.e_phnum} * header.e_phentsize);
  if (header.e_shentsize != sizeof(Elf64_Shdr) || header.e_shoff == 0 || header.e_shoff > kMaxImage) return end;
  Elf64_Shdr sections[16];
  u32 count = header.e_shnum;
  if (count == 0) {  // more than fit into 16 bits: section 0 tells
    if (read_memory(address + header.e_shoff, sections, sizeof *sections) != sizeof *sections) return end;
    count = sections[0].sh_size < kMaxSections ? static_cast<u32>(sections[0].sh_size) : kMaxSections;
    extend(end, header.e_shoff, u64{count} * sizeof *sections);
  }
  for (u32 i = 0; i < count;) {
    const u32 batch = count - i < 16 ? count - i : 16;
    const u64 bytes = batch * sizeof *sections;
    if (read_memory(address + header.e_shoff + i * sizeof *sections, sections, bytes) != bytes) return end;
    for (u32 k = 0; k < batch; ++k) {
      if (has_bytes_in_file(sections[k].sh_type)) extend(end, sections[k].sh_offset, sections[k].sh_size);
    }
    i += batch;
  }
  return end;
}

// To its NUL, as far as memory can be read.
u64 text_bytes(u64 address) {
  constexpr u64 kStep = 64u << 10;
  for (u64 length = 0; length < kMaxText;) {
    const u64 readable = readable_bytes(address + length, kStep);
    const char* text = reinterpret_cast<const char*>(address + length);
    const u64 here = strnlen(text, readable);
    length += here;
    if (here < readable) return length;
    if (readable < kStep) return 0;  // no end that could be read
  }
  return 0;
}

bool may_begin_text(u8 first) {
  return first == '.' || first == '/' || first == '\n' || first == '\t' || first == ' ' || first == '\r';
}

ImageExtent extent_at(u64 address) {
  ImageExtent extent;
  extent.address = address;
  u8 head[16] = {};
  const u64 got = read_memory(address, head, sizeof head);
  if (got < 4) return extent;
  u32 magic;
  std::memcpy(&magic, head, 4);
  if (magic == kFatbinMagic && got == sizeof head) {
    u16 header;
    u64 rest;
    std::memcpy(&header, head + 6, 2);
    std::memcpy(&rest, head + 8, 8);
    extent.kind = ImageKind::Fatbin;
    if (header >= sizeof head && rest <= kMaxImage) extent.bytes = header + rest;
  } else if (magic == kElfMagic) {
    extent.kind = ImageKind::Cubin;
    extent.bytes = elf_bytes(address);
  } else if (may_begin_text(head[0])) {
    extent.kind = ImageKind::Ptx;
    extent.bytes = text_bytes(address);
  }
  return extent;
}

}  // namespace

u32 find_images(const void* image, ImageExtent (&out)[kMaxImagesOfModule]) {
  if (!image) return 0;
  const u64 address = reinterpret_cast<u64>(image);
  Wrapper wrapper;
  const u64 got = read_memory(address, &wrapper, sizeof wrapper);
  // A wrapper of version 1 may end where its memory ends.
  if (got < 16 || wrapper.magic != kWrapperMagic) {
    out[0] = extent_at(address);
    return 1;
  }
  out[0] = extent_at(wrapper.data);
  u32 count = 1;
  if (wrapper.version != 2 || got < sizeof wrapper || !wrapper.prelinked) return count;
  for (u32 i = 0; count < kMaxImagesOfModule; ++i) {
    u64 next = 0;
    if (read_memory(wrapper.prelinked + 8 * i, &next, 8) != 8 || !next) break;
    if (const ImageExtent extent = extent_at(next); extent.kind == ImageKind::Fatbin) out[count++] = extent;
  }
  return count;
}

}  // namespace gputrace
