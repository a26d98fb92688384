#include "interpose/stacks/stacks.h"

#include <pthread.h>

#include "base/mapped_memory.h"
#include "base/sentence.h"
#include "interpose/definition/facts.h"
#include "interpose/lookup/elf_lookup.h"
#include "interpose/native/native_stack.h"
#include "interpose/ops/forward_lines.h"
#include "interpose/ops/operations.h"
#include "interpose/python/interpreter.h"
#include "interpose/stacks/frame_table.h"

namespace gputrace {
namespace {

constexpr u32 kMostFrames = kMaxFrames + kMostNativeFrames;

// What a thread's last stack was. Its own thread only.
struct alignas(64) ThreadStack {
  u32 busy;  // a handler came in between
  u32 depth;
  u32 written;  // the StackFrames that its last Stack record named
  u32 operation;
  u32 sequence;                   // of the block that it went into, as the slot counts
  u64 dropped;                    // records that the thread had lost by then
  u64 incarnation;                // of the slot, +1; 0: no record yet
  u64 bare;                       // likewise: of a thread that was found without Python frames, as autograd's are
  u32 base;                       // the frame that the outermost of `frames` lies under; 0: none
  SeenFrame frames[kMostFrames];  // outermost first
  u32 ids[kMostFrames];
  Ticks instance;  // of the operation in which `found` was read; 0: none
  u32 found_count;
  SeenFrame found[kMaxFrames];  // innermost first: the stack that is being read
  u32 native_count;
  SeenFrame native[kMostNativeFrames];  // likewise; within the innermost of `found`
};

enum class Proven : u32 { NotYet, Yes, No };

constinit ThreadStack* stacks = nullptr;  // one a slot
constinit u32 thread_count = 0;
constinit std::atomic<Proven> proven{Proven::NotYet};
constinit PythonInterpreter interpreter{};
constinit u64 interpreter_begin = 0, interpreter_end = 0;  // the object that it lies in

u64 load(u64 address) { return *reinterpret_cast<const u64*>(address); }

u64 bytes_for(u32 slots) { return u64{slots} * sizeof(ThreadStack); }

// The number of the innermost frame that was found; 0: not known. `python`: so many of them are; they lie under `base`. What the last
// stack had in common with this one is not looked up again.
u32 identify(const FinishedCall& call, ThreadStack& last, u32 python, u32 base = 0) {
  const u32 count = python + last.native_count;
  const auto found = [&](u32 i) -> const SeenFrame& {
    return i < python ? last.found[python - 1 - i] : last.native[count - 1 - i];
  };
  u32 i = 0;
  if (last.base != base) last.depth = 0;
  last.base = base;
  while (i < count && i < last.depth && last.frames[i] == found(i)) ++i;
  last.depth = i;
  for (; i < count; last.depth = ++i) {
    const SeenFrame& frame = found(i);
    const u32 parent = i ? last.ids[i - 1] : base;
    if (!frame_id(call, interpreter.layout, parent, frame, last.ids[i])) return 0;
    last.frames[i] = frame;
  }
  return count ? last.ids[count - 1] : 0;
}

u64 dropped_of(const ThreadSlot& slot) {
  u64 sum = 0;
  for (const u64 count : slot.dropped) sum += count;
  return sum;
}

struct Found {
  u32 frame = 0, frames = 0;
  u32 operation = 0, flags = 0;
};

// A Stack holds until the thread's next one. Blocks and records may be lost, so that each block has one of its own, and one
// follows each loss.
void write_stack(const FinishedCall& call, ThreadStack& last, const Found& found) {
  ThreadState& thread = thread_state;
  const ThreadSlot& slot = *thread.slot;
  const u64 incarnation = u64{slot.incarnation} + 1;
  const u64 dropped = dropped_of(slot);
  if (last.written == found.frame && last.operation == found.operation && last.incarnation == incarnation &&
      last.sequence == slot.next_sequence && last.dropped == dropped)
    return;
  if (!call.in_window()) return;
  char* at = reserve(thread, sizeof(Stack), call.end);
  if (!at) return;
  Stack& record = *reinterpret_cast<Stack*>(at);  // word by word: a copy of what was just written would wait for it
  record.frame = found.frame;
  record.frames = found.frames;
  record.operation = found.operation;
  record.flags = found.flags;
  fill_header(record, call);
  commit(thread, at, sizeof record, call.generation);
  last.written = found.frame;
  last.operation = found.operation;
  last.incarnation = incarnation;
  last.sequence = slot.next_sequence;
  last.dropped = dropped;
}

GT_COLD bool try_to_prove(const FinishedCall& call, u64 thread) {
  const Proof proof = prove(*interpreter.layout, thread);
  if (proof == Proof::NothingToSee) return false;
  Proven not_yet = Proven::NotYet;
  const Proven answer = proof == Proof::Holds ? Proven::Yes : Proven::No;
  if (!proven.compare_exchange_strong(not_yet, answer, std::memory_order_acq_rel)) return not_yet == Proven::Yes;
  if (answer == Proven::No)
    define_note(
        call,
        "python: frames do not lie where this version of CPython has them, or the kernel refuses to read; no source "
        "lines");
  return answer == Proven::Yes;
}

// What is known of the calling thread's stack, which has a slot; nullptr: it may not be read now.
ThreadStack* take_stack() {
  const ThreadState& thread = thread_state;
  if (thread.busy) return nullptr;
  const u64 index = static_cast<u64>(thread.slot - producer.slots);
  if (index >= thread_count || gate.stacks.load(std::memory_order_acquire) != thread.generation) return nullptr;
  ThreadStack& last = stacks[index];
  if (last.busy) return nullptr;
  last.busy = 1;
  compiler_barrier();
  return &last;
}

void give_back(ThreadStack& last) {
  compiler_barrier();
  last.busy = 0;
}

// What a record made now would say of its call.
FinishedCall call_now() {
  FinishedCall call{};
  call.generation = thread_state.generation;
  call.begin = call.end = record_ticks();
  return call;
}

// So that the sidecar can look at this thread between two calls.
void show_thread(u64 python_thread, u64 id) {
  ThreadSlot& slot = *thread_state.slot;
  if (slot.python_thread.load(std::memory_order_relaxed) == python_thread) return;
  slot.python_thread_id = id;
  producer.control->python_runtime.store(interpreter.runtime, std::memory_order_relaxed);
  producer.control->python_runtime_bytes.store(interpreter.runtime_bytes, std::memory_order_relaxed);
  slot.python_thread.store(python_thread, std::memory_order_release);  // pairs with the acquire in Sampler::look()
}

// How many frames were found.
u32 read_python(const FinishedCall& call, ThreadStack& last, Ticks instance) {
  const Proven layout = proven.load(std::memory_order_acquire);
  if (!interpreter.layout || layout == Proven::No || interpreter.is_finalizing()) return 0;
  const u64 python_thread = interpreter.thread_state();
  if (!python_thread || (layout != Proven::Yes && !try_to_prove(call, python_thread))) return 0;
  const u64 self = static_cast<u64>(pthread_self());
  if (load(python_thread + interpreter.layout->thread_id) != self) return 0;
  show_thread(python_thread, self);
  // Within one operation of C++ the frames are those of its first call, unless it calls Python itself.
  const u32 known = instance != 0 && instance == last.instance ? last.found_count : 0;
  last.instance = instance;
  last.found_count = read_frames(*interpreter.layout, python_thread, last.found, known);
  return last.found_count;
}

// `python`: how many frames of Python there are; then what runs the interpreter, and runs within it, is not told again.
void read_native(ThreadStack& last, u32 python) {
  last.native_count = 0;
  if (!native_stacks_are_read()) return;
  u64 addresses[kMostNativeFrames];
  const u32 count = read_native_frames(addresses);
  const u64 unloaded = unloaded_objects();
  for (u32 i = 0; i < count; ++i) {
    if (python != 0 && addresses[i] >= interpreter_begin && addresses[i] < interpreter_end) return;
    last.native[last.native_count++] = SeenFrame::native(addresses[i], unloaded);
  }
}

// The stack that was read, in `operations`. `python`: so many frames of it are Python's.
Found find_stack(const FinishedCall& call, ThreadStack& last, u32 python, const OperationsUnderWay& operations) {
  Found found;
  found.operation = operations.frame;
  const u64 incarnation = u64{thread_state.slot->incarnation} + 1;
  if (python == 0) last.bare = incarnation;
  // Python that a backward pass calls in autograd's thread has no callers there: what runs forward again (a checkpointed module), and the
  // backward pass of that.
  const bool is_backward = operations.backward != kNoNumber && last.bare == incarnation;
  const u32 forward = is_backward ? forward_frame(operations.backward) : 0;
  found.frame = forward && python == 0 ? forward : identify(call, last, python, forward);
  found.frames = python + last.native_count;
  if (forward) found.flags = kStackOfForward;
  return found;
}

// Outside of any call of the thread's.
Found find_python_stack() {
  if (gate_generation() < kFirstGeneration || thread_state.generation != gate_generation()) return {};
  ThreadStack* const last = take_stack();
  if (!last) return {};
  const FinishedCall call = call_now();
  last->native_count = 0;
  const Found found = find_stack(call, *last, read_python(call, *last, 0), operations_under_way());
  give_back(*last);
  return found;
}

void find_python(InfoText& info, bool native) {
  find_interpreter(interpreter);
  if (interpreter.version[0]) info.add("python_version", interpreter.version);
  if (interpreter.layout) {
    LoadedObject object;
    if (!find_object(reinterpret_cast<const void*>(interpreter.thread_state), object)) return;
    interpreter_begin = object.begin;
    interpreter_end = object.end;
    return;
  }
  Sentence text;
  if (interpreter.why) {
    text << "python: CPython " << interpreter.version << ": " << interpreter.why;
  } else {
    text << "python: no CPython in this process when its first CUDA call was made";
    if (!native) text << "; GPUTRACE_COLLECT=+stacks tells native lines";
  }
  info.add("not_collected", text.text());
}

}  // namespace

void reset_stacks(WantedStacks wanted, InfoText& info) {
  close_frame_table();
  if (stacks) unmap_memory(stacks, bytes_for(thread_count));
  stacks = nullptr;
  proven.store(Proven::NotYet, std::memory_order_relaxed);
  interpreter = {};
  interpreter_begin = interpreter_end = 0;
  reset_native_stacks(wanted.native, info);
  if (wanted.python) find_python(info, wanted.native);
}

bool begin_stacks(u64 generation) {
  if (!interpreter.layout && !operations_are_followed() && !native_stacks_are_read()) return false;
  thread_count = producer.slot_count;
  stacks = map_memory<ThreadStack>(bytes_for(thread_count));
  if (!stacks || !open_frame_table()) {
    FinishedCall call{};
    call.generation = generation;
    call.begin = call.end = record_ticks();
    define_note(call, "python: no memory to read stacks with; no source lines");
    return false;
  }
  gate.stacks.store(generation, std::memory_order_release);
  return true;
}

AddressRange interpreter_object() { return {interpreter_begin, interpreter_end}; }

u32 innermost_frame() {
  const Found found = find_python_stack();
  return found.frames ? found.frame : 0;
}

u32 line_now() { return find_python_stack().frame; }

void read_stack() {
  ThreadStack* const taken = take_stack();
  if (!taken) return;
  ThreadStack& last = *taken;
  const FinishedCall call = call_now();
  const OperationsUnderWay operations = operations_under_way();
  const u32 python = read_python(call, last, operations.instance);
  read_native(last, python);
  const Found found = find_stack(call, last, python, operations);
  // Where there is an interpreter, a thread without its frames is one of the framework's: its native ones are no line of the program's.
  const bool is_line = python != 0 || found.flags & kStackOfForward || !interpreter.layout;
  if (found.frame && is_line) calls_from(found.frame);
  write_stack(call, last, found);
  give_back(last);
}

}  // namespace gputrace
