// Advice speaks of a framework only where that framework makes the calls.
#include "analysis/advice/advice.h"

#include <gtest/gtest.h>

namespace gputrace {
namespace {

constexpr Maker kMakers[] = {Maker::General,         Maker::PyTorch,    Maker::Jax,
                             Maker::TensorFlow,      Maker::Numba,      Maker::CuPy,
                             Maker::Transformers,    Maker::Lightning,  Maker::Keras,
                             Maker::KerasOnPyTorch,  Maker::KerasOnJax, Maker::KerasOnTensorFlow,
                             Maker::CompiledPyTorch, Maker::Vllm,       Maker::Sglang};
constexpr Advice kAll[] = {
    // some more than once
#define GT_ADVICE(what, maker, words) Advice::what,
#include "analysis/advice/advice.def"
#undef GT_ADVICE
};

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// A process whose calls come from stacks of files, outermost first.
class Program {
 public:
  Program() { process_.lines.frames.emplace_back(); }

  Program& calls(const std::vector<std::string>& files, u64 launches, const std::string& operation = "",
                 const std::string& function = "f") {
    SourceLines& lines = process_.lines;
    CallOrigin origin;
    for (const std::string& file : files) origin.frame = frame(function, file, origin.frame);
    if (!operation.empty()) origin.operation = frame(operation, "", 0);
    if (operation.find("jit(") != std::string::npos) lines.frames[origin.operation].xla = true;
    lines.origins.push_back(origin);
    lines.totals.resize(lines.origins.size());
    lines.totals.back().calls = lines.totals.back().launches = launches;
    return *this;
  }
  Program& executable(const std::string& path) { return process_.who.executable = path, *this; }
  operator const ProcessTrace&() const { return process_; }

 private:
  u32 frame(const std::string& function, const std::string& file, u32 parent) {
    SourceFrame& made = process_.lines.frames.emplace_back();
    made.function = function, made.file = file, made.parent = parent;
    return static_cast<u32>(process_.lines.frames.size() - 1);
  }
  ProcessTrace process_;
};

const std::string kPackages = "/home/me/venv/lib/python3.11/site-packages/";

TEST(Advice, GeneralWordsNameNoFramework) {
  for (const Advice what : kAll) {
    for (const char* const name : {"torch", "jax", "tf.", "eras", "cupy", "to_device", "DataLoader", "prefetch_factor",
                                   "TrainingArguments", ".item()"})
      EXPECT_FALSE(has(advise(what, Maker::General), name)) << advise(what, Maker::General);
  }
}

TEST(Advice, WordsOfOthersAreNotGiven) {
  for (const Advice what : kAll) {
    for (const Maker maker : kMakers) {
      const std::string words = advise(what, maker);
      const bool torch = maker == Maker::PyTorch || maker == Maker::Transformers || maker == Maker::Lightning ||
                         maker == Maker::CompiledPyTorch || maker == Maker::KerasOnPyTorch || maker == Maker::Vllm ||
                         maker == Maker::Sglang;
      EXPECT_TRUE(torch || !has(words, "torch.")) << words;
      EXPECT_TRUE(maker == Maker::Jax || maker == Maker::KerasOnJax || !has(words, "jax.")) << words;
      EXPECT_TRUE(maker == Maker::Transformers || !has(words, "TrainingArguments")) << words;
      EXPECT_TRUE(maker == Maker::Vllm || !has(words, "max_num_seqs")) << words;
      EXPECT_TRUE(maker == Maker::Sglang || !has(words, "max_running_requests")) << words;
      EXPECT_TRUE(maker == Maker::CuPy || !has(words, "cupy")) << words;
      EXPECT_TRUE(maker == Maker::TensorFlow || maker == Maker::KerasOnTensorFlow || !has(words, "tf.")) << words;
    }
  }
}

TEST(Advice, WhoStandsOnAFrameworkHasItsWords) {
  EXPECT_EQ(advise(Advice::PinMemory, Maker::Lightning), advise(Advice::PinMemory, Maker::PyTorch));
  EXPECT_EQ(advise(Advice::PinMemory, Maker::Keras), advise(Advice::PinMemory, Maker::General));
  EXPECT_EQ(advise(Advice::NarrowTypes, Maker::KerasOnJax), advise(Advice::NarrowTypes, Maker::Keras));
  EXPECT_EQ(advise(Advice::MakeAhead, Maker::KerasOnTensorFlow), advise(Advice::MakeAhead, Maker::TensorFlow));
  EXPECT_NE(advise(Advice::FewerLaunches, Maker::KerasOnPyTorch), advise(Advice::FewerLaunches, Maker::KerasOnJax));
  EXPECT_NE(advise(Advice::FewerLaunches, Maker::Transformers), advise(Advice::FewerLaunches, Maker::PyTorch));
  EXPECT_EQ(advise(Advice::ReadsResults, Maker::General), "");
}

TEST(Advice, IsOfWhoMakesMostCalls) {
  const std::vector<std::string> own{"/home/me/train.py"};
  const auto by = [](const Program& program) { return calls_made(program).by; };
  EXPECT_EQ(by(Program()), Maker::General);
  EXPECT_EQ(by(Program().calls(own, 10)), Maker::General);
  EXPECT_EQ(by(Program().calls(own, 80, "aten::mm").calls(own, 20, "Torch-Compiled Region: 0/1")),
            Maker::CompiledPyTorch);
  EXPECT_EQ(by(Program().calls(own, 95, "aten::mm").calls(own, 5, "CompiledFunction")), Maker::PyTorch);
  EXPECT_EQ(by(Program().calls(own, 10, "aten::mm")), Maker::PyTorch) << "the line itself is the program's";
  EXPECT_EQ(by(Program().calls({}, 10, "aten::mm").executable("/usr/bin/python3.11")), Maker::PyTorch) << "no lines";
  EXPECT_EQ(by(Program().calls({}, 10, "aten::mm").executable("/opt/bin/solver")), Maker::General)
      << "libtorch, in C++";
  EXPECT_EQ(by(Program().calls({"/home/me/train.py", kPackages + "torch/nn/modules/linear.py"}, 10)), Maker::PyTorch);
  EXPECT_EQ(by(Program().calls({"/home/me/train.py", kPackages + "jax/_src/pjit.py"}, 10).calls(own, 9, "aten::mm")),
            Maker::Jax);
  EXPECT_EQ(by(Program().calls({"/home/me/train.py", kPackages + "jax/_src/pjit.py"}, 9).calls(own, 10, "aten::mm")),
            Maker::PyTorch);
  EXPECT_EQ(by(Program().calls({kPackages + "jax/_src/pjit.py"}, 5).calls({}, 100)), Maker::Jax) << "XLA's own threads";
  const std::string fusion = "fusion (jit(step)/add)";
  EXPECT_EQ(by(Program().calls({kPackages + "jax/_src/dispatch.py"}, 2).calls(own, 100, fusion)), Maker::Jax)
      << "a jitted function, called again";
  EXPECT_EQ(by(Program().calls({kPackages + "tensorflow/python/eager/execute.py"}, 2).calls(own, 100, fusion)),
            Maker::TensorFlow);
  EXPECT_EQ(by(Program().calls(own, 100, fusion)), Maker::General) << "whoever uses XLA there";
  EXPECT_EQ(by(Program().calls({kPackages + "jax/_src/dispatch.py"}, 2).calls(own, 100)), Maker::General);
  const std::vector<std::string> keras{"/home/me/train.py", kPackages + "keras/src/backend/tensorflow/trainer.py",
                                       kPackages + "tensorflow/python/eager/execute.py"};
  EXPECT_EQ(by(Program().calls(keras, 0).calls({}, 100)), Maker::KerasOnTensorFlow)
      << "all of the loop's calls are theirs";
  EXPECT_EQ(by(Program().calls({kPackages + "tensorflow/python/eager/execute.py"}, 1)), Maker::TensorFlow);
  EXPECT_EQ(by(Program().calls({"/home/me/heat.py", kPackages + "numba_cuda/numba/cuda/dispatcher.py"}, 1)),
            Maker::Numba);
  EXPECT_EQ(by(Program().calls({"/home/me/heat.py", kPackages + "cupy/_core/core.pyx"}, 1)), Maker::CuPy);
  EXPECT_EQ(by(Program().calls({"/home/me/torch/mine.py"}, 10)), Maker::General) << "a folder of that name";
}

TEST(Advice, OfATrainerIsTheTrainers) {
  const auto by = [](const std::vector<std::string>& files, const std::string& operation) {
    return calls_made(Program().calls(files, 10, operation).calls({"/home/me/train.py"}, 3, operation)).by;
  };
  EXPECT_EQ(by({"/home/me/train.py", kPackages + "transformers/trainer.py"}, "aten::mm"), Maker::Transformers);
  EXPECT_EQ(by({"/home/me/train.py", kPackages + "transformers/models/bert/modeling_bert.py"}, "aten::mm"),
            Maker::PyTorch)
      << "a model, in a loop of the program's";
  EXPECT_EQ(by({"/home/me/train.py", kPackages + "lightning/pytorch/loops/fit_loop.py"}, "aten::mm"), Maker::Lightning);
  EXPECT_EQ(by({"/home/me/serve.py", kPackages + "vllm/v1/engine/core.py", kPackages + "torch/nn/modules/module.py"},
               "aten::mm"),
            Maker::Vllm);
  EXPECT_EQ(by({kPackages + "sglang/srt/managers/scheduler.py", kPackages + "torch/nn/modules/module.py"}, "aten::mm"),
            Maker::Sglang);
  EXPECT_EQ(by({"/home/me/train.py", kPackages + "keras/src/backend/torch/trainer.py"}, "aten::mm"),
            Maker::KerasOnPyTorch);
  EXPECT_EQ(by({"/home/me/train.py", kPackages + "keras/src/backend/tensorflow/trainer.py",
                kPackages + "keras/src/utils/x.py"},
               ""),
            Maker::KerasOnTensorFlow);
  EXPECT_EQ(by({"/home/me/train.py", kPackages + "keras/src/backend/jax/trainer.py", kPackages + "jax/_src/pjit.py"},
               "fusion (jit(train_step)/add)"),
            Maker::KerasOnJax);
}

TEST(Advice, AnOptimizerThatLaunchesMuchIsNamed) {
  const std::vector<std::string> own{"/home/me/train.py"};
  const std::vector<std::string> step{"/home/me/train.py", kPackages + "torch/optim/sgd.py"};
  const auto words = [&](u64 of_step, const std::string& function) {
    return fewer_launches(Program().calls(own, 100 - of_step, "aten::mm").calls(step, of_step, "aten::mul_", function));
  };
  EXPECT_TRUE(has(words(60, "step"), "fused=True")) << words(60, "step");
  EXPECT_FALSE(has(words(10, "step"), "fused=True")) << words(10, "step");
  EXPECT_TRUE(has(words(60, "step"), "torch.compile")) << "and what holds for all launches";
  EXPECT_TRUE(has(words(60, "zero_grad"), "set_to_none")) << words(60, "zero_grad");
  EXPECT_FALSE(has(words(60, "zero_grad"), "fused=True")) << words(60, "zero_grad");
}

TEST(Advice, GraphBreaksAreNamed) {
  const auto words = [](u64 at_7, u64 at_12) {
    return without_graph_breaks(
        Program()
            .calls({"/home/me/train.py"}, 500, "aten::mm", "forward")
            .calls({"/home/me/train.py", "/home/me/train.py"}, at_7, "", "Net.torch_dynamo_resume_in_forward_at_7")
            .calls({"/home/me/net.py"}, at_12, "", "torch_dynamo_resume_in_block_at_12"));
  };
  EXPECT_EQ(words(30, 16),
            "no graph breaks in what is compiled (at train.py:7, net.py:12; TORCH_LOGS=graph_breaks says why)");
  EXPECT_EQ(words(15, 16), "no graph breaks in what is compiled (at net.py:12; TORCH_LOGS=graph_breaks says why)");
  EXPECT_EQ(words(0, 15), "");
  const std::string all =
      fewer_launches(Program().calls({"/home/me/net.py"}, 16, "", "torch_dynamo_resume_in_block_at_12"));
  EXPECT_EQ(all.rfind("no graph breaks in what is compiled (at net.py:12;", 0), 0u) << all;
}

TEST(Advice, WhoReplaysGraphsIsNotToldToUseThem) {
  const auto words = [](u64 plain) {
    Program program;
    program.calls({"/home/me/train.py"}, 10, "aten::mm");
    ProcessTrace process = program;
    Graph graph;
    graph.launches = 90, graph.kernel_nodes = 100;
    process.graphs.push_back(graph);
    process.plain_launches = plain;
    return fewer_launches(process);
  };
  EXPECT_EQ(words(1'000), "larger batches, several steps in one graph");
  EXPECT_TRUE(has(words(1'001), "reduce-overhead")) << words(1'001);
}

TEST(Advice, DataParallelIsNamedWhereItLaunches) {
  const auto words = [](u64 of_replicas) {
    const std::vector<std::string> replica{kPackages + "torch/nn/parallel/parallel_apply.py",
                                           kPackages + "torch/nn/modules/module.py", "/home/me/train.py"};
    return fewer_launches(Program()
                              .calls({"/home/me/train.py"}, 100 - of_replicas, "aten::mm")
                              .calls(replica, of_replicas, "aten::mm", "forward"));
  };
  EXPECT_TRUE(has(words(60), "DistributedDataParallel")) << words(60);
  EXPECT_FALSE(has(words(10), "DistributedDataParallel")) << words(10);
}

}  // namespace
}  // namespace gputrace
