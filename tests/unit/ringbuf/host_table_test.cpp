// The table of host calls: what processes and threads add to it at the same time is all there, and what finds no room is counted.
#include "ringbuf/host_table.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#include "interpose/host/host_sums.h"

namespace gputrace {
namespace {

// Shared with processes that are forked from here.
class Shared {
 public:
  explicit Shared(u64 size = kLeastHostTable) : size_(size), layout_(host_table_layout(size)) {
    table_ = static_cast<char*>(mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    host::set_table(table_, size);
  }
  ~Shared() {
    host::set_table(nullptr, size_);
    munmap(table_, size_);
  }
  const HostTableHead& head() const { return *reinterpret_cast<const HostTableHead*>(table_); }
  const FileSum* files() const { return reinterpret_cast<const FileSum*>(table_ + layout_.files_at); }
  const WaitSum* waits() const { return reinterpret_cast<const WaitSum*>(table_ + layout_.waits_at); }
  const HostTableLayout& layout() const { return layout_; }
  u64 calls() const {
    u64 sum = 0;
    for (u32 i = 0; i < layout_.files; ++i) sum += files()[i].count;
    return sum;
  }
  std::string path(u32 number) const {
    const auto& path = reinterpret_cast<const HostPath*>(table_ + layout_.paths_at)[number - 1];
    return {table_ + layout_.text_at + path.offset, path.length};
  }

 private:
  u64 size_;
  HostTableLayout layout_;
  char* table_;
};

u32 number_of(const std::string& path) { return host::path_number(path.data(), path.size()); }

TEST(HostTable, IsLaidOutOneAfterTheOther) {
  for (const u64 size : {kLeastHostTable, 3 * kLeastHostTable, kMostHostTable}) {
    const HostTableLayout plan = host_table_layout(size);
    EXPECT_EQ(plan.files_at, plan.paths_at + plan.paths * sizeof(HostPath));
    EXPECT_EQ(plan.waits_at, plan.files_at + plan.files * sizeof(FileSum));
    EXPECT_EQ(plan.text_at, plan.waits_at + plan.waits * sizeof(WaitSum));
    EXPECT_EQ(plan.text_at + plan.text_size, size);
    EXPECT_EQ(plan.files_at % 8, 0u);
    EXPECT_EQ(plan.waits_at % 8, 0u);
    EXPECT_GT(plan.text_size, size / 4);
  }
}

TEST(HostTable, AddsWhatThreadsAndProcessesAddAtOnce) {
  constexpr int kThreads = 4, kTurns = 20'000;
  Shared table;
  const auto work = [] {
    for (int i = 0; i < kTurns; ++i) {
      host::add_file(number_of("/data/" + std::to_string(i % 5)), 3 + static_cast<u32>(i % 2), FileCall::Read, 10, i);
      host::add_wait(7, WaitFor::Mutex, 3);
    }
  };
  const pid_t child = fork();
  if (child == 0) {
    work();
    _exit(0);
  }
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  int status = 1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);

  u64 entries = 0, bytes = 0, total = 0, longest = 0;
  for (u32 i = 0; i < table.layout().files; ++i) {
    const FileSum& sum = table.files()[i];
    if (!sum.key) continue;
    ++entries;
    bytes += sum.bytes, total += sum.total;
    longest = std::max<u64>(longest, sum.longest);
    const FileKey key = parts_of_file_key(sum.key);
    EXPECT_EQ(table.path(key.path).substr(0, 6), "/data/");
    EXPECT_EQ(key.call, static_cast<u32>(FileCall::Read));
    EXPECT_TRUE(key.frame == 3 || key.frame == 4);
    EXPECT_TRUE(key.process == static_cast<u32>(getpid()) || key.process == static_cast<u32>(child));
  }
  EXPECT_EQ(entries, 2u * 5 * 2);
  EXPECT_EQ(table.calls(), u64{kThreads + 1} * kTurns);
  EXPECT_EQ(bytes, u64{kThreads + 1} * kTurns * 10);
  EXPECT_EQ(total, u64{kThreads + 1} * (u64{kTurns} * (kTurns - 1) / 2));
  EXPECT_EQ(longest, u64{kTurns} - 1);

  u64 waiting = 0;
  for (u32 i = 0; i < table.layout().waits; ++i) {
    const WaitSum& sum = table.waits()[i];
    if (!sum.key) continue;
    ++waiting;
    EXPECT_EQ(sum.count, u64{kTurns});
    EXPECT_EQ(sum.total, u64{kTurns} * 3);
    EXPECT_EQ(static_cast<u32>(sum.key >> 8), 7u);
    EXPECT_TRUE(sum.process == static_cast<u32>(getpid()) || sum.process == static_cast<u32>(child));
  }
  EXPECT_EQ(waiting, u64{kThreads} + 1);
  EXPECT_EQ(table.head().lost_files + table.head().lost_waits, 0u);
}

// All that an entry's key may hold, and what it may not.
TEST(HostTable, AKeyHoldsEveryProcessPathAndLine) {
  constexpr u32 kLastProcess = (1u << 22) - 1;  // as Linux numbers them
  const u32 paths = host_table_layout(kMostHostTable).paths;
  const FileKey key = parts_of_file_key(file_key(kLastProcess, paths, 14, kMostFileFrame));
  EXPECT_EQ(key.process, kLastProcess);
  EXPECT_EQ(key.path, paths);
  EXPECT_EQ(key.call, 14u);
  EXPECT_EQ(key.frame, kMostFileFrame);
  EXPECT_EQ(parts_of_file_key(file_key(1, 0, 1, kMostFileFrame + 1)).frame, 0u);
  EXPECT_NE(file_key(1, 0, 1, 0), 0u);
}

// Lines of one file take no more than three quarters of the table: then its calls are counted without.
TEST(HostTable, LeavesLinesOutWhenItIsNearlyFull) {
  constexpr u32 kLines = 5000;
  Shared table;
  const u32 number = number_of("/data/set");
  for (u32 line = 1; line <= kLines; ++line) host::add_file(number, line, FileCall::Read, 2, 1);
  u64 with = 0, without = 0;
  for (u32 i = 0; i < table.layout().files; ++i) {
    const FileSum& sum = table.files()[i];
    if (sum.key) (parts_of_file_key(sum.key).frame ? with : without) += sum.count;
  }
  EXPECT_EQ(with, table.layout().files / 4 * 3 + 1);
  EXPECT_EQ(with + without, u64{kLines});
  EXPECT_EQ(table.head().lost_files, 0u);
}

TEST(HostTable, TellsFilesByDirectoryWhenItIsNearlyFull) {
  constexpr u32 kFiles = 5000;
  Shared table;
  u32 folder = 0;
  for (u32 i = 0; i < kFiles; ++i) {
    const u32 number = number_of("/data/set/" + std::to_string(i));
    ASSERT_NE(number, 0u);
    host::add_file(number, 1 + i % 7, FileCall::Read, 1, 1);
    if (table.path(number) == "/data/set/*") folder = number;
  }
  ASSERT_NE(folder, 0u);
  EXPECT_EQ(table.calls(), u64{kFiles});
  EXPECT_EQ(table.head().lost_files, 0u);
  const u32 first = number_of("/data/set/0"), pipe = number_of("(pipe)");
  EXPECT_EQ(table.path(first), "/data/set/0");
  EXPECT_EQ(table.path(pipe), "(pipe)");
}

// Whatever a path hashes to: up to three quarters of the table each one is told by its own name.
TEST(HostTable, FindsRoomForEveryPathUntilItIsNearlyFull) {
  for (u32 set = 0; set < 200; ++set) {
    Shared table;
    for (u32 i = 0; i < table.layout().paths / 4 * 3; ++i) {
      const std::string path = "/set" + std::to_string(set) + "/" + std::to_string(i);
      const u32 number = number_of(path);
      ASSERT_NE(number, 0u);
      ASSERT_EQ(table.path(number), path);
    }
  }
}

TEST(HostTable, CountsWhatFindsNoRoom) {
  constexpr u32 kFrames = 5000;
  Shared table;
  for (u32 frame = 1; frame <= kFrames; ++frame) host::add_wait(frame, WaitFor::Sleep, 1);
  u64 counted = 0;
  for (u32 i = 0; i < table.layout().waits; ++i) counted += table.waits()[i].count;
  EXPECT_GT(counted, table.layout().waits / 2);
  EXPECT_EQ(counted + table.head().lost_waits, u64{kFrames});
}

TEST(HostTable, IsNotThereBeforeASession) {
  host::add_file(1, 1, FileCall::Read, 1, 1);
  host::add_wait(1, WaitFor::Sleep, 1);
  EXPECT_EQ(number_of("/x"), 0u);
}

}  // namespace
}  // namespace gputrace
