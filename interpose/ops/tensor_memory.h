// What PyTorch's caching allocator gives and takes back within the memory that it has from the driver. libc10 defines the
// functions by which it tells a profiler so; the allocator calls them by name from another library, and so calls ours, which
// pass on to libc10's. No layout of PyTorch's is read: any version has them that has these names.
#pragma once

namespace gputrace {

// A new session, or a child of fork. Off: nothing is recorded, all is passed on.
void reset_tensor_memory(bool wanted);

}  // namespace gputrace
