#include "cli/capture_output.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>

#include "base/clock.h"
#include "base/fd.h"

namespace gputrace {
namespace {

constexpr std::size_t kMost = 64u << 10;

struct Pipe {
  Fd read, write;
  Pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return;
    read.reset(ends[0]);
    write.reset(ends[1]);
  }
};

// Reads what is there; false at the end.
bool drain(int fd, std::string& into) {
  char piece[4096];
  const ssize_t got = read(fd, piece, sizeof piece);
  if (got <= 0) return got < 0 && errno == EINTR;
  if (into.size() < kMost) into.append(piece, static_cast<std::size_t>(got));
  return true;
}

}  // namespace

Captured capture_output(const std::vector<std::string>& command,
                        const std::vector<std::pair<std::string, std::string>>& variables, int patience_ms) {
  Captured result;
  std::vector<char*> words;
  words.reserve(command.size() + 1);
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  Pipe out, err, exec_failed;
  const pid_t child = fork();
  if (child < 0) {
    result.error = errno;
    return result;
  }
  if (child == 0) {
    const int null = open("/dev/null", O_RDWR);
    dup2(null, 0);
    dup2(out.write.get(), 1);
    dup2(err.write.get(), 2);
    for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
    execvp(words[0], words.data());
    const int error = errno;
    _exit(write(exec_failed.write.get(), &error, sizeof error) == sizeof error ? 127 : 126);
  }
  out.write.reset();
  err.write.reset();
  exec_failed.write.reset();
  const Nanos until = monotonic_nanos() + static_cast<Nanos>(patience_ms) * 1'000'000;
  pollfd wait[2] = {{out.read.get(), POLLIN, 0}, {err.read.get(), POLLIN, 0}};
  while (wait[0].fd >= 0 || wait[1].fd >= 0) {
    const Nanos left = until - monotonic_nanos();
    if (left <= 0 || poll(wait, 2, static_cast<int>(left / 1'000'000) + 1) < 0) break;
    if (wait[0].revents && !drain(wait[0].fd, result.output)) wait[0].fd = -1;
    if (wait[1].revents && !drain(wait[1].fd, result.errors)) wait[1].fd = -1;
  }
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (monotonic_nanos() > until) kill(child, SIGKILL);
    usleep(1000);
  }
  result.started = read(exec_failed.read.get(), &result.error, sizeof result.error) != sizeof result.error;
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  return result;
}

}  // namespace gputrace
