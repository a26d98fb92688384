// What file a descriptor is of, told by its place in the table of host calls. Any thread; raw system calls; no lock.
#pragma once

#include "base/types.h"

namespace gputrace::host {

enum class DescriptorKind : u32 { File, Pipe, Socket, Terminal, Other };

struct Descriptor {
  DescriptorKind kind = DescriptorKind::Other;
  u32 path = 0;  // path_number()
};

// Asks the kernel which file it is, and for its path where that was not known.
Descriptor describe(int descriptor);
DescriptorKind kind_of(int descriptor);
// It was opened or closed: another file may have its number, and even its inode.
void forget(int descriptor);

}  // namespace gputrace::host
