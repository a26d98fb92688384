// What stands behind the functions of libgputrace-host.so: the same name in the objects loaded after it, by default libc's.
#pragma once

#include "base/types.h"

namespace gputrace::host {

enum class Function : u32 {
#define GT_HOST_FUNCTION(name) name,
#include "interpose/host/host_functions.def"
};

// nullptr: nobody has it. The first time it takes the loader's lock; the constructor asks for all of them.
void* find_real(Function function);
void find_all_real();

}  // namespace gputrace::host
