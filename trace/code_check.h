// What the traced process and the sidecar must agree on about machine code: how much of it is copied, and by what the
// reader of an image by reference knows that the file still holds what was loaded.
#pragma once

#include <elf.h>
#include <sys/stat.h>

#include <cstring>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/types.h"

namespace gputrace {

inline constexpr u64 kMaxCodeCopy = 8ull << 20;  // bytes of one image that are copied
inline constexpr u64 kCodeBudget = 32ull << 20;  // bytes of all images of one process

// CodeImage::check of an image that lies in memory or in a mapped file: of its first bytes, 64 or all of them.
inline u64 code_head_check(const void* head, u64 bytes) { return XXH3_64bits(head, bytes < 64 ? bytes : 64); }

// CodeImage::check of a file that the driver was given by name: which file it was, and when it was last written.
inline u64 code_file_check(const struct stat& about) {
  const u64 words[4] = {static_cast<u64>(about.st_ino), static_cast<u64>(about.st_size),
                        static_cast<u64>(about.st_mtim.tv_sec), static_cast<u64>(about.st_mtim.tv_nsec)};
  return XXH3_64bits(words, sizeof words);
}

inline constexpr u64 kNotesRead = 4096;  // bytes of one segment of notes that are looked at

// The build id among notes of an ELF file, in hex, terminated, at most 32 bytes of it. False: they hold none.
inline bool build_id_in_notes(const u8* notes, u64 size, char (&hex)[65]) {
  for (u64 at = 0; at < size && size - at >= sizeof(Elf64_Nhdr);) {
    Elf64_Nhdr note;
    std::memcpy(&note, notes + at, sizeof note);
    const u64 name = at + sizeof note, content = name + align_up(note.n_namesz, 4);
    const u64 next = content + align_up(note.n_descsz, 4);
    if (next > size) return false;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(notes + name, "GNU", 4) == 0) {
      u64 digits = 0;
      for (u64 i = 0; i < note.n_descsz && i < 32; ++i) {
        hex[digits++] = "0123456789abcdef"[notes[content + i] >> 4];
        hex[digits++] = "0123456789abcdef"[notes[content + i] & 15];
      }
      hex[digits] = 0;
      return true;
    }
    at = next;
  }
  return false;
}

}  // namespace gputrace
