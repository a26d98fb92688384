// What a file that is about to be opened can reach: looked at as a file, nothing of it is loaded.
#pragma once

namespace gputrace {

// Whether the object at `path` names a library of CUDA anywhere: needs one, opens one, or has a runtime linked into it; or
// whether an object that it needs and that lies in its folder or on its run path does. False also for what cannot be
// found, which a path without a slash is. Cold; makes system calls, allocates nothing from the host's heap.
bool file_reaches_cuda(const char* path);

}  // namespace gputrace
