// cuGetProcAddress and the exports: names, versions, flags, status, and what SIMGPU_DRIVER leaves of them.
#include <dlfcn.h>

#include <set>

#include "tests/simgpu/driver_fixture.h"

namespace simgpu {
namespace {

struct Found {
  CUresult result = CUDA_ERROR_UNKNOWN;
  void* address = reinterpret_cast<void*>(1);
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
};

Found ask(const char* name, int version, cuuint64_t flags = CU_GET_PROC_ADDRESS_DEFAULT) {
  Found found;
  found.result = cuGetProcAddress(name, &found.address, version, flags, &found.status);
  return found;
}

void* exported(const char* name) { return dlsym(RTLD_DEFAULT, name); }

void expect_is(const char* name, int version, cuuint64_t flags, const char* symbol) {
  const Found found = ask(name, version, flags);
  EXPECT_EQ(found.result, CUDA_SUCCESS) << name;
  EXPECT_EQ(found.status, CU_GET_PROC_ADDRESS_SUCCESS) << name << version;
  ASSERT_NE(exported(symbol), nullptr) << symbol;
  EXPECT_EQ(found.address, exported(symbol)) << name << " " << version << " " << flags;
}

TEST(Table, PicksTheNewestVersionNotNewerThanAsked) {
  run_child({}, [] {
    expect_is("cuMemAlloc", 2000, 0, "cuMemAlloc");
    expect_is("cuMemAlloc", 3010, 0, "cuMemAlloc");
    expect_is("cuMemAlloc", 3020, 0, "cuMemAlloc_v2");
    expect_is("cuMemAlloc", 13000, 0, "cuMemAlloc_v2");
    expect_is("cuStreamBeginCapture", 10000, 0, "cuStreamBeginCapture");
    expect_is("cuStreamBeginCapture", 10010, 0, "cuStreamBeginCapture_v2");
    expect_is("cuGraphInstantiate", 10000, 0, "cuGraphInstantiate");
    expect_is("cuGraphInstantiate", 11000, 0, "cuGraphInstantiate_v2");
    expect_is("cuGetProcAddress", 11030, 0, "cuGetProcAddress");
    expect_is("cuGetProcAddress", 12000, 0, "cuGetProcAddress_v2");
  });
}

TEST(Table, FlagsChooseTheDefaultStream) {
  run_child({}, [] {
    expect_is("cuLaunchKernel", 4000, CU_GET_PROC_ADDRESS_LEGACY_STREAM, "cuLaunchKernel");
    expect_is("cuLaunchKernel", 13000, CU_GET_PROC_ADDRESS_LEGACY_STREAM, "cuLaunchKernel");
    expect_is("cuLaunchKernel", 7000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, "cuLaunchKernel_ptsz");
    expect_is("cuMemcpyHtoD", 7000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, "cuMemcpyHtoD_v2_ptds");
    expect_is("cuStreamGetCaptureInfo", 12030, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM,
              "cuStreamGetCaptureInfo_v3_ptsz");
    // No twin: the one there is.
    expect_is("cuCtxSynchronize", 12000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, "cuCtxSynchronize");
    EXPECT_EQ(ask("cuInit", 12000, 4).result, CUDA_ERROR_INVALID_VALUE);
  });
}

TEST(Table, SaysWhatIsMissing) {
  run_child({}, [] {
    const Found probe = ask("", 0);
    EXPECT_EQ(probe.result, CUDA_SUCCESS);
    EXPECT_EQ(probe.address, nullptr);
    EXPECT_EQ(probe.status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    EXPECT_EQ(ask("cuNoSuchCall", 12000).status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    EXPECT_EQ(ask("cuMemAlloc_v2", 12000).status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    const Found early = ask("cuMemAllocAsync", 11010);
    EXPECT_EQ(early.status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
    EXPECT_EQ(early.address, nullptr);
    EXPECT_EQ(ask("cuInit", 13010).result, CUDA_ERROR_INVALID_VALUE);  // newer than the driver
    EXPECT_EQ(ask(nullptr, 12000).result, CUDA_ERROR_INVALID_VALUE);

    using First = CUresult (*)(const char*, void**, int, cuuint64_t);
    const auto first = reinterpret_cast<First>(ask("cuGetProcAddress", 11030).address);
    void* address = nullptr;
    EXPECT_EQ(first("cuInit", &address, 2000, 0), CUDA_SUCCESS);
    EXPECT_EQ(address, exported("cuInit"));
    EXPECT_EQ(first("cuNoSuchCall", &address, 2000, 0), CUDA_ERROR_NOT_FOUND);
    EXPECT_EQ(address, nullptr);
  });
}

TEST(Table, AnOlderDriverKnowsLess) {
  run_child({{"SIMGPU_DRIVER", "11040"}}, [] {
    EXPECT_EQ(ask("cuLibraryLoadData", 11040).status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    EXPECT_EQ(ask("cuMemAllocAsync", 11040).status, CU_GET_PROC_ADDRESS_SUCCESS);
    EXPECT_EQ(ask("cuInit", 12000).result, CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(ask("cuGetProcAddress", 11040).address, exported("cuGetProcAddress"));
  });
}

// Every export that another library may link to is there, and nothing else is.
TEST(Table, ExportsAreTheDocumentedNames) {
  EXPECT_NE(exported("cuGraphLaunch_ptsz"), nullptr);
  EXPECT_NE(exported("cuGLGetDevices_v2"), nullptr);
  EXPECT_NE(exported("cuProfilerStart"), nullptr);
  void* self = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(self, nullptr);
  EXPECT_EQ(dlsym(self, "_ZN6simgpu7devicesEv"), nullptr);
  EXPECT_EQ(dlsym(self, "ZSTD_decompress"), nullptr);
}

TEST(Table, UnmodelledCallsSaySo) {
  const ChildEnd end = run_child({{"SIMGPU_TRUTH_CALLS", "1"}}, [] {
    const auto call = reinterpret_cast<CUresult (*)()>(exported("cuGLInit"));
    ASSERT_NE(call, nullptr);
    EXPECT_EQ(call(), CUDA_ERROR_NOT_INITIALIZED);
    EXPECT_EQ(cuInit(0), CUDA_SUCCESS);
    EXPECT_EQ(call(), CUDA_ERROR_NOT_SUPPORTED);
  });
  const auto lines = end.lines("call", "cuGLInit");
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[1]["result"], CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(lines[1]["variant"], "cuGLInit");
}

}  // namespace
}  // namespace simgpu
