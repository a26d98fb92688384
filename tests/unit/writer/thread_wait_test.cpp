// What a thread sleeps for, as the kernel tells it: each kind with a thread that does it.
#include "writer/sample/thread_wait.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <functional>
#include <string>
#include <thread>

#include "trace/schema.h"

namespace gputrace {
namespace {

using std::chrono::milliseconds;

// A child of this process does `act` until it is killed: its only thread has the child's number.
class Doing {
 public:
  explicit Doing(const std::function<void()>& act) : pid_(::fork()) {
    if (pid_ == 0)
      for (;;) act();
  }
  ~Doing() { ::kill(pid_, SIGKILL), ::waitpid(pid_, nullptr, 0); }
  // A word for it; "not told": the kernel says nothing. Looks until it is no longer on its way there.
  std::string told(const InterpreterMemory& interpreter = {}, const char* until = nullptr) const {
    std::string word;
    for (int i = 0; i < 200; ++i) {
      const auto wait = wait_of_thread(pid_, pid_, interpreter);
      word = !wait ? "not told" : wait->what ? word_of(*wait->what) : "ran";
      if (until ? word == until : word != "ran") break;
      std::this_thread::sleep_for(milliseconds(5));
    }
    return word;
  }

 private:
  pid_t pid_;
};

TEST(ThreadWait, IsToldByTheCallThatItStandsIn) {
  int pipes[2], pair[2];
  ASSERT_EQ(::pipe(pipes), 0);
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  const int event = ::eventfd(0, 0), epoll = ::epoll_create1(0);
  char byte;
  pollfd polled{pipes[0], POLLIN, 0};
  epoll_event found;
  sem_t semaphore;
  ::sem_init(&semaphore, 0, 0);
  const std::pair<const char*, std::function<void()>> kinds[] = {
      {"sleep", [] { ::usleep(1'000'000); }},
      {"sleep", [] { ::poll(nullptr, 0, 1000); }},
      {"sleep", [] { ::select(0, nullptr, nullptr, nullptr, nullptr); }},  // time.sleep before CPython 3.11
      {"pipe", [&] { (void)!::read(pipes[0], &byte, 1); }},
      {"socket", [&] { (void)!::read(pair[0], &byte, 1); }},
      {"socket", [&] { ::recv(pair[0], &byte, 1, 0); }},
      {"descriptors", [&] { (void)!::read(event, &byte, 8); }},
      {"descriptors", [&] { ::poll(&polled, 1, -1); }},
      {"descriptors", [&] { ::epoll_wait(epoll, &found, 1, -1); }},
      {"lock", [&] { ::sem_wait(&semaphore); }},
      {"kernel", [] { ::pause(); }},
      {"end of a process", [] {
         if (::fork() == 0) {
           ::prctl(PR_SET_PDEATHSIG, SIGKILL);
           for (;;) ::pause();
         }
         ::waitpid(-1, nullptr, 0);
       }}};
  for (const auto& [word, act] : kinds) EXPECT_EQ(Doing(act).told({}, word), word);
  for (const int each : {pipes[0], pipes[1], pair[0], pair[1], event, epoll}) ::close(each);
}

TEST(ThreadWait, OneThatRunsWaitsForNothing) {
  EXPECT_EQ(Doing([] {}).told({}, "ran"), "ran");
}

// What lies within the interpreter's own memory is its lock, however small a part before and behind it is not.
TEST(ThreadWait, ForPythonsLock) {
  static sem_t semaphore;
  ::sem_init(&semaphore, 0, 0);
  const Doing waits([] { ::sem_wait(&semaphore); });
  const u64 at = reinterpret_cast<u64>(&semaphore);
  EXPECT_EQ(waits.told({at - 64, 64 + sizeof semaphore}), "GIL");
  EXPECT_EQ(waits.told({at - 64, 64}), "lock");
  EXPECT_EQ(waits.told({at + sizeof semaphore, 64}), "lock");
}

TEST(ThreadWait, OfNoThreadNothingIsTold) { EXPECT_FALSE(wait_of_thread(::getpid(), 0x7ffffffe, {}).has_value()); }

}  // namespace
}  // namespace gputrace
