// The native frames from which a thread calls CUDA: return addresses, by libunwind's unw_backtrace.
//   · libunwind is opened by name, for us alone (RTLD_LOCAL, RTLD_DEEPBIND): it carries the names of the C++ runtime's own
//     unwinder, and as a library that we need it would take the program's exceptions. Where it is not there, there are no
//     native stacks, and the trace says so.
//   · Called within the call that is traced, on its thread, never in a handler on top of our own code.
//   · A child of fork whose parent had opened libunwind never reads them: another thread may have held one of its locks.
#pragma once

#include "base/types.h"
#include "interpose/settings/info_text.h"
#include "trace/build_id.h"

namespace gputrace {

inline constexpr u32 kMostNativeFrames = 64;  // innermost ones; what is above them is not told

// A new session, or a child of fork. Looks for libunwind and says in `info` why there will be no native stacks, where that
// is so.
void reset_native_stacks(bool wanted, InfoText& info);
bool native_stacks_are_read();

// Hot. Return addresses of the calling thread's frames but this library's own, innermost first; at most kMostNativeFrames.
// Returns how many.
u32 read_native_frames(u64* addresses);
// Changes whenever objects were unloaded: from then on an address may be another function's.
u64 unloaded_objects();

// Where a return address lies. Cold; takes the loader's lock for one walk.
struct NativePlace {
  char object[1024];  // path; of the program itself as the kernel has it
  BuildId build_id;
  u64 offset;  // of the call, from where the object would lie at address 0
};
// False: in no loaded object (code made at run time), or it has no name.
bool find_native_place(u64 address, NativePlace& place);

}  // namespace gputrace
