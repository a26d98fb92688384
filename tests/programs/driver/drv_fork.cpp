// drv_fork [mode=fork|vfork|posix_spawn|_Fork|clone] [child=exit|exec|init] [when=before|after] [count=N] [exit=E]:
// makes a child before or after CUDA is in use, `count` times, and goes on launching. The child leaves at once,
// executes /bin/true, or (child=init) uses CUDA itself, which only works where the parent did not: it prints what
// cuInit said.
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "tests/programs/drv_calls.h"

extern char** environ;

static int in_child(const char* what, const Calls& calls) {
  if (std::strcmp(what, "exec") == 0) {
    execl("/bin/true", "true", nullptr);
    return 73;
  }
  if (std::strcmp(what, "init") == 0) {
    const CUresult result = calls.cuInit_(0);
    std::printf("child: cuInit %d\n", static_cast<int>(result));
    if (result == CUDA_SUCCESS) {
      Work work;
      Session session(calls);
      session.round(&work, 4);
      std::printf("child: launches %ld\n", work.launches);
    }
    std::fflush(stdout);
  }
  return 0;
}

static pid_t spawn_true() {
  pid_t pid = -1;
  char name[] = "true";
  char* arguments[] = {name, nullptr};
  return posix_spawn(&pid, "/bin/true", nullptr, nullptr, arguments, environ) == 0 ? pid : -1;
}

static pid_t make_child(const char* mode, const char* what, const Calls& calls) {
  pid_t pid = -1;
  if (std::strcmp(mode, "posix_spawn") == 0) {
    return spawn_true();
  }
  if (std::strcmp(mode, "vfork") == 0) {
    pid = vfork();
    if (pid == 0) {  // only exec or _exit are allowed here
      if (std::strcmp(what, "exec") == 0) {
        execl("/bin/true", "true", nullptr);
      }
      _exit(0);
    }
    return pid;
  }
  if (std::strcmp(mode, "_Fork") == 0) {
    pid = _Fork();
  } else if (std::strcmp(mode, "clone") == 0) {
    pid = static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr));
  } else {
    pid = fork();
  }
  if (pid == 0) {
    _exit(in_child(what, calls));
  }
  return pid;
}

static void children(int argc, char** argv, const Calls& calls) {
  std::fflush(stdout);
  for (long left = option(argc, argv, "count", 1); left > 0; --left) {
    int status = -1;
    const pid_t pid =
        make_child(text_option(argc, argv, "mode", "fork"), text_option(argc, argv, "child", "exit"), calls);
    const bool reaped = pid > 0 && waitpid(pid, &status, 0) == pid;
    std::printf("child %s\n", reaped && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? "done" : "failed");
  }
  std::fflush(stdout);
}

int main(int argc, char** argv) {
  const Calls calls = linked_calls();
  Work work;
  const bool before = std::strcmp(text_option(argc, argv, "when", "after"), "before") == 0;
  if (before) {
    children(argc, argv, calls);
  }
  {
    Session session(calls);
    session.round(&work, 5);
    if (!before) {
      children(argc, argv, calls);
    }
    session.round(&work, 6);
  }
  std::printf("launches %ld checksum %016llx\n", work.launches, work.seen.value);
  return static_cast<int>(option(argc, argv, "exit", 0));
}
