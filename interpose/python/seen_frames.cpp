#include "interpose/python/seen_frames.h"

#include "interpose/hot/traced.h"

namespace gputrace {
namespace {

u64 load(u64 address) { return *reinterpret_cast<const u64*>(address); }

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

}  // namespace

u32 read_frames(const PythonLayout& layout, u64 thread, SeenFrame* frames, u32 known) {
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
      SeenFrame& seen = frames[count];
      if (count >= known || seen.code != code) seen = {code, 0, sign_of(layout, code)};
      seen.instruction = instruction << 1 | generator;
      ++count;
    }
    frame = load(frame + layout.caller);
  }
  return count;
}

}  // namespace gputrace
