// Every frame that was seen under a caller, each written down once as a StackFrame or NativeFrame record. Looked into without a
// lock, by any thread; added to under the definition lock. Nothing is ever taken out: it holds for the session.
#pragma once

#include "interpose/definition/facts.h"
#include "interpose/python/seen_frames.h"

namespace gputrace {

// False: no memory. Once a session.
bool open_frame_table();
void close_frame_table();

// The number of `frame` under the one numbered `parent` (0: outermost); the parent's where the frame is none of the program's
// yet, or lies in no object. `layout`: not used for a native frame. False: no room, now or for good.
bool frame_id(const FinishedCall& call, const PythonLayout* layout, u32 parent, const SeenFrame& frame, u32& id);

}  // namespace gputrace
