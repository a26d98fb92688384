// Where the machine code of every loaded module is: recorded once per module, so that the sidecar can read it.
//   · An image that lies in a mapped file goes by reference (path, build id, offset, size): nothing of it is read here
//     but its headers. Only what is in memory alone is copied, once for the same bytes, within a budget per process.
//   · What cannot be kept is said (CodeState). The host never waits: a copy that finds the ring too full is given up.
//   · Cold: at loads of modules only, after the real call has succeeded.
#pragma once

#include "base/types.h"
#include "interpose/code/code_extent.h"
#include "interpose/hot/traced.h"

namespace gputrace {

// A new session, or a child of fork. False: no memory; then nothing is captured.
bool reset_code_capture(bool wanted);

// `module`: CUmodule or CUlibrary. Nothing happens where the call failed.
void capture_images(const FinishedCall& call, u64 module, const ImageExtent* images, u32 count);
void capture_file(const FinishedCall& call, u64 module, const char* path);
// A CUmodule was given for a CUlibrary: its code is the library's.
void capture_library_module(const FinishedCall& call, u64 module, u64 library);
// A kernel of a module or library is asked for, before FunctionGet is recorded: what was not kept of its code when it was loaded, for want of room, is tried again.
void code_wanted(const FinishedCall& call, u64 module);
void code_unloaded(u64 module);

}  // namespace gputrace
