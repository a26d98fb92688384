#include "writer/host.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/clock.h"
#include "base/fd.h"

namespace gputrace {
namespace {

bool all_digits(std::string_view text) {
  return !text.empty() && text.size() <= 9 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::string first_number(const Environment& environment, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    std::string value = environment(name);
    if (all_digits(value)) return value;
  }
  return {};
}

// One number per task only where there is more than one task: an interactive allocation sets SLURM_PROCID=0 for
// everything.
bool in_slurm_tasks(const Environment& environment) {
  for (const char* name : {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"}) {
    const std::string tasks = environment(name);
    if (all_digits(tasks)) return std::strtol(tasks.c_str(), nullptr, 10) > 1;
  }
  return false;
}

bool started_with_library(i32 pid) {
  const std::string variables = read_small_file("/proc/" + std::to_string(pid) + "/environ", 4 << 20);
  for (std::size_t at = 0; at < variables.size();) {
    const std::string_view entry(variables.c_str() + at);
    if (entry.starts_with("LD_PRELOAD=") && entry.find("libgputrace") != std::string_view::npos) return true;
    at += entry.size() + 1;
  }
  return false;
}

}  // namespace

Environment own_environment() {
  return [](std::string_view name) {
    const char* value = std::getenv(std::string(name).c_str());
    return std::string(value ? value : "");
  };
}

std::string read_small_file(const std::string& path, std::size_t limit) {
  Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  std::string text;
  char buffer[4096];
  while (file && text.size() < limit) {
    const ssize_t got = ::read(file.get(), buffer, std::min(sizeof buffer, limit - text.size()));
    if (got <= 0) break;
    text.append(buffer, static_cast<std::size_t>(got));
  }
  return text;
}

namespace {

bool holds_packages(const std::string& folder) {
  constexpr unsigned kMostEntries = 4096;
  const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(folder.c_str()), &::closedir);
  if (!open) return false;
  for (unsigned i = 0; i < kMostEntries; ++i) {
    const dirent* const entry = ::readdir(open.get());
    if (!entry) return false;
    if (std::string_view(entry->d_name).ends_with(".dist-info")) return true;
  }
  return false;
}

}  // namespace

std::vector<std::string> package_folders(std::string_view python_path) {
  std::vector<std::string> found;
  while (!python_path.empty() && found.size() < kMostPackageFolders) {
    const std::size_t end = std::min(python_path.find(':'), python_path.size());
    std::string folder(python_path.substr(0, end));
    python_path.remove_prefix(std::min(end + 1, python_path.size()));
    while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
    if (folder.size() > 1 && folder.front() == '/' && folder.size() < PATH_MAX && holds_packages(folder))
      found.push_back(std::move(folder));
  }
  return found;
}

ProcessStat process_stat(i32 pid) {
  ProcessStat stat;
  const std::string text = read_small_file("/proc/" + std::to_string(pid) + "/stat");
  const std::size_t name_end = text.rfind(')');  // the name may hold anything, blanks and parentheses too
  if (name_end == std::string::npos) return stat;
  const char* at = text.c_str() + name_end + 1;
  int parent = 0;
  unsigned long long start = 0;
  constexpr const char* kFields =
      " %c %d %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu"  // 3 state, 4 ppid, 22 starttime
      " %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s"
      " %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %d";  // 52 exit_code
  if (std::sscanf(at, kFields, &stat.state, &parent, &start, &stat.exit_status) < 3) return stat;
  stat.known = true;
  stat.parent = parent;
  stat.start_time = start;
  return stat;
}

std::string host_name() {
  utsname names{};
  return ::uname(&names) == 0 ? names.nodename : "";
}

std::string kernel_release() {
  utsname names{};
  return ::uname(&names) == 0 ? std::string(names.sysname) + " " + names.release + " " + names.machine : "";
}

std::string boot_id() {
  std::string id = read_small_file("/proc/sys/kernel/random/boot_id", 64);
  while (!id.empty() && id.back() == '\n') id.pop_back();
  return id;
}

std::string find_rank(const Environment& environment) {
  std::string rank =
      first_number(environment, {"RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK"});
  if (rank.empty() && in_slurm_tasks(environment)) rank = first_number(environment, {"SLURM_PROCID"});
  return rank;
}

std::string find_local_rank(const Environment& environment) {
  std::string rank = first_number(environment, {"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "PMIX_LOCAL_RANK",
                                                "MPI_LOCALRANKID", "MV2_COMM_WORLD_LOCAL_RANK"});
  if (rank.empty() && in_slurm_tasks(environment)) rank = first_number(environment, {"SLURM_LOCALID"});
  return rank;
}

std::string find_job(const Environment& environment, i32 pid) {
  for (const char* name : {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "TORCHELASTIC_RUN_ID"}) {
    std::string id = environment(name);
    if (!id.empty() && id != "none") return id;  // torchelastic says "none" where nobody named the run
  }
  std::string given = environment("GPUTRACE_RUN_START");
  if (given.size() == 15 && given[8] == '-') return given;
  i32 first = pid;
  for (int depth = 0; depth < 64; ++depth) {
    const ProcessStat stat = process_stat(first);
    if (!stat.known || stat.parent <= 0 || !started_with_library(stat.parent)) break;
    first = stat.parent;
  }
  const ProcessStat stat = process_stat(first);
  const Nanos now = realtime_nanos();
  if (!stat.known) return format_utc(now);
  const Nanos age =
      clock_nanos(CLOCK_BOOTTIME) - static_cast<Nanos>(stat.start_time) * (1'000'000'000 / ::sysconf(_SC_CLK_TCK));
  return format_utc(now - std::max<Nanos>(age, 0));
}

std::string format_utc(Nanos realtime) {
  const time_t seconds = static_cast<time_t>(realtime / 1'000'000'000);
  tm utc{};
  ::gmtime_r(&seconds, &utc);
  char text[32];
  return std::string(text, ::strftime(text, sizeof text, "%Y%m%d-%H%M%S", &utc));
}

}  // namespace gputrace
