// Asking a library's own getters after a call.
#pragma once

#include "interpose/library/library_records.h"

namespace gputrace {

// False: the library has no such getter, or it failed.
template <typename... Arguments>
bool ask(LibraryGetter& getter, const LibraryCall& did, Arguments... arguments) {
  const auto function = reinterpret_cast<int (*)(Arguments...)>(getter.find(did.real));
  return function && function(arguments...) == 0;
}

}  // namespace gputrace
