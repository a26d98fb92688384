// Samples: which line the idle time of a device belongs to.
#include <gtest/gtest.h>

#include "analysis/run/sites.h"
#include "tests/unit/device_builder.h"

namespace gputrace::test {
namespace {

constexpr u32 kFirst = 1u << 31;

class Sampled : public DeviceBuilder {
 public:
  Thread main = thread(100);

  void frame(u32 id, u32 parent, const char* function, const char* file, u32 line) {
    const u64 name = text(function), path = text(file);
    add<StackFrame>(definitions(), "", 2, 2, [&](auto& r) {
      r.function = name, r.file = path, r.id = id, r.parent = parent, r.line = line, r.first_line = 1;
      r.language = static_cast<u32>(SourceLanguage::Python);
    });
  }
  // The slot of a thread is its place, its incarnation 1.
  void sample(u32 frame, Nanos at, i32 process = 0) {
    add<Sample>(definitions(), "", at, at, [&](auto& r) {
      r.frame = frame, r.frames = 1, r.slot = static_cast<u32>(main.index), r.incarnation = 1, r.process = process;
    });
  }
  // A turn of 10 ms: nothing but the host's work before its launch at the end; the kernel takes 10 us.
  void turn(u32 number) {
    const Nanos end = 20'000'000 + Nanos{number} * 10'000'000;
    launch(main, 0xf1, end - 20'000, end - 10'000);
    key(100, number + 1, end - 20'000, end - 10'000, end + 1'000'000);
    kernel(number + 1, name_, end - 5'000, end + 5'000, end + 1'000'000);
  }
  Sampled() {
    name_ = text("kernel");
    name_function(0xf1, "kernel", 0xa0);
    stream(0, 7);
    reading(1'000);
    frame(1, 0, "main", "train.py", 9);
    frame(kFirst, 0, "main", "train.py", 8);
    frame(kFirst + 1, kFirst, "Data.__getitem__", "data.py", 30);
    frame(kFirst + 2, kFirst, "wait", "/usr/lib/python3.11/queue.py", 5);
    add<Stack>(main, "", 10, 10, [&](auto& r) { r.frame = 1, r.frames = 1; });
  }
  ProcessTrace of(u32 turns) {
    for (u32 i = 0; i < turns; ++i) turn(i);
    reading(900'000'000);
    return load();
  }

 private:
  u64 name_;
};

u64 idle_of(const std::vector<SiteSum>& sites, const std::string& site) {
  for (const SiteSum& sum : sites) {
    if (sum.site == site) return sum.times.idle_ns;
  }
  return 0;
}

// Three of four looks within the gaps find the data set, one the loop; what is found within a call counts for nothing.
TEST(Samples, ShareOutTheIdleTimeThatTheHostMakes) {
  Sampled trace;
  for (u32 i = 0; i < 8; ++i) {
    trace.sample(i % 4 == 3 ? kFirst : kFirst + 1, 25'000'000 + Nanos{i} * 10'000'000);
    trace.sample(kFirst + 2, 29'985'000 + Nanos{i} * 10'000'000);  // in the launch
  }
  LoadedRun run;
  run.processes.push_back(trace.of(9));
  const ProcessTrace& process = run.processes.front();
  ASSERT_EQ(process.device.devices.size(), 1u);
  const DeviceTimes& device = process.device.devices.front();
  ASSERT_EQ(device.gaps, 8u);
  EXPECT_EQ(process.samples.taken, 16u);
  ASSERT_EQ(process.samples.idle.size(), 2u);

  u64 host = 0;
  for (const IdleGap& gap : device.longest) {
    host += static_cast<u64>(gap.parts[static_cast<unsigned>(IdleCause::Host)]);
    EXPECT_NE(gap.sampled, 0u);
  }
  const auto sites = sites_of(run);
  EXPECT_EQ(idle_of(sites, "data.py:30 Data.__getitem__"), host * 3 / 4);
  EXPECT_EQ(idle_of(sites, "train.py:8 main"), host / 4);
  u64 all = 0;
  for (const SiteSum& sum : sites) all += sum.times.idle_ns;
  EXPECT_EQ(all, device.idle_ns);
}

// Of four nobody can say how long.
TEST(Samples, AFewSayNothing) {
  Sampled trace;
  for (u32 i = 0; i < 4; ++i) trace.sample(kFirst + 1, 25'000'000 + Nanos{i} * 10'000'000);
  LoadedRun run;
  run.processes.push_back(trace.of(9));
  const auto sites = sites_of(run);
  EXPECT_EQ(idle_of(sites, "data.py:30 Data.__getitem__"), 0u);
  EXPECT_EQ(idle_of(sites, "train.py:9 main"), run.processes.front().device.devices.front().idle_ns);
}

// What a worker shares with its parent above the fork is not what it does.
TEST(Samples, OfWorkersOnlyWhatTheyDoThemselves) {
  Sampled trace;
  trace.frame(kFirst + 3, kFirst, "Popen._launch", "/usr/lib/python3.11/multiprocessing/popen_fork.py", 70);
  trace.frame(kFirst + 4, kFirst + 3, "get", "/usr/lib/python3.11/multiprocessing/queues.py", 90);
  trace.frame(kFirst + 5, kFirst + 3, "decode", "data.py", 41);
  for (u32 i = 0; i < 8; ++i) {
    trace.sample(kFirst + 4, 24'000'000 + Nanos{i} * 10'000'000, 4711);
    trace.sample(kFirst + 5, 25'000'000 + Nanos{i} * 10'000'000, 4712);
  }
  const ProcessTrace process = trace.of(9);
  EXPECT_EQ(process.samples.of_workers, 16u);
  const auto lines = worker_lines(process, FileNames(process));
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines.front().site, "data.py:41 decode");
  EXPECT_EQ(lines.front().samples, 8u);
  EXPECT_TRUE(sampled_shares(process, 1, FileNames(process)).empty());
}

// Numbers that no frame has, threads that are not there.
TEST(Samples, WhatIsNotThereIsLeftAlone) {
  Sampled trace;
  for (u32 i = 0; i < 8; ++i) trace.sample(kFirst + 4000, 25'000'000 + Nanos{i} * 10'000'000);
  trace.add<Sample>(TraceBuilder::definitions(), "", 5, 5, [](auto& r) { r.frame = kFirst, r.slot = 77; });
  trace.frame(~0u, kFirst, "far", "away.py", 1);
  const ProcessTrace process = trace.of(3);
  EXPECT_EQ(process.samples.taken, 0u);
  EXPECT_TRUE(process.samples.idle.empty());
  EXPECT_LT(process.samples.frames.size(), 10u);
}

}  // namespace
}  // namespace gputrace::test
