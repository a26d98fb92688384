// Virtual memory, arrays, linking, memory between processes.
#include <sys/mman.h>

#include <cstring>

#include "tests/simgpu/driver_fixture.h"

namespace simgpu {
namespace {

constexpr size_t kUnit = 2 << 20;

CUmemAllocationProp device_props(CUmemAllocationHandleType handles = CU_MEM_HANDLE_TYPE_NONE) {
  CUmemAllocationProp props{};
  props.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  props.location.id = 0;
  props.requestedHandleTypes = handles;
  return props;
}

const CUmemAccessDesc kReadWrite{{CU_MEM_LOCATION_TYPE_DEVICE, {0}}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

TEST(Vmm, MapsTheSameMemoryTwice) {
  const ChildEnd end = run_child({}, [] {
    Loaded loaded;
    const CUmemAllocationProp props = device_props();
    size_t granularity = 0, before = 0, now = 0, total = 0;
    EXPECT_EQ(cuMemGetAllocationGranularity(&granularity, &props, CU_MEM_ALLOC_GRANULARITY_MINIMUM), CUDA_SUCCESS);
    EXPECT_EQ(granularity, kUnit);
    EXPECT_EQ(cuMemGetInfo(&before, &total), CUDA_SUCCESS);
    CUdeviceptr range = 0;
    EXPECT_EQ(cuMemAddressReserve(&range, 4 * kUnit, 0, 0, 0), CUDA_SUCCESS);
    EXPECT_EQ(range % kUnit, 0u);
    CUmemGenericAllocationHandle memory = 0, other = 0;
    EXPECT_EQ(cuMemCreate(&memory, kUnit + 1, &props, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemCreate(&memory, kUnit, &props, 0), CUDA_SUCCESS);
    EXPECT_EQ(cuMemGetInfo(&now, &total), CUDA_SUCCESS);
    EXPECT_EQ(before - now, kUnit);
    EXPECT_EQ(cuMemMap(range, kUnit, 0, memory, 0), CUDA_SUCCESS);
    EXPECT_EQ(cuMemMap(range, kUnit, 0, memory, 0), CUDA_ERROR_INVALID_VALUE);  // taken
    EXPECT_EQ(cuMemMap(range + 2 * kUnit, kUnit, 0, memory, 0), CUDA_SUCCESS);
    EXPECT_EQ(cuMemMap(range + 4 * kUnit, kUnit, 0, memory, 0), CUDA_ERROR_INVALID_VALUE);  // not reserved
    EXPECT_EQ(cuMemsetD8(range, 1, kUnit), CUDA_ERROR_INVALID_VALUE);                       // no access yet
    EXPECT_EQ(cuMemSetAccess(range, kUnit, &kReadWrite, 1), CUDA_SUCCESS);
    EXPECT_EQ(cuMemSetAccess(range + 2 * kUnit, kUnit, &kReadWrite, 1), CUDA_SUCCESS);
    EXPECT_EQ(cuMemSetAccess(range, 2 * kUnit, &kReadWrite, 1), CUDA_ERROR_INVALID_VALUE);  // half of it unmapped
    EXPECT_EQ(cuMemsetD8(range, 0x77, kUnit), CUDA_SUCCESS);
    unsigned char byte = 0;
    EXPECT_EQ(cuMemcpyDtoH(&byte, range + 2 * kUnit + 4321, 1), CUDA_SUCCESS);
    EXPECT_EQ(byte, 0x77);
    unsigned long long flags = 0;
    EXPECT_EQ(cuMemGetAccess(&flags, &kReadWrite.location, range), CUDA_SUCCESS);
    EXPECT_EQ(flags, static_cast<unsigned long long>(CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    EXPECT_EQ(cuMemRetainAllocationHandle(&other, reinterpret_cast<void*>(range + 5)), CUDA_SUCCESS);
    EXPECT_EQ(other, memory);
    EXPECT_EQ(cuMemRelease(other), CUDA_SUCCESS);
    EXPECT_EQ(cuMemRelease(memory), CUDA_SUCCESS);  // the mappings hold it
    EXPECT_EQ(cuMemRelease(memory), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemcpyDtoH(&byte, range, 1), CUDA_SUCCESS);
    EXPECT_EQ(cuMemAddressFree(range, 4 * kUnit), CUDA_ERROR_INVALID_VALUE);  // still mapped
    EXPECT_EQ(cuMemUnmap(range, kUnit), CUDA_SUCCESS);
    EXPECT_EQ(cuMemUnmap(range + 2 * kUnit, kUnit), CUDA_SUCCESS);
    EXPECT_EQ(cuMemcpyDtoH(&byte, range, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemGetInfo(&now, &total), CUDA_SUCCESS);
    EXPECT_EQ(now, before);
    EXPECT_EQ(cuMemAddressFree(range, 4 * kUnit), CUDA_SUCCESS);
  });
  const auto allocs = end.lines("alloc", "cuMemCreate");
  ASSERT_EQ(allocs.size(), 1u);
  EXPECT_EQ(allocs[0]["memory"], "vmm");
  EXPECT_EQ(allocs[0]["bytes"], kUnit);
  EXPECT_EQ(end.lines("free", "cuMemRelease").size(), 1u);
}

TEST(Vmm, GrowsARangePieceByPiece) {
  run_child({{"SIMGPU_MEMORY", "64M"}}, [] {
    Loaded loaded;
    const CUmemAllocationProp props = device_props();
    size_t before = 0, free = 0, total = 0;
    EXPECT_EQ(cuMemGetInfo(&before, &total), CUDA_SUCCESS);
    CUdeviceptr range = 0;
    EXPECT_EQ(cuMemAddressReserve(&range, 64 * kUnit, 0, 0, 0), CUDA_SUCCESS);
    std::vector<CUmemGenericAllocationHandle> pieces;
    for (size_t i = 0;; ++i) {
      CUmemGenericAllocationHandle piece = 0;
      const CUresult result = cuMemCreate(&piece, kUnit, &props, 0);
      if (result == CUDA_ERROR_OUT_OF_MEMORY) break;
      ASSERT_EQ(result, CUDA_SUCCESS);
      ASSERT_EQ(cuMemMap(range + i * kUnit, kUnit, 0, piece, 0), CUDA_SUCCESS);
      ASSERT_EQ(cuMemSetAccess(range + i * kUnit, kUnit, &kReadWrite, 1), CUDA_SUCCESS);
      pieces.push_back(piece);
      ASSERT_LE(pieces.size(), 32u);
    }
    EXPECT_GE(pieces.size(), 31u);
    // One copy across all pieces.
    std::vector<unsigned char> pattern(pieces.size() * kUnit), back(pattern.size());
    for (size_t i = 0; i < pattern.size(); ++i) pattern[i] = static_cast<unsigned char>(i * 2654435761u >> 24);
    EXPECT_EQ(cuMemcpyHtoD(range, pattern.data(), pattern.size()), CUDA_SUCCESS);
    EXPECT_EQ(cuMemcpyDtoH(back.data(), range, back.size()), CUDA_SUCCESS);
    EXPECT_EQ(back, pattern);
    EXPECT_EQ(cuMemUnmap(range, pieces.size() * kUnit), CUDA_SUCCESS);
    for (const auto piece : pieces) EXPECT_EQ(cuMemRelease(piece), CUDA_SUCCESS);
    EXPECT_EQ(cuMemGetInfo(&free, &total), CUDA_SUCCESS);
    EXPECT_EQ(free, before);
  });
}

TEST(Vmm, SharesByDescriptor) {
  run_child({}, [] {
    Loaded loaded;
    const CUmemAllocationProp props = device_props(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    CUmemGenericAllocationHandle memory = 0, imported = 0;
    int file = -1;
    EXPECT_EQ(cuMemCreate(&memory, kUnit, &props, 0), CUDA_SUCCESS);
    EXPECT_EQ(cuMemExportToShareableHandle(&file, memory, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0), CUDA_SUCCESS);
    EXPECT_EQ(cuMemImportFromShareableHandle(&imported, reinterpret_cast<void*>(static_cast<intptr_t>(file)),
                                             CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
              CUDA_SUCCESS);
    close(file);
    CUdeviceptr range = 0;
    EXPECT_EQ(cuMemAddressReserve(&range, 2 * kUnit, 0, 0, 0), CUDA_SUCCESS);
    EXPECT_EQ(cuMemMap(range, kUnit, 0, memory, 0), CUDA_SUCCESS);
    EXPECT_EQ(cuMemMap(range + kUnit, kUnit, 0, imported, 0), CUDA_SUCCESS);
    EXPECT_EQ(cuMemSetAccess(range, 2 * kUnit, &kReadWrite, 1), CUDA_SUCCESS);
    EXPECT_EQ(cuMemsetD32(range, 0x12345678, 16), CUDA_SUCCESS);
    unsigned value = 0;
    EXPECT_EQ(cuMemcpyDtoH(&value, range + kUnit + 8, 4), CUDA_SUCCESS);
    EXPECT_EQ(value, 0x12345678u);
  });
}

TEST(Arrays, HoldWhatIsCopiedIntoThem) {
  const ChildEnd end = run_child({}, [] {
    Loaded loaded;
    size_t before = 0, free = 0, total = 0;
    EXPECT_EQ(cuMemGetInfo(&before, &total), CUDA_SUCCESS);
    CUDA_ARRAY3D_DESCRIPTOR descriptor{};
    descriptor.Width = 100;
    descriptor.Height = 20;
    descriptor.Format = CU_AD_FORMAT_FLOAT;
    descriptor.NumChannels = 2;
    CUarray array = nullptr;
    EXPECT_EQ(cuArray3DCreate(&array, &descriptor), CUDA_SUCCESS);
    CUDA_ARRAY_DESCRIPTOR answer{};
    EXPECT_EQ(cuArrayGetDescriptor(&answer, array), CUDA_SUCCESS);
    EXPECT_EQ(answer.Width, 100u);
    EXPECT_EQ(answer.NumChannels, 2u);
    std::vector<float> source(100 * 2 * 20), back(source.size());
    for (size_t i = 0; i < source.size(); ++i) source[i] = static_cast<float>(i);
    CUDA_MEMCPY2D copy{};
    copy.srcMemoryType = CU_MEMORYTYPE_HOST;
    copy.srcHost = source.data();
    copy.srcPitch = 800;
    copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
    copy.dstArray = array;
    copy.WidthInBytes = 800;
    copy.Height = 20;
    EXPECT_EQ(cuMemcpy2D(&copy), CUDA_SUCCESS);
    CUDA_MEMCPY2D out{};
    out.srcMemoryType = CU_MEMORYTYPE_ARRAY;
    out.srcArray = array;
    out.dstMemoryType = CU_MEMORYTYPE_HOST;
    out.dstHost = back.data();
    out.dstPitch = 800;
    out.WidthInBytes = 800;
    out.Height = 20;
    EXPECT_EQ(cuMemcpy2D(&out), CUDA_SUCCESS);
    EXPECT_EQ(back, source);
    out.Height = 21;
    EXPECT_EQ(cuMemcpy2D(&out), CUDA_ERROR_INVALID_VALUE);
    descriptor.Flags = CUDA_ARRAY3D_SPARSE;
    CUarray none = nullptr;
    EXPECT_EQ(cuArray3DCreate(&none, &descriptor), CUDA_ERROR_NOT_SUPPORTED);
    descriptor.Flags = 0;
    CUmipmappedArray mipmap = nullptr;
    EXPECT_EQ(cuMipmappedArrayCreate(&mipmap, &descriptor, 3), CUDA_SUCCESS);
    EXPECT_EQ(cuMipmappedArrayGetLevel(&none, mipmap, 2), CUDA_SUCCESS);
    EXPECT_EQ(cuArrayGetDescriptor(&answer, none), CUDA_SUCCESS);
    EXPECT_EQ(answer.Width, 25u);
    EXPECT_EQ(answer.Height, 5u);
    EXPECT_EQ(cuMipmappedArrayGetLevel(&none, mipmap, 3), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMipmappedArrayDestroy(mipmap), CUDA_SUCCESS);
    EXPECT_EQ(cuArrayDestroy(array), CUDA_SUCCESS);
    EXPECT_EQ(cuArrayDestroy(array), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_EQ(cuMemGetInfo(&free, &total), CUDA_SUCCESS);
    EXPECT_EQ(free, before);
  });
  EXPECT_EQ(end.lines("alloc", "cuArray3DCreate").size(), 1u);
  EXPECT_EQ(end.lines("alloc", "cuArray3DCreate")[0]["memory"], "array");
  EXPECT_EQ(end.lines("alloc", "cuMipmappedArrayCreate").size(), 3u);
}

TEST(Link, YieldsAnImageThatLoads) {
  run_child({}, [] {
    Loaded loaded;
    CUlinkState state = nullptr;
    EXPECT_EQ(cuLinkCreate(0, nullptr, nullptr, &state), CUDA_SUCCESS);
    char first[] = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry one(.param .u32 x) { ret; }\n";
    char second[] = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry two() { ret; }\n";
    EXPECT_EQ(cuLinkAddData(state, CU_JIT_INPUT_PTX, first, sizeof first, "a", 0, nullptr, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(cuLinkAddData(state, CU_JIT_INPUT_PTX, second, sizeof second, "b", 0, nullptr, nullptr), CUDA_SUCCESS);
    char rubbish[] = "not a program";
    EXPECT_EQ(cuLinkAddData(state, CU_JIT_INPUT_PTX, rubbish, sizeof rubbish, "c", 0, nullptr, nullptr),
              CUDA_ERROR_INVALID_PTX);
    EXPECT_EQ(cuLinkAddFile(state, CU_JIT_INPUT_LIBRARY, "/no/such/file.a", 0, nullptr, nullptr),
              CUDA_ERROR_FILE_NOT_FOUND);
    void* image = nullptr;
    size_t bytes = 0;
    EXPECT_EQ(cuLinkComplete(state, &image, &bytes), CUDA_SUCCESS);
    CUmodule module = nullptr;
    EXPECT_EQ(cuModuleLoadData(&module, image), CUDA_SUCCESS);
    CUfunction function = nullptr;
    EXPECT_EQ(cuModuleGetFunction(&function, module, "one"), CUDA_SUCCESS);
    EXPECT_EQ(cuModuleGetFunction(&function, module, "two"), CUDA_SUCCESS);
    EXPECT_EQ(launch(function, 1, 32), CUDA_SUCCESS);
    EXPECT_EQ(cuLinkDestroy(state), CUDA_SUCCESS);
    EXPECT_EQ(cuLinkDestroy(state), CUDA_ERROR_INVALID_VALUE);
  });
}

// One process writes, another reads by the handle, both through the driver.
TEST(Ipc, MemoryOfAnotherProcess) {
  int pipes[2][2];
  ASSERT_EQ(pipe(pipes[0]), 0);
  ASSERT_EQ(pipe(pipes[1]), 0);
  const pid_t reader = fork();
  if (reader == 0) {
    run_child({}, [&] {
      Loaded loaded;
      CUipcMemHandle handle{};
      EXPECT_EQ(read(pipes[0][0], &handle, sizeof handle), static_cast<ssize_t>(sizeof handle));
      CUdeviceptr p = 0;
      EXPECT_EQ(cuIpcOpenMemHandle(&p, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS), CUDA_SUCCESS);
      unsigned value = 0;
      EXPECT_EQ(cuMemcpyDtoH(&value, p + 4096, 4), CUDA_SUCCESS);
      EXPECT_EQ(value, 0xfeedu);
      EXPECT_EQ(cuMemsetD32(p, 0xcafe, 1), CUDA_SUCCESS);
      EXPECT_EQ(cuIpcCloseMemHandle(p), CUDA_SUCCESS);
      EXPECT_EQ(cuIpcCloseMemHandle(p), CUDA_ERROR_INVALID_VALUE);
      handle.reserved[0] = static_cast<char>(handle.reserved[0] ^ 1);
      EXPECT_EQ(cuIpcOpenMemHandle(&p, handle, 0), CUDA_ERROR_INVALID_HANDLE);
    });
    const char done = testing::Test::HasFailure() ? 'n' : 'y';
    _exit(write(pipes[1][1], &done, 1) == 1 && done == 'y' ? 0 : 1);
  }
  run_child({}, [&] {
    Loaded loaded;
    CUdeviceptr p = 0;
    EXPECT_EQ(cuMemAlloc(&p, 1 << 20), CUDA_SUCCESS);
    EXPECT_EQ(cuMemsetD32(p + 4096, 0xfeed, 1), CUDA_SUCCESS);
    CUipcMemHandle handle{};
    EXPECT_EQ(cuIpcGetMemHandle(&handle, p), CUDA_SUCCESS);
    CUdeviceptr own = 0;
    EXPECT_EQ(cuIpcOpenMemHandle(&own, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(write(pipes[0][1], &handle, sizeof handle), static_cast<ssize_t>(sizeof handle));
    char done = 0;
    EXPECT_EQ(read(pipes[1][0], &done, 1), 1);
    EXPECT_EQ(done, 'y');
    unsigned value = 0;
    EXPECT_EQ(cuMemcpyDtoH(&value, p, 4), CUDA_SUCCESS);
    EXPECT_EQ(value, 0xcafeu);
  });
  int status = 0;
  EXPECT_EQ(waitpid(reader, &status, 0), reader);
}

// One process records an event behind a kernel of 200 ms and, later, behind a host function of 100 ms; the other one, which has the event by its
// handle, sees both.
using Nanos = uint64_t;
constexpr Nanos kKernel = 200'000'000;
constexpr int kHostSleep = 100'000;  // us

Nanos now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<Nanos>(t.tv_sec) * 1'000'000'000u + static_cast<Nanos>(t.tv_nsec);
}

void waits_for_the_other(int in, int out) {
  Loaded loaded;
  CUipcEventHandle handle{};
  CUevent event = nullptr, broken = nullptr;
  ASSERT_EQ(read(in, &handle, sizeof handle), static_cast<ssize_t>(sizeof handle));
  ASSERT_EQ(cuIpcOpenEventHandle(&event, handle), CUDA_SUCCESS);
  EXPECT_EQ(cuEventQuery(event), CUDA_ERROR_NOT_READY);
  const CUstream stream = new_stream();
  EXPECT_EQ(cuStreamWaitEvent(stream, event, 0), CUDA_SUCCESS);
  EXPECT_EQ(launch(loaded.function("plain"), 1, 32, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuEventSynchronize(event), CUDA_SUCCESS);
  EXPECT_EQ(cuEventQuery(event), CUDA_SUCCESS);
  Nanos first = 0, second = 0;
  ASSERT_EQ(write(out, &first, sizeof first), static_cast<ssize_t>(sizeof first));  // the kernel is over: go on
  ASSERT_EQ(read(in, &second, sizeof second), static_cast<ssize_t>(sizeof second));
  EXPECT_EQ(cuEventQuery(event), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(cuEventSynchronize(event), CUDA_SUCCESS);
  EXPECT_GE(now(), second + Nanos{kHostSleep} * 1000);
  EXPECT_EQ(cuEventRecord(event, stream), CUDA_SUCCESS);  // the other way round
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
  EXPECT_EQ(cuEventDestroy(event), CUDA_SUCCESS);
  handle.reserved[0] = static_cast<char>(handle.reserved[0] ^ 1);
  EXPECT_EQ(cuIpcOpenEventHandle(&broken, handle), CUDA_ERROR_INVALID_HANDLE);
}

void records_for_the_other(int in, int out) {
  Loaded loaded;
  CUevent event = nullptr, timed = nullptr;
  CUipcEventHandle handle{};
  ASSERT_EQ(cuEventCreate(&timed, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuIpcGetEventHandle(&handle, timed), CUDA_ERROR_INVALID_HANDLE);
  ASSERT_EQ(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS), CUDA_SUCCESS);
  const CUstream stream = new_stream();
  ASSERT_EQ(launch(loaded.function("touch"), 1, 32, stream), CUDA_SUCCESS);
  ASSERT_EQ(cuEventRecord(event, stream), CUDA_SUCCESS);
  ASSERT_EQ(cuIpcGetEventHandle(&handle, event), CUDA_SUCCESS);
  ASSERT_EQ(write(out, &handle, sizeof handle), static_cast<ssize_t>(sizeof handle));
  Nanos turn = 0;
  ASSERT_EQ(read(in, &turn, sizeof turn), static_cast<ssize_t>(sizeof turn));
  ASSERT_EQ(cuLaunchHostFunc(
                stream, [](void*) { usleep(kHostSleep); }, nullptr),
            CUDA_SUCCESS);
  ASSERT_EQ(cuEventRecord(event, stream), CUDA_SUCCESS);
  turn = now() - 1'000'000;  // the host function may have begun a little earlier
  ASSERT_EQ(write(out, &turn, sizeof turn), static_cast<ssize_t>(sizeof turn));
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
}

TEST(Ipc, EventOfAnotherProcess) {
  int pipes[2][2];
  ASSERT_EQ(pipe(pipes[0]), 0);
  ASSERT_EQ(pipe(pipes[1]), 0);
  const Variables variables = {{"SIMGPU_KERNEL_TIME", "touch=200ms"}};
  const pid_t other = fork();
  if (other == 0) {
    const ChildEnd end = run_child(variables, [&] { waits_for_the_other(pipes[0][0], pipes[1][1]); });
    const auto kernels = end.lines("kernel");
    EXPECT_EQ(kernels.size(), 1u);  // it began when the other process's kernel had ended
    for (const Json& kernel : kernels) {
      EXPECT_GE(start_of(kernel), kernel["call_begin_ns"].get<Nanos>() + kKernel / 4);
    }
    std::fflush(nullptr);
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  run_child(variables, [&] { records_for_the_other(pipes[1][0], pipes[0][1]); });
  int status = 0;
  EXPECT_EQ(waitpid(other, &status, 0), other);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace simgpu
