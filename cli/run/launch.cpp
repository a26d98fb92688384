#include "cli/run/launch.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>

namespace gputrace {
namespace {

// Everything that may be passed on; what cannot be caught, faults and job control stay with the system.
sigset_t passed_on() {
  sigset_t set;
  sigfillset(&set);
  for (const int signal : {SIGKILL, SIGSTOP, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS, SIGTSTP,
                           SIGTTIN, SIGTTOU, SIGPIPE}) {
    sigdelset(&set, signal);
  }
  return set;
}

Ending ending_of(pid_t child, int status) {
  Ending ending;
  ending.pid = child;
  ending.status = status;
  if (WIFSIGNALED(status))
    ending.signal = WTERMSIG(status);
  else
    ending.exit_code = WEXITSTATUS(status);
  return ending;
}

Ending wait_for(pid_t child, const sigset_t& signals) {
  for (;;) {
    int status = 0;
    const pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended == child && (WIFEXITED(status) || WIFSIGNALED(status))) return ending_of(child, status);
    if (ended < 0 && errno != EINTR) return {};
    siginfo_t info{};
    const int signal = sigwaitinfo(&signals, &info);
    if (signal <= 0 || signal == SIGCHLD) continue;
    // si_code > 0: the kernel sent it, for the terminal; then the child, in our group, has it already.
    if (info.si_code <= 0 && info.si_pid != child) kill(child, signal);
  }
}

}  // namespace

Ending launch(const std::vector<std::string>& command,
              const std::vector<std::pair<std::string, std::string>>& variables) {
  std::vector<char*> words;
  words.reserve(command.size() + 1);
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  int exec_failed[2];
  if (pipe2(exec_failed, O_CLOEXEC) != 0) return {.exec_error = errno};
  const sigset_t signals = passed_on();
  sigset_t before;
  sigprocmask(SIG_BLOCK, &signals, &before);
  // An inherited SIG_IGN for SIGCHLD would let the kernel reap the child without telling how it ended; the child gets
  // it back.
  struct sigaction child_action {};
  child_action.sa_handler = SIG_DFL;
  struct sigaction child_before;
  sigaction(SIGCHLD, &child_action, &child_before);
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
    sigaction(SIGCHLD, &child_before, nullptr);
    sigprocmask(SIG_SETMASK, &before, nullptr);
    execvp(words[0], words.data());
    const int error = errno;
    const ssize_t ignored = ::write(exec_failed[1], &error, sizeof error);
    _exit(ignored == sizeof error ? 127 : 126);
  }
  const int fork_error = errno;
  close(exec_failed[1]);
  Ending ending;
  if (child < 0) {
    ending.exec_error = fork_error;
  } else {
    int error = 0;
    ssize_t got;
    do got = read(exec_failed[0], &error, sizeof error);
    while (got < 0 && errno == EINTR);
    ending = wait_for(child, signals);
    if (got == sizeof error) ending.exec_error = error;
  }
  close(exec_failed[0]);
  sigprocmask(SIG_SETMASK, &before, nullptr);
  return ending;
}

void end_as(const Ending& ending) {
  std::fflush(nullptr);
  if (ending.signal != 0) {
    const rlimit none{0, 0};
    setrlimit(RLIMIT_CORE, &none);
    std::signal(ending.signal, SIG_DFL);
    sigset_t only;
    sigemptyset(&only);
    sigaddset(&only, ending.signal);
    sigprocmask(SIG_UNBLOCK, &only, nullptr);
    raise(ending.signal);
    _exit(128 + ending.signal);
  }
  _exit(ending.exit_code);
}

}  // namespace gputrace
