// Contexts and the stack of them that every thread has.
#pragma once

#include "simgpu/driver/life/call.h"
#include "simgpu/driver/life/state.h"

namespace simgpu {

Context* make_context(Device& device, bool primary);  // not active yet; null: out of memory
void activate_context(Context& context, unsigned flags);
uint32_t contexts_activated();  // so far, in the process
// Ends all that belongs to it: waits for its work, then streams, events' streams, modules, memory go.
void deactivate_context(Context& context);

bool push_context(Context* context);  // false: out of memory
void pop_context();
// Off this thread's stack, wherever it is.
void forget_context(Context* context);

// The legacy default stream of a context and this thread's default stream in it; null: out of memory.
Stream* legacy_stream(Context& context);
Stream* per_thread_stream(Context& context);
Stream* create_stream(Context& context, Stream::Kind kind, unsigned flags, int priority);
// Off its context; the object goes when its queue is done.
void destroy_stream(Stream& stream);

inline constexpr int kLowestPriority = 0;
inline constexpr int kHighestPriority = -5;

}  // namespace simgpu
