// Copies joined to their calls, and what a copy that the host makes says of the device: nothing.
#include <gtest/gtest.h>

#include "tests/unit/device_builder.h"

namespace gputrace::test {
namespace {

// Of 8 bytes each, called 1 us after one another and numbered 20 and 21; their keys are handled then.
void two_copies_to_host(DeviceBuilder& trace, Nanos handled) {
  const auto main = trace.thread(100);
  trace.reading(500);
  for (u32 i = 0; i < 2; ++i) {
    const Nanos at = 1000 + 1000 * i;
    trace.add<Copy>(main, "cuMemcpyDtoHAsync_v2", at, at + 100, [&](auto& r) {
      r.bytes = 8, r.context = 0xc0, r.kind = static_cast<u8>(CopyKind::DtoH), r.asynchronous = 1;
    });
    trace.key(100, 20 + i, at + 5, at + 95, handled, kCallback_cuMemcpyAsync);
  }
}

// "DtoH" whose source is pinned memory of the host, as XLA calls it: CUPTI says HtoH of it, and it is the call's all the same.
TEST(Timeline, ACopyIsItsCallsWhateverDirectionTheNameSays) {
  DeviceBuilder trace;
  two_copies_to_host(trace, 6000);
  trace.copy(20, 9, 8, 1300, 1400, 6000);  // host to host
  trace.copy(21, 2, 8, 2300, 2400, 6000);  // device to host
  trace.reading(7000);
  const ProcessTrace process = trace.load();
  EXPECT_EQ(process.device.join.by_key, 2u);
  EXPECT_EQ(process.device.join.key_mismatch, 0u);
  u64 copies = 0;
  for (const CopyGroup& group : process.copies) copies += group.count;
  EXPECT_EQ(copies, 2u);
}

// The host makes a copy from host to host, and stamps it: on an H100 such copies of XLA's overlapped kernels of their stream by up to 46 us. That says
// nothing of the device's stamps; a copy of its own that does so says how far those are off.
TEST(Timeline, WhatTheHostCopiesIsNoNoiseOfTheDevicesStamps) {
  const auto noise = [](u8 kind) {
    DeviceBuilder trace;
    two_copies_to_host(trace, 60'000);
    trace.copy(20, 2, 8, 3000, 10'000, 60'000);  // device to host
    trace.copy(21, kind, 8, 4000, 11'000, 60'000);
    trace.reading(70'000);
    return trace.load().device.clock.noise;
  };
  EXPECT_EQ(noise(2), 6000);
  EXPECT_EQ(noise(9), 0) << "host to host";
}

// Nor does it say that the kernel in front of it was lost, which begins a little later (H200, XLA).
TEST(Timeline, WhatTheHostCopiesPassesNothingByInItsStream) {
  for (const bool of_host : {true, false}) {
    DeviceBuilder trace;
    const auto main = trace.thread(100);
    trace.name_function(0xf1, "step", 0xa0);
    const u64 name = trace.text("step");
    trace.reading(500);
    Nanos begin = 1000;
    for (u32 i = 1; i <= 3; ++i, begin += 10'000) {
      trace.launch(main, 0xf1, begin, begin + 100);
      trace.key(100, 2 * i, begin + 10, begin + 90, 40'000);
      trace.add<Copy>(main, "cuMemcpyDtoHAsync_v2", begin + 200, begin + 6000, [](auto& r) {
        r.kind = static_cast<u8>(CopyKind::DtoH), r.bytes = 8, r.asynchronous = 1, r.context = 0xc0;
      });
      trace.key(100, 2 * i + 1, begin + 210, begin + 5900, 40'000, kCallback_cuMemcpyDtoHAsync_v2);
      trace.copy(2 * i + 1, of_host ? 9 : 2, 8, begin + 4000, begin + 5800, 40'000);
      trace.kernel(2 * i, name, begin + 4500, begin + 5500, 40'000, 7);
    }
    trace.reading(50'000);
    const ProcessTrace process = trace.load();
    EXPECT_EQ(process.device.join.by_key, 6u);
    ASSERT_EQ(process.device.devices.size(), 1u);
    EXPECT_EQ(process.device.devices[0].unknown_ns == 0, of_host);
  }
}

}  // namespace
}  // namespace gputrace::test
