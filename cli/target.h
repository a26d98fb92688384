// What can be said of a program before it is started: whether LD_PRELOAD reaches it.
#pragma once

#include <string>

namespace gputrace {

struct Target {
  std::string path;         // the file that will be executed; empty: not found
  std::string interpreter;  // of a script; the rest is then about it
  bool elf = false;
  bool statically_linked = false;
  bool secure = false;  // setuid, setgid or file capabilities: the loader ignores LD_PRELOAD
  bool other_machine = false;
  std::string loader;  // of another C library than glibc
};

Target inspect_target(const std::string& command);

// One line on why tracing cannot reach it; empty: nothing known against it.
std::string why_unreachable(const Target& target);

}  // namespace gputrace
