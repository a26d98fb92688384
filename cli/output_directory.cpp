#include "cli/output_directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <memory>

#include "base/fd.h"
#include "base/trusted_directory.h"
#include "cli/environment.h"
#include "trace/file.h"

namespace gputrace {
namespace {

std::string file_part(std::string value) {
  for (char& c : value) {
    if (c == '/' || static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '_';
  }
  return value;
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y%m%d-%H%M%S", &parts);
  return text;
}

std::string job() {
  for (const char* name : {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "TORCHELASTIC_RUN_ID"}) {
    const std::string value = variable(name);
    if (!value.empty() && value != "none") return file_part(value);
  }
  return utc_now();
}

std::string host() {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  return file_part(name);
}

// The path with the tokens that `run` can resolve replaced; the rest as it is.
std::string expand(const std::string& wanted) {
  std::string result;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] != '%' || i + 1 == wanted.size()) {
      result += wanted[i];
      continue;
    }
    const char token = wanted[++i];
    const std::size_t close = wanted.find('}', i);
    if (token == 'j')
      result += job();
    else if (token == 't')
      result += utc_now();
    else if (token == 'h')
      result += host();
    else if (token == 'q' && i + 1 < wanted.size() && wanted[i + 1] == '{' && close != std::string::npos) {
      result += file_part(variable(wanted.substr(i + 2, close - i - 2).c_str()));
      i = close;
    } else {
      result += '%';
      result += token;
    }
  }
  return result;
}

// %n: the first number that makes the name new.
std::string number(const std::string& path) {
  const std::size_t at = path.find("%n");
  if (at == std::string::npos) return path;
  for (unsigned n = 1;; ++n) {
    std::string candidate = path;
    candidate.replace(at, 2, std::to_string(n));
    struct stat about;
    if (candidate.find('%') != std::string::npos || lstat(candidate.c_str(), &about) != 0 || n == 1000000)
      return candidate;
  }
}

bool ends_with(const std::string& name, const std::string& end) {
  return name.size() > end.size() && name.compare(name.size() - end.size(), end.size(), end) == 0;
}

void look_below(const std::string& folder, int depth, const std::string& extension, std::set<std::string>& found) {
  DIR* dir = opendir(folder.c_str());
  if (!dir) return;
  while (const dirent* entry = readdir(dir)) {
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    const std::string path = fmt::format("{}/{}", folder, name);
    struct stat about;
    if (lstat(path.c_str(), &about) != 0) continue;
    if (S_ISDIR(about.st_mode) && depth > 0) look_below(path, depth - 1, extension, found);
    if (S_ISREG(about.st_mode) && ends_with(name, extension)) found.insert(path);
  }
  closedir(dir);
}

// Writes a page into a new file and removes it. Returns 0 or an errno.
int write_probe(const std::string& folder) {
  const std::string path = folder + "/.gputrace-probe-" + std::to_string(getpid());
  const Fd file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return errno;
  const std::string page(4096, 'x');
  const ssize_t wrote = write(file.get(), page.data(), page.size());
  const int error = wrote < 0 ? errno : wrote < static_cast<ssize_t>(page.size()) ? ENOSPC : 0;
  unlink(path.c_str());
  return error;
}

bool is_trace(const std::string& path) {
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  char magic[sizeof kFileMagic];
  return file && read(file.get(), magic, sizeof magic) == sizeof magic &&
         std::memcmp(magic, kFileMagic, sizeof magic) == 0;
}

}  // namespace

OutputDirectory resolve_output(const std::string& wanted) {
  OutputDirectory output;
  output.shown = number(expand(wanted));
  while (output.shown.size() > 1 && output.shown.back() == '/') output.shown.pop_back();
  std::string absolute = output.shown;
  if (absolute.empty() || absolute[0] != '/') {
    const std::unique_ptr<char, decltype(&std::free)> here(getcwd(nullptr, 0), &std::free);
    absolute = std::string(here ? here.get() : "") + "/" + absolute;
  }
  output.pattern = absolute;
  const auto before_token = [](const std::string& path) {
    const std::size_t token = path.find('%');
    if (token == std::string::npos) return path;
    const std::size_t slash = path.find_last_of('/', token);
    return slash == std::string::npos ? std::string(".") : path.substr(0, slash == 0 ? 1 : slash);
  };
  output.root = before_token(absolute);
  output.shown = before_token(output.shown);
  return output;
}

PreparedOutput prepare_output(const std::string& root, bool allow_shared) {
  PreparedOutput prepared;
  const auto refuse = [&](const std::string& path, int error) {
    prepared.problem = path + (error == EROFS                       ? " is read-only"
                               : error == ENOTDIR                   ? " is not a directory"
                               : error == ENOSPC || error == EDQUOT ? " is on a full disk"
                                                                    : std::string(": ") + std::strerror(error));
    prepared.fix = "-o DIR, or GPUTRACE_OUTPUT=$HOME/gputrace-%j";
    remove_if_empty(prepared);
    return prepared;
  };
  const bool led_astray = distrust_directory(root) == Distrust::ForeignLink;
  for (std::size_t at = 1; at <= root.size() && !led_astray; ++at) {
    if (at != root.size() && root[at] != '/') continue;
    const std::string part = root.substr(0, at);
    if (mkdir(part.c_str(), 0700) == 0) {
      (void)chmod(part.c_str(), 0700);  // whatever the umask says
      prepared.made.push_back(part);
      continue;
    }
    const int error = errno;
    struct stat about;
    if (stat(part.c_str(), &about) != 0) return refuse(part, error == EEXIST ? errno : error);
    if (!S_ISDIR(about.st_mode)) return refuse(part, ENOTDIR);
  }
  const Distrust distrust = distrust_directory(root);
  if (distrust == Distrust::ForeignLink || (distrust != Distrust::None && !allow_shared)) {
    prepared.problem = root + why_distrusted(distrust);
    prepared.fix = distrust == Distrust::ForeignLink ? "-o DIR" : "-o DIR of your own, or --allow-shared-dir";
    remove_if_empty(prepared);
    return prepared;
  }
  if (const int error = write_probe(root)) return refuse(root, error);
  return prepared;
}

void remove_if_empty(const PreparedOutput& prepared) {
  for (auto made = prepared.made.rbegin(); made != prepared.made.rend(); ++made) (void)rmdir(made->c_str());
}

std::set<std::string> traces_below(const std::string& root) {
  std::set<std::string> found;
  look_below(root, 4, ".gtrace", found);
  return found;
}

std::set<std::string> rings_below(const std::string& root) {
  std::set<std::string> found;
  look_below(root, 4, ".ring", found);
  return found;
}

std::size_t remove_traces(const std::string& root) {
  std::set<std::string> found;
  look_below(root, 0, ".gtrace", found);
  std::size_t removed = 0;
  for (const std::string& path : found) removed += is_trace(path) && unlink(path.c_str()) == 0;
  return removed;
}

}  // namespace gputrace
