#include "interpose/python/frame_table.h"

#include <atomic>
#include <cstring>

#include "base/mapped_memory.h"
#include "base/safe_read.h"

namespace gputrace {
namespace {

constexpr u32 kPlaces = 1u << 16;
constexpr u32 kMostNodes = kPlaces / 4 * 3;
constexpr u32 kMaxText = 1024;       // bytes of a name
constexpr u32 kMaxTable = 1u << 20;  // bytes of a line table

// One frame under its caller. Written under the definition lock, `hash` last; never changed.
struct Node {
  std::atomic<u64> hash;  // 0: free
  SeenFrame frame;
  u32 parent;
  u32 id;  // of the StackFrame; the parent's where the frame is none of the program's
};

struct Table {
  Node nodes[kPlaces];
  // Under the definition lock: what is being read.
  u8 text[kMaxText * 3];
  u8 lines[kMaxTable];
};

constinit Table* table = nullptr;
constinit u32 node_count = 0;  // under the definition lock

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
    Node& node = table->nodes[at];
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
u64 define_str(const FinishedCall& call, const PythonLayout& layout, u64 str) {
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
    size += put_utf8(table->text + size, character);
  }
  return define_text(call, reinterpret_cast<const char*>(table->text), size);
}

// Where the instruction lies, in bytes from the first. False: the function has not been entered yet, which Python's own
// traceback leaves out.
bool offset_of(const PythonLayout& layout, const SeenFrame& frame, u64& offset) {
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

u32 line_at(const PythonLayout& layout, u64 code, u32 first_line, u64 offset) {
  u64 lines = 0, size = 0;
  if (!read_safely(code + layout.code_lines, lines) || !read_safely(lines + kSizeOffset, size) || size > kMaxTable ||
      !read_safely(lines + kBytesTextOffset, table->lines, size))
    return 0;
  return line_of(layout.lines, table->lines, size, first_line, offset);
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
  record.line = line_at(layout, frame.code, record.first_line, offset);
  record.language = static_cast<u32>(SourceLanguage::Python);
  return define_frame(call, record);
}

// nullptr: no room, now or for good.
GT_COLD const Node* define_node(const FinishedCall& call, const PythonLayout& layout, u32 parent,
                                const SeenFrame& frame) {
  const Definitions lock;
  if (!lock.held() || node_count == kMostNodes) return nullptr;
  const u64 hash = hash_of(parent, frame);
  Node& node = place_of(hash, parent, frame);
  if (node.hash.load(std::memory_order_relaxed)) return &node;
  u64 offset = 0;
  u32 id = parent;  // of what has not been entered yet
  if (offset_of(layout, frame, offset)) {
    id = write_frame(call, layout, frame, parent, offset);
    if (!id) return nullptr;
  }
  node.frame = frame;
  node.parent = parent;
  node.id = id;
  node.hash.store(hash, std::memory_order_release);
  ++node_count;
  return &node;
}

}  // namespace

bool open_frame_table() {
  node_count = 0;
  table = map_memory<Table>(sizeof(Table));
  return table != nullptr;
}

void close_frame_table() {
  if (table) unmap_memory(table, sizeof(Table));
  table = nullptr;
}

bool frame_id(const FinishedCall& call, const PythonLayout& layout, u32 parent, const SeenFrame& frame, u32& id) {
  const Node* node = &place_of(hash_of(parent, frame), parent, frame);
  if (!node->hash.load(std::memory_order_relaxed)) node = define_node(call, layout, parent, frame);
  if (!node) return false;
  id = node->id;
  return true;
}

}  // namespace gputrace
