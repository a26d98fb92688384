#include "cli/read/pager.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <string>

#include "cli/places.h"

namespace gputrace {
namespace {

// What the shell is to run; empty: no pager.
std::string wanted_pager() {
  for (const char* name : {"GPUTRACE_PAGER", "PAGER"}) {
    if (const char* value = std::getenv(name)) return std::string(value) == "cat" ? "" : value;
  }
  return find_in_path("less").empty() ? "" : "less -FRX";
}

}  // namespace

Pager::Pager() {
  const std::string command = isatty(STDOUT_FILENO) ? wanted_pager() : "";
  int ends[2];
  if (command.empty() || pipe2(ends, O_CLOEXEC) != 0) return;
  Fd read(ends[0]), write(ends[1]);
  terminal_.reset(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
  child_ = fork();
  if (child_ == 0) {
    dup2(read.get(), STDIN_FILENO);
    execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    _exit(127);
  }
  if (child_ < 0) return;
  std::signal(SIGINT, SIG_IGN);  // Ctrl-C is the pager's: it ends a search there
  dup2(write.get(), STDOUT_FILENO);
}

Pager::~Pager() { finish(); }

void Pager::finish() {
  if (child_ <= 0) return;
  dup2(terminal_.get(), STDOUT_FILENO);
  while (waitpid(child_, nullptr, 0) < 0 && errno == EINTR) {
  }
  child_ = -1;
  std::signal(SIGINT, SIG_DFL);
}

}  // namespace gputrace
