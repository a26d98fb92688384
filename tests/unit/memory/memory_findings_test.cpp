// Findings on memory: programs whose memory grows, or was refused, and those that only look like it.
#include "analysis/findings/findings.h"
#include "analysis/findings/rules.h"
#include "tests/unit/finding_lookup.h"
#include "tests/unit/planted.h"

namespace gputrace {
extern const FindingRule out_of_memory_rule;
}

namespace gputrace::test {
namespace {

// 100 times 16 MiB that nobody frees; a cache that fills and stays; as much, freed in each step; a model that is loaded piece by piece and
// then used for longer.
TEST(MemoryFindings, MemoryThatGrowsWithoutEnd) {
  constexpr u64 kBytes = 16u << 20;
  Planted leaking, filling, freeing, loading;
  for (u64 i = 0; i < 100; ++i) {
    loading.run(4 * kUs, 100 * kUs);
    loading.take(1 + i, kBytes);
    for (Planted* each : {&leaking, &filling, &freeing}) each->run(4 * kUs, 100 * kUs);
    leaking.take(1 + i, kBytes);
    if (i < 40) filling.take(1 + i, kBytes);
    if (i >= 40) filling.take(1000, 4096), filling.give_back(1000);
    freeing.take(1 + i, kBytes);
    if (i > 0) freeing.give_back(i);
  }
  const auto findings = find_findings(leaking.load());
  const Finding* finding = find(findings, "memory-growth");
  ASSERT_NE(finding, nullptr);
  const i64 grown = std::get<i64>(evidence(*finding, "grown_bytes"));
  EXPECT_GE(grown, static_cast<i64>(80 * kBytes));  // from the lowest level of the first sixth to that of the last
  EXPECT_LE(grown, static_cast<i64>(100 * kBytes));
  EXPECT_EQ(evidence(*finding, "live_at_end_bytes"), number(100 * kBytes));
  EXPECT_EQ(evidence(*finding, "call"), text_value("cuMemAlloc"));
  EXPECT_FALSE(is_null(evidence(*finding, "after_kernel")));
  EXPECT_EQ(evidence(*finding, "blocks"), whole(100));
  EXPECT_EQ(evidence(*finding, "block_bytes"), number(100 * kBytes));
  const auto age = [&](const char* key) { return std::get<i64>(evidence(*finding, key)); };
  EXPECT_GT(age("oldest_ns"), age("newest_ns"));
  EXPECT_NEAR(static_cast<double>(age("oldest_ns") - age("newest_ns")), 99.0 * (4 + 1) * kUs, 99.0 * 4 * kUs);
  EXPECT_EQ(find(find_findings(filling.load()), "memory-growth"), nullptr);
  EXPECT_EQ(find(find_findings(freeing.load()), "memory-growth"), nullptr);
  for (int i = 0; i < 200; ++i) loading.run(4 * kUs, 100 * kUs);
  EXPECT_EQ(find(find_findings(loading.load()), "memory-growth"), nullptr);
}

// 100 pieces with four launches each, then steps that allocate nothing: most launches lie in the loading, none of the growth in the steps.
TEST(MemoryFindings, MemoryOfAModelIsNoGrowthOfTheStepsBehindIt) {
  Planted script;
  for (u64 i = 0; i < 100; ++i) {
    for (int k = 0; k < 4; ++k) script.run(4 * kUs, kUs, k % 3);
    script.take(1 + i, 16u << 20);
  }
  for (int i = 0; i < 240; ++i) script.run(4 * kUs, 15 * kUs, i % 2);
  script.wait();
  LoadedRun run = script.load();
  ProcessTrace& process = run.processes.at(0);
  process.steps = {};
  EXPECT_NE(find(find_findings(run), "memory-growth"), nullptr) << "without steps the loading is the loop";
  Step all_steps;
  all_steps.begin = process.allocation_loop.last, all_steps.end = process.end;
  process.steps.steps.push_back(all_steps);
  EXPECT_EQ(find(find_findings(run), "memory-growth"), nullptr);
}

// Every rank loads what it goes on from to the first device, and then computes on its own.
TEST(MemoryFindings, MemoryOfADeviceOnWhichAnotherComputes) {
  constexpr u64 kLoaded = 4u << 20;
  // `foreign_ns`: of kernels on the first device, beside a second on its own.
  const auto rank = [](i32 own, u64 foreign_ns, u64 foreign_bytes) {
    ProcessTrace process;
    process.who.rank = std::to_string(own), process.who.host = "vm";
    process.first_realtime = 1'000, process.begin = 10, process.end = 2'000;
    process.device.collected = true;
    for (i32 ordinal = 0; ordinal < 4; ++ordinal) {
      Device device;
      device.ordinal = ordinal, device.uuid = "GPU-" + std::to_string(ordinal);
      process.devices.push_back(device);
    }
    const auto computes = [&](i32 device, u64 nanos) {
      DeviceTimes times;
      times.device = device, times.compute_ns = times.busy_ns = nanos;
      process.device.devices.push_back(times);
    };
    const auto holds = [&](i32 device, u64 bytes) {
      DeviceMemory memory;
      memory.device = device, memory.peak_bytes = bytes;
      process.device_memory.push_back(memory);
    };
    if (foreign_ns || foreign_bytes) computes(0, foreign_ns), holds(0, foreign_bytes);
    computes(own, 1'000'000'000), holds(own, 64u << 20);
    LiveMemory live;
    live.device = 0, live.bytes = foreign_bytes, live.origin = 1;
    process.live_memory.push_back(live);
    process.lines.frames.resize(2);
    process.lines.frames[1].file = "/home/me/train.py", process.lines.frames[1].function = "main";
    process.lines.frames[1].line = 9;
    process.lines.origins.resize(2);
    process.lines.origins[1].frame = 1;
    return process;
  };
  const auto finding_of = [](std::vector<ProcessTrace> processes) -> std::optional<Finding> {
    LoadedRun run;
    run.processes = std::move(processes);
    const auto findings = find_findings(run);
    const Finding* const found = find(findings, "foreign-device");
    return found ? std::optional(*found) : std::nullopt;
  };
  const auto finding =
      finding_of({rank(0, 0, 0), rank(1, 0, kLoaded), rank(2, 1'000'000, 2 * kLoaded), rank(3, 0, kLoaded)});
  ASSERT_TRUE(finding);
  EXPECT_EQ(
      finding->text,
      "rank 2, worst of 3: it holds 8.000 MiB of device 0, on which rank 0 computes and it does not (it computes on "
      "device 2); its context too takes memory there, which no call tells");
  EXPECT_EQ(finding->site, "train.py:9 main");
  EXPECT_EQ(finding->severity, Severity::Warning);
  EXPECT_EQ(evidence(*finding, "peak_bytes"), number(2 * kLoaded));
  EXPECT_EQ(evidence(*finding, "processes"), whole(3));
  EXPECT_FALSE(finding_of({rank(0, 0, 0), rank(1, 500'000'000, kLoaded)})) << "it computes there too";
  EXPECT_FALSE(finding_of({rank(2, 0, 0), rank(1, 0, kLoaded)})) << "nobody computes there";
  EXPECT_FALSE(finding_of({rank(1, 0, kLoaded)}));
  ProcessTrace asked = rank(1, 0, 0);  // torch.cuda.synchronize() before set_device()
  asked.contexts = {{0xc0, 0}, {0xc1, 1}};
  const auto context = finding_of({rank(0, 0, 0), asked});
  ASSERT_TRUE(context);
  EXPECT_EQ(
      context->text,
      "rank 1: it has a context on device 0, on which rank 0 computes and it does not (it computes on device 1); that "
      "takes memory there, which no call tells");
  EXPECT_EQ(evidence(*context, "peak_bytes"), whole(0));
  ProcessTrace later = rank(0, 0, 0);
  later.first_realtime = 3'000;
  EXPECT_FALSE(finding_of({later, rank(1, 0, kLoaded)})) << "nobody computed there by then";
}

// PyTorch's allocator tells more than the driver's curve: what grows is what it has given out, by so much a step, and which tensors are kept.
// Those of one step only (a cache that is copied as it grows), and a curve that does not grow, are no such growth.
TEST(MemoryFindings, TensorsThatALoopKeeps) {
  constexpr u64 kSteps = 100, kKept = 512u << 10, kGiB = u64{1} << 30;
  constexpr Nanos kStep = 104 * kUs;
  const auto finding_of = [](u64 kept_a_step, bool bit_by_bit) -> std::optional<Finding> {
    Planted script;
    for (u64 i = 0; i < kSteps; ++i) script.run(4 * kUs, 100 * kUs);
    LoadedRun run = script.load();
    ProcessTrace& process = run.processes.at(0);
    const Nanos first = process.begin;
    process.steps = {};
    process.steps.source = StepSource::Framework;
    FrameworkMemory memory;
    memory.device = 0, memory.reserved = kGiB;
    for (u64 i = 0; i < kSteps; ++i) {
      Step step;
      step.begin = first + static_cast<Nanos>(i) * kStep, step.end = step.begin + kStep;
      process.steps.steps.push_back(step);
      memory.samples.push_back({step.begin + 10, 32 * kKept + i * kept_a_step + kKept, kGiB});
      memory.samples.push_back({step.begin + 20, 32 * kKept + (i + 1) * kept_a_step, kGiB});
    }
    const Nanos last = first + static_cast<Nanos>(kSteps - 1) * kStep;
    const auto part = [&](u64 bytes, u64 count) {
      memory.at_peak.push_back({TensorKind::Persistent, 0, bytes, count, bit_by_bit ? first : last, last});
    };
    part(60 * kKept, 60), part(40 * kKept, 40);
    memory.at_peak.push_back({TensorKind::Parameters, 0, 900 * kKept, 90, first - kMs, first - kUs});
    memory.at_peak.push_back({TensorKind::Activations, 0, 800 * kKept, 4, last, last});
    process.tensors.push_back(memory);
    for (Finding& finding : find_findings(run))
      if (finding.id == "memory-growth") return finding;
    return std::nullopt;
  };
  const auto leaks = finding_of(kKept, true);
  ASSERT_TRUE(leaks.has_value());
  EXPECT_NEAR(std::get<double>(evidence(*leaks, "bytes_per_step")), 1.0 * kKept, 0.05 * kKept);
  EXPECT_EQ(evidence(*leaks, "tensors"), whole(100));
  EXPECT_EQ(evidence(*leaks, "tensor_bytes"), number(100 * kKept));
  EXPECT_EQ(evidence(*leaks, "most_bytes"), number(60 * kKept));
  EXPECT_NE(leaks->text.find("50.00 MiB in 100 tensors are kept, most of it 30.00 MiB"), std::string::npos)
      << leaks->text;
  EXPECT_EQ(finding_of(kKept, false), std::nullopt);
  EXPECT_EQ(finding_of(0, true), std::nullopt);
}

// What is said of memory that was refused: whether it grew, how the program ended, what to do about which of both.
TEST(MemoryFindings, MemoryThatWasRefused) {
  const auto finding_of = [](bool grows, u64 held, bool killed) {
    Planted script;
    for (u64 i = 0; i < 100; ++i) {
      script.run(4 * kUs, 100 * kUs);
      script.take(1 + i, 16u << 20);
      if (!grows && i > 0) script.give_back(i);
    }
    LoadedRun run = script.load();
    FrameworkMemory memory;
    memory.device = 0;
    memory.refused = 2, memory.refused_bytes = 8u << 20;
    memory.peak_bytes = 1000u << 20, memory.peak_reserved_bytes = held;
    run.processes.at(0).tensors.push_back(memory);
    run.processes.at(0).who.failed = run.processes.at(0).who.died = killed;
    run.processes.at(0).who.end_reason = killed ? "signal 6" : "exited";
    Findings found;
    out_of_memory_rule.find(run, found);
    return found.at(0);
  };
  const Finding leaks = finding_of(true, 1010u << 20, true);
  EXPECT_TRUE(leaks.ended_it);
  EXPECT_NE(leaks.text.find("grows all through the loop"), std::string::npos) << leaks.text;
  EXPECT_TRUE(leaks.text.ends_with("; the program was ended by signal 6")) << leaks.text;
  EXPECT_EQ(leaks.fix.rfind("keep no results", 0), 0u) << leaks.fix;
  EXPECT_EQ(leaks.fix.find("expandable_segments"), std::string::npos) << leaks.fix;
  EXPECT_GE(std::get<i64>(evidence(leaks, "grown_bytes")), 80ll * (16 << 20));
  const Finding large = finding_of(false, 1250u << 20, false);
  EXPECT_FALSE(large.ended_it);
  EXPECT_TRUE(is_null(evidence(large, "grown_bytes")));
  EXPECT_EQ(large.fix.rfind("a smaller batch", 0), 0u) << large.fix;
  EXPECT_TRUE(
      large.fix.ends_with("; 20 % of what it holds is unused: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"))
      << large.fix;
  EXPECT_EQ(large.text.find("the program"), std::string::npos) << large.text;
}

}  // namespace
}  // namespace gputrace::test
