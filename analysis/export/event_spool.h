// Events of many lines, told in any order, given back a line at a time by their begins (of two that begin together the longer one first, as
// readers nest them). For formats whose messages hold a line as a whole.
//   · At most kHeld bytes of them are in memory; the rest lies, in sorted runs, in a file that has no name any more.
//   · One thread. Where that file cannot be written, failed() is true and nothing more is kept.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/types.h"

namespace gputrace {

struct SpooledEvent {
  Nanos begin = 0, end = 0;
  u32 kind = 0;            // its owner's
  std::string_view bytes;  // its owner's; valid until the next event
};

class EventSpool {
 public:
  static constexpr std::size_t kHeld = 16u << 20, kRun = 512u << 10;  // kRun: of one line

  // `path`: a file that is made, in a folder that is there.
  explicit EventSpool(const std::string& path);

  void add(u32 line, const SpooledEvent& event);  // lines are small numbers
  // Tells every event of a line. After that, no add() to it.
  template <typename Tell>
  void each(u32 line, Tell&& tell) {
    if (line >= lines_.size()) return;
    write_run(lines_[line]);
    Merge merge(*this, lines_[line]);
    while (const SpooledEvent* event = merge.next()) tell(*event);
  }
  bool failed() const { return failed_; }

 private:
  struct Run {
    u64 at = 0, bytes = 0;
  };
  struct Line {
    std::string held;          // heads and bytes
    std::vector<u32> offsets;  // in `held`
    std::vector<Run> runs;     // in the file
  };
  struct Head {
    Nanos begin, end;
    u32 kind, bytes;
  };

  // Of the runs of one line, side by side.
  class Merge {
   public:
    Merge(EventSpool& spool, const Line& line);
    const SpooledEvent* next();  // nullptr: no more

   private:
    struct Reader {
      u64 at = 0, end = 0;  // in the file
      std::string buffer;
      std::size_t position = 0;  // in `buffer`
      Head head{};
    };
    bool read_head(Reader& reader);  // false: its run has ended
    bool ensure(Reader& reader, std::size_t bytes);
    static bool later(const Reader* left, const Reader* right);

    EventSpool& spool_;
    std::vector<Reader> readers_;
    std::vector<Reader*> heap_;
    Reader* told_ = nullptr;
    SpooledEvent event_;
  };

  void write_run(Line& line);
  void write_largest();

  Fd file_;
  u64 written_ = 0;
  std::size_t held_ = 0;
  bool failed_ = false;
  std::vector<Line> lines_;
};

}  // namespace gputrace
