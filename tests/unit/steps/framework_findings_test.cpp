// Findings on what a framework does besides the program's work.
#include "analysis/findings/findings.h"
#include "tests/unit/finding_lookup.h"
#include "tests/unit/planted.h"

namespace gputrace::test {
namespace {

constexpr const char* kEngine = "autograd::engine::evaluate_function: AddmmBackward0";

// A hundred turns that keep the device waiting for 900 of 1000 us. `asks`: who asks for aten::isnan and `any` of it, 20 times a turn.
LoadedRun checked(const char* asks, u64 check_ns, u64 texts_of_ten, const char* any = "aten::_is_any_true") {
  constexpr u64 kTurns = 100, kChecks = 20;
  Planted script;
  for (u64 i = 0; i < kTurns; ++i) script.sleep(900 * kUs), script.run(4 * kUs, 100 * kUs);
  LoadedRun run = script.load();
  ProcessTrace& process = run.processes.at(0);
  process.options["GPUTRACE_COLLECT"] = "api,device,ops,python";
  SourceLines& lines = process.lines;
  const auto frame = [&](std::vector<SourceFrame>& frames, const char* function, u32 parent, const char* file = "") {
    if (frames.empty()) frames.emplace_back();
    frames.emplace_back();
    frames.back().function = function, frames.back().file = file, frames.back().parent = parent;
    return static_cast<u32>(frames.size() - 1);
  };
  const u32 engine = frame(lines.frames, asks, 0), isnan = frame(lines.frames, "aten::isnan", engine),
            ne = frame(lines.frames, "aten::ne", isnan), true_one = frame(lines.frames, any, engine),
            item = frame(lines.frames, "aten::item", engine);
  lines.operations.resize(lines.frames.size());
  for (const u32 each : {isnan, ne, true_one, item}) lines.operations[each].count = kTurns * kChecks;
  lines.operations[isnan].total_ns = lines.operations[ne].total_ns = kTurns * check_ns;
  lines.operations[item].total_ns = kTurns * check_ns;
  SampleFacts& samples = process.samples;
  const u32 line = frame(samples.frames, "<module>", 0, "/home/me/train.py"),
            text = frame(samples.frames, "format_stack", line, "/x/site-packages/torch/fx/traceback.py");
  SampledThread thread;
  for (u64 i = 0; i < 10; ++i) {
    SamplePoint point;
    point.at = process.begin + static_cast<Nanos>(i) * kMs;
    point.frame = i < texts_of_ten ? text : line;
    thread.points.push_back(point);
  }
  samples.threads.push_back(thread);
  return run;
}

TEST(FrameworkFindings, AnomalyDetectionThatWasLeftOn) {
  constexpr u64 kCheck = 100'000;
  const auto finding_of = [](const LoadedRun& run) -> std::optional<Finding> {
    const auto findings = find_findings(run);
    const Finding* const found = find(findings, "anomaly-detection");
    return found ? std::optional(*found) : std::nullopt;
  };
  const LoadedRun run = checked(kEngine, kCheck, 3);
  const auto finding = finding_of(run);
  ASSERT_TRUE(finding);
  EXPECT_EQ(evidence(*finding, "checks"), whole(2000));
  EXPECT_EQ(evidence(*finding, "checks_ns"), number(200 * kCheck)) << "isnan and item, what they ask for within them";
  const double span = static_cast<double>(run.processes[0].device.devices[0].span_ns());
  EXPECT_NEAR(static_cast<double>(finding->gain_ns), 200.0 * kCheck + 0.3 * span, 0.01 * span);
  EXPECT_EQ(finding->severity, Severity::Problem);
  const auto without_texts = finding_of(checked(kEngine, kCheck, 0));
  ASSERT_TRUE(without_texts);
  EXPECT_EQ(without_texts->gain_ns, 200 * kCheck);
  EXPECT_EQ(without_texts->text.find("stack"), std::string::npos) << without_texts->text;
  const auto most = finding_of(checked(kEngine, 10 * kCheck, 0));
  ASSERT_TRUE(most);
  EXPECT_LT(most->gain_ns, 95 * kMs) << "no more than the host's work costs";
  const auto gap_gain = [](const LoadedRun& of) {
    const auto findings = find_findings(of);
    const Finding* const gaps = find(findings, "idle-gaps");
    return gaps ? gaps->gain_ns : 0;
  };
  const LoadedRun off = checked("MyFunctionBackward", kCheck, 3);
  EXPECT_EQ(gap_gain(run) + finding->gain_ns, gap_gain(off)) << "promised once";
  EXPECT_FALSE(finding_of(checked("MyFunctionBackward", kCheck, 0))) << "the program's own look";
  EXPECT_FALSE(finding_of(checked(kEngine, kCheck, 0, "aten::any"))) << "a hook of the program's";
}

}  // namespace
}  // namespace gputrace::test
