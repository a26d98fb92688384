// What can be said of a program before it is started: whether LD_PRELOAD reaches it.
#pragma once

#include <string>
#include <vector>

namespace gputrace {

struct Target {
  std::string path;         // the file that will be executed; empty: not found
  std::string interpreter;  // of a script; the rest is then about it
  std::string loader;       // PT_INTERP
  bool elf = false;
  bool statically_linked = false;
  bool secure = false;  // setuid, setgid or file capabilities: the loader ignores LD_PRELOAD
  bool other_machine = false;
  bool other_libc = false;  // than glibc
};

Target inspect_target(const std::string& command);

// One line on why tracing cannot reach it; empty: nothing known against it.
std::string why_unreachable(const Target& target);

// The objects that the loader maps for the program before its first instruction, asked of the loader itself: none of the program's own code
// runs. An object that would not be found is there by its name alone. Empty for what is no dynamic program of the C library's.
std::vector<std::string> linked_objects(const Target& target, const std::string& library_path);

// The folders of Python packages that the program would load from: its own, where it is a Python; the active environment's; PYTHONPATH's.
std::vector<std::string> package_folders(const Target& target);

}  // namespace gputrace
