// What happens around every intercepted call. Hot: no lock, no allocation, no system call, no exception; errno is not
// touched.
//
//   gate ─ begin stamp ─ in-flight entry ─ THE CALL, once ─ end stamp ─ gate ─ one record
//
//   · The real call runs in a frame without cleanups: exceptions of callbacks, pthread_cancel and longjmp pass through.
//   · A longjmp out of the real call leaves `depth` too high; the next call that is opened above the lost frame puts it
//     right.
//   · After the call the gate is read again: a child of fork that returns here must not touch its parent's slot.
#pragma once

#include <cstddef>
#include <type_traits>

#include "interpose/calls.h"
#include "interpose/hot/session.h"
#include "interpose/hot/stack_calls.h"
#include "ringbuf/producer.h"
#include "trace/record.h"

#define GT_HOT inline __attribute__((always_inline))
#define GT_COLD __attribute__((noinline, cold))

namespace gputrace {

GT_COLD void* resolve_driver(u16 id);                 // route.cpp; nullptr: there is no driver
GT_COLD void* resolve_runtime(u16 id, void* caller);  // route.cpp; nullptr: there is no runtime
struct FinishedCall;
// stacks.cpp. Away from the calls that show no stack, but not cold: such functions are made small, with a string instruction for the record's 40 bytes
// that took more than a quarter of this one's time.
__attribute__((noinline)) void read_stack();
// context_facts.cpp. By value: a reference would keep every call in memory.
GT_COLD u64 refresh_context(FinishedCall call);

struct OpenCall {
  u64 generation;
  Ticks begin;
  u64 frame;  // of the call around this one, if there is one
  u32 depth;  // calls around this one
};

struct FinishedCall {
  u64 head;  // the last four bytes of the first eight of a RecordHeader: call id and result, in place
  u64 generation;
  Ticks begin;
  Ticks end;
  bool per_thread;  // a _ptsz or _ptds variant

  void set(u16 id, u16 result) { head = u64{id} << 32 | u64{result} << 48; }
  bool ok() const { return head >> 48 == 0; }
  // The same call as a definition: a record that is not a call of its own.
  FinishedCall nameless() const {
    FinishedCall copy = *this;
    copy.head &= 0xffff'0000'0000'0000ull;
    return copy;
  }
  // Whether its record is wanted. Definitions are wanted always.
  bool in_window() const {
    const SegmentControl& control = *producer.control;
    return begin >= control.window_begin.load(std::memory_order_relaxed) &&
           begin < control.window_end.load(std::memory_order_relaxed);
  }
  // An out-parameter, read only if the call succeeded.
  template <typename T>
  T out(const T* pointer) const {
    return ok() && pointer ? *pointer : T{};
  }
  // Kernel thread id of the caller, as far as its slot knows.
  u32 thread() const { return static_cast<u32>(thread_state.slot->tid); }
  u64 context() const {
    const u64 context = thread_state.context;
    return context != kUnknownContext ? context : refresh_context(*this);
  }
};
static_assert(offsetof(RecordHeader, call) == 4 && offsetof(RecordHeader, result) == 6 &&
              __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);

GT_HOT u64 stack_address() {
#if defined(__x86_64__)
  u64 address;
  asm("movq %%rsp, %0" : "=r"(address));
  return address;
#else
  return reinterpret_cast<u64>(__builtin_frame_address(0));
#endif
}

// False: the call is not traced.
GT_HOT bool open_call(OpenCall& open, u16 id, u64 argument) {
  if (thread_state.generation != gate_generation()) [[unlikely]] {
    if (!enter_session()) return false;
  }
  ThreadState& thread = thread_state;
  ThreadSlot& slot = *thread.slot;
  const u64 frame = stack_address();
  open.generation = thread.generation;
  open.depth = slot.depth;
  open.frame = 0;
  if (open.depth != 0) [[unlikely]] {
    open.frame = thread.frame;
    if (frame > open.frame) {  // those frames are gone
      open.depth = 0;
      if (has_begun(thread)) set_begun_aside(thread);
    }
  }
  thread.frame = frame;
  slot.depth = open.depth + 1;
  if (kStackCalls.show[id] && gate.stacks.load(std::memory_order_relaxed) != 0 && open.depth == 0) [[unlikely]]
    read_stack();  // before the stamp: not part of the program's call
  open.begin = record_ticks();
  if (open.depth < kInFlightDepth) [[likely]] {
    InFlightCall& entry = slot.in_flight[open.depth];
    entry.argument = argument;
    entry.call = id;
    entry.begin.store(open.begin, std::memory_order_release);  // last: pairs with the reader's acquire
  }
  return true;
}

// False: this is no longer the process, or the session, in which the call began.
GT_HOT bool close_call(const OpenCall& open, FinishedCall& call) {
  call.end = record_ticks();
  ThreadState& thread = thread_state;
  if (gate_generation() != open.generation || thread.generation != open.generation) [[unlikely]]
    return false;
  if (open.depth != 0) [[unlikely]]
    thread.frame = open.frame;
  ThreadSlot& slot = *thread.slot;
  slot.depth = open.depth;
  if (open.depth < kInFlightDepth) [[likely]]
    slot.in_flight[open.depth].begin.store(0, std::memory_order_relaxed);
  call.generation = open.generation;
  call.begin = open.begin;
  return true;
}

template <typename Record>
GT_HOT void fill_header(Record& record, const FinishedCall& call) {
  const u64 head = call.head | static_cast<u64>(Record::kType) | u64{sizeof(Record)} << 16;
  __builtin_memcpy(&record.header, &head, sizeof head);  // one store, not four
  record.header.begin = call.begin;
  record.header.end = call.end;
}

// One record on the calling thread's ring.
template <typename Record>
GT_HOT void emit(const FinishedCall& call, const Record& record) {
  if (!call.in_window()) [[unlikely]]
    return;
  ThreadState& thread = thread_state;
  char* at = reserve(thread, sizeof(Record), call.end);
  if (!at) [[unlikely]]
    return;
  Record& out = *reinterpret_cast<Record*>(at);
  out = record;
  fill_header(out, call);
  commit(thread, at, sizeof(Record), call.generation);
}

// The argument that tells most about a call in flight: its first handle, address or number that is not an
// out-parameter.
template <typename T>
concept PointsToValue = std::is_pointer_v<T> && requires(T pointer) {
  sizeof(*pointer);
};
GT_HOT u64 main_argument() { return 0; }
template <typename First, typename... Rest>
GT_HOT u64 main_argument(First first, Rest... rest) {
  if constexpr (std::is_integral_v<First> || std::is_enum_v<First>) {
    return static_cast<u64>(first);
  } else if constexpr (std::is_pointer_v<First> &&
                       (!PointsToValue<First> || std::is_void_v<std::remove_pointer_t<First>>)) {
    return reinterpret_cast<u64>(first);
  } else {
    return main_argument(rest...);
  }
}

constexpr bool names_per_thread(const char* name) {
  u32 n = 0;
  while (name[n]) ++n;
  return n > 5 && name[n - 5] == '_' && name[n - 4] == 'p' && name[n - 3] == 't' &&
         (name[n - 2] == 's' || name[n - 2] == 'd') && (name[n - 1] == 'z' || name[n - 1] == 's');
}

// What an exported entry does while tracing is not off. `REAL` finds the function behind it, or nullptr.
#define GT_WRAPPER(Result, absent, name, REAL, signature, forwarded, record)                          \
  extern "C" __attribute__((visibility("hidden"), noinline)) Result gputrace_traced_##name signature; \
  extern "C" Result gputrace_traced_##name signature {                                                \
    const auto real = REAL;                                                                           \
    if (!real) [[unlikely]]                                                                           \
      return absent;                                                                                  \
    OpenCall open;                                                                                    \
    if (!open_call(open, kCall_##name, main_argument forwarded)) [[unlikely]]                         \
      return real forwarded;                                                                          \
    const Result result = real forwarded;                                                             \
    FinishedCall call;                                                                                \
    if (!close_call(open, call)) [[unlikely]]                                                         \
      return result;                                                                                  \
    call.set(kCall_##name, static_cast<u16>(result));                                                 \
    call.per_thread = names_per_thread(#name);                                                        \
    record;                                                                                           \
    return result;                                                                                    \
  }

}  // namespace gputrace
