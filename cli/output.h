// Where a verb's result goes: stdout or a file.
//   · A reader that closes the pipe is no error: the program ends quietly with 0, as rg and git do.
//   · Any other failure to write (full disk) is an error and exit code 1, and says so.
//   · A file is written beside its name and renamed: it is whole, or as it was.
#pragma once

#include <string>
#include <string_view>

#include "base/fd.h"

namespace gputrace {

struct TerminalStyle {
  bool color = false;
  bool utf8 = false;
  std::size_t width = 0;
  bool terminal = false;
};
// Of `fd`, standard output or standard error. `color`: auto, always, never; in auto NO_COLOR beats CLICOLOR_FORCE beats CLICOLOR=0 beats TERM=dumb beats
// isatty. `width`: COLUMNS, else the terminal's, else 120.
TerminalStyle terminal_style(const std::string& color, bool to_file, int fd = 1);

class Output {
 public:
  // Empty path: stdout.
  explicit Output(std::string path);
  ~Output();

  // False: the file cannot be made; error() says why.
  bool open();
  // False: stop writing; close() then knows why.
  bool write(std::string_view text);
  // What was written is not wanted: a file is as it was before.
  void discard();
  // Flushes. Exit code: 0, also when the reader of the pipe has gone; 1 otherwise, said on stderr.
  int close();

 private:
  bool flush();
  bool put(std::string_view rest);

  std::string path_, temporary_;
  Fd file_;
  std::string buffer_;
  int error_ = 0;
};

}  // namespace gputrace
