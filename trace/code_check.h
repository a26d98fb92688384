// What the traced process and the sidecar must agree on about machine code: how much of it is copied, and by what the
// reader of an image by reference knows that the file still holds what was loaded.
#pragma once

#include <sys/stat.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/types.h"

namespace gputrace {

inline constexpr u64 kMaxCodeCopy = 12ull << 20;  // bytes of one image that are copied
inline constexpr u64 kCodeBudget =
    32ull << 20;  // bytes of all images of one process that are copied when they are loaded
inline constexpr u64 kCodeBudgetOfWanted = 64ull << 20;  // and with those of which a kernel is asked for

// CodeImage::check of an image that lies in memory or in a mapped file: of its first bytes, 64 or all of them.
inline u64 code_head_check(const void* head, u64 bytes) { return XXH3_64bits(head, bytes < 64 ? bytes : 64); }

// CodeImage::check of a file that the driver was given by name: which file it was, and when it was last written.
inline u64 code_file_check(const struct stat& about) {
  const u64 words[4] = {static_cast<u64>(about.st_ino), static_cast<u64>(about.st_size),
                        static_cast<u64>(about.st_mtim.tv_sec), static_cast<u64>(about.st_mtim.tv_nsec)};
  return XXH3_64bits(words, sizeof words);
}

}  // namespace gputrace
