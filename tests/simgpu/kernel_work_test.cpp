// Kernels whose end the program's side decides: what communication libraries are made of.
#include "simgpu/driver/launch/kernel_work.h"

#include <atomic>
#include <functional>

#include "tests/simgpu/graph_fixture.h"

namespace simgpu {
namespace {

// Ends 500 us after its start, once it is let go.
struct Gate {
  std::atomic<bool> open{false};
  std::atomic<int> begun{0}, released{0}, polled{0};
  std::atomic<uint64_t> ruled{~uint64_t{0}};
  uint64_t start = 0;
};

void next_kernel_waits_for(Gate& gate) {
  KernelWork work{};
  work.plan = &gate;
  work.begin = [](void* plan, const KernelStart* start) {
    Gate& own = *static_cast<Gate*>(plan);
    own.start = start->start;
    own.ruled = start->ruled;
    ++own.begun;
    return plan;
  };
  work.poll = [](void* execution, uint64_t* end) {
    Gate& own = *static_cast<Gate*>(execution);
    ++own.polled;
    *end = own.start + 500'000;
    return own.open.load();
  };
  work.release = [](void* plan) { ++static_cast<Gate*>(plan)->released; };
  EXPECT_EQ(simgpu_next_kernel(&work), 0);
}

bool comes_true(const std::function<bool()>& what) {
  for (int i = 0; i < 2000 && !what(); ++i) usleep(1000);
  return what();
}

TEST(KernelWork, HoldsItsStreamAndNothingElse) {
  const ChildEnd end = run_child(kKernelTimes, [] {
    const Loaded loaded;
    const CUstream a = new_stream(), b = new_stream();
    Gate gate;
    EXPECT_EQ(launch(loaded.function("plain"), 1, 32, a), CUDA_SUCCESS);
    next_kernel_waits_for(gate);
    EXPECT_EQ(launch(loaded.function("touch"), 4, 64, a), CUDA_SUCCESS);
    EXPECT_EQ(launch(loaded.function("plain"), 1, 32, a), CUDA_SUCCESS);
    EXPECT_EQ(launch(loaded.function("plain"), 1, 32, b), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamSynchronize(b), CUDA_SUCCESS);
    EXPECT_TRUE(comes_true([&] { return gate.polled > 3; }));
    EXPECT_EQ(cuStreamQuery(a), CUDA_ERROR_NOT_READY);
    EXPECT_EQ(gate.ruled, 300'000u);
    EXPECT_EQ(gate.released, 0);
    gate.open = true;
    EXPECT_EQ(cuStreamSynchronize(a), CUDA_SUCCESS);
    EXPECT_EQ(gate.begun, 1);
    EXPECT_TRUE(comes_true([&] { return gate.released == 1; }));
  });
  const std::vector<Json> kernels = end.lines("kernel");
  ASSERT_EQ(kernels.size(), 4u);
  EXPECT_NE(kernels[0]["stream"], kernels[1]["stream"]) << "the other stream went on";
  EXPECT_EQ(kernels[2]["symbol"], "touch");
  EXPECT_EQ(kernels[2]["grid"], Json({4, 1, 1}));
  EXPECT_EQ(start_of(kernels[2]), end_of(kernels[0]));
  EXPECT_EQ(end_of(kernels[2]) - start_of(kernels[2]), 500'000u) << "its own word, not the rule";
  EXPECT_GE(start_of(kernels[3]), end_of(kernels[2]));  // later where its call was
}

TEST(KernelWork, ARefusedLaunchTakesItAlong) {
  run_child({}, [] {
    const Loaded loaded;
    Gate gate;
    next_kernel_waits_for(gate);
    EXPECT_EQ(launch(loaded.function("plain"), 0, 32), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(gate.released, 1);
    EXPECT_EQ(launch(loaded.function("plain"), 1, 32), CUDA_SUCCESS);
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    EXPECT_EQ(gate.begun, 0);
    next_kernel_waits_for(gate);
    next_kernel_waits_for(gate);
    EXPECT_EQ(gate.released, 2) << "one that was never launched";
    EXPECT_EQ(simgpu_next_kernel(nullptr), 0);
    EXPECT_EQ(gate.released, 3);
  });
}

TEST(KernelWork, EachReplayOfACapturedOneIsAnExecution) {
  const ChildEnd end = run_child(kKernelTimes, [] {
    const Loaded loaded;
    const CUstream stream = new_stream();
    Gate gate;
    EXPECT_EQ(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
    EXPECT_EQ(launch(loaded.function("plain"), 1, 32, stream), CUDA_SUCCESS);
    next_kernel_waits_for(gate);
    EXPECT_EQ(launch(loaded.function("bounded"), 1, 32, stream), CUDA_SUCCESS);
    EXPECT_EQ(launch(loaded.function("plain"), 1, 32, stream), CUDA_SUCCESS);
    CUgraph graph = nullptr;
    EXPECT_EQ(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
    const CUgraphExec exec = instantiate(graph);
    EXPECT_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
    EXPECT_EQ(gate.begun, 0);
    for (int i = 0; i < 2; ++i) EXPECT_EQ(cuGraphLaunch(exec, stream), CUDA_SUCCESS);
    EXPECT_TRUE(comes_true([&] { return gate.polled > 3; }));
    EXPECT_EQ(gate.begun, 1);
    gate.open = true;
    EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
    EXPECT_EQ(gate.begun, 2);
    EXPECT_EQ(gate.released, 0);
    EXPECT_EQ(cuGraphExecDestroy(exec), CUDA_SUCCESS);
    EXPECT_TRUE(comes_true([&] { return gate.released == 1; }));
  });
  const std::vector<Json> kernels = end.lines("kernel");
  ASSERT_EQ(kernels.size(), 6u);
  for (size_t i = 0; i < 6; i += 3) {
    EXPECT_EQ(kernels[i + 1]["symbol"], "bounded");
    EXPECT_EQ(kernels[i + 1]["call"], "cuGraphLaunch");
    EXPECT_EQ(start_of(kernels[i + 1]), end_of(kernels[i]));
    EXPECT_EQ(end_of(kernels[i + 1]) - start_of(kernels[i + 1]), 500'000u);
    EXPECT_EQ(start_of(kernels[i + 2]), end_of(kernels[i + 1]));
  }
  const std::vector<Json> launches = end.lines("graph_launch");
  ASSERT_EQ(launches.size(), 2u);
  EXPECT_EQ(end_of(launches[0]) - start_of(launches[0]), 700'000u);
  EXPECT_GE(start_of(kernels[3]), end_of(kernels[2])) << "later where the second launch was made later";
}

}  // namespace
}  // namespace simgpu
