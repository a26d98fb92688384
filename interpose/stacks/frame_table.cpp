#include "interpose/stacks/frame_table.h"

#include "base/dense_table.h"
#include "base/mapped_memory.h"
#include "base/safe_read.h"
#include "frames/python_code.h"
#include "interpose/native/native_stack.h"

namespace gputrace {
namespace {

constexpr u32 kPlaces = 1u << 16, kMostNodes = kPlaces / 4 * 3;

// One frame under its caller. Written under the definition lock, never changed.
struct Node {
  SeenFrame frame;
  u32 parent;
  u32 id;  // of the StackFrame; the parent's where the frame is none of the program's
};

struct Table {
  DenseTable<Node, kPlaces, kMostNodes> nodes;
  // Under the definition lock: what is being read.
  u8 text[kMaxPythonUtf8];
  u8 lines[kMaxPythonLines];
};

constinit Table* table = nullptr;

u64 hash_of(u32 parent, const SeenFrame& frame) {
  u64 hash = (frame.code + parent * 0x9e3779b97f4a7c15) * 0xff51afd7ed558ccd;
  hash = (hash ^ hash >> 32 ^ frame.instruction) * 0xc4ceb9fe1a85ec53;
  hash ^= hash >> 29 ^ frame.sign * 0x9e3779b97f4a7c15;
  return hash >> 20;
}

const Node* find_node(u64 hash, u32 parent, const SeenFrame& frame) {
  return table->nodes.find(hash, [&](const Node& node) { return node.parent == parent && node.frame == frame; });
}

// A str of the interpreter as a text of ours. 0: it could not be read.
u64 define_str(const FinishedCall& call, const PythonLayout& layout, u64 str) {
  return define_text(call, reinterpret_cast<const char*>(table->text), read_str(layout, str, table->text, read_own));
}

// Under the definition lock. 0: no room.
u32 write_frame(const FinishedCall& call, const PythonLayout& layout, const SeenFrame& frame, u32 parent, u64 offset) {
  u64 name = 0, file = 0;
  StackFrame record{};
  if (!read_safely(frame.code + layout.code_name, name) || !read_safely(frame.code + layout.code_file, file) ||
      !read_safely(frame.code + layout.code_first_line, record.first_line))
    return 0;
  record.function = define_str(call, layout, name);
  record.file = define_str(call, layout, file);
  record.parent = parent;
  record.line = line_at(layout, frame.code, record.first_line, offset, table->lines, read_own);
  record.language = static_cast<u32>(SourceLanguage::Python);
  return define_frame(call, record);
}

// Under the definition lock. False: no room.
bool define_python(const FinishedCall& call, const PythonLayout& layout, const SeenFrame& frame, u32 parent, u32& id) {
  u64 offset = 0;
  i32 traceable = 0;
  id = parent;  // of what has not been entered yet
  if (layout.instruction_is_address && !read_safely(frame.code + layout.code_traceable, traceable)) return false;
  if (!offset_of(layout, frame.code, frame.instruction >> 1, frame.instruction & 1, traceable, offset)) return true;
  id = write_frame(call, layout, frame, parent, offset);
  return id != 0;
}

// Likewise.
bool define_native(const FinishedCall& call, const NativePlace& place, u32 parent, u32& id) {
  NativeFrame record{};
  record.object = define_text(call, place.object, std::strlen(place.object));
  record.build_id = place.build_id[0] ? define_text(call, place.build_id, std::strlen(place.build_id)) : 0;
  record.offset = place.offset;
  record.parent = parent;
  id = define_frame(call, record);
  return id != 0;
}

// nullptr: no room, now or for good.
GT_COLD const Node* define_node(const FinishedCall& call, const PythonLayout* layout, u32 parent,
                                const SeenFrame& frame) {
  NativePlace place;  // found before the lock is held: the loader has one of its own
  const bool placed = frame.is_native() && find_native_place(frame.code, place);
  const Definitions lock;
  if (!lock.held()) return nullptr;
  const u64 hash = hash_of(parent, frame);
  if (const Node* const known = find_node(hash, parent, frame)) return known;
  Node* const node = table->nodes.next();
  u32 id = parent;
  if (!node || (frame.is_native() ? placed && !define_native(call, place, parent, id)
                                  : !define_python(call, *layout, frame, parent, id)))
    return nullptr;
  *node = {frame, parent, id};
  return table->nodes.add(hash);
}

}  // namespace

bool open_frame_table() {
  table = map_memory<Table>(sizeof(Table));
  return table != nullptr;
}

void close_frame_table() {
  if (table) unmap_memory(table, sizeof(Table));
  table = nullptr;
}

bool frame_id(const FinishedCall& call, const PythonLayout* layout, u32 parent, const SeenFrame& frame, u32& id) {
  const Node* node = find_node(hash_of(parent, frame), parent, frame);
  if (!node) node = define_node(call, layout, parent, frame);
  if (!node) return false;
  id = node->id;
  return true;
}

}  // namespace gputrace
