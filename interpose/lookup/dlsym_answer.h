// What an interposed dlsym says to its caller.
#pragma once

#include "base/types.h"

namespace gputrace {

// `answered` 0 means "jump to the real dlsym as if we were not there" (the caller's return address decides what RTLD_NEXT
// and RTLD_DEFAULT mean), 1 means "return value".
struct DlsymAnswer {
  void* value;
  u64 answered;
};

}  // namespace gputrace
