// The sidecar's log: a file beside the trace, made only when GPUTRACE_LOG asks for it and something is said. One
// thread.
//   2026-11-20T18:10:45Z gputrace: error: /scratch/out is read-only; tracing is off, your program continues
//             fix: GPUTRACE_OUTPUT=$HOME/gputrace-%j
#pragma once

#include <string>
#include <string_view>

#include "base/fd.h"

namespace gputrace {

enum class LogLevel { Off, Error, Warning, Info, Debug };

// GPUTRACE_LOG: a level's name, or 1 for info; anything else is off.
LogLevel parse_log_level(std::string_view text);

class Log {
 public:
  explicit Log(LogLevel level) : level_(level) {}

  // Where the file goes once there is something to say. `directory` is borrowed.
  void put_into(int directory, std::string name);

  void error(std::string_view what, std::string_view fix = {}) { say(LogLevel::Error, "error", what, fix); }
  void warning(std::string_view what, std::string_view fix = {}) { say(LogLevel::Warning, "warning", what, fix); }
  void info(std::string_view what) { say(LogLevel::Info, "info", what, {}); }
  void debug(std::string_view what) { say(LogLevel::Debug, "debug", what, {}); }

 private:
  void say(LogLevel level, const char* word, std::string_view what, std::string_view fix);

  LogLevel level_;
  int directory_ = -1;
  std::string name_;
  Fd file_;
  bool tried_ = false;
};

}  // namespace gputrace
