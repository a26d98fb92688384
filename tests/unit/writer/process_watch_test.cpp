// How a process has ended, before and after its parent has asked.
#include "writer/process_watch.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "base/clock.h"
#include "writer/host.h"

namespace gputrace {
namespace {

TEST(ProcessWatch, AnEndIsKnownBeforeTheParentAsks) {
  for (const int wanted : {0, 7 << 8, SIGKILL}) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::pause();
      ::_exit(1);
    }
    const pid_t ending = ::fork();
    if (ending == 0) {
      if (wanted == SIGKILL) ::raise(SIGKILL);
      ::_exit(wanted >> 8);
    }
    ProcessWatch watch(Fd(), ending, process_stat(ending).start_time, -1);
    while (watch.wait(10'000'000) != ProcessWatch::State::Gone) {
    }
    EXPECT_EQ(watch.status(0), std::optional(wanted)) << "at once: the deadline has passed";
    // Of one that has not ended nothing is told.
    const ProcessWatch running(Fd(), child, process_stat(child).start_time, -1);
    EXPECT_EQ(running.status(0), std::nullopt);
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    int status = -1;
    ASSERT_EQ(::waitpid(ending, &status, 0), ending);
    EXPECT_EQ(status, wanted);
  }
}

}  // namespace
}  // namespace gputrace
