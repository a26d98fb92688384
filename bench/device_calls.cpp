// What a launch costs beside CUPTI, on whatever driver is there.
//   device_calls launch CLIENT BATCHES CALLS PAUSE_US   → `NS_MIN NS_MEDIAN` a launch
//   device_calls graph CLIENT BATCHES CALLS PAUSE_US    → the same a launch of a graph of 20 kernels
// CLIENT: none, or a client of CUPTI of this program's own that joins records to calls in one of the possible ways:
//   kernels    kernel records alone: whoever reads them must join by order
//   keys       and API records of cuLaunchKernel alone
//   sparse     the same for 64 launches of each 1024
//   external   keys, and external correlation ids: a push and a pop around each launch, and one record more; CUPTI
//   writes
//              that record before an API record only, so the API records are needed all the same
//   driver     and API records of every driver call
// Between batches the records are flushed, unless nobody of this program's own collects.
// A second thread does nothing: glibc's locks, and so the driver, are cheaper in a process that has never had one, which no
// process with a real CUDA driver is. Without it the first level that starts a thread would pay for that.
#include <cuda.h>
#include <dlfcn.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "cupti/api.h"

namespace {

using gputrace::CuptiApi;
using gputrace::u32;
using gputrace::u64;
using gputrace::u8;

constexpr u32 kExternalCorrelation = 39, kCustom = 3, kLaunchKernel = 307, kNodes = 20;
CuptiApi cupti;
u32 (*push_external)(u32 kind, u64 id);
u32 (*pop_external)(u32 kind, u64* id);
CUfunction function;
CUgraphExec exec;

void require(u32 result, const char* what) {
  if (result == 0) return;
  std::fprintf(stderr, "device_calls: %s failed with %u\n", what, result);
  std::exit(1);
}

void set_up() {
  CUcontext context;
  CUmodule module;
  CUgraph graph;
  require(cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
  require(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  require(cuModuleLoadData(&module, ".version 7.0\n.target sm_52\n.address_size 64\n.visible .entry step() { ret; }\n"),
          "cuModuleLoadData");
  require(cuModuleGetFunction(&function, module, "step"), "cuModuleGetFunction");
  require(cuGraphCreate(&graph, 0), "cuGraphCreate");
  CUgraphNode last = nullptr;
  for (u32 i = 0; i < kNodes; ++i) {
    CUDA_KERNEL_NODE_PARAMS parameters{};
    parameters.func = function;
    parameters.gridDimX = parameters.gridDimY = parameters.gridDimZ = 1;
    parameters.blockDimX = 32;
    parameters.blockDimY = parameters.blockDimZ = 1;
    CUgraphNode node;
    require(cuGraphAddKernelNode(&node, graph, last ? &last : nullptr, last ? 1 : 0, &parameters),
            "cuGraphAddKernelNode");
    last = node;
  }
  require(cuGraphInstantiate(&exec, graph, 0), "cuGraphInstantiate");
}

void requested(u8** buffer, std::size_t* size, std::size_t* records) {
  *size = 1u << 20;
  *buffer = static_cast<u8*>(std::malloc(*size));
  *records = 0;
}
void completed(void*, u32, u8* buffer, std::size_t, std::size_t) { std::free(buffer); }

void collect(const std::string& client) {
  void* library = dlopen("libcupti.so.13", RTLD_NOW);
  if (!library) library = dlopen("libcupti.so.12", RTLD_NOW);
  if (!library) require(1, "dlopen of libcupti");
#define GT_CUPTI(name, parameters) cupti.name = reinterpret_cast<decltype(cupti.name)>(dlsym(library, #name));
  GT_CUPTI_REQUIRED(GT_CUPTI)
  GT_CUPTI_OPTIONAL(GT_CUPTI)
#undef GT_CUPTI
  push_external = reinterpret_cast<decltype(push_external)>(dlsym(library, "cuptiActivityPushExternalCorrelationId"));
  pop_external = reinterpret_cast<decltype(pop_external)>(dlsym(library, "cuptiActivityPopExternalCorrelationId"));
  require(cupti.cuptiActivityRegisterCallbacks(requested, completed), "cuptiActivityRegisterCallbacks");
  require(cupti.cuptiActivityEnable(gputrace::kKindConcurrentKernel), "cuptiActivityEnable");
  if (client == "keys" || client == "external")
    require(cupti.cuptiActivityEnableDriverApi(kLaunchKernel, 1), "cuptiActivityEnableDriverApi");
  if (client == "driver") require(cupti.cuptiActivityEnable(gputrace::kKindDriver), "cuptiActivityEnable");
  if (client == "external") require(cupti.cuptiActivityEnable(kExternalCorrelation), "cuptiActivityEnable");
}

void launch(int calls) {
  for (int i = 0; i < calls; ++i) cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr);
}
void launch_external(int calls) {
  for (int i = 0; i < calls; ++i) {
    u64 id;
    push_external(kCustom, static_cast<u64>(i));
    cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr);
    pop_external(kCustom, &id);
  }
}
// Keys for 64 launches of each 1024, as a collector would switch them on and off.
void launch_sparse(int calls) {
  constexpr int kEach = 1024, kKeyed = 64;
  for (int i = 0; i < calls; ++i) {
    if (i % kEach == 0) cupti.cuptiActivityEnableDriverApi(kLaunchKernel, 1);
    if (i % kEach == kKeyed) cupti.cuptiActivityEnableDriverApi(kLaunchKernel, 0);
    cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr);
  }
}
void launch_graph(int calls) {
  for (int i = 0; i < calls; ++i) cuGraphLaunch(exec, nullptr);
}

void start_idle_thread() {
  std::thread([] {
    for (;;) pause();
  }).detach();
}

double now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) return std::fprintf(stderr, "usage: device_calls launch|graph CLIENT BATCHES CALLS PAUSE_US\n"), 2;
  const std::string what = argv[1], client = argv[2];
  const int batches = std::atoi(argv[3]), calls = std::atoi(argv[4]), pause_us = std::atoi(argv[5]);
  start_idle_thread();
  require(cuInit(0), "cuInit");
  if (client != "none") collect(client);
  set_up();
  void (*work)(int) = what == "graph"        ? launch_graph
                      : client == "external" ? launch_external
                      : client == "sparse"   ? launch_sparse
                                             : launch;
  const timespec pause{pause_us / 1000000, (pause_us % 1000000) * 1000L};
  const timespec start{0, 300'000'000};  // the sidecar's own start is not what is measured
  nanosleep(&start, nullptr);
  std::vector<double> ns;
  for (int b = 0; b < batches; ++b) {
    const double begin = now_ns();
    work(calls);
    ns.push_back((now_ns() - begin) / calls);
    require(cuCtxSynchronize(), "cuCtxSynchronize");
    if (client != "none") cupti.cuptiActivityFlushAll(0);
    nanosleep(&pause, nullptr);
  }
  std::sort(ns.begin(), ns.end());
  std::printf("%.2f %.2f\n", ns.front(), ns[ns.size() / 2]);
  return 0;
}
