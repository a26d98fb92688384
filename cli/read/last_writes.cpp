#include "cli/read/last_writes.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "base/clock.h"
#include "base/fd.h"
#include "cli/small_files.h"
#include "trace/file.h"

namespace gputrace {
namespace {

constexpr Nanos kPatienceForWrites = 2'000'000'000;
constexpr std::time_t kLately = 10;    // seconds: a sidecar at work writes counters many times a second
constexpr useconds_t kPause = 10'000;  // us between two looks

// State and start time of a process, from behind its name, which may hold anything.
bool runs(i32 pid, u64 start_time) {
  const std::string stat = read_file("/proc/" + std::to_string(pid) + "/stat");
  std::size_t at = stat.rfind(')');
  if (at == std::string::npos || at + 2 >= stat.size()) return false;
  const char state = stat[at + 2];
  for (int field = 2; field < 22 && at != std::string::npos; ++field) at = stat.find(' ', at + 1);
  if (state == 'Z' || state == 'X' || at == std::string::npos) return false;
  return std::strtoull(stat.c_str() + at, nullptr, 10) == start_time;
}

// Made on this machine since it started, by a process of a number that means the same here.
bool of_here(const FileHeader& header) {
  std::string digits;
  for (const char c : read_file("/proc/sys/kernel/random/boot_id")) {
    if (std::isxdigit(static_cast<unsigned char>(c))) digits += c;
  }
  std::string own;
  for (const u8 byte : header.boot_id) {
    char two[3];
    std::snprintf(two, sizeof two, "%02x", byte);
    own += two;
  }
  struct stat space {};
  return digits == own && stat("/proc/self/ns/pid", &space) == 0 && space.st_ino == header.pid_namespace;
}

// Written lately, by a process that has ended.
bool may_be_unfinished(const std::string& path) {
  struct stat about {};
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  FileHeader header;
  if (!file || fstat(file.get(), &about) != 0 || !S_ISREG(about.st_mode)) return false;
  if (std::time(nullptr) - about.st_mtime > kLately) return false;
  if (read(file.get(), &header, sizeof header) != sizeof header) return false;
  return std::memcmp(header.magic, kFileMagic, sizeof header.magic) == 0 && of_here(header) &&
         !runs(header.pid, header.start_time);
}

// Does this process have one of the files open?
bool holds_one(const std::string& process, const std::vector<struct stat>& files) {
  DIR* open_files = opendir((process + "/fd").c_str());
  if (!open_files) return false;
  bool found = false;
  while (const dirent* entry = found ? nullptr : readdir(open_files)) {
    struct stat about {};
    if (fstatat(dirfd(open_files), entry->d_name, &about, 0) != 0) continue;
    found = std::any_of(files.begin(), files.end(), [&](const struct stat& file) {
      return file.st_dev == about.st_dev && file.st_ino == about.st_ino;
    });
  }
  closedir(open_files);
  return found;
}

bool sidecar_holds_one(const std::vector<struct stat>& files) {
  DIR* processes = opendir("/proc");
  if (!processes) return false;
  bool found = false;
  while (const dirent* entry = found ? nullptr : readdir(processes)) {
    if (!std::isdigit(static_cast<unsigned char>(entry->d_name[0]))) continue;
    const std::string folder = std::string("/proc/") + entry->d_name;
    found = read_file(folder + "/comm").compare(0, 15, "gputrace-sideca") == 0 && holds_one(folder, files);
  }
  closedir(processes);
  return found;
}

}  // namespace

void wait_for_last_writes(const std::vector<std::string>& files) {
  std::vector<struct stat> unfinished;
  for (const std::string& file : files) {
    struct stat about {};
    if (may_be_unfinished(file) && stat(file.c_str(), &about) == 0) unfinished.push_back(about);
  }
  const Nanos until = monotonic_nanos() + kPatienceForWrites;
  while (!unfinished.empty() && monotonic_nanos() < until && sidecar_holds_one(unfinished)) usleep(kPause);
}

}  // namespace gputrace
