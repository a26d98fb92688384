// Memory pools: counters, reuse, trimming, limits, attributes.
#include "tests/simgpu/driver_fixture.h"

namespace simgpu {
namespace {

constexpr uint64_t kMega = 1 << 20;

CUmemoryPool pool_of_device() {
  CUmemoryPool pool = nullptr;
  EXPECT_EQ(cuDeviceGetDefaultMemPool(&pool, 0), CUDA_SUCCESS);
  return pool;
}

uint64_t attribute(CUmemoryPool pool, CUmemPool_attribute which) {
  cuuint64_t value = 0;
  EXPECT_EQ(cuMemPoolGetAttribute(pool, which, &value), CUDA_SUCCESS);
  return value;
}

void keep_all(CUmemoryPool pool) {
  cuuint64_t threshold = UINT64_MAX;
  EXPECT_EQ(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold), CUDA_SUCCESS);
}

CUdeviceptr allocate(size_t bytes, CUstream stream) {
  CUdeviceptr p = 0;
  EXPECT_EQ(cuMemAllocAsync(&p, bytes, stream), CUDA_SUCCESS);
  return p;
}

TEST(Pool, CountsWhatIsUsedAndReserved) {
  const ChildEnd end = run_child({}, [] {
    Loaded loaded;
    CUstream stream = new_stream();
    CUmemoryPool pool = pool_of_device();
    CUmemoryPool current = nullptr;
    EXPECT_EQ(cuDeviceGetMemPool(&current, 0), CUDA_SUCCESS);
    EXPECT_EQ(current, pool);
    CUdeviceptr a = allocate(3 * kMega, stream), b = allocate(100, stream);
    EXPECT_NE(a, b);
    EXPECT_EQ(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 3 * kMega + 512);
    EXPECT_EQ(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 32 * kMega);
    unsigned char byte = 0;
    EXPECT_EQ(cuMemsetD8Async(a, 3, 3 * kMega, stream), CUDA_SUCCESS);
    EXPECT_EQ(cuMemcpyDtoHAsync(&byte, a + kMega, 1, stream), CUDA_SUCCESS);
    EXPECT_EQ(cuMemFreeAsync(a, stream), CUDA_SUCCESS);
    EXPECT_EQ(cuMemFreeAsync(a, stream), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 512u);
    EXPECT_EQ(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 3 * kMega + 512);
    EXPECT_EQ(cuMemFree(b), CUDA_SUCCESS);
    EXPECT_EQ(byte, 3);
    EXPECT_EQ(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0u);
    cuuint64_t zero = 0, one = 1;
    EXPECT_EQ(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &one), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &zero), CUDA_SUCCESS);
    EXPECT_EQ(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 0u);
    EXPECT_EQ(cuMemPoolDestroy(pool), CUDA_ERROR_INVALID_VALUE);  // the device's own
  });
  const auto allocs = end.lines("alloc", "cuMemAllocAsync");
  ASSERT_EQ(allocs.size(), 2u);
  EXPECT_EQ(allocs[0]["memory"], "pool");
  EXPECT_EQ(allocs[0]["bytes"], 3 * kMega);
  EXPECT_EQ(end.lines("free", "cuMemFreeAsync").size(), 1u);
  EXPECT_EQ(end.lines("free", "cuMemFree").size(), 1u);
}

TEST(Pool, ReusesByStreamAndTime) {
  run_child({{"SIMGPU_KERNEL_TIME", "plain=50ms"}}, [] {
    Loaded loaded;
    CUmemoryPool pool = pool_of_device();
    keep_all(pool);
    CUstream one = new_stream(), two = new_stream();
    const CUdeviceptr a = allocate(kMega, one);
    EXPECT_EQ(launch(loaded.function("plain"), 1, 32, one), CUDA_SUCCESS);
    EXPECT_EQ(cuMemFreeAsync(a, one), CUDA_SUCCESS);
    const CUdeviceptr other = allocate(kMega, two);
    EXPECT_NE(other, a);  // the first stream is not there yet
    EXPECT_EQ(allocate(kMega, one), a);
    EXPECT_EQ(cuMemFreeAsync(a, one), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamSynchronize(one), CUDA_SUCCESS);
    EXPECT_EQ(allocate(kMega, two), a);
  });
}

TEST(Pool, GivesBackWhenTheHostSynchronizes) {
  run_child({}, [] {
    Loaded loaded;
    CUmemoryPool pool = pool_of_device();
    CUstream stream = new_stream();
    size_t before = 0, after = 0, total = 0;
    EXPECT_EQ(cuMemGetInfo(&before, &total), CUDA_SUCCESS);
    CUdeviceptr a = allocate(100 * kMega, stream);
    EXPECT_EQ(cuMemGetInfo(&after, &total), CUDA_SUCCESS);
    EXPECT_EQ(before - after, 100 * kMega);
    EXPECT_EQ(cuMemFreeAsync(a, stream), CUDA_SUCCESS);
    EXPECT_EQ(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 100 * kMega);
    EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
    EXPECT_EQ(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0u);
    keep_all(pool);
    a = allocate(100 * kMega, stream);
    EXPECT_EQ(cuMemFreeAsync(a, stream), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
    EXPECT_EQ(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 100 * kMega);
    EXPECT_EQ(cuMemPoolTrimTo(pool, 0), CUDA_SUCCESS);
    EXPECT_EQ(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0u);
    EXPECT_EQ(cuMemGetInfo(&after, &total), CUDA_SUCCESS);
    EXPECT_EQ(after, before);
  });
}

TEST(Pool, MadePoolsAndLimits) {
  run_child({{"SIMGPU_MEMORY", "256M"}}, [] {
    Loaded loaded;
    CUstream stream = new_stream();
    size_t before = 0, free = 0, total = 0;
    EXPECT_EQ(cuMemGetInfo(&before, &total), CUDA_SUCCESS);
    CUmemPoolProps props{};
    props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    props.location.id = 0;
    CUmemoryPool pool = nullptr;
    EXPECT_EQ(cuMemPoolCreate(&pool, &props), CUDA_SUCCESS);
    CUdeviceptr p = 0, q = 0;
    EXPECT_EQ(cuMemAllocFromPoolAsync(&p, 200 * kMega, pool, stream), CUDA_SUCCESS);
    EXPECT_EQ(cuMemAllocFromPoolAsync(&q, 200 * kMega, pool, stream), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_EQ(cuMemAllocAsync(&q, 200 * kMega, stream), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_EQ(cuDeviceSetMemPool(0, pool), CUDA_SUCCESS);
    EXPECT_EQ(cuMemAllocAsync(&q, 10 * kMega, stream), CUDA_SUCCESS);
    EXPECT_EQ(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 210 * kMega);
    // The handle is dead at once, the memory when it is freed.
    EXPECT_EQ(cuMemPoolDestroy(pool), CUDA_SUCCESS);
    EXPECT_EQ(cuMemPoolTrimTo(pool, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemsetD8(p, 1, 200 * kMega), CUDA_SUCCESS);
    EXPECT_EQ(cuMemFreeAsync(p, stream), CUDA_SUCCESS);
    EXPECT_EQ(cuMemFreeAsync(q, stream), CUDA_SUCCESS);
    EXPECT_EQ(cuMemGetInfo(&free, &total), CUDA_SUCCESS);
    EXPECT_EQ(free, before);
    CUmemoryPool current = nullptr;
    EXPECT_EQ(cuDeviceGetMemPool(&current, 0), CUDA_SUCCESS);
    EXPECT_EQ(current, pool_of_device());
    CUmemAccess_flags flags{};
    CUmemLocation here{CU_MEM_LOCATION_TYPE_DEVICE, {0}}, nowhere{CU_MEM_LOCATION_TYPE_DEVICE, {5}};
    EXPECT_EQ(cuMemPoolGetAccess(&flags, current, &here), CUDA_SUCCESS);
    EXPECT_EQ(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    EXPECT_EQ(cuMemPoolGetAccess(&flags, current, &nowhere), CUDA_ERROR_INVALID_DEVICE);
  });
}

}  // namespace
}  // namespace simgpu
