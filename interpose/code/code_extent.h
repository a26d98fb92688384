// How large a code image is when the driver was given only its address: as large as its own headers say, none of which
// is believed before the memory was tried. Cold; no allocation. Nothing beyond the headers is read, except texts.
#pragma once

#include "base/types.h"
#include "trace/record.h"

namespace gputrace {

struct ImageExtent {
  u64 address = 0;
  u64 bytes = 0;  // 0: not known
  ImageKind kind = ImageKind::Unknown;
};

inline constexpr u32 kMaxImagesOfModule = 32;

// The image at an address; behind a fatbin wrapper all of them (with -rdc=true there are several). Returns how many;
// 0: no address.
u32 find_images(const void* image, ImageExtent (&out)[kMaxImagesOfModule]);

}  // namespace gputrace
