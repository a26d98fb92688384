// The build id of an ELF file: by it the traced process and the reader of its machine code mean the same file. Wherever the file
// lies (in memory, on disk), it is read through what the caller gives; nothing is trusted, nothing allocated.
#pragma once

#include <elf.h>

#include <cstring>

#include "base/bounded_text.h"

namespace gputrace {

// In hex, terminated, at most 32 bytes of it; "": not known.
using BuildId = char[65];

inline void put_build_id(const u8* bytes, u64 count, BuildId& hex) {
  BoundedText text(hex, sizeof hex - 1);
  hex[0] = 0;
  for (u64 i = 0; i < count && i < 32; ++i) text.put_hex(bytes[i], 2);
  hex[text.size()] = 0;
}

// Among notes of an ELF file. False: they hold none.
inline bool build_id_in_notes(const u8* notes, u64 size, BuildId& hex) {
  for (u64 at = 0; at < size && size - at >= sizeof(Elf64_Nhdr);) {
    Elf64_Nhdr note;
    std::memcpy(&note, notes + at, sizeof note);
    const u64 name = at + sizeof note, content = name + align_up(note.n_namesz, 4);
    const u64 next = content + align_up(note.n_descsz, 4);
    if (next > size) return false;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(notes + name, "GNU", 4) == 0) {
      put_build_id(notes + content, note.n_descsz, hex);
      return true;
    }
    at = next;
  }
  return false;
}

// read(offset, out, bytes): copies exactly so many bytes of the file, or returns false. False: the file has no build id, or is
// no ELF file.
template <typename Read>
bool find_build_id(const Read& read, BuildId& hex) {
  Elf64_Ehdr header;
  if (!read(0, &header, sizeof header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_phentsize != sizeof(Elf64_Phdr))
    return false;
  for (u64 i = 0; i < header.e_phnum && i < 64; ++i) {
    Elf64_Phdr segment;
    if (!read(header.e_phoff + i * sizeof segment, &segment, sizeof segment)) return false;
    if (segment.p_type != PT_NOTE) continue;
    u8 notes[4096];  // more than notes take
    const u64 size = segment.p_filesz < sizeof notes ? segment.p_filesz : sizeof notes;
    if (read(segment.p_offset, notes, size) && build_id_in_notes(notes, size, hex)) return true;
  }
  return false;
}

}  // namespace gputrace
