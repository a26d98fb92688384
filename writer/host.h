// Facts about the traced process and its host, read from /proc and the environment. Nothing here fails: what is not
// known is empty or 0.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"

namespace gputrace {

// Reads a variable; empty where it is not set. Tests put their own in.
using Environment = std::function<std::string(std::string_view name)>;
Environment own_environment();

// At most `limit` bytes of a file; empty where it cannot be read.
std::string read_small_file(const std::string& path, std::size_t limit = 65536);

// Of /proc/PID/stat.
struct ProcessStat {
  bool known = false;
  char state = '?';
  i32 parent = 0;
  u64 start_time = 0;   // clock ticks after boot
  int exit_status = 0;  // of a zombie, as waitpid() has it; 0 also where we may not know it
};
ProcessStat process_stat(i32 pid);

std::string host_name();
std::string kernel_release();
std::string boot_id();  // as the kernel writes it: 8-4-4-4-12 hexadecimal digits

// Of the folders of a PYTHONPATH those that packages were installed into ("pip install --target"): they hold a "….dist-info". At most
// kMostPackageFolders, of absolute paths; of large ones the first entries are looked at.
inline constexpr std::size_t kMostPackageFolders = 16;
std::vector<std::string> package_folders(std::string_view python_path);

std::string find_rank(const Environment& environment);        // digits, or empty
std::string find_local_rank(const Environment& environment);  // digits, or empty

// What names the run that a process belongs to: the id of its batch job; else the UTC start (YYYYMMDD-HHMMSS) of the
// first process of the run, given by GPUTRACE_RUN_START or found as the topmost ancestor that was itself started with
// the library.
std::string find_job(const Environment& environment, i32 pid);
std::string format_utc(Nanos realtime);  // YYYYMMDD-HHMMSS

}  // namespace gputrace
