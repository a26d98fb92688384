// What the stacks of launches say of the loop: tokens of generate(), batches of an engine, trials of compilers.
#include "analysis/pass/stack_marks.h"

#include <gtest/gtest.h>

#include <vector>

#include "analysis/steps/find_steps.h"
#include "tests/unit/device_builder.h"

namespace gputrace {
namespace {

using namespace test;

SourceFrame frame(const char* function, const char* file, u32 parent, u32 line) {
  SourceFrame made;
  made.function = function, made.file = file, made.parent = parent, made.line = line;
  return made;
}

// generate() of transformers 5 (a function takes in the prompt, then the loop) and of before (the loop does it), by the lines of its loop: each call takes in a prompt, each
// turn behind that makes a token. A call in a statement of several lines has a smaller line than its arguments.
TEST(StackMarks, EachTurnOfGenerationIsAToken) {
  using Begins = StackMarks::Turn::Begins;
  const char* const file = "/x/site-packages/transformers/generation/utils.py";
  std::vector<SourceFrame> frames = {
      {}, frame("<module>", "serve.py", 0, 7), frame("GenerationMixin.generate", file, 1, 3007)};
  const auto of = [&](const char* function, u32 line, const char* inner) {
    frames.push_back(frame(function, file, 2, line));
    frames.push_back(
        frame(inner, "/x/site-packages/torch/nn/modules/linear.py", static_cast<u32>(frames.size() - 1), 134));
    return static_cast<u32>(frames.size() - 1);
  };
  for (const bool own_prefill : {true, false}) {
    StackMarks marks;
    StackMarks::Turn turn;
    u64 prompts = 0, tokens = 0, ends = 0;
    const auto launch = [&](u32 from) {
      const Begins begins = turn.next(marks.place_of(frames, from));
      prompts += begins == Begins::Prefill, tokens += begins == Begins::Token, ends += begins == Begins::Outside;
    };
    const u32 outside = of("GenerationMixin.generate", 2888, "arange"),
              before = of("GenerationMixin._sample", 3191, "ones");
    const u32 prefill = of("GenerationMixin._prefill", 4319, "forward");
    std::vector<u32> loop;
    for (const u32 line : {3232, 3237, 3235, 3247, 3285, 3288})
      loop.push_back(of("GenerationMixin._sample", line, "forward"));
    for (int call = 0; call < 3; ++call) {
      for (int i = 0; i < 4; ++i) launch(outside);
      launch(before);
      for (int i = 0; own_prefill && i < 9; ++i) launch(prefill);
      for (int token = 0; token < 6; ++token) {
        for (std::size_t i = token == 0 && own_prefill ? 3 : 0; i < loop.size(); ++i)
          for (int k = 0; k < 3; ++k) launch(loop[i]);
      }
    }
    launch(outside);
    EXPECT_EQ(prompts, 3u) << own_prefill;
    EXPECT_EQ(tokens, 3u * 5) << own_prefill;
    EXPECT_EQ(ends, 3u) << own_prefill;
  }
  StackMarks marks;
  EXPECT_EQ(marks.place_of(frames, 9999).kind, StackMarks::Kind::NotKnown);  // not defined yet
  EXPECT_EQ(marks.place_of(frames, 2).kind, StackMarks::Kind::Outside);
}

// What a compiler runs again and again to find its fastest form is no turn of the program's; what else lies in its packages may be.
TEST(CompilerTrials, AreInNoLoop) {
  const auto source_of = [](const char* function, const char* file) {
    DeviceBuilder trace;
    const TraceBuilder::Thread main = trace.thread(100);
    trace.name_function(0xf1, "kernel", 0xa0);
    trace.name_function(0xf2, "kernel", 0xa0);
    trace.reading(50);
    const u64 kernel = trace.text("kernel");
    const auto frame = [&](u32 id, u32 parent, u64 name, u64 path) {
      trace.add<StackFrame>(TraceBuilder::definitions(), "", 5, 5, [&](auto& r) {
        r.function = name, r.file = path, r.id = id, r.parent = parent, r.line = 7;
        r.language = static_cast<u32>(SourceLanguage::Python);
      });
    };
    frame(1, 0, trace.text("<module>"), trace.text("/home/me/train.py"));
    frame(2, 1, trace.text(function), trace.text(file));
    frame(3, 2, trace.text("run"), trace.text("/x/site-packages/torch/_inductor/runtime/static_triton_launcher.py"));
    trace.add<Stack>(main, "", 60, 60, [](auto& r) { r.frame = 3, r.frames = 3; });
    u32 correlation = 0;
    const auto run = [&](Nanos at, Nanos length, u64 which) {
      trace.launch(main, which, at, at + 10);
      trace.key(100, ++correlation, at + 2, at + 8, at + 5000);
      trace.kernel(correlation, kernel, at + 20, at + 20 + length, at + 5000);
    };
    for (Nanos i = 0; i < 40; ++i) {
      run(2000 + 10'000 * i, 100, 0xf1);
      run(3000 + 10'000 * i, 200, 0xf2);
      run(4000 + 10'000 * i, 200, 0xf2);
    }
    return trace.load_all().processes[0].steps.source;
  };
  EXPECT_EQ(source_of("InductorBenchmarker.benchmark_gpu", "/x/site-packages/torch/_inductor/runtime/benchmarking.py"),
            StepSource::None);
  EXPECT_EQ(source_of("Autotuner._bench", "/x/site-packages/triton/runtime/autotuner.py"), StepSource::None);
  EXPECT_EQ(source_of("Autotuner.run", "/x/site-packages/triton/runtime/autotuner.py"), StepSource::Inferred);
  EXPECT_EQ(source_of("do_bench", "/x/site-packages/triton/testing.py"), StepSource::Inferred)
      << "a program that measures a kernel by itself";
}

// An engine's turn begins where the function that runs the model is called again, be it that other work lies between or that its lines begin anew.
TEST(StackMarks, EachCallOfAnEnginesFunctionIsABatch) {
  using Begins = StackMarks::Turn::Begins;
  const std::string packages = "/x/site-packages/";
  const std::pair<std::string, const char*> engines[] = {
      {packages + "vllm/v1/worker/gpu_model_runner.py", "GPUModelRunner.execute_model"},
      {packages + "vllm/v1/worker/gpu/model_runner.py", "execute_model"},
      {packages + "sglang/srt/managers/scheduler.py", "Scheduler.run_batch"}};
  for (const auto& [file, function] : engines) {
    const std::vector<SourceFrame> frames = {{},
                                             frame(function, file.c_str(), 0, 3950),
                                             frame(function, file.c_str(), 0, 4100),
                                             frame("LlamaModel.forward", "/x/site-packages/vllm/llama.py", 2, 90),
                                             frame("GPUModelRunner.sample_tokens", file.c_str(), 0, 4300),
                                             frame("GPUModelRunner._dummy_run", file.c_str(), 0, 5000)};
    StackMarks marks;
    StackMarks::Turn turn;
    std::vector<int> batches;
    const std::vector<u32> launches = {5, 5, 1, 1, 3, 3, 3, 4, 4, 3, 4, 1, 3, 3, 1, 3, 4};
    for (std::size_t i = 0; i < launches.size(); ++i) {
      if (turn.next(marks.place_of(frames, launches[i])) == Begins::Batch) batches.push_back(static_cast<int>(i));
    }
    EXPECT_EQ(batches, (std::vector<int>{2, 9, 11, 14})) << file;
  }
}

// Batches have as many launches as there is work; while no request is under way there is no step.
TEST(EngineSteps, AreItsBatches) {
  DeviceBuilder trace;
  const TraceBuilder::Thread main = trace.thread(100);
  trace.name_function(0xf1, "kernel", 0xa0);
  trace.reading(50);
  const u64 kernel = trace.text("kernel"), file = trace.text("/x/site-packages/vllm/v1/worker/gpu_model_runner.py");
  const auto place = [&](u32 id, const char* function, u32 line) {
    trace.add<StackFrame>(TraceBuilder::definitions(), "", 5, 5, [&](auto& r) {
      r.function = trace.text(function), r.file = file, r.id = id, r.parent = 0, r.line = line;
      r.language = static_cast<u32>(SourceLanguage::Python);
    });
  };
  place(1, "GPUModelRunner._dummy_run", 5000);
  place(2, "GPUModelRunner.execute_model", 4100);
  place(3, "GPUModelRunner.sample_tokens", 4300);
  u32 correlation = 0;
  Nanos now = 1000;
  const auto run = [&](u32 frame, int times) {
    trace.add<Stack>(main, "", now, now, [&](auto& r) { r.frame = frame, r.frames = 1; });
    for (int i = 0; i < times; ++i, now += 1000) {
      trace.launch(main, 0xf1, now + 10, now + 20);
      trace.key(100, ++correlation, now + 12, now + 18, now + 5000);
      trace.kernel(correlation, kernel, now + 30, now + 100, now + 5000);
    }
  };
  const auto wait = [&](u32 frame) {
    trace.add<Stack>(main, "", now, now, [&](auto& r) { r.frame = frame, r.frames = 1; });
    trace.add<Sync>(main, "cuCtxSynchronize", now + 10, now + 20, [](auto& r) { r.what = 1; });
    now += 1000;
  };
  run(1, 50);
  std::vector<std::pair<Nanos, Nanos>> wanted;
  for (int batch = 0; batch < 30; ++batch) {
    const bool after_pause = batch == 12 || batch == 20;
    if (batch == 20) wanted.back().second = now + 10, wait(2);  // a call that has nothing to run
    now += after_pause ? 900'000 : 2000;
    const Nanos begin = now + 10;
    if (!wanted.empty() && !after_pause) wanted.back().second = begin;
    run(2, 3 + batch * 7 % 11);
    if (batch == 5) now += 800'000, run(2, 1);  // compiles within it
    run(3, 2);
    wanted.emplace_back(begin, now - 1000 + 20);
  }
  now += 700'000;
  run(3, 1);  // what it does before it ends
  const StepFacts facts = trace.load_all().processes[0].steps;
  EXPECT_EQ(facts.source, StepSource::Framework);
  EXPECT_EQ(facts.evidence, "the engine ran its model 30 times, each for all requests under way");
  std::vector<std::pair<Nanos, Nanos>> steps;
  for (const Step& step : facts.steps) steps.emplace_back(step.begin, step.end);
  EXPECT_EQ(steps, wanted);
}

}  // namespace
}  // namespace gputrace
