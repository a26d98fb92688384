// The stand-in of NCCL, called as programs call it: ranks in processes and in threads of one.
#include <cuda.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "simgpu/libs/nccl/types.h"
#include "tests/simgpu/driver_fixture.h"

#if !defined(SIMLIBS_VENDOR_HEADERS)
extern "C" {
ncclResult_t ncclGetUniqueId(ncclUniqueId*);
ncclResult_t ncclCommInitRank(ncclComm_t*, int, ncclUniqueId, int);
ncclResult_t ncclCommInitRankConfig(ncclComm_t*, int, ncclUniqueId, int, ncclConfig_t*);
ncclResult_t ncclCommInitAll(ncclComm_t*, int, const int*);
ncclResult_t ncclCommSplit(ncclComm_t, int, int, ncclComm_t*, ncclConfig_t*);
ncclResult_t ncclCommShrink(ncclComm_t, int*, int, ncclComm_t*, ncclConfig_t*, int);
ncclResult_t ncclCommDestroy(ncclComm_t);
ncclResult_t ncclCommAbort(ncclComm_t);
ncclResult_t ncclCommGetAsyncError(ncclComm_t, ncclResult_t*);
ncclResult_t ncclCommCount(ncclComm_t, int*);
ncclResult_t ncclCommUserRank(ncclComm_t, int*);
ncclResult_t ncclCommCuDevice(ncclComm_t, int*);
ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t*, void*, ncclDataType_t, ncclScalarResidence_t, ncclComm_t);
ncclResult_t ncclAllReduce(const void*, void*, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t, cudaStream_t);
ncclResult_t ncclReduce(const void*, void*, size_t, ncclDataType_t, ncclRedOp_t, int, ncclComm_t, cudaStream_t);
ncclResult_t ncclReduceScatter(const void*, void*, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t, cudaStream_t);
ncclResult_t ncclBroadcast(const void*, void*, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t);
ncclResult_t ncclAllGather(const void*, void*, size_t, ncclDataType_t, ncclComm_t, cudaStream_t);
ncclResult_t ncclAlltoAll(const void*, void*, size_t, ncclDataType_t, ncclComm_t, cudaStream_t);
ncclResult_t ncclGather(const void*, void*, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t);
ncclResult_t ncclScatter(const void*, void*, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t);
ncclResult_t ncclSend(const void*, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t);
ncclResult_t ncclRecv(void*, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t);
ncclResult_t ncclGroupStart();
ncclResult_t ncclGroupEnd();
ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t*);
}
#endif

namespace simgpu {
namespace {

#define FINE(call) EXPECT_EQ(call, ncclSuccess)
#define DONE(call) EXPECT_EQ(call, CUDA_SUCCESS)

void use_device(int device) {
  CUcontext context = nullptr;
  DONE(cuInit(0));
  DONE(cuDevicePrimaryCtxRetain(&context, device));
  DONE(cuCtxSetCurrent(context));
}

struct Rank {
  int rank = 0, ranks = 1;
  ncclComm_t comm = nullptr;
  CUstream driver_stream = nullptr;
  cudaStream_t stream = nullptr;

  void join(const ncclUniqueId& id) {
    use_device(rank % 2);
    driver_stream = new_stream();
    stream = reinterpret_cast<cudaStream_t>(driver_stream);
    FINE(ncclCommInitRank(&comm, ranks, id, rank));
  }
  void wait() const { DONE(cuStreamSynchronize(driver_stream)); }
};

// Device memory with a program's numbers in it.
template <typename T>
struct Numbers {
  CUdeviceptr address = 0;
  size_t count = 0;
  explicit Numbers(const std::vector<T>& values) : count(values.size()) {
    DONE(cuMemAlloc(&address, count * sizeof(T)));
    DONE(cuMemcpyHtoD(address, values.data(), count * sizeof(T)));
  }
  Numbers(size_t n, T value) : Numbers(std::vector<T>(n, value)) {}
  T* data() const { return reinterpret_cast<T*>(address); }
  std::vector<T> read() const {
    std::vector<T> values(count);
    DONE(cuMemcpyDtoH(values.data(), address, count * sizeof(T)));
    return values;
  }
};

// Each rank in a process of its own; what fails in one fails the test. Returns the truth of rank 0.
ChildEnd run_ranks(int ranks, const std::function<void(Rank&)>& body, const Variables& variables = {}) {
  ncclUniqueId id;
  FINE(ncclGetUniqueId(&id));
  const auto run = [&](int rank) {
    setenv("SIMGPU_DEVICES", "2", 1);
    alarm(60);
    Rank own{rank, ranks};
    own.join(id);
    body(own);
    own.wait();
    FINE(ncclCommDestroy(own.comm));
  };
  std::vector<pid_t> others;
  std::fflush(nullptr);
  for (int rank = 1; rank < ranks; ++rank) {
    const pid_t child = fork();
    if (child == 0) {
      for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
      run(rank);
      std::fflush(nullptr);
      _exit(testing::Test::HasFailure() ? 1 : 0);
    }
    others.push_back(child);
  }
  const ChildEnd first = run_child(variables, [&] { run(0); });
  for (const pid_t child : others) {
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  return first;
}

using Floats = std::vector<float>;

TEST(Nccl, MovesAndAddsBetweenProcesses) {
  run_ranks(3, [](Rank& own) {
    const auto r = static_cast<float>(own.rank);
    const Numbers<float> mine({r, 10 * r, 100 * r}), nine(9, -1.0f), three(3, -1.0f);
    FINE(ncclAllReduce(mine.data(), three.data(), 3, ncclFloat32, ncclSum, own.comm, own.stream));
    own.wait();
    EXPECT_EQ(three.read(), (Floats{3, 30, 300}));
    FINE(ncclAllReduce(mine.data(), three.data(), 3, ncclFloat32, ncclAvg, own.comm, own.stream));
    own.wait();
    EXPECT_EQ(three.read(), (Floats{1, 10, 100}));
    FINE(ncclReduce(mine.data(), three.data(), 3, ncclFloat32, ncclMax, 1, own.comm, own.stream));
    own.wait();
    EXPECT_EQ(three.read(), own.rank == 1 ? (Floats{2, 20, 200}) : (Floats{1, 10, 100})) << "at the root alone";
    FINE(ncclAllGather(mine.data(), nine.data(), 3, ncclFloat32, own.comm, own.stream));
    own.wait();
    EXPECT_EQ(nine.read(), (Floats{0, 0, 0, 1, 10, 100, 2, 20, 200}));
    FINE(ncclReduceScatter(nine.data(), three.data(), 3, ncclFloat32, ncclSum, own.comm, own.stream));
    own.wait();
    EXPECT_EQ(three.read(), (Floats{3 * r, 30 * r, 300 * r}));
    FINE(ncclBroadcast(mine.data(), three.data(), 3, ncclFloat32, 2, own.comm, own.stream));
    own.wait();
    EXPECT_EQ(three.read(), (Floats{2, 20, 200}));
    // Each sends its i-th number to rank i.
    FINE(ncclAlltoAll(mine.data(), three.data(), 1, ncclFloat32, own.comm, own.stream));
    own.wait();
    const float tens[] = {1, 10, 100};
    EXPECT_EQ(three.read(), (Floats{0, tens[own.rank], 2 * tens[own.rank]}));
    FINE(ncclGather(mine.data(), nine.data(), 3, ncclFloat32, 1, own.comm, own.stream));
    FINE(ncclScatter(nine.data(), three.data(), 3, ncclFloat32, 1, own.comm, own.stream));
    own.wait();
    EXPECT_EQ(three.read(), (Floats{r, 10 * r, 100 * r}));
  });
}

TEST(Nccl, KnowsEveryType) {
  run_ranks(2, [](Rank& own) {
    const bool first = own.rank == 0;
    const auto sum = [&]<typename T>(ncclDataType_t type, T a, T b, T expected, ncclRedOp_t op = ncclSum) {
      const Numbers<T> value(5, first ? a : b);
      FINE(ncclAllReduce(value.data(), value.data(), 5, type, op, own.comm, own.stream));
      own.wait();
      EXPECT_EQ(value.read(), std::vector<T>(5, expected)) << type << ' ' << op;
    };
    sum(ncclInt8, int8_t{-3}, int8_t{5}, int8_t{2});
    sum(ncclUint8, uint8_t{200}, uint8_t{100}, uint8_t{44});
    sum(ncclInt32, -3, 5, -15, ncclProd);
    sum(ncclUint32, 3u, 5u, 3u, ncclMin);
    sum(ncclInt64, int64_t{1} << 40, int64_t{5}, (int64_t{1} << 40) + 5);
    sum(ncclUint64, ~uint64_t{0}, uint64_t{1}, ~uint64_t{0}, ncclMax);
    sum(ncclFloat64, 1e300, 1e299, 1.1e300);
    sum(ncclFloat16, uint16_t{0x3c00}, uint16_t{0x4000}, uint16_t{0x4200});  // 1 + 2 = 3
    sum(ncclFloat16, uint16_t{0x7bff}, uint16_t{0x7bff}, uint16_t{0x7c00});  // 65504 · 2 = infinity
    sum(ncclFloat16, uint16_t{0x0001}, uint16_t{0x8003}, uint16_t{0x8002});  // subnormal
    sum(ncclBfloat16, uint16_t{0x3f80}, uint16_t{0x4000}, uint16_t{0x4040});
    sum(ncclFloat8e4m3, uint8_t{0x38}, uint8_t{0x40}, uint8_t{0x44});  // 1 + 2 = 3
    sum(ncclFloat8e5m2, uint8_t{0x3c}, uint8_t{0x40}, uint8_t{0x42});
    float factor = 0.5f;
    ncclRedOp_t half{};
    FINE(ncclRedOpCreatePreMulSum(&half, &factor, ncclFloat32, ncclScalarHostImmediate, own.comm));
    sum(ncclFloat32, 3.0f, 8.0f, 5.5f, half);
  });
}

TEST(Nccl, MegabytesArriveWhole) {
  run_ranks(2, [](Rank& own) {
    constexpr size_t kCount = 3'000'001;
    std::vector<int> values(kCount);
    for (size_t i = 0; i < kCount; ++i) values[i] = static_cast<int>(i) * (own.rank + 1);
    const Numbers<int> memory(values);
    for (int round = 0; round < 3; ++round)
      FINE(ncclAllReduce(memory.data(), memory.data(), kCount, ncclInt32, ncclSum, own.comm, own.stream));
    own.wait();
    for (size_t i = 0; i < kCount; ++i) values[i] = static_cast<int>(i) * 12;
    EXPECT_EQ(memory.read(), values) << "(1 + 2) · 2 · 2";
  });
}

TEST(Nccl, MessagesInAGroupNeedNoOrder) {
  run_ranks(2, [](Rank& own) {
    const int peer = 1 - own.rank;
    std::vector<Numbers<int>> out, in;
    for (int i = 0; i < 5; ++i)
      out.emplace_back(Numbers<int>(1, 10 * own.rank + i)), in.emplace_back(Numbers<int>(1, -1));
    FINE(ncclGroupStart());
    for (int i = 0; i < 5; ++i)
      FINE(ncclSend(out[static_cast<size_t>(i)].data(), 1, ncclInt32, peer, own.comm, own.stream));
    for (int i = 0; i < 5; ++i)
      FINE(ncclRecv(in[static_cast<size_t>(i)].data(), 1, ncclInt32, peer, own.comm, own.stream));
    FINE(ncclGroupEnd());
    own.wait();
    for (int i = 0; i < 5; ++i)
      EXPECT_EQ(in[static_cast<size_t>(i)].read(), std::vector<int>{10 * peer + i}) << "in the order of the sends";
  });
}

TEST(Nccl, OneKernelAnOperationOneAGroup) {
  const ChildEnd end = run_ranks(2, [](Rank& own) {
    const Numbers<float> a(1 << 20, 1.0f), b(1 << 20, 2.0f);
    FINE(ncclAllReduce(a.data(), a.data(), 1 << 20, ncclFloat32, ncclSum, own.comm, own.stream));
    FINE(ncclGroupStart());
    FINE(ncclAllGather(a.data(), b.data(), 1000, ncclFloat32, own.comm, own.stream));
    FINE(ncclAllReduce(a.data(), a.data(), 1000, ncclFloat32, ncclSum, own.comm, own.stream));
    FINE(ncclGroupEnd());
    FINE(ncclAllReduce(a.data(), a.data(), 0, ncclFloat32, ncclSum, own.comm, own.stream));
    FINE(ncclGroupStart());
    FINE(ncclAllReduce(a.data(), a.data(), 50 << 10, ncclInt32, ncclSum, own.comm, own.stream));
    ncclSimInfo_t info{};
    FINE(ncclGroupSimulateEnd(&info));
    EXPECT_NEAR(info.estimatedTime, 2 + 2 + 4 * 50 * 1024 / 53687.0912, 0.01);
    own.wait();
  });
  const std::vector<Json> kernels = end.lines("kernel");
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_EQ(kernels[0]["symbol"], "_Z39ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE");
  EXPECT_EQ(kernels[1]["symbol"], "_Z31ncclDevKernel_AllGather_RING_LL24ncclDevKernelArgsStorageILm4096EE");
  EXPECT_EQ(kernels[0]["grid"], Json({16, 1, 1}));
  EXPECT_EQ(kernels[0]["block"], Json({640, 1, 1}));
  EXPECT_GT(kernels[0]["registers"].get<int>(), 0);
  // 2(n−1)/n · 4 MiB ÷ 50 GiB/s + 2 hops + 2 us, and the wait for the other.
  EXPECT_GE(end_of(kernels[0]) - start_of(kernels[0]), 78'125u + 4'000);
}

TEST(Nccl, AKernelLastsUntilTheLastRankHasCome) {
  for (const bool ruled : {false, true}) {
    const ChildEnd end = run_ranks(
        2,
        [](Rank& own) {
          const Numbers<float> a(4, 1.0f);
          FINE(ncclAllReduce(a.data(), a.data(), 4, ncclFloat32, ncclSum, own.comm, own.stream));
          own.wait();
          if (own.rank == 1) usleep(200'000);
          FINE(ncclAllReduce(a.data(), a.data(), 4, ncclFloat32, ncclSum, own.comm, own.stream));
        },
        ruled ? Variables{{"SIMGPU_KERNEL_TIME", "AllReduce=40us"}} : Variables{});
    const std::vector<Json> kernels = end.lines("kernel");
    ASSERT_EQ(kernels.size(), 2u);
    EXPECT_GT(end_of(kernels[1]) - start_of(kernels[1]), 150'000'000u);
  }
}

TEST(Nccl, SplitsByColorAndKey) {
  run_ranks(4, [](Rank& own) {
    ncclComm_t half = nullptr, none = nullptr, fewer = nullptr;
    // The later a rank, the earlier in the child.
    FINE(ncclCommSplit(own.comm, own.rank % 2, -own.rank, &half, nullptr));
    int rank = -1, ranks = 0;
    FINE(ncclCommCount(half, &ranks));
    FINE(ncclCommUserRank(half, &rank));
    EXPECT_EQ(ranks, 2);
    EXPECT_EQ(rank, own.rank < 2 ? 1 : 0);
    const Numbers<int> value(1, own.rank);
    FINE(ncclAllReduce(value.data(), value.data(), 1, ncclInt32, ncclSum, half, own.stream));
    own.wait();
    EXPECT_EQ(value.read(), std::vector<int>{own.rank % 2 == 0 ? 2 : 4});
    FINE(ncclCommSplit(own.comm, own.rank == 3 ? NCCL_SPLIT_NOCOLOR : 7, 0, &none, nullptr));
    EXPECT_EQ(none == nullptr, own.rank == 3);
    if (own.rank != 1) {
      int excluded[] = {1};
      FINE(ncclCommShrink(own.comm, excluded, 1, &fewer, nullptr, 0));
      FINE(ncclCommCount(fewer, &ranks));
      EXPECT_EQ(ranks, 3);
      FINE(ncclCommDestroy(fewer));
    }
    FINE(ncclCommDestroy(half));
    FINE(ncclCommDestroy(none)) << "nothing to do for null";
  });
}

TEST(Nccl, RanksOfOneThreadInAGroup) {
  run_child({{"SIMGPU_DEVICES", "2"}}, [] {
    alarm(60);
    use_device(0);
    ncclComm_t comms[2]{};
    FINE(ncclCommInitAll(comms, 2, nullptr));
    std::vector<CUstream> streams;
    std::vector<Numbers<int>> values;
    for (int i = 0; i < 2; ++i) {
      int device = -1;
      FINE(ncclCommCuDevice(comms[i], &device));
      EXPECT_EQ(device, i);
      use_device(i);
      streams.push_back(new_stream());
      values.emplace_back(Numbers<int>(3, i + 1));
    }
    FINE(ncclGroupStart());
    for (size_t i = 0; i < 2; ++i) {
      FINE(ncclAllReduce(values[i].data(), values[i].data(), 3, ncclInt32, ncclSum, comms[i],
                         reinterpret_cast<cudaStream_t>(streams[i])));
    }
    FINE(ncclGroupEnd());
    for (size_t i = 0; i < 2; ++i) {
      DONE(cuStreamSynchronize(streams[i]));
      EXPECT_EQ(values[i].read(), std::vector<int>(3, 3));
    }
    for (ncclComm_t comm : comms) FINE(ncclCommDestroy(comm));
  });
}

TEST(Nccl, RanksOfThreadsThatDoNotBlock) {
  run_child({{"SIMGPU_DEVICES", "2"}}, [] {
    alarm(60);
    ncclUniqueId id;
    FINE(ncclGetUniqueId(&id));
    std::vector<std::thread> threads;
    threads.reserve(2);
    for (int rank = 0; rank < 2; ++rank) {
      threads.emplace_back([rank, &id] {
        use_device(rank);
        if (rank == 1) usleep(50'000);
        ncclConfig_t config{};
        std::memset(&config, 0, sizeof config);
        config.size = sizeof config;
        config.magic = NCCL_API_MAGIC;
        config.version = kNcclVersion;
        config.blocking = 0;
        ncclComm_t comm = nullptr;
        const ncclResult_t begun = ncclCommInitRankConfig(&comm, 2, id, rank, &config);
        if (rank == 0) {
          EXPECT_EQ(begun, ncclInProgress);
        }
        ncclResult_t state = ncclInProgress;
        while (state == ncclInProgress) FINE(ncclCommGetAsyncError(comm, &state));
        FINE(state);
        const CUstream stream = new_stream();
        const Numbers<int> value(1, rank);
        FINE(ncclAllReduce(value.data(), value.data(), 1, ncclInt32, ncclSum, comm,
                           reinterpret_cast<cudaStream_t>(stream)));
        DONE(cuStreamSynchronize(stream));
        EXPECT_EQ(value.read(), std::vector<int>{1});
        FINE(ncclCommDestroy(comm));
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
}

TEST(Nccl, ReplaysOfAGraphMoveBytesEachTime) {
  const ChildEnd end = run_ranks(2, [](Rank& own) {
    const Numbers<int> value(1, 1);
    DONE(cuStreamBeginCapture(own.driver_stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    FINE(ncclAllReduce(value.data(), value.data(), 1, ncclInt32, ncclSum, own.comm, own.stream));
    CUgraph graph = nullptr;
    CUgraphExec exec = nullptr;
    DONE(cuStreamEndCapture(own.driver_stream, &graph));
    DONE(cuGraphInstantiate(&exec, graph, 0));
    for (int i = 0; i < 3; ++i) DONE(cuGraphLaunch(exec, own.driver_stream));
    FINE(ncclAllReduce(value.data(), value.data(), 1, ncclInt32, ncclSum, own.comm, own.stream));
    own.wait();
    EXPECT_EQ(value.read(), std::vector<int>{16});
    DONE(cuGraphExecDestroy(exec));
    DONE(cuGraphDestroy(graph));
  });
  EXPECT_EQ(end.lines("kernel").size(), 4u);
  EXPECT_EQ(end.lines("node").size(), 1u);
}

TEST(Nccl, AnotherStreamComesAfterTheOneBefore) {
  const ChildEnd end = run_ranks(2, [](Rank& own) {
    const Numbers<int> value(1, 1);
    for (int i = 0; i < 4; ++i) {
      const CUstream stream = new_stream();
      FINE(ncclAllReduce(value.data(), value.data(), 1, ncclInt32, ncclSum, own.comm,
                         reinterpret_cast<cudaStream_t>(stream)));
    }
    DONE(cuCtxSynchronize());
    EXPECT_EQ(value.read(), std::vector<int>{16});
  });
  EXPECT_EQ(end.lines("kernel").size(), 4u);
}

TEST(Nccl, ARankThatDiesIsAnErrorAndAbortFrees) {
  run_ranks(2, [](Rank& own) {
    const Numbers<int> value(1, 1);
    FINE(ncclAllReduce(value.data(), value.data(), 1, ncclInt32, ncclSum, own.comm, own.stream));
    own.wait();
    if (own.rank == 1) _exit(0);
    FINE(ncclAllReduce(value.data(), value.data(), 1, ncclInt32, ncclSum, own.comm, own.stream));
    ncclResult_t state = ncclSuccess;
    for (int i = 0; i < 5000 && state == ncclSuccess; ++i) {
      FINE(ncclCommGetAsyncError(own.comm, &state));
      usleep(1000);
    }
    EXPECT_EQ(state, ncclRemoteError);
    EXPECT_EQ(cuStreamQuery(own.driver_stream), CUDA_ERROR_NOT_READY) << "it hangs until it is aborted";
    FINE(ncclCommAbort(own.comm));
    own.wait();
    ncclUniqueId id;
    FINE(ncclGetUniqueId(&id));
    FINE(ncclCommInitRank(&own.comm, 1, id, 0));
  });
}

TEST(Nccl, BadCallsAreRefused) {
  run_ranks(2, [](Rank& own) {
    const Numbers<int> value(1, 1);
    int ranks = 0;
    EXPECT_EQ(ncclAllReduce(nullptr, value.data(), 1, ncclInt32, ncclSum, own.comm, own.stream), ncclInvalidArgument);
    EXPECT_EQ(
        ncclAllReduce(value.data(), value.data(), 1, static_cast<ncclDataType_t>(12), ncclSum, own.comm, own.stream),
        ncclInvalidArgument);
    EXPECT_EQ(
        ncclAllReduce(value.data(), value.data(), 1, ncclInt32, static_cast<ncclRedOp_t>(5), own.comm, own.stream),
        ncclInvalidArgument);
    EXPECT_EQ(ncclBroadcast(value.data(), value.data(), 1, ncclInt32, 2, own.comm, own.stream), ncclInvalidArgument);
    EXPECT_EQ(ncclCommCount(reinterpret_cast<ncclComm_t>(0x1234), &ranks), ncclInvalidArgument);
    EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
    FINE(ncclGroupStart());
    EXPECT_EQ(ncclSend(nullptr, 1, ncclInt32, 0, own.comm, own.stream), ncclInvalidArgument);
    EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument);
    ncclUniqueId nobody{};
    ncclComm_t comm = nullptr;
    EXPECT_EQ(ncclCommInitRank(&comm, 2, nobody, 0), ncclSystemError);
  });
}

}  // namespace
}  // namespace simgpu
