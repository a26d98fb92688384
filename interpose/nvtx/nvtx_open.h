// Ranges that are open now. Kept only while it matters: before the first CUDA call, so that the session can begin with
// what is open then, and with GPUTRACE_CAPTURE=nvtx:, where they open and close the window. Bounded and without
// thread-local storage: a thread with open ranges has an entry, found by the address of its control block. Ranges that
// find no room are not kept. Only the thread itself touches its entry; ranges of start and end belong to no thread.
#pragma once

#include "interpose/nvtx/nvtx_store.h"

namespace gputrace {

struct OpenRange {
  const void* domain;         // handle; nullptr: the default domain
  const NvtxString* message;  // nullptr: none, or not kept
  u64 id;                     // start/end: the range id
  u64 payload;
  u32 category, color, payload_type, flags;
  bool captures;  // it holds the capture window open
};

void nvtx_range_pushed(const OpenRange& range);
// The innermost range of that domain on this thread. False: none is kept.
bool nvtx_range_popped(const void* domain, OpenRange& range);
void nvtx_range_started(const OpenRange& range);
bool nvtx_range_ended(u64 id, OpenRange& range);

// Calls visit(range) for every range of the calling thread, outermost first; for those of start and end.
void nvtx_visit_pushed(void (*visit)(OpenRange& range, void* data), void* data);
void nvtx_visit_started(void (*visit)(OpenRange& range, void* data), void* data);
void nvtx_forget_pushed();
void nvtx_forget_started();
// All of other threads: they are not in a child of fork.
void nvtx_forget_other_threads();

}  // namespace gputrace
