// A trace with samples: a loop whose host works 10 ms before each launch.
#pragma once

#include "analysis/findings/findings.h"
#include "tests/unit/device_builder.h"
#include "tests/unit/finding_lookup.h"

namespace gputrace::test {

inline constexpr u32 kFirst = 1u << 31;

class Sampled : public DeviceBuilder {
 public:
  Thread main = thread(100);
  Thread launching = main;
  i32 launching_tid = 100;

  // The slot of a thread is its place, its incarnation 1.
  void sample(u32 frame, Nanos at, i32 process = 0, WaitFor waits = {}) { sample_of(main, frame, at, waits, process); }
  void sample_of(Thread of, u32 frame, Nanos at, WaitFor waits = {}, i32 process = 0) {
    add<Sample>(definitions(), "", at, at, [&](auto& r) {
      r.frame = frame, r.frames = 1, r.slot = static_cast<u32>(of.index), r.incarnation = 1, r.process = process;
      r.waits = static_cast<u32>(waits), r.flags = waits == WaitFor{} ? static_cast<u32>(kSampleRan) : 0;
    });
  }
  void use(i32 process, i32 tid, const char* called, Nanos at, u64 cpu) {
    const u64 name = text(called);
    add<ThreadUse>(definitions(), "", at, at, [&](auto& r) {
      r.process = process, r.tid = tid, r.name = name, r.cpu = cpu, r.age = static_cast<u64>(at);
    });
  }
  // A turn of 10 ms: nothing but the host's work before its launch at the end; the kernel takes 10 us.
  void turn(u32 number) {
    const Nanos end = 20'000'000 + Nanos{number} * 10'000'000;
    launch(launching, 0xf1, end - 20'000, end - 10'000);
    key(launching_tid, number + 1, end - 20'000, end - 10'000, end + 1'000'000);
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
  // The finding idle-gaps of nine turns; one without words: there is none.
  Finding gaps() {
    LoadedRun run;
    run.processes.push_back(of(9));
    const auto findings = find_findings(run);
    const Finding* const found = find(findings, "idle-gaps");
    return found ? *found : Finding{};
  }

 private:
  u64 name_;
};

}  // namespace gputrace::test
