#include "cli/output.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "cli/environment.h"
#include "cli/options.h"

namespace gputrace {
namespace {

constexpr std::size_t kBuffer = 256u << 10;

bool wants_color(const std::string& when, bool terminal) {
  if (when != "auto") return when == "always";
  if (!variable("NO_COLOR").empty()) return false;
  const std::string force = variable("CLICOLOR_FORCE");
  if (!force.empty() && force != "0") return true;
  if (variable("CLICOLOR") == "0" || variable("TERM") == "dumb") return false;
  return terminal;
}

bool speaks_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    std::string value = variable(name);
    if (value.empty()) continue;
    std::transform(value.begin(), value.end(), value.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return value.find("utf-8") != std::string::npos || value.find("utf8") != std::string::npos;
  }
  return false;
}

std::size_t terminal_width(bool terminal, int fd) {
  const std::string columns = variable("COLUMNS");
  if (!columns.empty() && columns.size() < 6 && columns.find_first_not_of("0123456789") == std::string::npos) {
    const int value = std::atoi(columns.c_str());
    if (value > 0) return static_cast<std::size_t>(std::max(value, 20));
  }
  winsize size{};
  if (terminal && ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return std::max<std::size_t>(size.ws_col, 20);
  return 120;
}

}  // namespace

TerminalStyle terminal_style(const std::string& color, bool to_file, int fd) {
  const bool terminal = !to_file && isatty(fd);
  TerminalStyle style;
  style.color = !(to_file && color == "auto") && wants_color(color, terminal);
  style.utf8 = speaks_utf8();
  style.width = terminal_width(terminal, fd);
  style.terminal = terminal;
  return style;
}

Output::Output(std::string path) : path_(std::move(path)) {}

Output::~Output() {
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

bool Output::open() {
  std::signal(SIGPIPE, SIG_IGN);
  if (path_.empty()) return true;
  struct stat about;
  // A device or a pipe is written as it is; a file is replaced once the new one is whole.
  const bool plain = stat(path_.c_str(), &about) != 0 || S_ISREG(about.st_mode);
  const std::string target = plain ? path_ + ".new" + std::to_string(getpid()) : path_;
  file_.reset(::open(target.c_str(), O_WRONLY | O_CLOEXEC | (plain ? O_CREAT | O_EXCL : 0), 0666));
  if (!file_) {
    fail(kRuntimeError, path_ + ": cannot be written: " + std::strerror(errno));
    return false;
  }
  if (plain) temporary_ = target;
  return true;
}

bool Output::put(std::string_view rest) {
  const int fd = file_ ? file_.get() : STDOUT_FILENO;
  while (!rest.empty() && error_ == 0) {
    const ssize_t wrote = ::write(fd, rest.data(), rest.size());
    if (wrote >= 0)
      rest.remove_prefix(static_cast<std::size_t>(wrote));
    else if (errno != EINTR)
      error_ = errno;
  }
  return error_ == 0;
}

bool Output::flush() {
  put(buffer_);
  buffer_.clear();
  return error_ == 0;
}

bool Output::write(std::string_view text) {
  if (error_) return false;
  if (text.size() >= kBuffer) return flush() && put(text);  // nothing is gained by keeping it
  buffer_ += text;
  return buffer_.size() < kBuffer || flush();
}

void Output::discard() {
  buffer_.clear();
  file_.reset();
  if (!temporary_.empty()) unlink(temporary_.c_str());
  temporary_.clear();
}

int Output::close() {
  if (error_ == 0) flush();
  if (error_ == 0 && !temporary_.empty()) {
    if (::close(file_.release()) != 0 || rename(temporary_.c_str(), path_.c_str()) != 0)
      error_ = errno;
    else
      temporary_.clear();
  }
  if (error_ == 0 || error_ == EPIPE) return kOk;
  return fail(kRuntimeError, (path_.empty() ? std::string("standard output") : path_) +
                                 ": cannot be written: " + std::strerror(error_));
}

}  // namespace gputrace
