// Which sidecar, and with which environment: what start_sidecar() (spawn.h) is given.
#pragma once

#include "base/types.h"

namespace gputrace {

// Starts the sidecar at `path` (nullptr: the one that belongs to this library) on a segment; its process descriptor is
// the caller's own. Borrows the descriptor and `capacity` bytes of scratch. Returns 0, or an errno: there is none.
int launch_sidecar(const char* path, int segment_fd, char* scratch, u32 capacity);

// Starts it for one line in OUTPUT/untraced: that this process is not traced, why, and what can be done.
void launch_untraced(const char* path, const char* why, const char* fix, char* scratch, u32 capacity);

}  // namespace gputrace
