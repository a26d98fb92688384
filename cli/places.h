// Where the parts of this installation are: found from the path of the running program, so that a tree works after it
// was moved.
//   installed, below PREFIX   bin/gputrace   lib/libgputrace.so           libexec/gputrace/gputrace-sidecar   lib/gputrace/simgpu
//   build tree                cli/gputrace   interpose/libgputrace.so     writer/gputrace-sidecar             simgpu/lib
#pragma once

#include <string>

namespace gputrace {

struct Places {
  std::string program;                                 // this program, absolute
  std::string library, host_library, sidecar, simgpu;  // absolute; empty: not found
};

Places find_places();

// Why `run` cannot see here what becomes of its processes; empty: it can.
std::string why_no_processes();

// "gputrace" if that is what the shell would find, else the absolute path, quoted.
std::string own_command(const Places& places);

// As a shell takes it: quoted where needed.
std::string shell_word(const std::string& word);

// The file that execvp would run for `command`; empty: none.
std::string find_in_path(const std::string& command);

// Absolute, without links; empty: there is no such file.
std::string real_path(const std::string& path);

std::string base_name(const std::string& path);

}  // namespace gputrace
