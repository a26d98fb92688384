// `run` reads memory for sidecars: what comes from it, whole or not at all, and nothing else.
#include "writer/sample/memory_of_run.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "cli/run/memory_server.h"

namespace gputrace {
namespace {

// A child of this process that waits to be killed: its memory is what ours was at its birth.
class Child {
 public:
  Child() : pid_(::fork()) {
    if (pid_ == 0)
      for (;;) ::pause();
  }
  ~Child() { end(); }
  void end() {
    if (pid_ > 0) ::kill(pid_, SIGKILL), ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

std::unique_ptr<MemoryOfRun> opened(const MemoryServer& server) {
  return MemoryOfRun::open(
      [&](std::string_view name) { return name == "GPUTRACE_RUN_MEMORY" ? server.path() : std::string(); });
}

struct Answer {
  ssize_t got;
  int error;
};
Answer read_at_once(MemoryOfRun& memory, i32 process, const void* from, void* to, std::size_t size) {
  const iovec here{to, size}, there{const_cast<void*>(from), size};
  const ssize_t got = memory.read(process, &here, &there, 1);
  return {got, got < 0 ? errno : 0};
}
// However long the answer takes on a machine that has much else to do.
Answer read_one(MemoryOfRun& memory, i32 process, const void* from, void* to, std::size_t size) {
  for (;;) {
    const Answer answer = read_at_once(memory, process, from, to, size);
    if (answer.error != ETIMEDOUT) return answer;
    ::usleep(1000);
  }
}

TEST(MemoryOfRun, ReadsPiecesOfAChild) {
  std::vector<char> text(MemoryDesk::kMostBytes);
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * 31 >> 3);
  const std::vector<char> before = text;
  const MemoryServer server;
  const Child child;
  std::fill(text.begin(), text.end(), '\0');  // ours now; the child has it still
  const auto memory = opened(server);
  ASSERT_TRUE(memory);
  std::vector<char> whole(text.size());
  EXPECT_EQ(read_one(*memory, child.pid(), text.data(), whole.data(), whole.size()).got,
            static_cast<ssize_t>(whole.size()));
  EXPECT_EQ(whole, before);
  char first[3], last[500];
  const iovec here[] = {{first, sizeof first}, {last, sizeof last}};
  const iovec there[] = {{text.data() + 7, sizeof first}, {text.data() + text.size() - sizeof last, sizeof last}};
  ssize_t got;
  do got = memory->read(child.pid(), here, there, 2);
  while (got < 0 && errno == ETIMEDOUT);
  ASSERT_EQ(got, static_cast<ssize_t>(sizeof first + sizeof last));
  EXPECT_EQ(std::memcmp(first, before.data() + 7, sizeof first), 0);
  EXPECT_EQ(std::memcmp(last, before.data() + before.size() - sizeof last, sizeof last), 0);
  EXPECT_GT(memory->cpu(), 0);
}

TEST(MemoryOfRun, TellsWhatCannotBeRead) {
  const MemoryServer server;
  Child child;
  const auto memory = opened(server);
  ASSERT_TRUE(memory);
  char byte = 'x';
  EXPECT_EQ(read_one(*memory, child.pid(), nullptr, &byte, 1).error, EFAULT);
  EXPECT_EQ(read_one(*memory, child.pid(), &byte, &byte, MemoryDesk::kMostBytes + 1).error, EINVAL);
  EXPECT_EQ(read_one(*memory, ::getppid(), &byte, &byte, 1).error, EPERM) << "it does not come from here";
  EXPECT_EQ(read_one(*memory, ::getpid(), &byte, &byte, 1).error, EPERM) << "`run` itself is nobody's to read";
  EXPECT_EQ(read_one(*memory, 1, &byte, &byte, 1).error, EPERM);
  EXPECT_EQ(read_one(*memory, 0, &byte, &byte, 1).error, EPERM);
  EXPECT_EQ(read_one(*memory, -1, &byte, &byte, 1).error, EPERM);
  EXPECT_EQ(byte, 'x');
  EXPECT_EQ(read_one(*memory, child.pid(), &byte, &byte, 1).got, 1) << "asked wrongly before, it still answers";
  const pid_t ended = child.pid();
  child.end();
  EXPECT_EQ(read_one(*memory, ended, &byte, &byte, 1).got, -1);
}

// What a hostile owner of a desk writes there is not believed.
TEST(MemoryServer, BelievesNothing) {
  const MemoryServer server;
  const Child child;
  const auto memory = opened(server);
  ASSERT_TRUE(memory);
  char byte = 0;
  ASSERT_EQ(read_one(*memory, child.pid(), &byte, &byte, 1).got, 1);
  const Fd file(::open(server.path().c_str(), O_RDWR | O_CLOEXEC));
  EXPECT_NE(::ftruncate(file.get(), 0), 0) << "what is mapped stays there";
  auto* const desks = static_cast<MemoryDesks*>(
      ::mmap(nullptr, sizeof(MemoryDesks), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0));
  ASSERT_NE(desks, MAP_FAILED);
  MemoryDesk& desk = desks->desk[0];
  const auto ask = [&](u32 pieces, u64 size) {
    desk.process = child.pid();
    desk.pieces = pieces;
    for (auto& piece : desks->paper[0].piece) piece = {reinterpret_cast<u64>(&byte), size};
    desk.state = static_cast<u32>(DeskState::Asked);
    desks->bell.fetch_add(1);
    futex_wake(desks->bell);
    while (desk.state != static_cast<u32>(DeskState::Answered))
      futex_wait(desk.state, static_cast<u32>(DeskState::Asked), nullptr);
    return desk.result;
  };
  EXPECT_EQ(ask(0, 1), -EINVAL);
  EXPECT_EQ(ask(MemoryDesk::kMostPieces + 1, 1), -EINVAL);
  EXPECT_EQ(ask(~0u, 1), -EINVAL);
  EXPECT_EQ(ask(2, ~u64{0}), -EINVAL);
  EXPECT_EQ(ask(2, MemoryDesk::kMostBytes), -EINVAL);
  EXPECT_EQ(ask(MemoryDesk::kMostPieces, 1), static_cast<i64>(MemoryDesk::kMostPieces));
  ::munmap(desks, sizeof *desks);
}

TEST(MemoryOfRun, HasADeskForSixtyFourAndTakesThoseOfTheDead) {
  const MemoryServer server;
  const Child child;
  char byte = 0;
  std::vector<std::unique_ptr<MemoryOfRun>> all;
  for (u32 i = 0; i < MemoryDesks::kCount; ++i) {
    all.push_back(opened(server));
    ASSERT_EQ(read_one(*all.back(), child.pid(), &byte, &byte, 1).got, 1) << i;
  }
  const auto more = opened(server);
  EXPECT_EQ(read_one(*more, child.pid(), &byte, &byte, 1).error, EPERM);
  all.pop_back();  // ends, and gives its desk back
  EXPECT_EQ(read_one(*more, child.pid(), &byte, &byte, 1).got, 1);
  all.pop_back();
  const pid_t killed = ::fork();
  if (killed == 0) {
    const auto memory = opened(server);
    if (read_one(*memory, child.pid(), &byte, &byte, 1).got != 1) ::_exit(1);
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ::waitpid(killed, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  const auto next = opened(server);
  EXPECT_EQ(read_one(*next, child.pid(), &byte, &byte, 1).got, 1) << "its desk is free";
}

TEST(MemoryOfRun, WithoutRunThereIsNone) {
  EXPECT_FALSE(MemoryOfRun::open([](std::string_view) { return std::string(); }));
  EXPECT_FALSE(MemoryOfRun::open([](std::string_view) { return std::string("/proc/1/fd/100000"); }));
  EXPECT_FALSE(MemoryOfRun::open([](std::string_view) { return std::string("/etc/passwd"); }));
  const std::string other = "/proc/" + std::to_string(::getpid()) + "/fd/0";
  EXPECT_FALSE(MemoryOfRun::open([&](std::string_view) { return other; }));
}

// `run` was killed while the program goes on.
TEST(MemoryOfRun, IsOverWhenRunIsGone) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t run = ::fork();
  if (run == 0) {
    const MemoryServer server;
    (void)!::write(ends[1], server.path().data(), server.path().size());
    for (;;) ::pause();
  }
  char path[64] = {};
  ASSERT_GT(::read(ends[0], path, sizeof path - 1), 0);
  ::close(ends[0]), ::close(ends[1]);
  const auto memory = MemoryOfRun::open([&](std::string_view) { return std::string(path); });
  ASSERT_TRUE(memory);
  char byte = 0;
  EXPECT_EQ(read_one(*memory, run, &byte, &byte, 1).error, EPERM);
  int status = 0;
  ::kill(run, SIGSTOP);
  ASSERT_EQ(::waitpid(run, &status, WUNTRACED), run);
  EXPECT_EQ(read_at_once(*memory, run, &byte, &byte, 1).error, ETIMEDOUT) << "it is stopped, and may go on";
  EXPECT_EQ(read_at_once(*memory, run, &byte, &byte, 1).error, ETIMEDOUT);
  ::kill(run, SIGCONT);
  EXPECT_EQ(read_one(*memory, run, &byte, &byte, 1).error, EPERM);
  ::kill(run, SIGKILL);
  ASSERT_EQ(::waitpid(run, &status, 0), run);
  EXPECT_EQ(read_at_once(*memory, run, &byte, &byte, 1).error, ETIMEDOUT);
  EXPECT_EQ(read_at_once(*memory, run, &byte, &byte, 1).error, EPERM) << "it is gone";
}

}  // namespace
}  // namespace gputrace
