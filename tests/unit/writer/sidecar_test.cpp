// The sidecar as a process of its own, beside a process that records: what it leaves behind when either of them dies,
// and when the disk does not take it.
#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <functional>
#include <random>
#include <thread>

#include "tests/unit/ringbuf/helpers.h"
#include "tests/unit/trace/helpers.h"

namespace gputrace::test {
namespace {

constexpr u32 kDisk = static_cast<u32>(DropReason::Disk), kLost = static_cast<u32>(DropReason::Lost);

// Starts `program` in a child (on the segment of `process`) and the sidecar beside it.
class Pair {
 public:
  Pair(ProducerProcess& process, const std::string& output, std::function<void()> program,
       std::vector<std::pair<std::string, std::string>> environment = {}, bool with_pidfd = true) {
    int go[2];
    EXPECT_EQ(::pipe2(go, O_CLOEXEC), 0);
    program_ = ::fork();
    if (program_ == 0) {
      char byte;
      (void)!::read(go[0], &byte, 1);
      program();
      ::_exit(0);
    }
    process.header().pid = program_;  // the sidecar maps the header after this
    const int pidfd = with_pidfd ? static_cast<int>(::syscall(SYS_pidfd_open, program_, 0)) : -1;
    sidecar_ = ::fork();
    if (sidecar_ == 0) {
      ::setenv("GPUTRACE_OUTPUT", output.c_str(), 1);
      // A sanitizer build: the leak checker needs ptrace at exit, which the sidecar's own system call filter refuses.
      ::setenv("ASAN_OPTIONS", "detect_leaks=0", 1);
      for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
      if (::getenv("TEST_FSIZE")) {
        const rlimit limit{std::strtoul(::getenv("TEST_FSIZE"), nullptr, 10), RLIM_INFINITY};
        ::setrlimit(RLIMIT_FSIZE, &limit);
      }
      ::fcntl(process.fd(), F_SETFD, 0);
      if (pidfd >= 0) ::fcntl(pidfd, F_SETFD, 0);
      const std::string segment = std::to_string(process.fd()), watched = std::to_string(pidfd);
      const char* sidecar = ::getenv("GT_SIDECAR");
      if (pidfd >= 0)
        ::execl(sidecar, sidecar, "--segment-fd", segment.c_str(), "--process-fd", watched.c_str(), nullptr);
      else
        ::execl(sidecar, sidecar, "--segment-fd", segment.c_str(), nullptr);
      ::_exit(99);
    }
    if (pidfd >= 0) ::close(pidfd);
    SegmentControl& control = *producer.control;
    for (int i = 0; i < 2000 && !control.heartbeat.load(); ++i) ::usleep(1000);
    EXPECT_NE(control.heartbeat.load(), 0u) << "the sidecar does not drain";
    (void)!::write(go[1], "x", 1);
    ::close(go[0]);
    ::close(go[1]);
  }
  ~Pair() {
    kill_program();
    kill_sidecar();
  }
  void kill_program() {
    if (program_ > 0) ::kill(program_, SIGKILL);
    wait_program();
  }
  void wait_program() {
    if (program_ > 0) ::waitpid(program_, nullptr, 0);
    program_ = -1;
  }
  void kill_sidecar() {
    if (sidecar_ > 0) {
      ::kill(sidecar_, SIGKILL);
      ::waitpid(sidecar_, nullptr, 0);
    }
    sidecar_ = -1;
  }
  // Its exit status; -1 when it did not end within `seconds`.
  int wait_sidecar(double seconds = 5) {
    for (int i = 0; i < seconds * 1000; ++i) {
      int status = 0;
      if (::wait4(sidecar_, &status, WNOHANG, &used) == sidecar_) {
        sidecar_ = -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
      }
      ::usleep(1000);
    }
    return -1;
  }
  pid_t program() const { return program_; }
  rusage used{};

 private:
  pid_t program_ = -1, sidecar_ = -1;
};

std::vector<std::string> files_in(const std::string& directory, const std::string& extension) {
  std::vector<std::string> names;
  if (DIR* open = ::opendir(directory.c_str())) {
    while (dirent* entry = ::readdir(open))
      if (std::string_view(entry->d_name).ends_with(extension)) names.push_back(directory + "/" + entry->d_name);
    ::closedir(open);
  }
  return names;
}

TraceReader open_only(const std::string& directory) {
  const auto files = files_in(directory, ".gtrace");
  EXPECT_EQ(files.size(), 1u);
  auto opened = TraceReader::open(files.empty() ? "" : files[0]);
  EXPECT_TRUE(opened.ok());
  return std::move(opened).value();
}

void record_from_two_threads(u64 each) {
  std::thread other([each] {
    for (u64 i = 1; i <= each; ++i) emit(i);
    leave_session();
  });
  for (u64 i = 1; i <= each; ++i) emit(i);
  other.join();
}

// Numbers that count up compress to nothing, as those of no program do: a reader takes a file of very many for an attack.
u64 scattered(u64 number) { return number * 0x9e3779b97f4a7c15; }

void record_from_two_threads_for_ever() {
  const auto record = [] {
    for (u64 i = 1;; ++i) emit(scattered(i));
  };
  std::thread(record).detach();
  record();
}

// Records until the sidecar says that it has stopped writing, and a little more.

void record_until_stopped() {
  u64 number = 0;
  for (int i = 0; i < 4000 && producer.control->consumer_state.load() != static_cast<u32>(ConsumerState::NotWriting);
       ++i) {
    for (int k = 0; k < 10'000; ++k) emit(scattered(++number));
    ::usleep(1000);
  }
  for (int k = 0; k < 10'000; ++k) emit(scattered(++number));
}

TEST(Sidecar, WritesEverythingThatAProcessRecorded) {
  TemporaryDirectory temporary;
  ProducerProcess process(4 << 20, OnFull::Drop, "executable\t/opt/my app\nargv\tapp\x1f--token=hunter2\n");
  Pair pair(process, temporary.file("out/%e"), [] {
    record_from_two_threads(20'000);
    producer.control->exiting.store(1);
  });
  pair.wait_program();
  EXPECT_EQ(pair.wait_sidecar(), 0);
  const TraceReader trace = open_only(temporary.file("out/my app"));
  EXPECT_TRUE(trace.damage().empty());
  ASSERT_TRUE(trace.end().has_value());
  EXPECT_EQ(trace.end()->reason, EndReason::Exited);
  EXPECT_TRUE(trace.conservation().exact);
  EXPECT_EQ(trace.conservation().seen, trace.conservation().stored + dropped_sum(trace.conservation()));
  EXPECT_EQ(trace.conservation().seen, 40'000u);
  EXPECT_EQ(trace.conservation().stored, 40'000u);
  u64 records = 0;
  for (const auto& [key, count] : read_everything(trace).counts) records += count;
  EXPECT_EQ(records, 40'000u);
  EXPECT_EQ(*trace.info("argv"), "app\x1f--token=***");
  EXPECT_FALSE(trace.info("boot_id")->empty());
  EXPECT_EQ(trace.header().random_id, 0x1234567890abcdefu);
  EXPECT_GE(trace.clock().anchors().size(), 2u);
  EXPECT_GE(trace.clock().error_ns(trace.record_chunks()[0].begin), 0);
  EXPECT_LT(trace.clock().error_ns(trace.record_chunks()[0].begin), 1'000'000);
  for (const ThreadInfo& thread : trace.threads())
    if (thread.slot) {
      EXPECT_GT(thread.tid, 0);
    }
}

TEST(Sidecar, SurvivesTheDeathOfTheProgramAtRandom) {
  std::mt19937_64 random(2);
  u64 stored = 0;
  for (u32 round = 0; round < 12; ++round) {
    TemporaryDirectory temporary;
    ProducerProcess process(8 << 20, OnFull::Drop);
    Pair pair(process, temporary.path(), [] {
      std::atomic<i32> alive{0};  // a slot is a living thread's, or it is ended
      std::thread([&alive] {
        alive = static_cast<i32>(::syscall(SYS_gettid));
        for (;;) ::pause();
      }).detach();
      while (!alive) ::usleep(100);
      producer.slots[5].tid = alive;
      producer.slots[5].state.store(static_cast<u32>(SlotState::Live));
      producer.slots[5].depth = 1;
      producer.slots[5].in_flight[0].call = 3;
      producer.slots[5].in_flight[0].begin.store(record_ticks());
      record_from_two_threads_for_ever();
    });
    // On a busy machine the program may not have got that far yet.
    for (int i = 0; i < 5000 && !producer.slots[5].in_flight[0].begin.load(); ++i) ::usleep(1000);
    ::usleep(static_cast<useconds_t>(100000 + random() % 30'000));
    pair.kill_program();
    const Nanos killed = monotonic_nanos();
    EXPECT_EQ(pair.wait_sidecar(), 0);
    EXPECT_LT(monotonic_nanos() - killed, 1'000'000'000) << "the sidecar closes within a second";
    const TraceReader trace = open_only(temporary.path());
    EXPECT_TRUE(trace.damage().empty());
    // Linux 6.15 tells how; before, nobody who is here does.
    if (trace.end()->reason == EndReason::Signalled)
      EXPECT_EQ(trace.end()->detail, SIGKILL);
    else
      EXPECT_EQ(trace.end()->reason, EndReason::Vanished);
    const Counters& counters = trace.conservation();
    EXPECT_TRUE(counters.exact);
    EXPECT_EQ(counters.seen, counters.stored + dropped_sum(counters));
    EXPECT_LE(counters.dropped[kLost], 4u);
    ASSERT_EQ(trace.in_flight().size(), 1u);
    EXPECT_EQ(trace.in_flight()[0].call, 3u);
    stored += counters.stored;
  }
  EXPECT_GT(stored, 100'000u);
}

TEST(Sidecar, ItsOwnDeathLeavesAReadableFile) {
  std::mt19937_64 random(3);
  for (u32 round = 0; round < 3; ++round) {
    TemporaryDirectory temporary;
    ProducerProcess process(8 << 20, OnFull::Drop);
    Pair pair(process, temporary.path(), [] {
      for (u64 i = 1;; ++i) {
        emit(scattered(i));
        if (i % 2000 == 0) ::usleep(1000);
      }
    });
    ::usleep(static_cast<useconds_t>(1'100'000 + random() % 300'000));
    pair.kill_sidecar();
    const TraceReader trace = open_only(temporary.path());
    EXPECT_TRUE(trace.truncated());
    EXPECT_FALSE(trace.conservation().exact);
    EXPECT_GT(trace.conservation().stored, 1000u);
    EXPECT_EQ(trace.conservation().seen, trace.conservation().stored + dropped_sum(trace.conservation()));
    u64 records = 0;
    for (const auto& [key, count] : read_everything(trace).counts) records += count;
    EXPECT_EQ(records, trace.conservation().stored);
    EXPECT_GT(trace.last_health(), 0u);
  }
}

TEST(Sidecar, StopsAtTheSizeLimitAndCounts) {
  TemporaryDirectory temporary;
  ProducerProcess process(8 << 20, OnFull::Drop);
  Pair pair(process, temporary.path(), record_until_stopped,
            {{"GPUTRACE_MAX_SIZE", "600K"}, {"GPUTRACE_LOG", "error"}});
  pair.wait_program();
  EXPECT_EQ(pair.wait_sidecar(), 0);
  const TraceReader trace = open_only(temporary.path());
  EXPECT_TRUE(trace.damage().empty());
  EXPECT_LE(trace.file_size(), 600u << 10);
  const Counters& counters = trace.conservation();
  EXPECT_TRUE(counters.exact);
  EXPECT_GT(counters.stored, 0u);
  EXPECT_GE(counters.dropped[kDisk], 1000u);
  EXPECT_EQ(counters.seen, counters.stored + dropped_sum(counters));
  ASSERT_NE(trace.info("disk_stop"), nullptr);
  EXPECT_EQ(trace.info("disk_stop")->rfind("size limit reached", 0), 0u);
  const auto logs = files_in(temporary.path(), ".log");
  ASSERT_EQ(logs.size(), 1u);
  const Bytes8 log = read_file(logs[0]);
  EXPECT_NE(std::string(log.begin(), log.end()).find("size limit reached"), std::string::npos);
}

TEST(Sidecar, AFileSizeLimitIsNoSignal) {
  TemporaryDirectory temporary;
  ProducerProcess process(8 << 20, OnFull::Drop);
  Pair pair(process, temporary.path(), record_until_stopped, {{"TEST_FSIZE", "500000"}});
  pair.wait_program();
  EXPECT_EQ(pair.wait_sidecar(), 0) << "SIGXFSZ";
  const TraceReader trace = open_only(temporary.path());
  EXPECT_TRUE(trace.damage().empty());
  EXPECT_TRUE(trace.conservation().exact);
  EXPECT_GT(trace.conservation().dropped[kDisk], 0u);
}

TEST(Sidecar, DrainsAndCountsWhereNoFileCanBeMade) {
  TemporaryDirectory temporary;
  write_file(temporary.file("taken"), {1});
  ProducerProcess process(1 << 20, OnFull::Drop);
  Pair pair(process, temporary.file("taken"), [] {
    for (u64 i = 1; i <= 100'000; ++i) {
      emit(i);
      if (i % 5000 == 0) ::usleep(5000);
    }
  });
  EXPECT_EQ(producer.control->consumer_state.load(), static_cast<u32>(ConsumerState::NotWriting));
  pair.wait_program();
  EXPECT_EQ(pair.wait_sidecar(), 0);
  EXPECT_EQ(producer.slots[1].dropped[0], 0u) << "the ring was drained";
  EXPECT_EQ(producer.control->consumer_state.load(), static_cast<u32>(ConsumerState::Gone));
}

TEST(Sidecar, WatchesWithoutAPidfd) {
  TemporaryDirectory temporary;
  ProducerProcess process(1 << 20, OnFull::Drop);
  Pair pair(
      process, temporary.path(), [] { record_from_two_threads(1000); }, {}, false);
  pair.wait_program();
  EXPECT_EQ(pair.wait_sidecar(), 0);
  EXPECT_EQ(open_only(temporary.path()).conservation().stored, 2000u);
}

TEST(Sidecar, SeesThatTheProgramWasReplaced) {
  TemporaryDirectory temporary;
  ProducerProcess process(1 << 20, OnFull::Drop);
  Pair pair(process, temporary.path(), [] {
    for (u64 i = 1; i <= 1000; ++i) emit(i);
    ::usleep(300'000);
    ::execl("/bin/sleep", "sleep", "30", nullptr);
  });
  EXPECT_EQ(pair.wait_sidecar(), 0);
  EXPECT_EQ(::kill(pair.program(), 0), 0) << "the process lives on";
  const TraceReader trace = open_only(temporary.path());
  ASSERT_TRUE(trace.end().has_value());
  EXPECT_EQ(trace.end()->reason, EndReason::Executed);
  EXPECT_EQ(trace.conservation().stored, 1000u);
}

TEST(Sidecar, ASecondOneRefuses) {
  TemporaryDirectory temporary;
  ProducerProcess process(1 << 20, OnFull::Drop);
  Pair pair(process, temporary.path(), [] { record_from_two_threads(1000); });
  const pid_t second = ::fork();
  if (second == 0) {
    ::setenv("GPUTRACE_OUTPUT", temporary.file("second").c_str(), 1);
    ::fcntl(process.fd(), F_SETFD, 0);
    ::execl(::getenv("GT_SIDECAR"), "gputrace-sidecar", "--segment-fd", std::to_string(process.fd()).c_str(), nullptr);
    ::_exit(99);
  }
  int status = 0;
  ::waitpid(second, &status, 0);
  // The first one may have ended with its program already; then its lease is free, but its process is gone.
  EXPECT_EQ(WEXITSTATUS(status), 1);
  EXPECT_TRUE(files_in(temporary.file("second"), ".gtrace").empty());
}

TEST(Sidecar, StaysSmallUnderAStormOfThreads) {
  TemporaryDirectory temporary;
  ProducerProcess process(16 << 20, OnFull::Drop);
  Pair pair(process, temporary.path(), [] {
    std::vector<std::thread> workers;
    for (u32 t = 0; t < 64; ++t) {
      workers.emplace_back([] {
        for (u64 i = 1; i <= 30'000; ++i) emit(i);
        leave_session();
      });
    }
    for (std::thread& worker : workers) worker.join();
  });
  pair.wait_program();
  EXPECT_EQ(pair.wait_sidecar(), 0);
  EXPECT_LT(pair.used.ru_maxrss, 256 * 1024) << "kB";
  const TraceReader trace = open_only(temporary.path());
  const Counters& counters = trace.conservation();
  EXPECT_TRUE(counters.exact);
  EXPECT_GE(counters.seen, 64 * 30'000u);
  EXPECT_EQ(counters.seen, counters.stored + dropped_sum(counters));
  EXPECT_EQ(counters.dropped[kLost], 0u);
}

// A real full disk, where a tmpfs of our own can be had.
TEST(Sidecar, DiskFullIsSaidInTheFile) {
  TemporaryDirectory temporary;
  const std::string disk = temporary.file("disk");
  ::mkdir(disk.c_str(), 0700);
  if (::unshare(CLONE_NEWNS) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      ::mount("none", disk.c_str(), "tmpfs", 0, "size=1m,mode=700") != 0)
    GTEST_SKIP() << "no mount of our own here";
  {
    ProducerProcess process(8 << 20, OnFull::Drop);
    Pair pair(process, disk, record_until_stopped);
    pair.wait_program();
    EXPECT_EQ(pair.wait_sidecar(), 0);
    const TraceReader trace = open_only(disk);
    EXPECT_TRUE(trace.damage().empty());
    EXPECT_TRUE(trace.conservation().exact);
    EXPECT_GT(trace.conservation().stored, 0u);
    EXPECT_GT(trace.conservation().dropped[kDisk], 0u);
    ASSERT_NE(trace.info("disk_stop"), nullptr);
    EXPECT_EQ(trace.info("disk_stop")->rfind("disk full at", 0), 0u);
    EXPECT_TRUE(trace.end().has_value()) << "room was kept for the end";
  }
  ::umount2(disk.c_str(), MNT_DETACH);
}

}  // namespace
}  // namespace gputrace::test
