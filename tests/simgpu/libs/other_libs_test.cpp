// Stand-ins that no program of the end-to-end tests calls: NVML, cuSOLVER, cuRAND.
#include <cuda.h>
#include <gtest/gtest.h>

#include "simgpu/libs/curand/types.h"
#include "simgpu/libs/cusolver/types.h"
#include "simgpu/libs/nvml/types.h"
#include "tests/simgpu/driver_fixture.h"

extern "C" {
nvmlReturn_t nvmlInit_v2();
nvmlReturn_t nvmlShutdown();
nvmlReturn_t nvmlDeviceGetCount_v2(unsigned*);
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned, nvmlDevice_t*);
nvmlReturn_t nvmlDeviceGetHandleByUUID(const char*, nvmlDevice_t*);
nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t, char*, unsigned);
nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t, char*, unsigned);
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t, nvmlMemory_t*);
nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t, nvmlPciInfo_t*);
nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t, unsigned, nvmlEnableState_t*);
cusolverStatus_t cusolverDnCreate(cusolverDnHandle_t*);
cusolverStatus_t cusolverDnDestroy(cusolverDnHandle_t);
cusolverStatus_t cusolverDnSgetrf_bufferSize(cusolverDnHandle_t, int, int, float*, int, int*);
cusolverStatus_t cusolverDnSgetrf(cusolverDnHandle_t, int, int, float*, int, float*, int*, int*);
curandStatus_t curandCreateGenerator(curandGenerator_t*, curandRngType_t);
curandStatus_t curandDestroyGenerator(curandGenerator_t);
curandStatus_t curandGenerateUniform(curandGenerator_t, float*, size_t);
curandStatus_t curandGenerateNormal(curandGenerator_t, float*, size_t, float, float);
}

namespace simgpu {
namespace {

TEST(Nvml, TellsTheMachineWithoutInitializingTheDriver) {
  run_child({{"SIMGPU_DEVICES", "3"}, {"SIMGPU_MEMORY", "4G"}, {"SIMGPU_NAME", "Test GPU"}}, [] {
    unsigned count = 0;
    nvmlDevice_t device = nullptr, again = nullptr;
    EXPECT_EQ(nvmlDeviceGetCount_v2(&count), NVML_ERROR_UNINITIALIZED);
    EXPECT_EQ(nvmlInit_v2(), NVML_SUCCESS);
    EXPECT_EQ(nvmlDeviceGetCount_v2(&count), NVML_SUCCESS);
    EXPECT_EQ(count, 3u);
    EXPECT_EQ(nvmlDeviceGetHandleByIndex_v2(3, &device), NVML_ERROR_INVALID_ARGUMENT);
    EXPECT_EQ(nvmlDeviceGetHandleByIndex_v2(2, &device), NVML_SUCCESS);
    char uuid[96] = "", name[96] = "";
    EXPECT_EQ(nvmlDeviceGetUUID(device, uuid, sizeof uuid), NVML_SUCCESS);
    EXPECT_EQ(nvmlDeviceGetUUID(device, uuid, 4), NVML_ERROR_INSUFFICIENT_SIZE);
    EXPECT_EQ(nvmlDeviceGetHandleByUUID(uuid, &again), NVML_SUCCESS);
    EXPECT_EQ(again, device);
    EXPECT_EQ(nvmlDeviceGetName(device, name, sizeof name), NVML_SUCCESS);
    EXPECT_STREQ(name, "Test GPU");
    nvmlMemory_t memory{};
    EXPECT_EQ(nvmlDeviceGetMemoryInfo(device, &memory), NVML_SUCCESS);
    EXPECT_EQ(memory.total, 4ull << 30);
    nvmlEnableState_t state{};
    EXPECT_EQ(nvmlDeviceGetNvLinkState(device, 0, &state), NVML_ERROR_NOT_SUPPORTED);
    EXPECT_EQ(cuCtxGetCurrent(nullptr), CUDA_ERROR_NOT_INITIALIZED);

    // What the driver says of itself is the same.
    EXPECT_EQ(cuInit(0), CUDA_SUCCESS);
    CUuuid own{};
    EXPECT_EQ(cuDeviceGetUuid(&own, 2), CUDA_SUCCESS);
    EXPECT_EQ(own.bytes[15], 2);
    EXPECT_EQ(std::string(uuid).substr(0, 13), "GPU-5d1f6a70-");
    EXPECT_EQ(std::string(uuid).substr(38), "02");
    char bus[32] = "";
    nvmlPciInfo_t pci{};
    EXPECT_EQ(cuDeviceGetPCIBusId(bus, sizeof bus, 2), CUDA_SUCCESS);
    EXPECT_EQ(nvmlDeviceGetPciInfo_v3(device, &pci), NVML_SUCCESS);
    EXPECT_STREQ(pci.busIdLegacy, bus);
    EXPECT_EQ(nvmlShutdown(), NVML_SUCCESS);
    EXPECT_EQ(nvmlShutdown(), NVML_ERROR_UNINITIALIZED);
  });
}

TEST(OtherLibs, ARoutineIsAKernelAndSaysThatAllWentWell) {
  const ChildEnd end = run_child({}, [] {
    const Loaded loaded;
    CUdeviceptr memory = 0;
    EXPECT_EQ(cuMemAlloc(&memory, 1 << 20), CUDA_SUCCESS);
    EXPECT_EQ(cuMemsetD32(memory, 0xffffffff, 1 << 18), CUDA_SUCCESS);
    auto* const matrix = reinterpret_cast<float*>(memory);
    auto* const info = reinterpret_cast<int*>(memory + (1 << 19));
    cusolverDnHandle_t solver = nullptr;
    int elements = 0, answer = -1;
    EXPECT_EQ(cusolverDnSgetrf_bufferSize(nullptr, 64, 64, matrix, 64, &elements), CUSOLVER_STATUS_NOT_INITIALIZED);
    EXPECT_EQ(cusolverDnCreate(&solver), CUSOLVER_STATUS_SUCCESS);
    EXPECT_EQ(cusolverDnSgetrf_bufferSize(solver, 64, 64, matrix, 64, &elements), CUSOLVER_STATUS_SUCCESS);
    EXPECT_GT(elements, 0);
    EXPECT_EQ(cusolverDnSgetrf(solver, 64, -1, matrix, 64, matrix, info, info), CUSOLVER_STATUS_INVALID_VALUE);
    EXPECT_EQ(cusolverDnSgetrf(solver, 64, 64, matrix, 64, matrix, nullptr, info), CUSOLVER_STATUS_SUCCESS);
    EXPECT_EQ(cuMemcpyDtoH(&answer, memory + (1 << 19), sizeof answer), CUDA_SUCCESS);
    EXPECT_EQ(answer, 0);
    EXPECT_EQ(cusolverDnDestroy(solver), CUSOLVER_STATUS_SUCCESS);
    curandGenerator_t generator = nullptr;
    EXPECT_EQ(curandCreateGenerator(&generator, CURAND_RNG_PSEUDO_DEFAULT), CURAND_STATUS_SUCCESS);
    EXPECT_EQ(curandGenerateUniform(generator, matrix, 1000), CURAND_STATUS_SUCCESS);
    EXPECT_EQ(curandGenerateNormal(generator, matrix, 999, 0, 1), CURAND_STATUS_LENGTH_NOT_MULTIPLE);
    EXPECT_EQ(curandGenerateNormal(generator, matrix, 1000, 0, 1), CURAND_STATUS_SUCCESS);
    EXPECT_EQ(curandDestroyGenerator(generator), CURAND_STATUS_SUCCESS);
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  });
  std::vector<std::string> symbols;
  for (const Json& line : end.lines("kernel")) symbols.push_back(line["symbol"]);
  EXPECT_EQ(symbols, (std::vector<std::string>{"_Z12getrf_kernelIfEvN7simlibs15KernelArgumentsE",
                                               "_Z20generate_seed_pseudoIfEvN7simlibs15KernelArgumentsE",
                                               "_Z20gen_sequenced_pseudoIfEvN7simlibs15KernelArgumentsE",
                                               "_Z17gen_normal_pseudoIfEvN7simlibs15KernelArgumentsE"}));
}

}  // namespace
}  // namespace simgpu
