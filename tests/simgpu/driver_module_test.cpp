#include <cstring>

#include "tests/simgpu/driver_fixture.h"

namespace simgpu {
namespace {

TEST(DriverModule, WhatIsLoadedIsFoundAndTheRestIsNot) {
  run_child({}, [] {
    const Loaded loaded;
    CUfunction function = nullptr;
    CUdeviceptr address = 0;
    size_t bytes = 0;
    EXPECT_EQ(cuModuleGetFunction(&function, loaded.module, "absent"), CUDA_ERROR_NOT_FOUND);
    EXPECT_EQ(cuModuleGetFunction(&function, nullptr, "plain"), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_EQ(cuModuleGetGlobal(&address, &bytes, loaded.module, "counter"), CUDA_SUCCESS);
    EXPECT_EQ(bytes, 4u);
    uint32_t value = 0;
    EXPECT_EQ(cuMemcpyDtoH(&value, address, 4), CUDA_SUCCESS);
    EXPECT_EQ(cuModuleGetGlobal(&address, &bytes, loaded.module, "table"), CUDA_SUCCESS);
    EXPECT_EQ(bytes, 64u);
    EXPECT_EQ(cuMemcpyHtoD(address, &value, 4), CUDA_SUCCESS);
    EXPECT_EQ(cuMemcpyHtoD(address + 64, &value, 4), CUDA_ERROR_INVALID_VALUE);
    unsigned count = 0;
    EXPECT_EQ(cuModuleGetFunctionCount(&count, loaded.module), CUDA_SUCCESS);
    EXPECT_EQ(count, 4u);
    CUfunction all[4] = {};
    EXPECT_EQ(cuModuleEnumerateFunctions(all, 4, loaded.module), CUDA_SUCCESS);
    EXPECT_NE(all[3], nullptr);
    size_t offset = 99, size = 99;
    EXPECT_EQ(cuFuncGetParamInfo(loaded.function("touch"), 1, &offset, &size), CUDA_SUCCESS);
    EXPECT_EQ(offset, 8u);
    EXPECT_EQ(size, 4u);
    EXPECT_EQ(cuFuncGetParamInfo(loaded.function("touch"), 2, &offset, &size), CUDA_ERROR_INVALID_VALUE);
    CUmodule owner = nullptr;
    EXPECT_EQ(cuFuncGetModule(&owner, all[0]), CUDA_SUCCESS);
    EXPECT_EQ(owner, loaded.module);
    EXPECT_EQ(cuModuleUnload(loaded.module), CUDA_SUCCESS);
    EXPECT_EQ(cuModuleUnload(loaded.module), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_EQ(cuMemcpyDtoH(&value, address, 4), CUDA_ERROR_INVALID_VALUE);
  });
}

TEST(DriverModule, AttributesComeFromTheImage) {
  run_child({}, [] {
    const Loaded loaded;
    const auto attribute = [&](const char* name, CUfunction_attribute which) {
      int value = -99;
      EXPECT_EQ(cuFuncGetAttribute(&value, which, loaded.function(name)), CUDA_SUCCESS);
      return value;
    };
    EXPECT_EQ(attribute("shared_user", CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES), 1024);
    EXPECT_EQ(attribute("shared_user", CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES), 47 * 1024);
    EXPECT_EQ(attribute("bounded", CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK), 128);
    EXPECT_EQ(attribute("plain", CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK), 1024);
    EXPECT_EQ(attribute("plain", CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES), 64);
    EXPECT_EQ(attribute("plain", CU_FUNC_ATTRIBUTE_PTX_VERSION), 90);
    int value = 0;
    EXPECT_EQ(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX, loaded.function("plain")), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuFuncSetAttribute(loaded.function("plain"), CU_FUNC_ATTRIBUTE_NUM_REGS, 1), CUDA_ERROR_INVALID_VALUE);
  });
}

TEST(DriverModule, BadImages) {
  run_child({{"SIMGPU_CC", "8.0"}}, [] {
    ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
    CUcontext context = nullptr;
    CUmodule module = nullptr;
    EXPECT_EQ(cuModuleLoadData(&module, kTestPtx), CUDA_ERROR_INVALID_CONTEXT);
    ASSERT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
    EXPECT_EQ(cuModuleLoadData(&module, kTestPtx), CUDA_ERROR_NO_BINARY_FOR_GPU);  // for sm_90
    EXPECT_EQ(cuModuleLoadData(&module, "nothing that anybody knows"), CUDA_ERROR_INVALID_IMAGE);
    EXPECT_EQ(cuModuleLoadData(&module, nullptr), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuModuleLoad(&module, "/no/such/file.cubin"), CUDA_ERROR_FILE_NOT_FOUND);
    CUlibrary library = nullptr;
    EXPECT_EQ(cuLibraryLoadFromFile(&library, "/no/such/file", nullptr, nullptr, 0, nullptr, nullptr, 0),
              CUDA_ERROR_FILE_NOT_FOUND);
  });
}

}  // namespace
}  // namespace simgpu
