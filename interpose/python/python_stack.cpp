#include "interpose/python/python_stack.h"

#include <pthread.h>
#include <sys/mman.h>

#include <cstring>

#include "base/raw_syscall.h"
#include "base/safe_read.h"
#include "base/sentence.h"
#include "interpose/definition/facts.h"
#include "interpose/ops/operations.h"
#include "interpose/python/python_layout.h"

namespace gputrace {
namespace {

constexpr u32 kMaxFrames = 128;    // innermost ones; what is above them is not told
constexpr u32 kPlaces = 1u << 16;  // of the table of frames
constexpr u32 kMostNodes = kPlaces / 4 * 3;
constexpr u32 kMaxText = 1024;       // bytes of a name
constexpr u32 kMaxTable = 1u << 20;  // bytes of a line table

struct SeenFrame {
  u64 code;
  u64 instruction;
  u64 sign;  // what the code is: tells a new code object at an old one's address
  bool operator==(const SeenFrame& other) const = default;
};

// One frame under its caller. Written under the definition lock, `hash` last; never changed.
struct Node {
  std::atomic<u64> hash;  // 0: free
  SeenFrame frame;
  u32 parent;
  u32 id;  // of the StackFrame; the parent's where the frame is none of the program's
};

// What a thread's last stack was. Its own thread only.
struct alignas(64) ThreadStack {
  u32 busy;  // a handler came in between
  u32 depth;
  u32 written;  // the StackFrames that its last Stack record named
  u32 operation;
  u32 sequence;                  // of the block that it went into, as the slot counts
  u64 dropped;                   // records that the thread had lost by then
  u64 incarnation;               // of the slot, +1; 0: no record yet
  SeenFrame frames[kMaxFrames];  // outermost first
  u32 ids[kMaxFrames];
  SeenFrame found[kMaxFrames];  // innermost first: the stack that is being read
};

// Which frame called the forward operation of a number. Of the last ones.
constexpr u32 kForwardLines = 1u << 15;
struct ForwardLine {
  std::atomic<u64> sequence;
  std::atomic<u32> frame;
};
constexpr u32 kSeveral = ~0u;

struct alignas(64) Memory {  // one ThreadStack a slot follows
  Node nodes[kPlaces];
  u8 text[kMaxText * 3];  // under the definition lock, as all that follows
  u8 table[kMaxTable];
  ForwardLine forward[kForwardLines];
};

enum class Proven : u32 { NotYet, Yes, No };

constinit Memory* memory = nullptr;
constinit u32 thread_count = 0;
constinit u32 node_count = 0;  // under the definition lock
constinit std::atomic<Proven> proven{Proven::NotYet};
constinit std::atomic<u32> forward_thread{0};  // its number + 1; kSeveral
constinit PythonInterpreter interpreter{};

u64 load(u64 address) { return *reinterpret_cast<const u64*>(address); }

u64 bytes_for(u32 slots) { return sizeof(Memory) + u64{slots} * sizeof(ThreadStack); }

// ------------------------------------------------------------------ reading
// The last eight bytes of a text of `size` bytes, or all of them. Whole words of an object are read, never past its memory:
// the interpreter's allocator gives multiples of sixteen.
GT_HOT u64 last_word(u64 text, u64 size) {
  return size >= 8 ? load(text + size - 8) : size ? load(text) << (8 - size) * 8 : 0;
}

// Code made at run time comes and goes, and what comes next lies at the same addresses, names and tables too: so a code
// object is told by what these say. Of a long table its ends, of a file name its end. Sums of products: no word waits for
// another one.
GT_HOT u64 sign_of(const PythonLayout& layout, u64 code) {
  const u64 name = load(code + layout.code_name), file = load(code + layout.code_file),
            lines = load(code + layout.code_lines);
  const u64 first_line = *reinterpret_cast<const u32*>(code + layout.code_first_line);
  const u64 size = load(lines + kSizeOffset), table = lines + kBytesTextOffset;
  const u32 state = *reinterpret_cast<const u32*>(file + kStrStateOffset);
  const u64 text = file + (state & 1u << 6 ? layout.ascii_text : layout.other_text);
  const u64 bytes = load(file + kSizeOffset) * (state >> 2 & 7);
  u64 sign = name * 0x9e3779b97f4a7c15 + file * 0xff51afd7ed558ccd + lines * 0xc4ceb9fe1a85ec53 +
             first_line * 0xbf58476d1ce4e5b9;
  sign += size * 0x94d049bb133111eb + last_word(table, size) * 0xd6e8feb86659fd93 + bytes * 0xa0761d6478bd642f;
  sign += last_word(text, bytes) * 0xe7037ed1a0b428db;
  if (size >= 16) sign += load(table) * 0x8ebc6af09c88c6e3 + load(table + 8) * 0x589965cc75374cc3;
  return sign;
}

// Hot. Innermost first. The layout has been proven.
u32 read_frames(const PythonLayout& layout, u64 thread, SeenFrame* frames) {
  u64 frame = load(thread + layout.thread_frame);
  if (layout.block_frame != kNoPointer) frame = load(frame + layout.block_frame);
  u32 count = 0;
  while (frame && count < kMaxFrames) {
    const bool is_object = layout.owner == kNoOwner;
    if (is_object || *reinterpret_cast<const u8*>(frame + layout.owner) != kOwnedByC) {
      const u64 code = load(frame + layout.code);
      const u64 instruction =
          is_object ? *reinterpret_cast<const u32*>(frame + layout.instruction) : load(frame + layout.instruction);
      const u64 generator = !is_object && *reinterpret_cast<const u8*>(frame + layout.owner) == kOwnedByGenerator;
      frames[count++] = {code, instruction << 1 | generator, sign_of(layout, code)};
    }
    frame = load(frame + layout.caller);
  }
  return count;
}

// ------------------------------------------------------------------ writing down
u64 hash_of(u32 parent, const SeenFrame& frame) {
  u64 hash = (frame.code + parent * 0x9e3779b97f4a7c15) * 0xff51afd7ed558ccd;
  hash = (hash ^ hash >> 32 ^ frame.instruction) * 0xc4ceb9fe1a85ec53;
  hash ^= hash >> 29 ^ frame.sign * 0x9e3779b97f4a7c15;
  return hash | 1;
}

// Its place: where it is, or the first free one.
Node& place_of(u64 hash, u32 parent, const SeenFrame& frame) {
  u32 at = static_cast<u32>(hash >> 20) % kPlaces;
  for (;; at = (at + 1) % kPlaces) {
    Node& node = memory->nodes[at];
    const u64 there = node.hash.load(std::memory_order_acquire);
    if (!there || (there == hash && node.parent == parent && node.frame == frame)) return node;
  }
}

u32 put_utf8(u8* out, u32 character) {
  if (character < 0x80) return out[0] = static_cast<u8>(character), 1;
  if (character < 0x800) {
    out[0] = static_cast<u8>(0xc0 | character >> 6);
    out[1] = static_cast<u8>(0x80 | (character & 63));
    return 2;
  }
  if (character < 0x10000) {
    out[0] = static_cast<u8>(0xe0 | character >> 12);
    out[1] = static_cast<u8>(0x80 | (character >> 6 & 63));
    out[2] = static_cast<u8>(0x80 | (character & 63));
    return 3;
  }
  out[0] = static_cast<u8>(0xf0 | character >> 18);
  out[1] = static_cast<u8>(0x80 | (character >> 12 & 63));
  out[2] = static_cast<u8>(0x80 | (character >> 6 & 63));
  out[3] = static_cast<u8>(0x80 | (character & 63));
  return 4;
}

// A str of the interpreter as a text of ours. 0: it could not be read. The last kMaxText bytes of one that is longer:
// the end of a path says more.
u64 define_str(const FinishedCall& call, u64 str) {
  const PythonLayout& layout = *interpreter.layout;
  u64 length = 0;
  u32 state = 0;
  if (!read_safely(str + kSizeOffset, length) || !read_safely(str + kStrStateOffset, state)) return 0;
  const u32 kind = state >> 2 & 7, compact = state >> 5 & 1, ascii = state >> 6 & 1;
  if (!compact || (kind != 1 && kind != 2 && kind != 4)) return 0;
  const u64 most = kMaxText / 4;
  const u64 skipped = length > (ascii ? kMaxText : most) ? length - (ascii ? kMaxText : most) : 0;
  u8 raw[kMaxText];
  const u64 bytes = (length - skipped) * kind;
  if (!read_safely(str + (ascii ? layout.ascii_text : layout.other_text) + skipped * kind, raw, bytes)) return 0;
  if (ascii) return define_text(call, reinterpret_cast<const char*>(raw), bytes);
  u32 size = 0;
  for (u64 i = 0; i < bytes; i += kind) {
    u32 character = 0;
    std::memcpy(&character, raw + i, kind);
    size += put_utf8(memory->text + size, character);
  }
  return define_text(call, reinterpret_cast<const char*>(memory->text), size);
}

// Where the instruction lies, in bytes from the first. False: the function has not been entered yet, which Python's own
// traceback leaves out.
bool offset_of(const SeenFrame& frame, u64& offset) {
  const PythonLayout& layout = *interpreter.layout;
  const u64 instruction = frame.instruction >> 1;
  if (!layout.instruction_is_address) {
    offset = static_cast<i32>(instruction) < 0 ? 0 : instruction * layout.instruction_unit;
    return true;
  }
  const u64 first = frame.code + layout.code_bytes;
  i32 traceable = 0;
  if (!read_safely(frame.code + layout.code_traceable, traceable)) return false;
  const bool in_generator = frame.instruction & 1;
  if (instruction < first) return offset = 0, in_generator;
  offset = instruction - first;
  return in_generator || offset >= static_cast<u64>(traceable) * 2;
}

u32 line_at(u64 code, u32 first_line, u64 offset) {
  const PythonLayout& layout = *interpreter.layout;
  u64 lines = 0, size = 0;
  if (!read_safely(code + layout.code_lines, lines) || !read_safely(lines + kSizeOffset, size) || size > kMaxTable ||
      !read_safely(lines + kBytesTextOffset, memory->table, size))
    return 0;
  return line_of(layout.lines, memory->table, size, first_line, offset);
}

// Under the definition lock. 0: no room.
u32 write_frame(const FinishedCall& call, const SeenFrame& frame, u32 parent, u64 offset) {
  const PythonLayout& layout = *interpreter.layout;
  u64 name = 0, file = 0;
  StackFrame record{};
  if (!read_safely(frame.code + layout.code_name, name) || !read_safely(frame.code + layout.code_file, file) ||
      !read_safely(frame.code + layout.code_first_line, record.first_line))
    return 0;
  record.function = define_str(call, name);
  record.file = define_str(call, file);
  record.parent = parent;
  record.line = line_at(frame.code, record.first_line, offset);
  record.language = static_cast<u32>(SourceLanguage::Python);
  return define_frame(call, record);
}

// nullptr: no room, now or for good.
GT_COLD const Node* define_node(const FinishedCall& call, u32 parent, const SeenFrame& frame) {
  const Definitions lock;
  if (!lock.held() || node_count == kMostNodes) return nullptr;
  const u64 hash = hash_of(parent, frame);
  Node& node = place_of(hash, parent, frame);
  if (node.hash.load(std::memory_order_relaxed)) return &node;
  u64 offset = 0;
  u32 id = parent;  // of what has not been entered yet
  if (offset_of(frame, offset)) {
    id = write_frame(call, frame, parent, offset);
    if (!id) return nullptr;
  }
  node.frame = frame;
  node.parent = parent;
  node.id = id;
  node.hash.store(hash, std::memory_order_release);
  ++node_count;
  return &node;
}

// The StackFrame of the innermost of `count` frames that were found; 0: not known. What the last stack had in common with this
// one is not looked up again.
u32 identify(const FinishedCall& call, ThreadStack& last, u32 count) {
  u32 i = 0;
  while (i < count && i < last.depth && last.frames[i] == last.found[count - 1 - i]) ++i;
  last.depth = i;
  for (; i < count; last.depth = ++i) {
    const SeenFrame& frame = last.found[count - 1 - i];
    const u32 parent = i ? last.ids[i - 1] : 0;
    const Node* node = &place_of(hash_of(parent, frame), parent, frame);
    if (!node->hash.load(std::memory_order_relaxed)) node = define_node(call, parent, frame);
    if (!node) return 0;
    last.frames[i] = frame;
    last.ids[i] = node->id;
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
  Stack record{};
  record.frame = found.frame;
  record.frames = found.frames;
  record.operation = found.operation;
  record.flags = found.flags;
  fill_header(record, call);
  std::memcpy(at, &record, sizeof record);
  commit(thread, at, sizeof record, call.generation);
  last.written = found.frame;
  last.operation = found.operation;
  last.incarnation = incarnation;
  last.sequence = slot.next_sequence;
  last.dropped = dropped;
}

// ------------------------------------------------------------------ forward lines of backward operations
// Autograd numbers operations by thread. As long as one thread alone runs forward operations a number names one of them.
void remember_forward(u64 sequence, u32 frame, u32 thread) {
  u32 nobody = 0;
  if (!forward_thread.compare_exchange_strong(nobody, thread + 1, std::memory_order_relaxed) && nobody != thread + 1)
    forward_thread.store(kSeveral, std::memory_order_relaxed);
  ForwardLine& line = memory->forward[sequence % kForwardLines];
  line.frame.store(frame, std::memory_order_relaxed);
  line.sequence.store(sequence, std::memory_order_release);
}

u32 forward_frame(u64 sequence) {
  if (forward_thread.load(std::memory_order_relaxed) == kSeveral) return 0;
  const ForwardLine& line = memory->forward[sequence % kForwardLines];
  if (line.sequence.load(std::memory_order_acquire) != sequence) return 0;
  const u32 frame = line.frame.load(std::memory_order_relaxed);
  return line.sequence.load(std::memory_order_relaxed) == sequence ? frame : 0;
}

void note(const FinishedCall& call, const char* text) {
  const Definitions lock;
  if (!lock.held()) return;
  Note record{};
  record.text = define_text(call, text, std::strlen(text));
  record.what = static_cast<u32>(NoteKind::Other);
  define(call, record);
}

GT_COLD bool try_to_prove(const FinishedCall& call, u64 thread) {
  const Proof proof = prove(*interpreter.layout, thread);
  if (proof == Proof::NothingToSee) return false;
  Proven not_yet = Proven::NotYet;
  const Proven answer = proof == Proof::Holds ? Proven::Yes : Proven::No;
  if (!proven.compare_exchange_strong(not_yet, answer, std::memory_order_acq_rel)) return not_yet == Proven::Yes;
  if (answer == Proven::No)
    note(call,
         "python: frames do not lie where this version of CPython has them, or the kernel refuses to read; no source "
         "lines");
  return answer == Proven::Yes;
}

// How many frames were found.
u32 read_python(const FinishedCall& call, ThreadStack& last) {
  const Proven known = proven.load(std::memory_order_acquire);
  if (!interpreter.layout || known == Proven::No || interpreter.is_finalizing()) return 0;
  const u64 python_thread = interpreter.thread_state();
  if (!python_thread || (known != Proven::Yes && !try_to_prove(call, python_thread))) return 0;
  if (load(python_thread + interpreter.layout->thread_id) != static_cast<u64>(pthread_self())) return 0;
  return read_frames(*interpreter.layout, python_thread, last.found);
}

}  // namespace

void reset_python_stacks(bool wanted, InfoText& info) {
  if (memory) raw_syscall(SYS_munmap, raw_pointer(memory), static_cast<long>(bytes_for(thread_count)));
  memory = nullptr;
  node_count = 0;
  forward_thread.store(0, std::memory_order_relaxed);
  proven.store(Proven::NotYet, std::memory_order_relaxed);
  interpreter = {};
  if (!wanted) return;
  find_interpreter(interpreter);
  if (interpreter.version[0]) info.add("python_version", interpreter.version);
  if (interpreter.layout) return;
  Sentence text;
  if (interpreter.why)
    text << "python: CPython " << interpreter.version << ": " << interpreter.why;
  else
    text << "python: no CPython in this process when its first CUDA call was made";
  info.add("not_collected", text.text());
}

bool begin_python_stacks(u64 generation) {
  if (!interpreter.layout && !operations_are_followed()) return false;
  const long mapped = raw_syscall(SYS_mmap, 0, static_cast<long>(bytes_for(producer.slot_count)),
                                  PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped < 0 && mapped > -4096) {
    FinishedCall call{};
    call.generation = generation;
    call.begin = call.end = record_ticks();
    note(call, "python: no memory to read stacks with; no source lines");
    return false;
  }
  memory = reinterpret_cast<Memory*>(mapped);
  thread_count = producer.slot_count;
  gate.stacks.store(generation, std::memory_order_release);
  return true;
}

void read_stack() {
  ThreadState& thread = thread_state;
  if (thread.busy) return;
  const u64 index = static_cast<u64>(thread.slot - producer.slots);
  if (index >= thread_count || gate.stacks.load(std::memory_order_acquire) != thread.generation) return;
  ThreadStack& last = reinterpret_cast<ThreadStack*>(memory + 1)[index];
  if (last.busy) return;
  last.busy = 1;
  compiler_barrier();
  FinishedCall call{};
  call.generation = thread.generation;
  call.begin = call.end = record_ticks();
  const OperationsUnderWay operations = operations_under_way();
  Found found;
  found.operation = operations.frame;
  found.frames = read_python(call, last);
  found.frame = identify(call, last, found.frames);
  if (operations.sequence != kNoSequence) {
    if (!operations.backward && found.frame) {
      remember_forward(operations.sequence, found.frame, static_cast<u32>(index));
    } else if (operations.backward && !found.frame) {
      found.frame = forward_frame(operations.sequence);
      if (found.frame) found.flags = kStackOfForward;
    }
  }
  write_stack(call, last, found);
  compiler_barrier();
  last.busy = 0;
}

}  // namespace gputrace
