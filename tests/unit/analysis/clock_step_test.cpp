// A wall clock that is set while the process runs: said, and nothing else changes.
#include <fcntl.h>
#include <gtest/gtest.h>

#include "analysis/load.h"
#include "tests/unit/trace_builder.h"

namespace gputrace::test {
namespace {

constexpr Nanos kSecond = 1'000'000'000, kHour = 3600 * kSecond;

// Two calls, 20 s apart; anchors each second, the wall clock ahead by `step` from the tenth on.
ProcessTrace process_with_step(const TemporaryDirectory& directory, Nanos step) {
  const std::string path = directory.file("t" + std::to_string(step) + ".gtrace");
  TraceBuilder builder;
  const auto thread = builder.thread(10);
  builder.add_call(thread, "cuCtxSynchronize", kSecond, kSecond + 100);
  builder.add_call(thread, "cuCtxSynchronize", 21 * kSecond, 21 * kSecond + 100);
  builder.write(path);
  auto writer = TraceWriter::resume(Fd(::open(path.c_str(), O_RDWR | O_CLOEXEC)));
  EXPECT_TRUE(writer.ok());
  std::vector<Anchor> anchors;
  for (i64 i = 2; i < 30; ++i) {
    const Nanos at = i * kSecond + 1;
    anchors.push_back({static_cast<Ticks>(at), at, 1'700'000'000 * kSecond + at + (i >= 10 ? step : 0), 2});
  }
  EXPECT_TRUE(writer.value().append(ChunkKind::Anchors, anchors.data(), anchors.size() * sizeof anchors[0]));
  LoadRequest request;
  request.files = {path};
  auto run = load_run(request);
  EXPECT_TRUE(run.ok());
  return std::move(run.value().processes.at(0));
}

TEST(ClockStep, IsSaidAndMovesNoTime) {
  TemporaryDirectory directory;
  const ProcessTrace steady = process_with_step(directory, 0);
  EXPECT_TRUE(steady.notes.empty());
  const ProcessTrace slewed = process_with_step(directory, 90'000'000);
  EXPECT_TRUE(slewed.notes.empty());
  for (const Nanos step : {kHour, -kHour}) {
    const ProcessTrace stepped = process_with_step(directory, step);
    EXPECT_EQ(stepped.end - stepped.begin, steady.end - steady.begin);
    EXPECT_EQ(stepped.first_realtime, steady.first_realtime) << "before the step";
    ASSERT_EQ(stepped.notes.size(), 1u);
    EXPECT_EQ(stepped.notes[0].rfind("the wall clock was set while it ran, by 3600 s:", 0), 0u) << stepped.notes[0];
  }
}

}  // namespace
}  // namespace gputrace::test
