// Events in bounded memory: whatever comes, every one is kept or counted, and the strips hold the time of the others.
#include <gtest/gtest.h>

#include <random>

#include "analysis/page/event_log.h"
#include "analysis/page/page.h"

namespace gputrace {
namespace {

constexpr Nanos kOrigin = 5'000'000;

LoadedRun run_of(Nanos length) {
  LoadedRun run;
  run.processes.emplace_back().who.file = "one";
  run.origin = run.wall_begin = kOrigin;
  run.wall_end = kOrigin + length;
  return run;
}

struct Told {
  u64 count = 0, time = 0;
};

// Tells `count` device operations of random lengths and gaps, in random order within a stream's reach.
Told tell(EventLog& log, u64 count, unsigned seed, Nanos longest) {
  ExportProcess process;
  ProcessIdentity who;
  who.file = "one";
  process.who = &who;
  log.begin(process);
  DeviceWork work;
  work.name = "kernel";
  std::mt19937 random(seed);
  Told told;
  DeviceSlice slice;
  slice.work = &work, slice.device = 0;
  Nanos at = kOrigin;
  for (u64 i = 0; i < count; ++i) {
    const Nanos length = static_cast<Nanos>(random() % static_cast<u32>(longest));
    slice.begin = at + static_cast<Nanos>(random() % 50), slice.end = slice.begin + length;
    slice.stream = random() % 3;
    log.ran(slice);
    at += length / 2 + 10;
    ++told.count, told.time += static_cast<u64>(length);
  }
  log.end();
  return told;
}

Told kept(const EventSide& side) {
  Told sum;
  for (const auto* events : {&side.inside, &side.longest}) {
    for (const LoggedEvent& event : *events) ++sum.count, sum.time += static_cast<u64>(event.end - event.begin);
  }
  return sum;
}

Told in_strips(const EventLog& log) {
  Told sum;
  for (const EventStrip& strip : log.picked().strips) {
    EXPECT_LE(strip.pieces.size(), EventStrip::kMostPieces);
    for (const EventStrip::Piece& piece : strip.pieces) sum.count += piece.count, sum.time += piece.busy_ns;
  }
  return sum;
}

TEST(EventLog, FewAreKeptAsTheyAre) {
  const LoadedRun run = run_of(1'000'000);
  EventLog log(run, 9000);
  const Told told = tell(log, 3000, 1, 1000);
  EXPECT_TRUE(log.picked().device.whole());
  EXPECT_EQ(log.picked().device.left_out, 0u);
  EXPECT_EQ(kept(log.picked().device).count, told.count);
  EXPECT_EQ(log.tables().tracks.size(), 3u);
  EXPECT_EQ(log.tables().names.size(), 1u);
}

TEST(EventLog, EveryEventIsKeptOrCounted) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    const Nanos longest = seed % 2 ? 2000 : 2;  // also all alike: none is longer than the others
    const LoadedRun run = run_of(static_cast<Nanos>(40'000) * (longest / 4 + 10));
    EventLog log(run, 3000);
    const Told told = tell(log, 40'000, seed, longest);
    const EventSide& side = log.picked().device;
    EXPECT_LE(kept(side).count, side.most) << seed;
    EXPECT_EQ(kept(side).count + side.left_out, told.count) << seed;
    EXPECT_EQ(in_strips(log).count, side.left_out) << seed;
    EXPECT_EQ(kept(side).time + in_strips(log).time, told.time) << seed;
    EXPECT_GT(side.inside.size(), side.most / 8) << seed;  // the window is no narrower than it must be
    for (const LoggedEvent& event : side.longest) EXPECT_GE(event.end - event.begin, side.shortest) << seed;
    for (const LoggedEvent& event : side.inside)
      EXPECT_TRUE(event.begin >= side.begin && event.begin < side.end) << seed;
  }
}

TEST(EventLog, TheWindowIsWhole) {
  const LoadedRun run = run_of(40'000 * 510);
  EventLog few(run, 3000), all(run, 300'000);
  tell(few, 40'000, 7, 2000), tell(all, 40'000, 7, 2000);
  const EventSide& side = few.picked().device;
  u64 wanted = 0;
  for (const LoggedEvent& event : all.picked().device.inside)
    wanted += event.begin >= side.begin && event.begin < side.end;
  EXPECT_EQ(side.inside.size(), wanted);
}

TEST(EventLog, AProcessThatIsNotInTheRunIsNotShown) {
  LoadedRun run = run_of(1000);
  run.processes.front().who.file = "another";
  EventLog log(run, 300);
  tell(log, 10, 1, 100);
  EXPECT_TRUE(log.tables().tracks.empty());
}

// Names are text wherever they stand: of the document there is not one tag more than with harmless ones.
TEST(Page, NamesAreText) {
  const std::string page = "<title>gputrace:title</title><main>gputrace:tables</main>gputrace:data";
  const auto tags = [&](const std::string& name) {
    Report report;
    Table table;
    table.section = "run", table.title = name;
    table.columns = {{"executable", Unit::Text}, {"parts", Unit::Nanos}};
    table.rows = {{name, Parts{{{name, 5}}}}};
    table.notes = {name};
    report.tables = {table};
    Finding finding;
    finding.id = "x", finding.text = name, finding.fix = name, finding.site = name;
    report.findings = {finding};
    report.coverage.missing = {name};
    report.coverage.remarks = {name};
    report.coverage.not_collected = {{name, name}};
    EventBlock events{"{\"names\":[\"" + std::string("\\u003c") + "\"]}", ""};
    const std::string document = render_page(report, {page, "1", &events});
    return std::count(document.begin(), document.end(), '<');
  };
  const auto harmless = tags("harmless");
  for (const char* name : {"</script><script>alert(1)</script>", "<img src=x onerror=alert(1)>", "<!--", "]]>",
                           "gputrace:data", "gputrace:title", "\" onload=\"x", "\xff<\xfe"})
    EXPECT_EQ(tags(name), harmless) << name;
}

}  // namespace
}  // namespace gputrace
