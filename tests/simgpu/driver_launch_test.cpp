#include "tests/simgpu/driver_fixture.h"

namespace simgpu {
namespace {

TEST(DriverLaunch, BadLaunchesAreRefused) {
  run_child({}, [] {
    const Loaded loaded;
    const CUfunction plain = loaded.function("plain");
    void* none[1] = {nullptr};
    EXPECT_EQ(launch(plain, 0, 32), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(launch(plain, 1, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(launch(plain, 1, 1025), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuLaunchKernel(plain, 1, 65536, 1, 1, 1, 1, 0, nullptr, none, nullptr), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuLaunchKernel(plain, 1, 1, 1, 1, 1, 65, 0, nullptr, none, nullptr), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(launch(plain, 1, 32, nullptr, 48 * 1024), CUDA_SUCCESS);
    EXPECT_EQ(launch(plain, 1, 32, nullptr, 48 * 1024 + 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuFuncSetAttribute(plain, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 227 * 1024), CUDA_SUCCESS);
    EXPECT_EQ(launch(plain, 1, 32, nullptr, 227 * 1024), CUDA_SUCCESS);
    EXPECT_EQ(cuFuncSetAttribute(plain, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 227 * 1024 + 1),
              CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(launch(loaded.function("bounded"), 1, 256), CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    EXPECT_EQ(cuLaunchKernel(loaded.function("touch"), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr),
              CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(launch(nullptr, 1, 32), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_EQ(launch(reinterpret_cast<CUfunction>(0xdead), 1, 32), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_EQ(launch(plain, 1, 32, reinterpret_cast<CUstream>(0xdead0)), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_EQ(cuLaunchCooperativeKernel(plain, 132 * 2 + 1, 1, 1, 1024, 1, 1, 0, nullptr, none),
              CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
    EXPECT_EQ(cuLaunchCooperativeKernel(plain, 132 * 2, 1, 1, 1024, 1, 1, 0, nullptr, none), CUDA_SUCCESS);
    CUcontext other = nullptr;
    EXPECT_EQ(cuCtxCreate(&other, nullptr, 0, 0), CUDA_SUCCESS);
    EXPECT_EQ(launch(plain, 1, 32), CUDA_ERROR_INVALID_HANDLE);  // of another context
    EXPECT_EQ(cuModuleUnload(loaded.module), CUDA_SUCCESS);
    EXPECT_EQ(cuCtxSetCurrent(loaded.context), CUDA_SUCCESS);
    EXPECT_EQ(launch(plain, 1, 32), CUDA_ERROR_INVALID_HANDLE);
  });
}

TEST(DriverLaunch, EveryWayIsOneKernelWithItsNumbers) {
  const ChildEnd end = run_child({{"SIMGPU_KERNEL_TIME", "share=7us,plain=3us"}}, [] {
    const Loaded loaded;
    const CUfunction plain = loaded.function("plain");
    void* none[1] = {nullptr};
    CUdeviceptr pointer = 0;
    void* one[1] = {&pointer};
    const CUstream stream = new_stream();
    EXPECT_EQ(cuLaunchKernel(loaded.function("shared_user"), 3, 4, 5, 8, 4, 2, 256, stream, one, nullptr),
              CUDA_SUCCESS);
    CUlaunchAttribute attribute{};
    attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attribute.value.clusterDim = {2, 1, 1};
    CUlaunchConfig config{};
    config.gridDimX = 6;
    config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
    config.blockDimX = 64;
    config.hStream = stream;
    config.attrs = &attribute;
    config.numAttrs = 1;
    EXPECT_EQ(cuLaunchKernelEx(&config, plain, none, nullptr), CUDA_SUCCESS);
    config.gridDimX = 5;
    EXPECT_EQ(cuLaunchKernelEx(&config, plain, none, nullptr), CUDA_ERROR_INVALID_VALUE);
    attribute.value.clusterDim = {16, 1, 1};
    config.gridDimX = 16;
    EXPECT_EQ(cuLaunchKernelEx(&config, plain, none, nullptr), CUDA_ERROR_INVALID_CLUSTER_SIZE);
    EXPECT_EQ(cuFuncSetBlockShape(plain, 16, 2, 1), CUDA_SUCCESS);
    EXPECT_EQ(cuLaunchGrid(plain, 9, 2), CUDA_SUCCESS);
    EXPECT_EQ(cuLaunch(plain), CUDA_SUCCESS);
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  });
  const std::vector<Json> kernels = end.lines("kernel");
  ASSERT_EQ(kernels.size(), 4u);
  EXPECT_EQ(kernels[0]["symbol"], "shared_user");
  EXPECT_EQ(kernels[0]["grid"], Json({3, 4, 5}));
  EXPECT_EQ(kernels[0]["block"], Json({8, 4, 2}));
  EXPECT_EQ(kernels[0]["dynamic_shared_bytes"], 256);
  EXPECT_EQ(kernels[0]["static_shared_bytes"], 1024);
  EXPECT_EQ(kernels[0]["registers"], nullptr);
  EXPECT_EQ(kernels[0]["graph"], nullptr);
  EXPECT_EQ(end_of(kernels[0]) - start_of(kernels[0]), 7000u);
  EXPECT_EQ(start_of(kernels[0]), kernels[0]["call_begin_ns"].get<uint64_t>() + 5000);
  EXPECT_EQ(kernels[1]["call"], "cuLaunchKernelEx");
  EXPECT_EQ(kernels[1]["cluster"], Json({2, 1, 1}));
  EXPECT_EQ(end_of(kernels[1]) - start_of(kernels[1]), 3000u);
  EXPECT_GE(start_of(kernels[1]), end_of(kernels[0]));
  EXPECT_EQ(kernels[2]["call"], "cuLaunchGrid");
  EXPECT_EQ(kernels[2]["grid"], Json({9, 2, 1}));
  EXPECT_EQ(kernels[2]["block"], Json({16, 2, 1}));
  EXPECT_EQ(kernels[3]["call"], "cuLaunch");
  EXPECT_EQ(end.lines("call", "cuLaunchKernelEx").size(), 2u);  // the failures
  EXPECT_EQ(end.lines("module")[0]["kernels"], 4);
}

TEST(DriverLaunch, AKernelHandleIsTakenForAFunction) {
  const ChildEnd end = run_child({{"SIMGPU_DEVICES", "2"}}, [] {
    const Loaded loaded;
    CUlibrary library = nullptr;
    CUkernel kernel = nullptr;
    ASSERT_EQ(cuLibraryLoadData(&library, kTestPtx, nullptr, nullptr, 0, nullptr, nullptr, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuLibraryGetKernel(&kernel, library, "plain"), CUDA_SUCCESS);
    EXPECT_EQ(launch(reinterpret_cast<CUfunction>(kernel), 2, 32), CUDA_SUCCESS);
    CUcontext second = nullptr;
    EXPECT_EQ(cuDevicePrimaryCtxRetain(&second, 1), CUDA_SUCCESS);
    EXPECT_EQ(cuCtxSetCurrent(second), CUDA_SUCCESS);
    EXPECT_EQ(launch(reinterpret_cast<CUfunction>(kernel), 2, 32), CUDA_SUCCESS);
    CUfunction here = nullptr, again = nullptr;
    EXPECT_EQ(cuKernelGetFunction(&here, kernel), CUDA_SUCCESS);
    EXPECT_EQ(cuKernelGetFunction(&again, kernel), CUDA_SUCCESS);
    EXPECT_EQ(here, again);
    const char* name = nullptr;
    EXPECT_EQ(cuFuncGetName(&name, here), CUDA_SUCCESS);
    EXPECT_STREQ(name, "plain");
    EXPECT_EQ(cuLibraryUnload(library), CUDA_SUCCESS);
    EXPECT_EQ(launch(reinterpret_cast<CUfunction>(kernel), 2, 32), CUDA_ERROR_INVALID_HANDLE);
  });
  const std::vector<Json> kernels = end.lines("kernel");
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_EQ(kernels[0]["device"], 0);
  EXPECT_EQ(kernels[1]["device"], 1);
}

TEST(DriverLaunch, DurationByTheModel) {
  const ChildEnd end = run_child({{"SIMGPU_SMS", "10"}}, [] {
    const Loaded loaded;
    EXPECT_EQ(launch(loaded.function("plain"), 20, 1024), CUDA_SUCCESS);  // 2 blocks on each of 10: one wave
    EXPECT_EQ(launch(loaded.function("plain"), 21, 1024), CUDA_SUCCESS);  // two waves
    EXPECT_EQ(launch(loaded.function("plain"), 1, 256), CUDA_SUCCESS);
  });
  const std::vector<Json> kernels = end.lines("kernel");
  ASSERT_EQ(kernels.size(), 3u);
  EXPECT_EQ(end_of(kernels[0]) - start_of(kernels[0]), 2000u + 4000u);
  EXPECT_EQ(end_of(kernels[1]) - start_of(kernels[1]), 2000u + 2 * 4000u);
  EXPECT_EQ(end_of(kernels[2]) - start_of(kernels[2]), 2000u + 1750u);
}

TEST(DriverLaunch, ProgrammaticLaunchesOverlapTheirPredecessor) {
  const ChildEnd end = run_child({{"SIMGPU_KERNEL_TIME", ".=5ms"}}, [] {
    const Loaded loaded;
    const CUstream stream = new_stream();
    void* none[1] = {nullptr};
    EXPECT_EQ(launch(loaded.function("plain"), 1, 32, stream), CUDA_SUCCESS);
    CUlaunchAttribute attribute{};
    attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    attribute.value.programmaticStreamSerializationAllowed = 1;
    CUlaunchConfig config{1, 1, 1, 32, 1, 1, 0, stream, &attribute, 1};
    EXPECT_EQ(cuLaunchKernelEx(&config, loaded.function("plain"), none, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(launch(loaded.function("plain"), 1, 32, stream), CUDA_SUCCESS);
  });
  const std::vector<Json> kernels = end.lines("kernel");
  ASSERT_EQ(kernels.size(), 3u);
  EXPECT_LT(start_of(kernels[1]), end_of(kernels[0]));
  EXPECT_GE(start_of(kernels[1]), start_of(kernels[0]));
  EXPECT_EQ(start_of(kernels[2]), end_of(kernels[1]));
}

TEST(DriverOccupancy, AgreesWithTheTables) {
  run_child({}, [] {
    const Loaded loaded;
    const CUfunction plain = loaded.function("plain");
    const CUfunction shared_user = loaded.function("shared_user");
    int blocks = 0, size = 0, grid = 0;
    EXPECT_EQ(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, plain, 256, 0), CUDA_SUCCESS);
    EXPECT_EQ(blocks, 8);  // 2048 threads
    EXPECT_EQ(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, plain, 32, 0), CUDA_SUCCESS);
    EXPECT_EQ(blocks, 32);  // the most blocks
    EXPECT_EQ(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, shared_user, 32, 48 * 1024 - 1024), CUDA_SUCCESS);
    EXPECT_EQ(blocks, 4);  // 228 KiB in parts of 49
    EXPECT_EQ(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, plain, 0, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuOccupancyMaxPotentialBlockSize(&grid, &size, plain, nullptr, 0, 0), CUDA_SUCCESS);
    EXPECT_EQ(size, 1024);
    EXPECT_EQ(grid, 264);
    size_t free = 0;
    EXPECT_EQ(cuOccupancyAvailableDynamicSMemPerBlock(&free, plain, 2, 256), CUDA_SUCCESS);
    EXPECT_EQ(free, size_t{113 * 1024});
  });
}

}  // namespace
}  // namespace simgpu
