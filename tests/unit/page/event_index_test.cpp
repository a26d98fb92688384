// The index picks what the log would keep, window by window; and damaged bytes answer nothing, or the same.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <functional>
#include <limits>
#include <random>

#include "analysis/page/event_block.h"
#include "analysis/page/event_index.h"
#include "analysis/page/event_log.h"
#include "analysis/page/index_bytes.h"
#include "analysis/page/index_writer.h"

namespace gputrace {
namespace {

constexpr Nanos kRunBegin = 5'000'000, kRunLength = 60'000'000;
constexpr u64 kToldEvents = 30'000;

LoadedRun two_processes() {
  LoadedRun run;
  for (const char* file : {"one", "two"}) {
    ProcessTrace& process = run.processes.emplace_back();
    process.who.file = file;
    process.who.pid = 7, process.who.host = "a host";
    process.lines.frames.resize(2);
    process.lines.frames[1].file = "program.py", process.lines.frames[1].function = "f";
  }
  run.origin = run.wall_begin = kRunBegin;
  run.wall_end = kRunBegin + kRunLength;
  return run;
}

const std::vector<std::string> kFiles{"one", "two"};

// Device operations and calls of all lengths, nested and out of order, some of them outside of the run's time. `sink`: of a file.
void tell(const std::function<EventSink&(std::size_t, const ExportProcess&)>& sink_of, unsigned seed) {
  std::mt19937_64 random(seed);
  for (std::size_t file = 0; file < kFiles.size(); ++file) {
    ExportProcess process;
    ProcessIdentity who;
    who.file = kFiles[file];
    process.who = &who;
    process.threads = {{1, "first"}, {2, "second"}};
    EventSink& sink = sink_of(file, process);
    DeviceWork works[3];
    for (DeviceWork& work : works) {
      work.number = static_cast<u32>(&work - works);
      work.name = std::string("kernel ") + static_cast<char>('a' + work.number);
    }
    const auto time = [&] { return kRunBegin - 1000 + static_cast<Nanos>(random() % (kRunLength + 2000)); };
    const auto length = [&] { return static_cast<Nanos>(random() % (u64{2} << random() % 22)); };
    for (u64 i = 0; i < kToldEvents; ++i) {
      DeviceSlice slice;
      slice.work = &works[random() % 3], slice.device = 0, slice.stream = random() % 3;
      slice.begin = time(), slice.end = slice.begin + length();
      slice.flow = random() % 4 ? random() : 0, slice.bytes = random() % 3 ? 0 : random();
      sink.ran(slice);
    }
    for (u64 i = 0; i < kToldEvents; ++i) {
      HostSlice slice;
      slice.name = "call", slice.level = "driver", slice.thread = random() % 2, slice.call = random() % 2;
      slice.frame = random() % 2;
      slice.begin = time(), slice.end = slice.begin + length(), slice.flow = random() % 2 ? random() : 0;
      sink.host(slice);
    }
    sink.end();
  }
}

Fd empty_file() { return Fd(::memfd_create("index", MFD_CLOEXEC)); }

std::string contents(int file) {
  std::string bytes(*size_of(file), '\0');
  EXPECT_TRUE(read_at(file, bytes, 0));
  return bytes;
}

Fd file_of(const std::string& bytes) {
  Fd file = empty_file();
  EXPECT_TRUE(write_at(file.get(), bytes, 0));
  return file;
}

void tell_index(EventIndexWriter& writer, unsigned seed) {
  tell([&](std::size_t file, const ExportProcess& process) -> EventSink& { return *writer.sink(file, process); }, seed);
}

constexpr RunClock kClock{true, {kRunBegin, kRunBegin + kRunLength}};

std::string kept_index(const LoadedRun& run, unsigned seed, const RunClock& clock = kClock) {
  Fd file = empty_file();
  const int second = ::dup(file.get());
  const Fd also(second);
  EventIndexWriter writer(clock, std::move(file), u64{1} << 40);
  tell_index(writer, seed);
  auto index = writer.finish(run, kFiles);
  EXPECT_TRUE(index && index->keep("key", "the page"));
  return contents(second);
}

using Window = std::optional<std::pair<Nanos, Nanos>>;

std::string log_says(const LoadedRun& run, unsigned seed, std::size_t most, Window window) {
  EventLog log(run, most, window);
  const auto begun = [&](std::size_t, const ExportProcess& process) -> EventSink& { return log.begin(process), log; };
  tell(begun, seed);
  const EventBlock block = pack_events(log.tables(), log.picked());
  return block.description + block.columns;
}

std::string index_says(const EventIndex& index, std::size_t most, Window window) {
  const auto picked = index.pick(most, window);
  if (!picked) return "nothing";
  const EventBlock block = pack_events(index.tables(), *picked);
  return block.description + block.columns;
}

TEST(EventIndex, PicksWhatTheLogKeeps) {
  const LoadedRun run = two_processes();
  for (unsigned seed = 0; seed < 2; ++seed) {
    const auto index = EventIndex::open(file_of(kept_index(run, seed)), "key");
    ASSERT_TRUE(index);
    EXPECT_EQ(index->document(), "the page");
    for (const std::size_t most : {100u, 3000u, 119'000u, 1'000'000u}) {
      for (const Window& window : std::initializer_list<Window>{{},
                                                                {{0, kRunLength}},
                                                                {{-5000, 700}},
                                                                {{10'000'000, 11'000'000}},
                                                                {{kRunLength / 2, kRunLength * 2}},
                                                                {{20'000'000, 20'000'001}},
                                                                {{2 * kRunLength, 3 * kRunLength}}}) {
        EXPECT_TRUE(index_says(*index, most, window) == log_says(run, seed, most, window))
            << "seed " << seed << ", " << most << " events"
            << (window ? ", from " + std::to_string(window->first) : "");
      }
    }
  }
}

// Where the run begins and how long it is was not known when it was read: strips are as if it had been.
TEST(EventIndex, WhatWasLikelyNeedNotBeSo) {
  const LoadedRun run = two_processes();
  const Window window{{10'000'000, 11'000'000}};
  const std::string wanted = log_says(run, 3, 3000, window);
  for (const TimeSpan likely :
       {TimeSpan{kRunBegin, kRunBegin + kRunLength / 2}, TimeSpan{kRunBegin, kRunBegin + 20 * kRunLength},
        TimeSpan{kRunBegin + 777, kRunBegin + kRunLength}, TimeSpan{kRunBegin, kRunBegin}, TimeSpan{0, 0},
        TimeSpan{kRunBegin - 1'000'000'000, kRunBegin + 4'000'000'000},
        TimeSpan{std::numeric_limits<Nanos>::min(), std::numeric_limits<Nanos>::max()}}) {
    const auto index = EventIndex::open(file_of(kept_index(run, 3, {true, likely})), "key");
    ASSERT_TRUE(index);
    EXPECT_TRUE(index_says(*index, 3000, window) == wanted) << likely.from << " to " << likely.to;
  }
}

TEST(EventIndex, LongRunsHaveWiderPieces) {
  LoadedRun run = two_processes();
  run.wall_end = kRunBegin + 1000 * kRunLength;
  const std::string wanted = log_says(run, 3, 3000, {});
  for (const Nanos length : {kRunLength, 300 * kRunLength, 999 * kRunLength, 1000 * kRunLength, 5000 * kRunLength}) {
    const auto index = EventIndex::open(file_of(kept_index(run, 3, {true, {kRunBegin, kRunBegin + length}})), "key");
    ASSERT_TRUE(index);
    EXPECT_TRUE(index_says(*index, 3000, {}) == wanted) << length;
  }
}

// Of a process that is not in the run nothing is picked.
TEST(EventIndex, ProcessesThatAreLeftOut) {
  LoadedRun run = two_processes();
  run.processes.erase(run.processes.begin());
  const auto index = EventIndex::open(file_of(kept_index(run, 3)), "key");
  ASSERT_TRUE(index);
  EXPECT_TRUE(index_says(*index, 3000, {}) == log_says(run, 3, 3000, {}));
  EXPECT_EQ(index->tables().processes.size(), 1u);
}

TEST(EventIndex, AnotherKeyOrAnotherFileIsNone) {
  const std::string bytes = kept_index(two_processes(), 1);
  EXPECT_TRUE(EventIndex::open(file_of(bytes), "key"));
  EXPECT_FALSE(EventIndex::open(file_of(bytes), "another key"));
  EXPECT_FALSE(EventIndex::open(file_of(""), "key"));
  EXPECT_FALSE(EventIndex::open(file_of(std::string(4096, 'x')), "key"));
  EXPECT_FALSE(EventIndex::open(file_of(bytes + "x"), "key"));
  EXPECT_FALSE(EventIndex::open(Fd(), "key"));
  for (std::size_t size = 0; size < bytes.size(); size += 1 + bytes.size() / 200)
    EXPECT_FALSE(EventIndex::open(file_of(bytes.substr(0, size)), "key")) << size;
}

// Whatever byte is another: nothing is answered, or what would be without the damage.
TEST(EventIndex, DamageAnswersNothing) {
  const std::string bytes = kept_index(two_processes(), 2);
  const auto whole = EventIndex::open(file_of(bytes), "key");
  ASSERT_TRUE(whole);
  const Window window{{10'000'000, 11'000'000}};
  const std::string wanted = index_says(*whole, 3000, window);
  std::mt19937 random(1);
  int refused = 0;
  for (int i = 0; i < 400; ++i) {
    std::string damaged = bytes;
    // Half of them at the end, where the directory is.
    const std::size_t reach = i % 2 ? bytes.size() : std::min<std::size_t>(bytes.size(), 4000);
    damaged[bytes.size() - 1 - random() % reach] ^= static_cast<char>(1u << random() % 8);
    const auto index = EventIndex::open(file_of(damaged), "key");
    const std::string said = index ? index_says(*index, 3000, window) : "nothing";
    EXPECT_TRUE(said == "nothing" || said == wanted) << i;
    refused += said == "nothing";
  }
  EXPECT_GT(refused, 100);
}

u64 number_at(const std::string& bytes, std::size_t at) {
  u64 value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

// The file with another directory, its checksums right. Its last bytes: the magic, the extents of directory and document (offset, packed,
// raw, checksum), the checksum of these.
std::string with_directory(std::string bytes, const std::function<void(std::string&)>& change) {
  constexpr std::size_t kFooter = 8 + 2 * 32 + 8;
  std::string footer = bytes.substr(bytes.size() - kFooter);
  bytes.resize(bytes.size() - kFooter);
  auto raw = unpacked(bytes.substr(number_at(footer, 8), number_at(footer, 16)), number_at(footer, 24));
  EXPECT_TRUE(raw);
  change(*raw);
  const std::string changed = packed(*raw);
  for (const auto& [at, value] : std::initializer_list<std::pair<std::size_t, u64>>{
           {8, bytes.size()}, {16, changed.size()}, {24, raw->size()}, {32, checksum_of(changed)}})
    std::memcpy(footer.data() + at, &value, sizeof value);
  const u64 checksum = checksum_of(footer.substr(0, kFooter - 8));
  std::memcpy(footer.data() + kFooter - 8, &checksum, sizeof checksum);
  return bytes + changed + footer;
}

// Whatever a directory says whose checksums are right: it is refused, or something is picked, in bounds.
TEST(EventIndex, DirectoriesThatLieBreakNothing) {
  const LoadedRun run = two_processes();
  const std::string bytes = kept_index(run, 4);
  const Window window{{10'000'000, 11'000'000}};
  const auto same = EventIndex::open(file_of(with_directory(bytes, [](std::string&) {})), "key");
  ASSERT_TRUE(same);
  EXPECT_TRUE(index_says(*same, 3000, window) == log_says(run, 4, 3000, window));
  std::mt19937 random(5);
  int opened = 0, picked = 0;
  for (int i = 0; i < 300; ++i) {
    const auto index = EventIndex::open(file_of(with_directory(bytes,
                                                               [&](std::string& raw) {
                                                                 for (unsigned k = 0; k < 1 + i % 3u; ++k)
                                                                   raw[random() % raw.size()] =
                                                                       static_cast<char>(random());
                                                                 if (i % 10 == 0) raw.resize(random() % raw.size());
                                                               })),
                                        "key");
    opened += index.has_value();
    const auto got = index ? index->pick(3000, i % 2 ? window : Window{}) : std::nullopt;
    picked += got.has_value();
    if (got) {
      EXPECT_LE(got->host.inside.size() + got->device.inside.size(), 3000u);
      for (const EventStrip& strip : got->strips) EXPECT_LE(strip.pieces.size(), EventStrip::kMostPieces);
    }
  }
  EXPECT_GT(opened, 20);
  EXPECT_GT(picked, 20);
  EXPECT_LT(opened, 300);
}

TEST(EventIndex, NumbersThatPointOutsideAreRefused) {
  std::mt19937 random(3);
  for (int i = 0; i < 2000; ++i) {
    std::string bytes(random() % 60, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random() % 3 ? random() % 4 : random());
    ColumnReader in(bytes);
    for (int k = 0; k < 20; ++k) {
      switch (random() % 4) {
        case 0:
          in.number();
          break;
        case 1:
          in.number_signed();
          break;
        case 2:
          EXPECT_LE(in.count(3), bytes.size() / 3);
          break;
        default:
          EXPECT_LE(in.text().size(), bytes.size());
      }
    }
    EXPECT_TRUE(in.good() || in.at_end());
  }
  EXPECT_FALSE(unpacked("not packed", 10));
  EXPECT_FALSE(unpacked(packed("ten bytes!"), 11));
  EXPECT_EQ(unpacked(packed("ten bytes!"), 10), "ten bytes!");
}

TEST(EventIndex, NoMoreThanAllowed) {
  const LoadedRun run = two_processes();
  EventIndexWriter writer(kClock, empty_file(), 1000);
  tell_index(writer, 1);
  EXPECT_FALSE(writer.finish(run, kFiles));
}

// /dev/full takes nothing.
TEST(EventIndex, AFullDiskIsNoIndex) {
  const LoadedRun run = two_processes();
  EventIndexWriter writer(kClock, Fd(::open("/dev/full", O_RDWR | O_CLOEXEC)), u64{1} << 40);
  tell_index(writer, 1);
  EXPECT_FALSE(writer.finish(run, kFiles));
}

}  // namespace
}  // namespace gputrace
