// A process read on one thread, on several, and on now the one and now the others gives the same report.
#include "analysis/read/processors.h"

#include <atomic>
#include <chrono>
#include <deque>
#include <thread>

#include "analysis/render/render.h"
#include "analysis/report.h"
#include "tests/unit/device_builder.h"

namespace gputrace::test {
namespace {

// More than one batch for the timeline, and dozens of chunks.
DeviceBuilder many_launches() {
  constexpr Nanos kTurn = 10'000;
  DeviceBuilder trace;
  const auto main = trace.thread(100);
  trace.stream(0, 7);
  for (u32 function = 0; function < 8; ++function)
    trace.name_function(0xf0 + function, "kernel_" + std::to_string(function), 0);
  trace.reading(100);
  for (u32 i = 1; i <= 30'000; ++i) {
    const Nanos at = i * kTurn;
    trace.launch(main, 0xf0 + i * 5 % 8, at, at + 2'000 + i % 700);
    trace.key(100, i, at + 100, at + 1'900, at + kTurn / 2);
    trace.kernel(i, 0, at + 3'000, at + 3'500 + i % 4'000, at + kTurn / 2);
    if (i % 1000 == 0) trace.reading(at + kTurn - 1);
  }
  return trace;
}

std::string read(const std::string& file) {
  LoadRequest request;
  request.files = {file};
  return render_json(make_report(load_run(request).value(), {}));
}

TEST(Processors, WhetherTheyAreBusyChangesNoReport) {
  if (std::thread::hardware_concurrency() == 0) GTEST_SKIP() << "how many processors there are is not known";
  TemporaryDirectory directory;
  const std::string file = directory.file("t.gtrace");
  many_launches().write(file);
  const std::string on_several = read(file);
  EXPECT_NE(on_several.find("kernel_7"), std::string::npos);
  {
    std::deque<ProcessIsRead> others;
    while (!processors_are_busy()) others.emplace_back();
    EXPECT_TRUE(read(file) == on_several) << "all busy";
  }
  ASSERT_FALSE(processors_are_busy() && std::thread::hardware_concurrency() > 1);
  std::atomic<bool> stop{false};
  std::thread changing([&stop] {
    while (!stop) {
      std::deque<ProcessIsRead> others;
      while (!processors_are_busy()) others.emplace_back();
      std::this_thread::sleep_for(std::chrono::microseconds(200));
      others.clear();
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  });
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(read(file) == on_several) << "now and then";
  stop = true;
  changing.join();
}

}  // namespace
}  // namespace gputrace::test
