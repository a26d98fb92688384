#include "cli/places.h"

#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstdlib>

#include "cli/options.h"

namespace gputrace {
namespace {

std::string first_that_exists(const std::string& folder, std::initializer_list<const char*> candidates) {
  for (const char* candidate : candidates) {
    const std::string path = real_path(folder + "/" + candidate);
    if (!path.empty()) return path;
  }
  return "";
}

}  // namespace

std::string real_path(const std::string& path) {
  char* found = realpath(path.c_str(), nullptr);
  std::string result = found ? found : "";
  std::free(found);
  return result;
}

Places find_places() {
  Places places;
  places.program = real_path("/proc/self/exe");
  if (const char* started = reinterpret_cast<const char*>(getauxval(AT_EXECFN)); places.program.empty() && started)
    places.program = real_path(started);  // there is no /proc
  const std::string folder = places.program.substr(0, places.program.find_last_of('/'));
  places.library = first_that_exists(folder, {"../lib/libgputrace.so", "../interpose/libgputrace.so"});
  places.host_library = first_that_exists(folder, {"../lib/libgputrace-host.so", "../interpose/libgputrace-host.so"});
  places.sidecar = first_that_exists(folder, {"../libexec/gputrace/gputrace-sidecar", "../writer/gputrace-sidecar"});
  places.simgpu = first_that_exists(folder, {"../lib/gputrace/simgpu", "../simgpu/lib"});
  return places;
}

std::string why_no_processes() {
  return access("/proc/self/stat", R_OK) == 0 ? "" : "/proc is not mounted here: run needs it";
}

std::string base_name(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

std::string shell_word(const std::string& word) {
  constexpr const char* kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./,:+@%=";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  const auto control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  if (std::any_of(word.begin(), word.end(), control)) {  // to be shown, and still what was meant
    std::string escaped = "$'";
    for (const char c : word) {
      char code[8];
      std::snprintf(code, sizeof code, "\\x%02x", static_cast<unsigned char>(c));
      escaped += control(c) ? std::string(code) : c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c);
    }
    return escaped + "'";
  }
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string find_in_path(const std::string& command) {
  const auto runs = [](const std::string& path) {
    struct stat about;
    return stat(path.c_str(), &about) == 0 && S_ISREG(about.st_mode) && access(path.c_str(), X_OK) == 0;
  };
  if (command.find('/') != std::string::npos) return runs(command) ? command : "";
  const char* variable = std::getenv("PATH");
  for (const std::string& folder : split(variable ? variable : "/bin:/usr/bin", ':')) {
    const std::string path = (folder.empty() ? "." : folder) + "/" + command;
    if (runs(path)) return path;
  }
  return "";
}

std::string own_command(const Places& places) {
  const std::string found = find_in_path("gputrace");
  return !found.empty() && real_path(found) == places.program ? "gputrace" : shell_word(places.program);
}

}  // namespace gputrace
