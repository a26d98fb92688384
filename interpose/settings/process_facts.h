// What a process can find out about itself through /proc and the kernel: identity, its own path. Cold; no
// allocation.
#pragma once

#include "base/types.h"

namespace gputrace {

// Reads at most `capacity` bytes of a small file; returns how many, 0 when it cannot be read.
u64 read_small_file(const char* path, char* out, u64 capacity);

struct Identity {
  u64 random_id = 0;
  u64 pid_namespace = 0;
  u64 start_time = 0;
  i32 pid = 0;
};
Identity own_identity();

// The file that holds `address`, absolute; 0: not known. Returns the length, out is terminated.
u64 file_of_address(const void* address, char* out, u64 capacity);
// The folder that this library lies in, with the slash at its end; also where there is no /proc. 0: not known.
u64 own_folder(char* out, u64 capacity);

// The program's file, terminated; where there is no /proc, the name that it was started by. Returns the length, 0: not known.
u64 own_executable(char* out, u64 capacity);

// Runs with more rights than its caller: then the library stays inert.
bool is_privileged();

}  // namespace gputrace
