// How large a code image is, of which the driver was given the address alone: by its own headers, none of which is
// believed before the memory was tried. Cold; no allocation. Beyond headers nothing is read, texts excepted.
#pragma once

#include "base/types.h"
#include "trace/record.h"

namespace gputrace {

struct ImageExtent {
  u64 address = 0;
  u64 bytes = 0;  // 0: cannot be told
  ImageKind kind = ImageKind::Unknown;
};

inline constexpr u32 kMaxImagesOfModule = 32;

// The image at an address; behind a fatbin wrapper all of them (with -rdc=true there are several). Returns how many;
// 0: no address.
u32 find_images(const void* image, ImageExtent (&out)[kMaxImagesOfModule]);

}  // namespace gputrace
