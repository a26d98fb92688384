#include "analysis/read/trace_files.h"

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>

namespace gputrace {
namespace {

constexpr const char* kSuffix = ".gtrace";

bool ends_with(const std::string& name, const std::string& tail) {
  return name.size() >= tail.size() && name.compare(name.size() - tail.size(), tail.size(), tail) == 0;
}

struct CloseDir {
  void operator()(DIR* dir) const { closedir(dir); }
};

// Names in a directory, sorted; nothing where it cannot be read (errno says why).
std::optional<std::vector<std::string>> names_in(const std::string& path) {
  const std::unique_ptr<DIR, CloseDir> dir(opendir(path.c_str()));
  if (!dir) return std::nullopt;
  std::vector<std::string> names;
  while (const dirent* entry = readdir(dir.get())) names.emplace_back(entry->d_name);
  std::sort(names.begin(), names.end());
  return names;
}

bool later(const timespec& a, const timespec& b) {
  return a.tv_sec != b.tv_sec ? a.tv_sec > b.tv_sec : a.tv_nsec > b.tv_nsec;
}

std::optional<std::string> newest_run_here() {
  const auto names = names_in(".");
  std::optional<std::string> newest;
  timespec newest_time{};
  for (const std::string& name : names.value_or(std::vector<std::string>{})) {
    if (name.compare(0, 9, "gputrace-") != 0) continue;
    for (const std::string& file : names_in(name).value_or(std::vector<std::string>{})) {
      struct stat about;
      if (!ends_with(file, kSuffix)) continue;
      std::string path = name;
      path += '/';
      path += file;
      if (stat(path.c_str(), &about) != 0) continue;
      if (newest && !later(about.st_mtim, newest_time)) continue;
      newest = name;
      newest_time = about.st_mtim;
    }
  }
  return newest;
}

constexpr int kDepth = 4;  // folders that GPUTRACE_OUTPUT=a/%e/%p makes below the one that a user names

// The traces in a directory; where it holds none itself, those of the directories in it. False: it cannot be read.
bool add_traces_in(const std::string& place, int depth, std::vector<std::string>& files) {
  const auto names = names_in(place);
  if (!names) return false;
  const std::size_t before = files.size();
  const std::string folder = place == "/" ? place : place + "/";
  for (const std::string& name : *names) {
    if (ends_with(name, kSuffix)) files.push_back(folder + name);
  }
  if (files.size() != before || depth == 0) return true;
  for (const std::string& name : *names) {
    struct stat about;
    if (name[0] == '.' || lstat((folder + name).c_str(), &about) != 0 || !S_ISDIR(about.st_mode)) continue;
    add_traces_in(folder + name, depth - 1, files);
  }
  return true;
}

}  // namespace

Result<std::vector<std::string>, InputError> find_trace_files(const std::vector<std::string>& paths) {
  std::vector<std::string> places = paths;
  if (places.empty()) {
    const auto newest = newest_run_here();
    if (!newest)
      return Failure{
          InputError{"no gputrace-* directory with a trace here; name one, or make one: gputrace run -- CMD"}};
    places.push_back(*newest);
  }
  std::vector<std::string> files;
  for (const std::string& place : places) {
    struct stat about;
    if (stat(place.c_str(), &about) != 0) return Failure{InputError{place + ": " + std::strerror(errno)}};
    if (!S_ISDIR(about.st_mode)) {
      files.push_back(place);
      continue;
    }
    const std::size_t before = files.size();
    if (!add_traces_in(place, kDepth, files)) return Failure{InputError{place + ": " + std::strerror(errno)}};
    if (files.size() == before) {
      return Failure{InputError{
          place + ": no trace in this directory (no *.gtrace file): was a CUDA call made? try: gputrace doctor"}};
    }
  }
  std::vector<std::string> unique;  // a file named twice is one file
  for (const std::string& file : files) {
    if (std::find(unique.begin(), unique.end(), file) == unique.end()) unique.push_back(file);
  }
  return unique;
}

}  // namespace gputrace
