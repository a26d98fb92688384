// drv_every [exit=E]: about 130 driver entries, most of them once, with arguments that are good. drv_every_ptsz is the
// same source with the per-thread default stream, so that the _ptsz and _ptds names are called. Prints each call and
// its result; the last line counts calls and failures.
#include "tests/programs/driver/drv_every.h"

#include <cstring>

#include "tests/programs/drv_check.h"
#include "tests/programs/options.h"

static int calls_made = 0;
static int failures = 0;

static void made(const char* call, CUresult result) {
  ++calls_made;
  failures += result == CUDA_SUCCESS ? 0 : 1;
  std::printf("%.*s %d\n", static_cast<int>(std::strcspn(call, "(")), call, static_cast<int>(result));
}

#define EACH(call) made(#call, call)

static void devices() {
  int number = 0;
  char text[64];
  size_t bytes = 0;
  CUuuid uuid{};
  EACH(cuInit(0));
  EACH(cuDriverGetVersion(&number));
  EACH(cuDeviceGetCount(&number));
  EACH(cuDeviceGetName(text, sizeof text, 0));
  EACH(cuDeviceGetUuid(&uuid, 0));
  EACH(cuDeviceTotalMem(&bytes, 0));
  EACH(cuDeviceGetAttribute(&number, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
  EACH(cuDeviceGetPCIBusId(text, sizeof text, 0));
}

static void contexts() {
  CUcontext context = nullptr, popped = nullptr, created = nullptr;
  CUdevice device = 0;
  unsigned flags = 0;
  int active = 0, least = 0, greatest = 0;
  size_t limit = 0;
  EACH(cuDevicePrimaryCtxGetState(0, &flags, &active));
  EACH(cuDevicePrimaryCtxRetain(&context, 0));
  EACH(cuCtxCreate(&created, nullptr, 0, 0));
  EACH(cuCtxDestroy(created));
  EACH(cuCtxPushCurrent(context));
  EACH(cuCtxPopCurrent(&popped));
  EACH(cuCtxSetCurrent(context));
  EACH(cuCtxGetCurrent(&popped));
  EACH(cuCtxGetDevice(&device));
  EACH(cuCtxGetLimit(&limit, CU_LIMIT_STACK_SIZE));
  EACH(cuCtxGetStreamPriorityRange(&least, &greatest));
  EACH(cuCtxSynchronize());
}

struct Code {
  CUmodule module = nullptr;
  CUlibrary library = nullptr;
  CUfunction function = nullptr;
  CUkernel kernel = nullptr;
};

static Code code() {
  Code code;
  CUfunction of_kernel = nullptr;
  int value = 0;
  const char* name = nullptr;
  EACH(cuModuleLoadData(&code.module, ptx_text));
  EACH(cuModuleGetFunction(&code.function, code.module, "third"));
  EACH(cuLibraryLoadData(&code.library, ptx_text, nullptr, nullptr, 0, nullptr, nullptr, 0));
  EACH(cuLibraryGetKernel(&code.kernel, code.library, "third"));
  EACH(cuKernelGetFunction(&of_kernel, code.kernel));
  EACH(cuKernelGetName(&name, code.kernel));
  EACH(cuFuncGetName(&name, code.function));
  EACH(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, code.function));
  EACH(cuFuncSetAttribute(code.function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 65536));
  EACH(cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, code.function, 128, 0));
  return code;
}

static void allocations() {
  CUdeviceptr device = 0, pitched = 0, managed = 0, base = 0, mapped = 0;
  void *host = nullptr, *flagged = nullptr;
  static char registered[4096];
  size_t pitch = 0, size = 0, free = 0;
  cuuint64_t high = 0;
  unsigned type = 0;
  EACH(cuMemGetInfo(&free, &size));
  EACH(cuDeviceGraphMemTrim(0));
  EACH(cuDeviceSetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &high));
  EACH(cuMemAlloc(&device, 4096));
  EACH(cuMemAllocPitch(&pitched, &pitch, 100, 10, 4));
  EACH(cuMemAllocManaged(&managed, 4096, CU_MEM_ATTACH_GLOBAL));
  EACH(cuMemAllocHost(&host, 4096));
  EACH(cuMemHostAlloc(&flagged, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
  EACH(cuMemHostGetDevicePointer(&mapped, flagged, 0));
  EACH(cuMemHostRegister(registered, sizeof registered, 0));
  EACH(cuMemGetAddressRange(&base, &size, device));
  EACH(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device));
  EACH(cuMemHostUnregister(registered));
  EACH(cuMemFreeHost(flagged));
  EACH(cuMemFreeHost(host));
  EACH(cuMemFree(managed));
  EACH(cuMemFree(pitched));
  EACH(cuMemFree(device));
}

static void transfers(CUstream stream) {
  CUdeviceptr a = 0, b = 0, pooled = 0;
  CUcontext context = nullptr;
  CUmemoryPool pool = nullptr;
  CUarray array = nullptr;
  static char host[4096];
  const CUDA_ARRAY_DESCRIPTOR shape{64, 8, CU_AD_FORMAT_UNSIGNED_INT8, 1};
  MUST(cuMemAlloc(&a, 4096));
  MUST(cuMemAlloc(&b, 4096));
  MUST(cuCtxGetCurrent(&context));
  EACH(cuMemcpy(b, a, 4096));
  EACH(cuMemcpyHtoD(a, host, 4096));
  EACH(cuMemcpyDtoD(b, a, 4096));
  EACH(cuMemcpyDtoH(host, b, 4096));
  EACH(cuMemcpyPeer(b, context, a, context, 4096));
  EACH(cuMemcpyAsync(b, a, 4096, stream));
  EACH(cuMemcpyHtoDAsync(a, host, 4096, stream));
  EACH(cuMemcpyDtoDAsync(b, a, 4096, stream));
  EACH(cuMemcpyDtoHAsync(host, b, 4096, stream));
  EACH(cuMemcpyPeerAsync(b, context, a, context, 4096, stream));
  EACH(cuMemsetD8(a, 1, 4096));
  EACH(cuMemsetD16(a, 2, 2048));
  EACH(cuMemsetD32(a, 3, 1024));
  EACH(cuMemsetD2D8(a, 64, 4, 32, 8));
  EACH(cuMemsetD2D16(a, 64, 4, 16, 8));
  EACH(cuMemsetD2D32(a, 64, 4, 8, 8));
  EACH(cuMemsetD8Async(a, 1, 4096, stream));
  EACH(cuMemsetD16Async(a, 2, 2048, stream));
  EACH(cuMemsetD32Async(a, 3, 1024, stream));
  EACH(cuMemsetD2D8Async(a, 64, 4, 32, 8, stream));
  EACH(cuMemsetD2D32Async(a, 64, 4, 8, 8, stream));
  EACH(cuArrayCreate(&array, &shape));
  const CUDA_MEMCPY2D rows = rows_to_array(host, array);
  const CUDA_MEMCPY3D box = rows_to_rows(a, b);
  EACH(cuMemcpyHtoA(array, 0, host, 64));
  EACH(cuMemcpyAtoH(host, array, 0, 64));
  EACH(cuMemcpy2D(&rows));
  EACH(cuMemcpy2DUnaligned(&rows));
  EACH(cuMemcpy2DAsync(&rows, stream));
  EACH(cuMemcpy3D(&box));
  EACH(cuMemcpy3DAsync(&box, stream));
  EACH(cuArrayDestroy(array));
  EACH(cuDeviceGetDefaultMemPool(&pool, 0));
  EACH(cuMemAllocAsync(&pooled, 4096, stream));
  EACH(cuMemFreeAsync(pooled, stream));
  EACH(cuMemAllocFromPoolAsync(&pooled, 4096, pool, stream));
  EACH(cuMemFreeAsync(pooled, stream));
  EACH(cuMemPoolTrimTo(pool, 0));
  MUST(cuStreamSynchronize(stream));
  MUST(cuMemFree(a));
  MUST(cuMemFree(b));
}

static void virtual_memory() {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  CUmemAccessDesc access{properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr address = 0;
  size_t size = 0;
  EACH(cuMemGetAllocationGranularity(&size, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  EACH(cuMemAddressReserve(&address, size, 0, 0, 0));
  EACH(cuMemCreate(&handle, size, &properties, 0));
  EACH(cuMemMap(address, size, 0, handle, 0));
  EACH(cuMemSetAccess(address, size, &access, 1));
  EACH(cuMemUnmap(address, size));
  EACH(cuMemRelease(handle));
  EACH(cuMemAddressFree(address, size));
}

static void host_function(void*) {}
static void stream_callback(CUstream, CUresult, void*) {}

static void streams_and_launches(const Code& code, CUstream stream) {
  CUevent begin = nullptr, end = nullptr;
  CUstream high = nullptr;
  float milliseconds = 0;
  unsigned flags = 0;
  int priority = 0;
  CUlaunchConfig config{};
  config.gridDimX = config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
  config.blockDimX = 32;
  config.hStream = stream;
  EACH(cuStreamCreateWithPriority(&high, CU_STREAM_NON_BLOCKING, -1));
  EACH(cuStreamGetPriority(high, &priority));
  EACH(cuStreamGetFlags(high, &flags));
  EACH(cuEventCreate(&begin, CU_EVENT_DEFAULT));
  EACH(cuEventCreate(&end, CU_EVENT_DEFAULT));
  EACH(cuEventRecord(begin, stream));
  EACH(cuLaunchKernel(code.function, 2, 1, 1, 64, 1, 1, 128, stream, nullptr, nullptr));
  EACH(cuLaunchKernelEx(&config, code.function, nullptr, nullptr));
  EACH(cuLaunchKernel(reinterpret_cast<CUfunction>(code.kernel), 3, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr));
  EACH(cuLaunchCooperativeKernel(code.function, 1, 1, 1, 32, 1, 1, 0, stream, nullptr));
  EACH(cuLaunchHostFunc(stream, host_function, nullptr));
  EACH(cuStreamAddCallback(stream, stream_callback, nullptr, 0));
  EACH(cuEventRecordWithFlags(end, stream, CU_EVENT_RECORD_DEFAULT));
  EACH(cuStreamWaitEvent(high, end, 0));
  EACH(cuEventSynchronize(end));
  EACH(cuStreamSynchronize(stream));
  EACH(cuStreamSynchronize(high));
  EACH(cuEventQuery(end));
  EACH(cuStreamQuery(stream));
  EACH(cuEventElapsedTime(&milliseconds, begin, end));
  EACH(cuEventDestroy(begin));
  EACH(cuEventDestroy(end));
  EACH(cuStreamDestroy(high));
}

static void graphs(const Code& code, CUstream stream) {
  CUgraph captured = nullptr, built = nullptr, clone = nullptr;
  CUgraphExec exec = nullptr, again = nullptr;
  CUgraphNode kernel = nullptr, empty = nullptr;
  CUstreamCaptureStatus status{};
  CUDA_GRAPH_INSTANTIATE_PARAMS how{};
  size_t count = 0;
  CUDA_KERNEL_NODE_PARAMS node{};
  node.func = code.function;
  node.gridDimX = node.gridDimY = node.gridDimZ = node.blockDimY = node.blockDimZ = 1;
  node.blockDimX = 32;
  EACH(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  EACH(cuStreamIsCapturing(stream, &status));
  EACH(cuLaunchKernel(code.function, 1, 1, 1, 32, 1, 1, 0, stream, nullptr, nullptr));
  EACH(cuStreamEndCapture(stream, &captured));
  EACH(cuGraphInstantiateWithFlags(&exec, captured, 0));
  EACH(cuGraphCreate(&built, 0));
  EACH(cuGraphAddKernelNode(&kernel, built, nullptr, 0, &node));
  EACH(cuGraphAddEmptyNode(&empty, built, &kernel, 1));
  EACH(cuGraphGetNodes(built, nullptr, &count));
  EACH(cuGraphClone(&clone, built));
  EACH(cuGraphInstantiateWithParams(&again, built, &how));
  EACH(cuGraphUpload(again, stream));
  EACH(cuGraphLaunch(again, stream));
  EACH(cuGraphLaunch(exec, stream));
  EACH(cuStreamSynchronize(stream));
  EACH(cuGraphExecDestroy(again));
  EACH(cuGraphExecDestroy(exec));
  EACH(cuGraphDestroy(clone));
  EACH(cuGraphDestroy(built));
  EACH(cuGraphDestroy(captured));
}

int main(int argc, char** argv) {
  CUstream stream = nullptr;
  devices();
  contexts();
  EACH(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  const Code loaded = code();
  allocations();
  transfers(stream);
  virtual_memory();
  streams_and_launches(loaded, stream);
  graphs(loaded, stream);
  const OldCounts old = old_versions();
  EACH(cuStreamDestroy(stream));
  EACH(cuLibraryUnload(loaded.library));
  EACH(cuModuleUnload(loaded.module));
  EACH(cuCtxSetCurrent(nullptr));
  EACH(cuDevicePrimaryCtxRelease(0));
  std::printf("calls %d failures %d\n", calls_made + old.calls, failures + old.failures);
  return static_cast<int>(option(argc, argv, "exit", 0));
}
