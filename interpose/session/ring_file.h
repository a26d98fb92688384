// Where the ring lies in a file instead of in memory that dies with its processes (GPUTRACE_SHM=file:DIR): what to map, and under
// which name. Cold; raw system calls only.
//   · A page of a file is written to its disk now and then, and a store into it may then wait for the file system. So only file
//     systems of this machine are taken (ext, xfs, overlay, tmpfs), with every block reserved: never SIGBUS, and no server to wait for.
//   · Without a choice of the user's the ring is in a file where program and sidecar are bound to die together: the program is the
//     first process of a container, or a child of the first one.
#pragma once

#include "base/types.h"
#include "interpose/settings/options.h"
#include "interpose/settings/process_facts.h"

namespace gputrace {

struct RingFile {
  int fd = -1;           // close-on-exec, every block reserved; -1: the ring is to be in memory
  char path[1024] = "";  // absolute
};

// Makes DIR/gputrace-PID-RANDOM.ring of `size` bytes, where a file is wanted. What stands against it is said in `info`: the ring is in
// memory then.
void make_ring_file(const Options& options, const Identity& identity, u64 size, RingFile& file, InfoText& info);
// Closes and removes it.
void remove_ring_file(RingFile& file);

}  // namespace gputrace
