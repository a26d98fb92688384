#include "interpose/ops/operations.h"

#include <cstring>

#include "base/dense_table.h"
#include "base/mapped_memory.h"
#include "base/sentence.h"
#include "interpose/definition/facts.h"
#include "interpose/ops/torch_layout.h"
#include "trace/string_id.h"

namespace gputrace {
namespace {

constexpr u32 kMostOpen = 64;  // operations of a thread within each other that are told apart
constexpr u32 kPlaces = 1u << 14, kMostNodes = kPlaces / 4 * 3;
constexpr u32 kMaxName = 512;

// One operation under the one that called it. Written under the definition lock, never changed.
struct Node {
  u64 key;   // of the schema, or of the name
  u64 name;  // address of the characters, where a schema has them
  u32 parent;
  u32 frame;
  bool is_step;  // of the optimizer whose steps are counted
  bool is_view;  // whose backward operation is one, too
};

struct OpenOperation {
  u64 function;  // address of the at::RecordFunction
  Ticks begin;
  u64 sequence;
  u64 number;          // autograd_number() of it, or of the forward operation whose backward one it is
  u64 ended_backward;  // that of the operation of a backward pass that has ended directly within it
  u32 frame;
  u32 scope;
  u32 line;  // StackFrame of it; 0: not known yet
  bool is_step;
  bool is_view;
  bool is_settled;  // what is known of the line under `number` is its own, or of an operation within it
};

// What a thread is in. Its own thread only.
struct alignas(64) ThreadOperations {
  u32 depth;
  u64 incarnation;    // of the slot, + 1, to which this belongs
  u64 last_backward;  // autograd_number() of the newest operation of a backward pass that autograd numbers
  OpenOperation open[kMostOpen];
};

struct alignas(64) Memory {  // one ThreadOperations a slot follows
  DenseTable<Node, kPlaces, kMostNodes> nodes;
};

enum class Proven : u32 { NotYet, Yes, No };

constinit Torch torch{};
constinit std::atomic<Memory*> memory{nullptr};  // stored last: PyTorch may call us at any time
constinit u32 thread_count = 0;
// Under the definition lock: text of the first optimizer that was seen; another one's steps are not counted.
constinit u64 step_name = 0;
constinit std::atomic<Proven>
    proven[2]{};               // of operations that have a name of their own, and of those that have a schema
constinit bool asked = false;  // PyTorch calls us: for the rest of the process, and in its children
constinit LineNow ask_line = nullptr;

u64 load(u64 address) { return *reinterpret_cast<const u64*>(address); }
u64 bytes_for(u32 slots) { return sizeof(Memory) + u64{slots} * sizeof(ThreadOperations); }

// The calling thread's, where it is part of the session; nullptr: it is not, or cannot be told apart.
GT_HOT ThreadOperations* operations_of(ThreadState& thread) {
  Memory* const all = memory.load(std::memory_order_acquire);
  if (!all || thread.generation != gate_generation() || thread.busy) return nullptr;
  const u64 index = static_cast<u64>(thread.slot - producer.slots);
  if (index >= thread_count) return nullptr;
  ThreadOperations& operations = reinterpret_cast<ThreadOperations*>(all + 1)[index];
  const u64 incarnation = u64{thread.slot->incarnation} + 1;
  if (operations.incarnation != incarnation) [[unlikely]] {  // another thread had the slot
    operations.depth = 0;
    operations.incarnation = incarnation;
    operations.last_backward = kNoNumber;
  }
  return &operations;
}

FinishedCall moment(const ThreadState& thread, Ticks begin, Ticks end) {
  FinishedCall call{};
  call.generation = thread.generation;
  call.begin = begin;
  call.end = end;
  return call;
}

u64 hash_of(u64 key, u32 parent) { return ((key + parent * 0x9e3779b97f4a7c15) * 0xff51afd7ed558ccd) >> 40; }

const Node* find_node(u64 key, u64 name, u32 parent) {
  return memory.load(std::memory_order_relaxed)->nodes.find(hash_of(key, parent), [&](const Node& node) {
    return node.key == key && node.name == name && node.parent == parent;
  });
}

// PyTorch says "Optimizer.step#AdamW.step".
bool names_step(const char* text, u64 id) {
  constexpr char kStep[] = "Optimizer.step#";
  if (std::strncmp(text, kStep, sizeof kStep - 1) != 0) return false;
  if (!step_name) step_name = id;
  return step_name == id;
}

// Views whose backward operations are views: those make no call, so that their line is not worth reading a stack. (That of `view` copies
// where a gradient does not lie as it must.)
bool names_view(const char* text) {
  for (const char* name : {"aten::t", "aten::transpose", "aten::permute", "aten::unsqueeze", "aten::squeeze",
                           "aten::movedim", "aten::swapaxes", "aten::alias"}) {
    if (std::strcmp(text, name) == 0) return true;
  }
  return false;
}

// nullptr: no room.
GT_COLD const Node* define_node(const FinishedCall& call, u64 key, u64 name, u32 parent, const char* text) {
  const Definitions lock;
  if (!lock.held()) return nullptr;
  if (const Node* const known = find_node(key, name, parent)) return known;
  auto& nodes = memory.load(std::memory_order_relaxed)->nodes;
  Node* const node = nodes.next();
  if (!node) return nullptr;
  StackFrame record{};
  record.function = define_text(call, text, strnlen(text, kMaxName));
  record.parent = parent;
  record.language = static_cast<u32>(SourceLanguage::Operation);
  const u32 frame = define_frame(call, record);
  if (!frame) return nullptr;
  *node = {key, name, parent, frame, names_step(text, record.function), names_view(text)};
  return nodes.add(hash_of(key, parent));
}

// A schema stays where it is, with its name; any other name is told by its characters.
const Node* node_of(const ThreadState& thread, const void* function, u32 parent, Ticks now) {
  const u64 at = reinterpret_cast<u64>(function);
  const bool is_schema = *reinterpret_cast<const u8*>(at + torch.layout->is_schema) == 1;
  u64 key = load(at + torch.layout->name), name = 0;
  if (is_schema)
    name = load(key);
  else
    key = text_id(reinterpret_cast<const char*>(key), strnlen(reinterpret_cast<const char*>(key), kMaxName));
  if (const Node* const node = find_node(key, name, parent)) return node;
  return define_node(moment(thread, now, now), key, name, parent, torch.name_of(function));
}

// The first operation of each kind. What does not hold for one ends both.
GT_COLD bool prove(const ThreadState& thread, const void* function, std::atomic<Proven>& kind, Ticks now) {
  if (proves(torch, function)) {
    Proven not_yet = Proven::NotYet;
    return kind.compare_exchange_strong(not_yet, Proven::Yes, std::memory_order_acq_rel) || not_yet == Proven::Yes;
  }
  steps_are_unknown(now);
  proven[0].store(Proven::No, std::memory_order_release);
  if (proven[1].exchange(Proven::No, std::memory_order_acq_rel) == Proven::No) return false;
  define_note(
      moment(thread, now, now),
      "ops: PyTorch's operations do not look as this version's do, or the kernel refuses to read; none are told");
  return false;
}

// The thread's way into the session, if there is one: an operation starts none.
bool is_in_session(const ThreadState& thread) {
  const u64 generation = gate_generation();
  if (generation < kFirstGeneration) return false;
  return thread.generation == generation || enter_session();
}

// Near above where the thread's stack is now: it is part of it.
GT_HOT bool on_stack(u64 address) { return address - stack_address() < 1u << 20; }

// Operations that end on another thread never end here. Most lie on the stack: what lies below a new one, which is deeper
// than all that have not ended, is gone.
void leave_what_is_gone(ThreadOperations& operations, u64 function) {
  constexpr u64 kNear = 1u << 20;
  if (!on_stack(function)) return;
  const u64 stack = stack_address();
  while (operations.depth > 0) {
    const u64 last = operations.open[operations.depth - 1].function;
    const bool is_gone = last < stack ? stack - last < kNear : on_stack(last) && last <= function;
    if (!is_gone) return;
    --operations.depth;
  }
}

// Autograd numbers the operations of each thread.
u64 autograd_number(u64 function, u64 sequence, u32 scope) {
  const u64 thread = load(function + (scope == kBackwardScope ? torch.layout->forward_thread : torch.layout->thread));
  return thread == 0 || thread >= kMostThreads || sequence >> kSequenceBits ? kNoNumber
                                                                            : thread << kSequenceBits | sequence;
}

void began(const void* function) {
  ThreadState& thread = thread_state;
  if (!is_in_session(thread)) return;
  ThreadOperations* const operations = operations_of(thread);
  if (!operations) return;
  const u64 at = reinterpret_cast<u64>(function);
  const bool is_schema = *reinterpret_cast<const u8*>(at + torch.layout->is_schema) != 0;
  std::atomic<Proven>& kind = proven[is_schema];
  const Proven known = kind.load(std::memory_order_acquire);
  if (known == Proven::No) return;
  const Ticks now = record_ticks();
  if (known == Proven::NotYet && !prove(thread, function, kind, now)) return;
  leave_what_is_gone(*operations, at);
  const u32 depth = operations->depth;
  if (depth == kMostOpen) return;
  operations->depth = depth + 1;
  OpenOperation& open = operations->open[depth];
  open.function = at;
  const Node* const node = node_of(thread, function, depth ? operations->open[depth - 1].frame : 0, now);
  open.frame = node ? node->frame : 0;
  open.is_step = node && node->is_step;
  open.is_view = node && node->is_view;
  open.line = 0;
  open.is_settled = false;
  open.sequence = load(at + torch.layout->sequence);
  open.scope = *reinterpret_cast<const u8*>(at + torch.layout->scope);
  open.number = autograd_number(at, open.sequence, open.scope);
  // What sums up a parameter's gradient has no forward operation and no number. The engine runs it next, before all that has one: the
  // gradient is what the operation before it made.
  if (open.scope == kBackwardScope) {
    if (open.sequence == kNoNumber)
      open.number = operations->last_backward;
    else
      operations->last_backward = open.number;
  }
  open.ended_backward = kNoNumber;
  open.begin = now;
}

// A forward operation with a number has ended within `around`, or in none. One that makes no node of the backward pass has the number of
// the next one that does: so what the number says now may be the line of one before.
void settle_line(OpenOperation& open, OpenOperation* around) {
  const u64 first = open.sequence, next = torch.next_number ? torch.next_number() : first + 1;
  if (next <= first) return;
  // What lies within another forward operation was asked for at the same line: that one, at its end, tells it.
  const bool is_part = around && around->number != kNoNumber && around->scope != kBackwardScope;
  if (open.line == 0 && !open.is_view && !is_part) open.line = ask_line();
  if (!open.is_settled) remember_forward(open.number, open.line);
  constexpr u64 kMost = 4096;
  for (u64 i = 0; open.line && i < next - first && i < kMost; ++i) {
    if (forward_frame(open.number + i) == 0) remember_forward(open.number + i, open.line);
  }
  if (!is_part) return;
  if (around->line == 0) around->line = open.line;
  if (around->number == open.number) around->is_settled = true;
}

void ended(const void* function) {
  ThreadState& thread = thread_state;
  if (thread.generation != gate_generation()) return;
  ThreadOperations* const operations = operations_of(thread);
  if (!operations) return;
  u32 depth = operations->depth;
  while (depth > 0 && operations->open[depth - 1].function != reinterpret_cast<u64>(function)) --depth;
  if (depth == 0) return;  // begun on another thread, or one too deep
  operations->depth = --depth;
  OpenOperation& open = operations->open[depth];
  if (depth > 0 && open.scope == kBackwardScope) operations->open[depth - 1].ended_backward = open.number;
  Operation record{};
  record.frame = open.frame;
  record.sequence = open.sequence;
  record.scope = open.scope;
  const Ticks now = record_ticks();
  emit(moment(thread, open.begin, now), record);
  if (open.is_step) [[unlikely]]
    step_ended(now);
  if (open.number != kNoNumber && open.scope != kBackwardScope)
    settle_line(open, depth > 0 ? &operations->open[depth - 1] : nullptr);
}

void* operation_began(void* context, const void* function) {
  *static_cast<void**>(context) = nullptr;
  began(function);
  return context;
}
void operation_ended(const void* function, void*) { ended(function); }

}  // namespace

bool operations_are_followed() { return torch.layout != nullptr; }

void reset_operations(bool wanted, InfoText& info) {
  if (Memory* const old = memory.exchange(nullptr, std::memory_order_acq_rel))
    unmap_memory(old, bytes_for(thread_count));
  close_forward_lines();
  step_name = 0;
  for (std::atomic<Proven>& kind : proven) kind.store(Proven::NotYet, std::memory_order_relaxed);
  torch = {};
  if (!wanted) return;
  find_torch(torch);
  if (torch.version[0]) info.add("torch_version", torch.version);
  if (torch.layout) return;
  Sentence text;
  if (torch.why)
    text << "ops: PyTorch " << torch.version << ": " << torch.why;
  else
    text << "ops: no PyTorch in this process when its first CUDA call was made";
  info.add("not_collected", text.text());
}

void begin_operations(u64 generation, LineNow line_now) {
  if (!torch.layout) return;
  ask_line = line_now;
  thread_count = producer.slot_count;
  Memory* const made = map_memory<Memory>(bytes_for(thread_count));
  if (!made || !open_forward_lines()) {
    torch = {};
    steps_are_unknown(record_ticks());
    FinishedCall call{};
    call.generation = generation;
    call.begin = call.end = record_ticks();
    define_note(call, "ops: no memory to follow operations with; none are told");
    return;
  }
  memory.store(made, std::memory_order_release);
  if (asked) return;
  asked = true;
  TorchCallback callback{operation_began, operation_ended, 1.0, {}, false, false, false};
  for (const u8 scope : kFollowedScopes) callback.scopes[scope] = true;
  torch.add_callback(callback);
}

OperationsUnderWay operations_under_way() {
  OperationsUnderWay result;
  const ThreadOperations* const operations = operations_of(thread_state);
  if (!operations || operations->depth == 0) return result;
  const u32 depth = operations->depth;
  result.frame = operations->open[depth - 1].frame;
  if (on_stack(operations->open[depth - 1].function)) result.instance = operations->open[depth - 1].begin;
  for (u32 i = depth; i-- > 0;) {
    const OpenOperation& open = operations->open[i];
    // What the engine does for an operation of the backward pass after its own work (sums to the shape that is wanted) is its.
    result.backward = open.scope == kBackwardScope ? open.number : open.ended_backward;
    if (open.scope == kBackwardScope || result.backward != kNoNumber) break;
  }
  return result;
}

void calls_from(u32 frame) {
  ThreadOperations* const operations = operations_of(thread_state);
  if (!operations) return;
  for (u32 i = operations->depth; i-- > 0;) {
    OpenOperation& open = operations->open[i];
    if (open.scope == kBackwardScope || open.ended_backward != kNoNumber) return;
    if (open.number == kNoNumber) continue;
    remember_forward(open.number, frame);
    open.line = frame;
    open.is_settled = true;
    return;
  }
}

}  // namespace gputrace
