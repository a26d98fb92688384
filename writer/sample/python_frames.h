// The Python frames of a thread of another process that goes on running meanwhile. They are walked, then read again by one call of
// the kernel, twice: before it reads which one is the innermost, and after. What was the same each time was so then. Where what
// ran innermost changed meanwhile, only those frames around it are told that the next walk comes upon again: memory of a function
// that has returned looks like that of one that goes on.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "frames/python_layout.h"
#include "writer/sample/process_memory.h"

namespace gputrace {

// What a code object says of itself, copied: the process may free it.
struct PythonCode {
  std::string function, file;
  u32 first_line = 0;
  i32 traceable = 0;
  std::vector<u8> lines;
};

class PythonFrames {
 public:
  static constexpr u32 kMostFrames =
      250;  // innermost ones: four pieces each at most, of 1024 that the kernel reads at once

  // Of one process; both outlive it.
  PythonFrames(const PythonLayout& layout, ProcessMemory& memory) : layout_(layout), memory_(memory) {}

  enum class Outcome {
    Whole,
    OuterPart,  // the innermost frames changed: those around them
    Nothing,    // the thread is in no Python function
    Torn,       // it changed too much
    Unreadable  // nothing of the kind lies there, or the kernel refuses
  };
  struct Frame {
    const PythonCode* code;  // good until the next look()
    u32 line;                // 0: not known
  };
  // Of the thread whose PyThreadState lies at `state`, with `id` as its pthread_self(). Outermost first.
  Outcome look(u64 state, u64 id, std::vector<Frame>& frames);
  // Code objects that looks have met for the first time, until now: each takes as long as some frames that are known.
  u64 learned() const { return learned_; }

 private:
  // As it lies in memory.
  struct Link {
    u64 address = 0, caller = 0, code = 0, instruction = 0;
    u8 owner = 0;
    bool operator==(const Link& other) const = default;
    // It may have gone on.
    bool is_same_frame(const Link& other) const {
      return address == other.address && caller == other.caller && code == other.code && owner == other.owner;
    }
  };
  // By what a code object is told from another one at the same address.
  struct Sign {
    u64 name = 0, file = 0, lines = 0, size = 0, table[2] = {};
    u32 first_line = 0;
    bool operator==(const Sign& other) const = default;
  };
  struct Known {
    Sign sign;
    PythonCode code;
    std::unordered_map<u64, u32> line_by_offset;
  };
  struct Head {
    u64 id = 0, frame = 0;
  };
  // What one piece holds of frames that lie together, as those of a thread do since 3.11.
  struct Span {
    u64 address = 0, size = 0;
    std::size_t offset = 0;  // in first_ and again_
  };
  static constexpr u32 kLongest = 255 + 8;  // of what is read of a frame or code object: offsets are bytes
  // Bytes between two frames of a span: what lies there is mapped, since it is less than a page.
  static constexpr u64 kNear = 1024;

  bool read(u64 address, void* out, u64 size) { return memory_.read(address, out, size); }
  bool read_head(u64 state, Head& head);
  bool walk(u64 frame);
  void expect_new_code();
  void lay_out();
  std::size_t offset_of_frame(u64 address) const;
  Sign sign_of(u64 code) const;
  bool read_again(u64 state, u64& frame);
  u32 unchanged(u64 state);
  u32 agreed(u32 before) const;
  Link parse(u64 address, const u8* bytes) const;
  Sign parse_sign(const u8* code, const u8* lines) const;
  u32 frame_size() const;
  u32 code_size() const;
  bool ensure_known(u64 code);
  Known* learn(u64 code);
  void tell(u32 count, std::vector<Frame>& frames);

  const PythonLayout& layout_;
  ProcessMemory& memory_;
  std::unordered_map<u64, Known> known_;  // by address
  u64 learned_ = 0;
  std::vector<Link> links_, before_;  // innermost first; of this walk and the one before it
  std::vector<Span> spans_;           // of the links' frames, by address
  std::vector<u64> addresses_;        // of frames, sorted
  std::vector<u64> codes_;            // code objects, sorted, each once
  std::vector<u8> first_, again_;     // spans before and after
  std::vector<u8> objects_;           // code objects with their line tables' heads, as in codes_
};

}  // namespace gputrace
