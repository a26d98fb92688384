#include <cstring>
#include <numeric>

#include "tests/simgpu/driver_fixture.h"

namespace simgpu {
namespace {

TEST(DriverMemory, AccountsToTheByteAndRunsOut) {
  const ChildEnd end = run_child({{"SIMGPU_MEMORY", "1M"}}, [] {
    const Loaded loaded;
    EXPECT_EQ(cuModuleUnload(loaded.module), CUDA_SUCCESS);
    size_t free = 0, total = 0;
    CUdeviceptr a = 0, b = 0, c = 0;
    EXPECT_EQ(cuMemGetInfo(&free, &total), CUDA_SUCCESS);
    EXPECT_EQ(total, size_t{1} << 20);
    EXPECT_EQ(free, total);
    EXPECT_EQ(cuMemAlloc(&a, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemAlloc(nullptr, 4), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemAlloc(&a, 1000), CUDA_SUCCESS);
    EXPECT_EQ(a % 512, 0u);
    EXPECT_EQ(cuMemAlloc(&b, (1 << 20) - 1024), CUDA_SUCCESS);
    EXPECT_EQ(cuMemGetInfo(&free, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(free, 0u);
    EXPECT_EQ(cuMemAlloc(&c, 1), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_EQ(cuMemFree(a + 8), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemFree(a), CUDA_SUCCESS);
    EXPECT_EQ(cuMemFree(a), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemFree(0), CUDA_SUCCESS);
    EXPECT_EQ(cuMemAlloc(&c, 1), CUDA_SUCCESS);
    EXPECT_EQ(c, a);  // the freed place
    CUdeviceptr base = 0;
    size_t bytes = 0;
    EXPECT_EQ(cuMemGetAddressRange(&base, &bytes, b + 77), CUDA_SUCCESS);
    EXPECT_EQ(base, b);
    EXPECT_EQ(bytes, size_t{(1 << 20) - 1024});
    size_t pitch = 0;
    EXPECT_EQ(cuMemFree(b), CUDA_SUCCESS);
    EXPECT_EQ(cuMemAllocPitch(&b, &pitch, 700, 3, 4), CUDA_SUCCESS);
    EXPECT_EQ(pitch, 1024u);
    EXPECT_EQ(cuMemAllocPitch(&c, &pitch, 700, 3, 5), CUDA_ERROR_INVALID_VALUE);
  });
  const std::vector<Json> allocations = end.lines("alloc");
  ASSERT_EQ(allocations.size(), 4u);
  EXPECT_EQ(allocations[0]["memory"], "device");
  EXPECT_EQ(allocations[0]["bytes"], 1000);
  EXPECT_EQ(end.lines("free").size(), 2u);
}

TEST(DriverMemory, LinearCopiesMoveBytesAndTakeTime) {
  const ChildEnd end = run_child({{"SIMGPU_COPY_BANDWIDTH", "1G"}}, [] {
    const Loaded loaded;
    constexpr size_t kBytes = 1 << 20;
    std::vector<uint8_t> from(kBytes), to(kBytes);
    std::iota(from.begin(), from.end(), uint8_t{3});
    CUdeviceptr a = 0, b = 0;
    void* pinned = nullptr;
    ASSERT_EQ(cuMemAlloc(&a, kBytes), CUDA_SUCCESS);
    ASSERT_EQ(cuMemAlloc(&b, kBytes), CUDA_SUCCESS);
    ASSERT_EQ(cuMemHostAlloc(&pinned, kBytes, CU_MEMHOSTALLOC_PORTABLE), CUDA_SUCCESS);
    EXPECT_EQ(cuMemcpyHtoD(a, from.data(), kBytes), CUDA_SUCCESS);
    EXPECT_EQ(cuMemcpyDtoD(b, a, kBytes), CUDA_SUCCESS);
    EXPECT_EQ(cuMemcpyDtoHAsync(pinned, b, kBytes, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(cuMemcpy(reinterpret_cast<CUdeviceptr>(to.data()), reinterpret_cast<CUdeviceptr>(pinned), kBytes),
              CUDA_SUCCESS);
    EXPECT_EQ(from, to);
    EXPECT_EQ(cuMemcpyHtoD(a + 1, from.data(), kBytes), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemcpyHtoD(0, from.data(), 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemcpyHtoD(reinterpret_cast<CUdeviceptr>(to.data()), from.data(), 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemcpyHtoD(a, nullptr, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemcpyHtoD(a, from.data(), 0), CUDA_SUCCESS);
  });
  const std::vector<Json> copies = end.lines("copy");
  ASSERT_EQ(copies.size(), 4u);
  const char* kinds[] = {"HtoD", "DtoD", "DtoH", "HtoH"};
  const char* memories[] = {"pageable", "device", "pinned", "pinned"};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(copies[i]["kind"], kinds[i]);
    EXPECT_EQ(copies[i]["memory"], memories[i]);
    EXPECT_EQ(copies[i]["bytes"], 1 << 20);
  }
  EXPECT_EQ(end_of(copies[0]) - start_of(copies[0]), 1000u + 976562u);  // 1 MiB at 1 GiB/s
  EXPECT_GE(copies[0]["call_end_ns"].get<uint64_t>(), end_of(copies[0]));
  EXPECT_EQ(end_of(copies[1]) - start_of(copies[1]), 1000u + 24414u);
}

TEST(DriverMemory, CopyEnginesServeOneCopyPerDirection) {
  const ChildEnd end = run_child({{"SIMGPU_COPY_BANDWIDTH", "100M"}}, [] {
    const Loaded loaded;
    void* pinned = nullptr;
    CUdeviceptr device = 0;
    ASSERT_EQ(cuMemHostAlloc(&pinned, 1 << 20, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuMemAlloc(&device, 1 << 20), CUDA_SUCCESS);
    EXPECT_EQ(cuMemcpyHtoDAsync(device, pinned, 1 << 20, new_stream()), CUDA_SUCCESS);
    EXPECT_EQ(cuMemcpyHtoDAsync(device, pinned, 1 << 20, new_stream()), CUDA_SUCCESS);
    EXPECT_EQ(cuMemcpyDtoHAsync(pinned, device, 1 << 20, new_stream()), CUDA_SUCCESS);
  });
  const std::vector<Json> copies = end.lines("copy");
  ASSERT_EQ(copies.size(), 3u);
  EXPECT_EQ(start_of(copies[1]), end_of(copies[0]));
  EXPECT_LT(start_of(copies[2]), end_of(copies[0]));
}

TEST(DriverMemory, RowsAndBoxes) {
  run_child({}, [] {
    const Loaded loaded;
    CUdeviceptr device = 0;
    size_t pitch = 0;
    ASSERT_EQ(cuMemAllocPitch(&device, &pitch, 16, 8, 4), CUDA_SUCCESS);
    ASSERT_EQ(cuMemsetD8(device, 0xee, pitch * 8), CUDA_SUCCESS);
    uint8_t host[8][16];
    for (int i = 0; i < 128; ++i) host[i / 16][i % 16] = static_cast<uint8_t>(i);
    CUDA_MEMCPY2D rows{};
    rows.srcMemoryType = CU_MEMORYTYPE_HOST;
    rows.srcHost = host;
    rows.srcPitch = 16;
    rows.srcXInBytes = 2;
    rows.srcY = 1;
    rows.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    rows.dstDevice = device;
    rows.dstPitch = pitch;
    rows.dstXInBytes = 4;
    rows.dstY = 3;
    rows.WidthInBytes = 5;
    rows.Height = 4;
    EXPECT_EQ(cuMemcpy2D(&rows), CUDA_SUCCESS);
    std::vector<uint8_t> back(pitch * 8);
    EXPECT_EQ(cuMemcpyDtoH(back.data(), device, back.size()), CUDA_SUCCESS);
    for (size_t y = 0; y < 8; ++y) {
      for (size_t x = 0; x < 16; ++x) {
        const bool inside = y >= 3 && y < 7 && x >= 4 && x < 9;
        EXPECT_EQ(back[y * pitch + x], inside ? host[y - 2][x - 2] : 0xee) << x << "," << y;
      }
    }
    rows.dstY = 5;  // the last row would lie outside
    EXPECT_EQ(cuMemcpy2D(&rows), CUDA_ERROR_INVALID_VALUE);
    rows.dstY = 3;
    rows.srcPitch = 3;
    EXPECT_EQ(cuMemcpy2D(&rows), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemcpy2D(nullptr), CUDA_ERROR_INVALID_VALUE);

    CUDA_MEMCPY3D box{};
    uint8_t volume[3][4][8] = {};
    CUdeviceptr cube = 0;
    ASSERT_EQ(cuMemAlloc(&cube, 256), CUDA_SUCCESS);
    std::vector<uint8_t> bytes(256);
    std::iota(bytes.begin(), bytes.end(), uint8_t{0});
    ASSERT_EQ(cuMemcpyHtoD(cube, bytes.data(), 256), CUDA_SUCCESS);
    box.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    box.srcDevice = cube;
    box.srcPitch = 8;
    box.srcHeight = 8;
    box.srcZ = 1;
    box.srcY = 2;
    box.srcXInBytes = 1;
    box.dstMemoryType = CU_MEMORYTYPE_HOST;
    box.dstHost = volume;
    box.dstPitch = 8;
    box.dstHeight = 4;
    box.WidthInBytes = 6;
    box.Height = 4;
    box.Depth = 3;
    EXPECT_EQ(cuMemcpy3D(&box), CUDA_SUCCESS);
    for (size_t z = 0; z < 3; ++z) {
      for (size_t y = 0; y < 4; ++y) {
        for (size_t x = 0; x < 6; ++x) EXPECT_EQ(volume[z][y][x], (z + 1) * 64 + (y + 2) * 8 + x + 1);
        EXPECT_EQ(volume[z][y][6], 0);
      }
    }
  });
}

TEST(DriverMemory, Memsets) {
  const ChildEnd end = run_child({}, [] {
    const Loaded loaded;
    CUdeviceptr device = 0;
    ASSERT_EQ(cuMemAlloc(&device, 64), CUDA_SUCCESS);
    EXPECT_EQ(cuMemsetD8(device, 0x11, 64), CUDA_SUCCESS);
    EXPECT_EQ(cuMemsetD16(device + 2, 0x2233, 3), CUDA_SUCCESS);
    EXPECT_EQ(cuMemsetD32Async(device + 16, 0x44556677, 2, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(cuMemsetD2D8(device + 32, 8, 0x99, 3, 4), CUDA_SUCCESS);
    EXPECT_EQ(cuMemsetD16(device + 1, 0, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemsetD8(device, 0, 65), CUDA_ERROR_INVALID_VALUE);
    uint8_t bytes[64];
    EXPECT_EQ(cuMemcpyDtoH(bytes, device, 64), CUDA_SUCCESS);
    uint8_t wanted[64];
    std::memset(wanted, 0x11, sizeof wanted);
    for (int i = 0; i < 3; ++i) {
      wanted[2 + 2 * i] = 0x33;
      wanted[3 + 2 * i] = 0x22;
    }
    for (size_t i = 0; i < 2; ++i) std::memcpy(wanted + 16 + 4 * i, "\x77\x66\x55\x44", 4);
    for (int y = 0; y < 4; ++y) std::memset(wanted + 32 + 8 * y, 0x99, 3);
    EXPECT_EQ(std::memcmp(bytes, wanted, 64), 0);
  });
  const std::vector<Json> memsets = end.lines("memset");
  ASSERT_EQ(memsets.size(), 4u);
  EXPECT_EQ(memsets[0]["bytes"], 64);
  EXPECT_EQ(memsets[1]["bytes"], 6);
  EXPECT_EQ(memsets[2]["bytes"], 8);
  EXPECT_EQ(memsets[3]["bytes"], 12);
}

TEST(DriverMemory, HostMemory) {
  run_child({}, [] {
    const Loaded loaded;
    void* pinned = nullptr;
    unsigned flags = 0;
    CUdeviceptr device = 0;
    ASSERT_EQ(cuMemHostAlloc(&pinned, 100, CU_MEMHOSTALLOC_WRITECOMBINED), CUDA_SUCCESS);
    EXPECT_EQ(cuMemHostGetFlags(&flags, pinned), CUDA_SUCCESS);
    EXPECT_NE(flags & CU_MEMHOSTALLOC_WRITECOMBINED, 0u);
    EXPECT_EQ(cuMemHostGetDevicePointer(&device, pinned, 0), CUDA_SUCCESS);
    EXPECT_EQ(device, reinterpret_cast<CUdeviceptr>(pinned));
    EXPECT_EQ(cuMemFreeHost(static_cast<char*>(pinned) + 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemFreeHost(pinned), CUDA_SUCCESS);
    std::vector<char> own(10000);
    EXPECT_EQ(cuMemHostUnregister(own.data()), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    EXPECT_EQ(cuMemHostRegister(own.data(), own.size(), 0), CUDA_SUCCESS);
    EXPECT_EQ(cuMemHostRegister(own.data() + 100, 100, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    EXPECT_EQ(cuMemFreeHost(own.data()), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemHostUnregister(own.data()), CUDA_SUCCESS);
  });
}

TEST(DriverMemory, PointersSayWhoseTheyAre) {
  run_child({{"SIMGPU_DEVICES", "2"}}, [] {
    const Loaded loaded;
    CUdeviceptr device = 0, managed = 0;
    void* pinned = nullptr;
    ASSERT_EQ(cuMemAlloc(&device, 4096), CUDA_SUCCESS);
    ASSERT_EQ(cuMemAllocManaged(&managed, 4096, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
    ASSERT_EQ(cuMemAllocHost(&pinned, 4096), CUDA_SUCCESS);
    CUmemorytype type{};
    int is_managed = -1, ordinal = -1;
    CUcontext context = nullptr;
    EXPECT_EQ(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device + 5), CUDA_SUCCESS);
    EXPECT_EQ(type, CU_MEMORYTYPE_DEVICE);
    EXPECT_EQ(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, reinterpret_cast<CUdeviceptr>(pinned)),
              CUDA_SUCCESS);
    EXPECT_EQ(type, CU_MEMORYTYPE_HOST);
    EXPECT_EQ(cuPointerGetAttribute(&is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, managed), CUDA_SUCCESS);
    EXPECT_EQ(is_managed, 1);
    EXPECT_EQ(cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, device), CUDA_SUCCESS);
    EXPECT_EQ(context, loaded.context);
    int local = 0;
    EXPECT_EQ(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, reinterpret_cast<CUdeviceptr>(&local)),
              CUDA_ERROR_INVALID_VALUE);
    CUpointer_attribute wanted[] = {CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_IS_MANAGED};
    void* out[] = {&ordinal, &is_managed};
    EXPECT_EQ(cuPointerGetAttributes(2, wanted, out, reinterpret_cast<CUdeviceptr>(&local)), CUDA_SUCCESS);
    EXPECT_EQ(ordinal, -2);
    EXPECT_EQ(is_managed, 0);
    EXPECT_EQ(cuPointerGetAttributes(2, wanted, out, device), CUDA_SUCCESS);
    EXPECT_EQ(ordinal, 0);
    // The other device's memory has other addresses.
    CUcontext second = nullptr;
    CUdeviceptr there = 0;
    ASSERT_EQ(cuDevicePrimaryCtxRetain(&second, 1), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxSetCurrent(second), CUDA_SUCCESS);
    ASSERT_EQ(cuMemAlloc(&there, 4096), CUDA_SUCCESS);
    EXPECT_NE(there, device);
    EXPECT_EQ(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, there), CUDA_SUCCESS);
    EXPECT_EQ(ordinal, 1);
    EXPECT_EQ(cuCtxEnablePeerAccess(loaded.context, 0), CUDA_SUCCESS);
    EXPECT_EQ(cuCtxEnablePeerAccess(loaded.context, 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
    EXPECT_EQ(cuMemcpyPeer(there, second, device, loaded.context, 4096), CUDA_SUCCESS);
    EXPECT_EQ(cuCtxDisablePeerAccess(loaded.context), CUDA_SUCCESS);
    EXPECT_EQ(cuCtxDisablePeerAccess(loaded.context), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
  });
}

TEST(DriverMemory, BatchesAreCopiesOfTheirOwn) {
  const ChildEnd end = run_child({}, [] {
    const Loaded loaded;
    CUdeviceptr device = 0;
    void* pinned = nullptr;
    ASSERT_EQ(cuMemAlloc(&device, 4096), CUDA_SUCCESS);
    ASSERT_EQ(cuMemAllocHost(&pinned, 4096), CUDA_SUCCESS);
    std::memset(pinned, 7, 4096);
    const auto host = reinterpret_cast<CUdeviceptr>(pinned);
    CUdeviceptr to[] = {device, device + 1000, host + 3000};
    CUdeviceptr from[] = {host, host + 1000, device};
    size_t sizes[] = {100, 200, 300};
    size_t starts[] = {0};
    CUmemcpyAttributes attributes{};
    attributes.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
    const CUstream stream = new_stream();
    EXPECT_EQ(cuMemcpyBatchAsync(to, from, sizes, 3, &attributes, starts, 1, stream), CUDA_SUCCESS);
    EXPECT_EQ(cuMemcpyBatchAsync(to, from, sizes, 3, &attributes, starts, 1, nullptr), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemcpyBatchAsync(to, from, sizes, 0, &attributes, starts, 1, stream), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
    uint8_t byte = 0;
    EXPECT_EQ(cuMemcpyDtoH(&byte, device + 1199, 1), CUDA_SUCCESS);
    EXPECT_EQ(byte, 7);
  });
  const std::vector<Json> copies = end.lines("copy", "cuMemcpyBatchAsync");
  ASSERT_EQ(copies.size(), 3u);
  EXPECT_EQ(copies[1]["bytes"], 200);
  EXPECT_EQ(copies[2]["kind"], "DtoH");
  EXPECT_EQ(copies[0]["seq"], copies[2]["seq"]);
  EXPECT_EQ(copies[0]["variant"], "cuMemcpyBatchAsync_v2");
}

TEST(DriverMemory, ManagedMemoryKeepsAdvice) {
  run_child({}, [] {
    const Loaded loaded;
    CUdeviceptr managed = 0;
    ASSERT_EQ(cuMemAllocManaged(&managed, 1 << 16, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
    *reinterpret_cast<int*>(managed) = 5;  // the host's too
    const CUmemLocation device{CU_MEM_LOCATION_TYPE_DEVICE, {0}};
    const CUmemLocation host{CU_MEM_LOCATION_TYPE_HOST, {0}};
    EXPECT_EQ(cuMemAdvise(managed, 1 << 16, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, device), CUDA_SUCCESS);
    EXPECT_EQ(cuMemPrefetchAsync(managed, 1 << 16, host, 0, nullptr), CUDA_SUCCESS);
    int value = 99;
    EXPECT_EQ(cuMemRangeGetAttribute(&value, sizeof value, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, managed, 4096),
              CUDA_SUCCESS);
    EXPECT_EQ(value, 0);
    EXPECT_EQ(
        cuMemRangeGetAttribute(&value, sizeof value, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, managed, 4096),
        CUDA_SUCCESS);
    EXPECT_EQ(value, CU_DEVICE_CPU);
    CUdeviceptr plain = 0;
    ASSERT_EQ(cuMemAlloc(&plain, 64), CUDA_SUCCESS);
    EXPECT_EQ(cuMemPrefetchAsync(plain, 64, device, 0, nullptr), CUDA_ERROR_INVALID_VALUE);
  });
}

}  // namespace
}  // namespace simgpu
