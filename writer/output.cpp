#include "writer/output.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/trusted_directory.h"

namespace gputrace {
namespace {

constexpr std::string_view kDefaultOutput = "gputrace-%j";
constexpr u32 kMaxNumber = 100'000;

std::string clean(std::string_view value, std::size_t most = 100) {
  std::string out(value.substr(0, most));
  for (char& c : out)
    if (c == '/' || static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '_';
  return out;
}

std::string absolute(const std::string& path) {
  if (path.starts_with('/')) return path;
  char cwd[PATH_MAX];
  return ::getcwd(cwd, sizeof cwd) ? std::string(cwd) + "/" + path : path;
}

// Makes every missing directory on the way. `is_new`: the last one was not there.
int make_directories(const std::string& path, bool& is_new) {
  is_new = false;
  for (std::size_t at = 1; at <= path.size(); ++at) {
    if (at != path.size() && path[at] != '/') continue;
    const std::string part = path.substr(0, at);
    if (::mkdir(part.c_str(), 0700) == 0) {
      is_new = at == path.size();
      (void)::chmod(part.c_str(), 0700);  // whatever the umask says
      continue;
    }
    const int error = errno;
    struct stat status {};
    if (::stat(part.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) continue;
    return error == EEXIST ? ENOTDIR : error;
  }
  return 0;
}

OutputError describe(const std::string& path, int error) {
  OutputError said;
  said.fix = "GPUTRACE_OUTPUT=$HOME/gputrace-%j";
  const std::string end = "; tracing is off, your program continues";
  if (error == EROFS)
    said.what = path + " is read-only" + end;
  else if (error == ENOTDIR)
    said.what = path + " is not a directory" + end;
  else if (error == ENOSPC || error == EDQUOT)
    said.what = path + " is on a full disk" + end;
  else
    said.what = path + ": " + std::strerror(error) + end;
  return said;
}

Result<OutputDirectory, OutputError> open_directory(const std::string& path, const Environment& environment) {
  const Distrust distrust = distrust_directory(path);
  const bool shared = environment("GPUTRACE_ALLOW_SHARED_DIR") == "1" && distrust != Distrust::ForeignLink;
  if (distrust != Distrust::None && !shared)
    return Failure{OutputError{path + why_distrusted(distrust) + "; tracing is off, your program continues",
                               distrust == Distrust::ForeignLink
                                   ? "GPUTRACE_OUTPUT=$HOME/gputrace-%j"
                                   : "GPUTRACE_OUTPUT=DIR of your own, or GPUTRACE_ALLOW_SHARED_DIR=1"}};
  OutputDirectory directory;
  directory.path = path;
  directory.shared = distrust != Distrust::None;
  directory.fd.reset(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory.fd) return Failure{describe(path, errno)};
  return directory;
}

}  // namespace

bool has_number_token(std::string_view pattern) {
  for (std::size_t i = 0; i + 1 < pattern.size(); ++i) {
    if (pattern[i] != '%') continue;
    if (pattern[i + 1] == 'n') return true;
    ++i;
  }
  return false;
}

std::string expand_tokens(std::string_view pattern, const OutputNames& names, const Environment& environment,
                          u32 number) {
  std::string out;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%' || i + 1 == pattern.size()) {
      out += pattern[i];
      continue;
    }
    switch (pattern[++i]) {
      case 'h':
        out += clean(names.host);
        break;
      case 'p':
        out += std::to_string(names.pid);
        break;
      case 'r':
        out += clean(names.rank);
        break;
      case 'l':
        out += clean(names.local_rank);
        break;
      case 'j':
        out += clean(names.job);
        break;
      case 'e':
        out += clean(names.executable);
        break;
      case 't':
        out += clean(names.start);
        break;
      case 'n':
        out += std::to_string(number);
        break;
      case '%':
        out += '%';
        break;
      case 'q': {
        const std::size_t close = pattern.find('}', i);
        if (pattern.substr(i, 2) == "q{" && close != std::string_view::npos) {
          out += clean(environment(pattern.substr(i + 2, close - i - 2)));
          i = close;
          break;
        }
        [[fallthrough]];
      }
      default:
        out.append("%").append(1, pattern[i]);  // no token: as it stands
    }
  }
  return out;
}

std::string trace_name(const OutputNames& names) {
  std::string name;
  if (!names.rank.empty()) {
    char rank[32];
    std::snprintf(rank, sizeof rank, "rank%04lu-", std::strtoul(names.rank.c_str(), nullptr, 10));
    name = rank;
  }
  std::string executable = clean(names.executable, 80);
  if (executable.empty() || executable[0] == '.' || executable[0] == '-') executable.insert(0, "_");
  char random[32];
  std::snprintf(random, sizeof random, "%08llx", static_cast<unsigned long long>(names.random_id & 0xffffffff));
  return name + executable + "-" + clean(names.host, 64) + "-" + std::to_string(names.pid) + "-" + random;
}

Result<OutputDirectory, OutputError> open_output(std::string_view pattern, const OutputNames& names,
                                                 const Environment& environment) {
  if (pattern.empty()) pattern = kDefaultOutput;
  const bool numbered = has_number_token(pattern);
  for (u32 number = 1;; ++number) {
    std::string path = absolute(expand_tokens(pattern, names, environment, number));
    while (path.size() > 1 && path.back() == '/') path.pop_back();
    bool is_new = false;
    if (distrust_directory(path) == Distrust::ForeignLink) return open_directory(path, environment);
    if (const int error = make_directories(path, is_new)) return Failure{describe(path, error)};
    if (numbered && !is_new && number < kMaxNumber) continue;
    return open_directory(path, environment);
  }
}

u64 parse_bytes(std::string_view text) {
  const std::string copy(text);
  char* end = nullptr;
  const double value = std::strtod(copy.c_str(), &end);
  if (end == copy.c_str() || !(value >= 0) || value > 1e18) return 0;
  double unit = 1;
  switch (*end) {
    case 'k':
    case 'K':
      unit = 1024;
      ++end;
      break;
    case 'm':
    case 'M':
      unit = 1024.0 * 1024;
      ++end;
      break;
    case 'g':
    case 'G':
      unit = 1024.0 * 1024 * 1024;
      ++end;
      break;
    case 't':
    case 'T':
      unit = 1024.0 * 1024 * 1024 * 1024;
      ++end;
      break;
    default:
      break;
  }
  if (*end == 'i') ++end;
  if (*end == 'b' || *end == 'B') ++end;
  const double bytes = value * unit;
  return *end || bytes > 9e18 ? 0 : static_cast<u64>(bytes);
}

}  // namespace gputrace
