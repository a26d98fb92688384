// Frames under their callers, as a trace tells them, and which of them stand for a stack.
#include "analysis/facts/source_lines.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "analysis/gains/gains.h"
#include "analysis/lines/packages.h"
#include "analysis/lines/sites.h"
#include "analysis/lines/within.h"

namespace gputrace {
namespace {

u32 depth_of(const std::vector<SourceFrame>& frames, u32 frame) {
  u32 depth = 0;
  for (; frame != 0; frame = frames[frame].parent) ++depth;
  return depth;
}

u32 deepest_of(const std::vector<SourceFrame>& frames) {
  u32 deepest = 0;
  for (u32 frame = 1; frame < frames.size(); ++frame) deepest = std::max(deepest, depth_of(frames, frame));
  return deepest;
}

TEST(NewFrame, LiesUnderItsCaller) {
  std::vector<SourceFrame> frames;
  for (u32 number = 1; number <= 200; ++number) ASSERT_NE(new_frame(frames, number, number - 1), nullptr);
  EXPECT_EQ(depth_of(frames, 200), 200u);
  EXPECT_EQ(new_frame(frames, 100, 1), nullptr);  // it was told before
  EXPECT_EQ(depth_of(frames, 200), 200u);
}

TEST(NewFrame, MayBeToldBeforeItsCaller) {
  std::vector<SourceFrame> frames;
  ASSERT_NE(new_frame(frames, 4, 3), nullptr);
  for (u32 number = 1; number <= 3; ++number) ASSERT_NE(new_frame(frames, number, number - 1), nullptr);
  EXPECT_EQ(depth_of(frames, 4), 4u);
}

TEST(NewFrame, LiesNowhereWhereItsCallerIsNumberedAfterIt) {
  std::vector<SourceFrame> frames;
  ASSERT_NE(new_frame(frames, 3, 3), nullptr);
  ASSERT_NE(new_frame(frames, 2, 3), nullptr);
  EXPECT_EQ(deepest_of(frames), 1u);
}

TEST(NewFrame, NeverLiesDeeperThanItMay) {
  constexpr u32 kFrames = 2000;
  std::vector<SourceFrame> rising, falling, halves;
  for (u32 number = 1; number < kFrames; ++number) new_frame(rising, number, number - 1);
  EXPECT_EQ(deepest_of(rising), kDeepestFrame);
  for (u32 number = kFrames; number > 1; --number) new_frame(falling, number, number - 1);
  EXPECT_LE(deepest_of(falling), kDeepestFrame);
  // Stretches of stacks first, what ties each to the end of the one before last.
  for (u32 number = 1; number < kFrames; ++number) {
    if (number % 100 != 0) new_frame(halves, number, number - 1);
  }
  for (u32 number = 100; number < kFrames; number += 100) new_frame(halves, number, number - 1);
  EXPECT_LE(deepest_of(halves), kDeepestFrame);
}

SourceFrame frame_of(const std::string& file) {
  SourceFrame frame;
  frame.file = file;
  return frame;
}

// What a compiler wrote calls the kernels; the program's line is the one that called what was compiled.
TEST(OwnFrame, IsNoCodeThatACompilerWrote) {
  const std::string inductor = "/tmp/torchinductor_root/3w/c3widxq6lm2ikn4crnhf632d5ydudhqkgceniz62r6hovk24jags.py";
  std::vector<SourceFrame> frames(6);
  const char* const files[] = {"/home/u/train.py", "/venv/lib/python3.12/site-packages/torch/_dynamo/eval_frame.py",
                               inductor.c_str(), "/venv/lib/python3.12/site-packages/torch/_inductor/runtime/x.py",
                               "<string>"};
  for (u32 i = 0; i < 5; ++i) frames[i + 1].file = files[i], frames[i + 1].parent = i;
  EXPECT_EQ(own_frame(frames, 3), 1u);
  EXPECT_EQ(own_frame(frames, 5), 1u);
  EXPECT_TRUE(is_library_file(frame_of(inductor)));
  EXPECT_FALSE(is_library_file(frame_of("/home/u/checkpoint.py")));
  EXPECT_FALSE(is_library_file(frame_of("/home/u/" + std::string(52, 'c') + "_.py")));
}

// `python -c`, and functions that the program itself makes of text.
TEST(OwnFrame, MayBeOfText) {
  std::vector<SourceFrame> frames(3);
  frames[1].file = frames[2].file = "<string>";
  frames[2].parent = 1;
  EXPECT_EQ(own_frame(frames, 2), 2u);
  EXPECT_EQ(own_frame(frames, 1), 1u);
}

// train.py calls a package, that goes through a framework to a model of the same package, and to the framework's optimizer.
struct Calls {
  ProcessTrace process;
  std::vector<SourceFrame>& frames = process.lines.frames;
  Calls() { frames.resize(1); }
  u32 add(const char* file, const char* function, u32 parent) {
    SourceFrame& frame = frames.emplace_back();
    frame.file = file, frame.function = function, frame.parent = parent, frame.line = 7;
    return static_cast<u32>(frames.size() - 1);
  }
};

// A class of tensors of the program's own (MONAI's from a checkout, say): each operation goes through its __torch_function__, and was nobody's
// line but that.
TEST(OwnFrame, IsThatWhichCalledWhatHandsAnOperationThrough) {
  const std::string torch = "/v/lib/python3.11/site-packages/torch/";
  for (const char* const through : {"MetaTensor.__torch_function__", "__torch_dispatch__"}) {
    Calls calls;
    const u32 main = calls.add("/home/me/train.py", "<module>", 0);
    const u32 forward = calls.add((torch + "nn/modules/conv.py").c_str(), "Conv2d.forward", main);
    const u32 own = calls.add("/home/me/meta_tensor.py", through, forward);
    const u32 super = calls.add((torch + "_tensor.py").c_str(), "Tensor.__torch_function__", own);
    EXPECT_EQ(own_frame(calls.frames, super), main) << through;
    EXPECT_EQ(innermost_own(calls.frames, super), main) << through;
    const u32 again = calls.add("/home/me/meta_tensor.py", through, super);
    EXPECT_EQ(own_frame(calls.frames, again), main) << through;
    const u32 helper = calls.add("/home/me/meta_tensor.py", "unwrap", own);
    EXPECT_EQ(own_frame(calls.frames, helper), helper) << through << ": does something itself";
    const u32 alone = calls.add("/home/me/meta_tensor.py", through, 0);
    EXPECT_EQ(own_frame(calls.frames, alone), alone) << through << ": nobody of the program's own called it";
  }
}

// A framework that was built in its checkout is one all the same; what lies beside it is whose that is.
TEST(Packages, OfAFrameworkInItsCheckoutAreFoundByItsFiles) {
  Calls calls;
  const u32 main = calls.add("/home/me/pytorch/try.py", "<module>", 0);
  const u32 call = calls.add("/home/me/pytorch/torch/nn/modules/module.py", "Module._call_impl", main);
  const u32 forward = calls.add("/home/me/pytorch/torch/nn/functional.py", "linear", call);
  const u32 other = calls.add("/home/me/models/torch/net.py", "forward", call);
  find_packages(calls.process);
  EXPECT_EQ(within_packages(calls.frames[forward]), "torch/nn/functional.py");
  EXPECT_TRUE(is_framework_file(calls.frames[forward]));
  EXPECT_EQ(own_frame(calls.frames, forward), main);
  EXPECT_EQ(own_frame(calls.frames, other), other) << "no file of that framework";
}

// "pip install --target /deps", and PYTHONPATH=/deps: the sidecar tells that folder.
TEST(Packages, OfAFolderThatWasToldAreNobodysOwn) {
  Calls calls;
  calls.process.who.package_folders = {"/deps", "", "deps"};
  const u32 main = calls.add("/home/me/train.py", "<module>", 0);
  const u32 fit = calls.add("/deps/trainer/loop.py", "Trainer.fit", main);
  const u32 torch = calls.add("/deps/torch/_ops.py", "OpOverload.__call__", fit);
  const u32 elsewhere = calls.add("/deps2/mine.py", "step", fit);
  find_packages(calls.process);
  EXPECT_EQ(within_packages(calls.frames[fit]), "trainer/loop.py");
  EXPECT_FALSE(is_framework_file(calls.frames[fit]));
  EXPECT_TRUE(is_framework_file(calls.frames[torch]));
  EXPECT_EQ(own_frame(calls.frames, torch), main);
  EXPECT_EQ(own_frame(calls.frames, elsewhere), elsewhere);
  EXPECT_EQ(FileNames(calls.process).of("/deps/trainer/loop.py"), "loop.py") << "no other is called so";
  calls.add("/home/me/loop.py", "f", main);
  EXPECT_EQ(FileNames(calls.process).of("/deps/trainer/loop.py"), "trainer/loop.py");
}

TEST(Packages, AreNoneWhereTheScriptItselfLies) {
  Calls calls;
  calls.process.who.package_folders = {"/var/task"};
  const u32 main = calls.add("/var/task/handler.py", "<module>", 0);
  const u32 step = calls.add("/var/task/model/step.py", "step", main);
  find_packages(calls.process);
  EXPECT_EQ(own_frame(calls.frames, step), step);
}

// What lies outside of a fork is the parent's: an engine that a package runs in a process of its own is not in the line that made it.
TEST(OwnFrame, OfAProcessThatAnotherMadeIsItsOwn) {
  const std::string library = "/usr/lib/python3.11/multiprocessing/", packages = "/v/lib/python3.11/site-packages/";
  for (const char* const way : {"popen_fork.py", "spawn.py", "forkserver.py"}) {
    Calls calls;
    const u32 main = calls.add("/home/me/serve.py", "<module>", 0);
    const u32 start = calls.add((packages + "engine/llm.py").c_str(), "LLM.__init__", main);
    const u32 made = calls.add((library + way).c_str(), "Popen._launch", start);
    const u32 bootstrap = calls.add((library + "process.py").c_str(), "BaseProcess._bootstrap", made);
    const u32 run = calls.add((library + "process.py").c_str(), "BaseProcess.run", bootstrap);
    const u32 loop = calls.add((packages + "engine/core.py").c_str(), "Engine.loop", run);
    const u32 forward = calls.add((packages + "torch/nn/modules/linear.py").c_str(), "Linear.forward", loop);
    EXPECT_EQ(own_frame(calls.frames, forward), loop) << way << ": the innermost of a package that is no framework";
    EXPECT_EQ(innermost_own(calls.frames, forward), 0u);
    EXPECT_EQ(own_frame(calls.frames, run), run) << way;
    const u32 worker = calls.add("/home/me/worker.py", "work", run);
    EXPECT_EQ(own_frame(calls.frames, worker), worker) << way;
    EXPECT_EQ(own_frame(calls.frames, start), main) << way << ": of the one that made it";
    const u32 waits = calls.add((packages + "torch/multiprocessing/spawn.py").c_str(), "ProcessContext.join", main);
    EXPECT_EQ(own_frame(calls.frames, waits), main) << "that waits for it";
  }
}

// What an installer puts into `bin` to call a package ("vllm serve", "whisper a.mp3") is nobody's own line.
TEST(OwnFrame, OfAnInstalledCommandIsThePackages) {
  const std::string packages = "/v/lib/python3.11/site-packages/";
  Calls calls;
  const u32 script = calls.add("/v/bin/whisper", "<module>", 0);
  const u32 command = calls.add((packages + "whisper/transcribe.py").c_str(), "cli", script);
  const u32 forward = calls.add((packages + "torch/nn/modules/module.py").c_str(), "Module._call_impl", command);
  EXPECT_EQ(own_frame(calls.frames, forward), command);
  EXPECT_EQ(innermost_own(calls.frames, forward), script);
  const u32 alone = calls.add((packages + "torch/_tensor.py").c_str(), "Tensor.backward", script);
  EXPECT_EQ(own_frame(calls.frames, alone), script) << "no package but a framework: a program of somebody's";
  calls.frames[script].line = 40;
  EXPECT_EQ(own_frame(calls.frames, forward), script) << "longer than an installer's";
}

TEST(FunctionsWithin, AreNoWrappersOfDecorators) {
  const std::string packages = "/v/lib/python3.11/site-packages/";
  Calls calls;
  const u32 main = calls.add("/home/me/train.py", "<module>", 0);
  const u32 fit = calls.add((packages + "trainer/trainer.py").c_str(), "Trainer.fit", main);
  const u32 traced = calls.add((packages + "trainer/trace.py").c_str(), "traced.<locals>.wrapper", fit);
  const FileNames names(calls.process);
  FunctionsWithin within(names);
  within.add(calls.frames, traced, 10);
  EXPECT_EQ(within.of("train.py:7 <module>").function, "trainer.py Trainer.fit");
}

TEST(FunctionsWithin, GoInwardAsLongAsOneHoldsHalf) {
  Calls calls;
  const std::string packages = "/v/lib/python3.11/site-packages/";
  const u32 main = calls.add("/home/me/train.py", "<module>", 0);
  const u32 fit = calls.add((packages + "trainer/trainer.py").c_str(), "Trainer.fit", main);
  const u32 through = calls.add((packages + "torch/nn/modules/module.py").c_str(), "Module._call_impl", fit);
  const u32 model = calls.add((packages + "trainer/model.py").c_str(), "Model.forward", through);
  const u32 layer = calls.add((packages + "torch/nn/modules/linear.py").c_str(), "Linear.forward", model);
  const u32 loss = calls.add((packages + "trainer/model.py").c_str(), "Model.loss", model);
  const u32 optimizer = calls.add((packages + "torch/optim/sgd.py").c_str(), "SGD.step", fit);
  const FileNames names(calls.process);
  FunctionsWithin within(names);
  EXPECT_EQ(within.of("train.py:7 <module>").function, "");
  within.add(calls.frames, layer, 30);
  within.add(calls.frames, loss, 30);
  within.add(calls.frames, optimizer, 30);
  within.add(calls.frames, main, 10);
  within.add(calls.frames, 0, 1000);
  const Within model_most = within.of("train.py:7 <module>");
  EXPECT_EQ(model_most.function, "model.py Model.forward");
  EXPECT_DOUBLE_EQ(model_most.share, 0.6);
  within.add(calls.frames, optimizer, 30);  // now neither of what fit() calls holds half
  EXPECT_EQ(within.of("train.py:7 <module>").function, "trainer.py Trainer.fit");
  within.add(calls.frames, main, 200);
  EXPECT_EQ(within.of("train.py:7 <module>").function, "") << "most is the line's own";
}

// Two calls within the package: of origins 1 and 2.
struct Fit : Calls {
  const std::string package = "/v/lib/python3.11/site-packages/trainer/";
  const u32 main = add("/home/me/train.py", "<module>", 0);
  const u32 fit = add((package + "trainer.py").c_str(), "Trainer.fit", main);
  const u32 model = add((package + "model.py").c_str(), "Model.forward", fit);
  const u32 clear = add((package + "memory.py").c_str(), "clear", fit);
  Fit() {
    process.lines.origins.assign(3, {});
    process.lines.origins[1].frame = model, process.lines.origins[2].frame = clear;
  }
};

// What the program did between two calls lies in no function that only one of them is in: behind fit() its author's own work may
// come before a call that a package makes.
TEST(FunctionsWithin, BetweenTwoCallsIsWhatBothAreIn) {
  Fit calls;
  SourceLines& lines = calls.process.lines;
  const u32 in_model = 1, in_clear = 2, in_other = 3;
  lines.origins.resize(4);
  lines.origins[in_other].frame = calls.add("/home/me/train.py", "prepare", calls.main);
  const FileNames names(calls.process);
  const auto between = [&](u32 after, u32 before) {
    FunctionsWithin within(names);
    within.add_between(lines, after, before, 100);
    return within.of("train.py:7 <module>").function;
  };
  EXPECT_EQ(between(in_model, in_model), "model.py Model.forward");
  EXPECT_EQ(between(in_model, in_clear), "trainer.py Trainer.fit");
  EXPECT_EQ(between(in_other, in_clear), "");
  EXPECT_EQ(between(0, in_clear), "") << "behind a call whose line is not known";
}

TEST(FileNames, AreThePathWhereTheLastPartIsNoName) {
  Calls calls;
  const std::string packages = "/v/lib/python3.11/site-packages/";
  const std::string lightning = packages + "lightning/core/module.py";
  for (const std::string& file : {std::string("/a/train.py"), std::string("/b/train.py"), std::string("/a/model.py"),
                                  lightning, packages + "torch/nn/modules/module.py"})
    calls.add(file.c_str(), "f", 0);
  const FileNames names(calls.process);
  EXPECT_EQ(names.of("/a/model.py"), "model.py");
  EXPECT_EQ(names.of("/a/train.py"), "/a/train.py");
  EXPECT_EQ(names.of(lightning), "lightning/core/module.py");
}

// Host time goes by samples where these tell lines, else by the pauses, else by the call that ended it.
TEST(FunctionsWithin, HostTimeGoesByWhatIsKnownBest) {
  Fit calls;
  SourceLines& lines = calls.process.lines;
  SampleFacts& samples = calls.process.samples;
  samples.frames = lines.frames;
  const FileNames names(calls.process);
  const auto host = [&] {
    FunctionsWithin within(names);
    within.add_host(calls.process, 2, PausesBefore(lines), 1000);
    return within.of("train.py:7 <module>");
  };
  samples.idle = {{2, calls.model, false, {}, LineOf::Caller, 30},
                  {2, calls.main, false, {}, LineOf::Caller, 10},
                  {2, calls.fit, false, {}, LineOf::Worker, 1000},
                  {1, calls.fit, false, {}, LineOf::Caller, 1000}};
  EXPECT_EQ(host().function, "model.py Model.forward");
  EXPECT_DOUBLE_EQ(host().share, 0.75);
  samples.idle.front().count = 2, samples.idle[1].count = 2;  // too few to tell lines
  EXPECT_EQ(host().function, "memory.py clear") << "no pause is known";
  lines.pauses.add(1, 2, 60);
  lines.pauses.add(2, 2, 40);
  lines.pauses.add(2, 1, 5000);  // before another call
  EXPECT_EQ(host().function, "trainer.py Trainer.fit");
}

// Of 100 launches whose line is not known and one of a known line, the one would mislead.
TEST(Sites, NameNoLineWhereOfMostItIsNotKnown) {
  Calls calls;
  calls.process.lines.origins = {
      {}, {calls.add("/home/me/train.py", "step", 0), 0}, {calls.add("/home/me/model.py", "forward", 0), 0}};
  const auto told = [&](u64 unknown, u64 first, u64 second) {
    calls.process.lines.times.assign(3, {});
    OriginAmounts amounts;
    for (u32 origin = 0; origin < 3; ++origin) {
      const u64 amount = origin == 0 ? unknown : origin == 1 ? first : second;
      amounts.add(origin, amount);
      calls.process.lines.times[origin].launch_ns = amount;
    }
    const SiteShare gaps = site_of_launch_gaps(calls.process);
    EXPECT_EQ(gaps.site, site_of_most(calls.process, amounts));
    EXPECT_DOUBLE_EQ(gaps.share, gaps.site.empty() ? 0
                                                   : static_cast<double>(std::max(first, second)) /
                                                         static_cast<double>(unknown + first + second));
    return gaps.site;
  };
  EXPECT_EQ(told(100, 1, 0), "");
  EXPECT_EQ(told(0, 1, 3), "model.py:7 forward");
  EXPECT_EQ(told(50, 30, 20), "train.py:7 step");
  EXPECT_EQ(told(51, 30, 20), "");
  EXPECT_EQ(told(0, 0, 0), "");
}

}  // namespace
}  // namespace gputrace
