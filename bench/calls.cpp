// Makes CUDA driver calls as fast as it can, in batches with pauses between them, and prints what one call took.
//   calls launch BATCHES CALLS PAUSE_US    cuLaunchKernel alone            → `NS_MIN NS_MEDIAN` a call
//   calls stamps BATCHES CALLS PAUSE_US    two timestamps and a record filled on the stack: the floor
//   calls stamped BATCHES CALLS PAUSE_US   the same around cuLaunchKernel: the floor for a hook on this driver
//   calls runtime BATCHES CALLS PAUSE_US   cudaLaunchKernel of a shared runtime, with a cuLaunchKernel within it
//   calls mix BATCHES CALLS PAUSE_US       64 kernels, copies, memsets, events: what traces for the analyzer are made
//   of
// The batch fits the ring, and the pause lets the sidecar empty it: what is measured is the hook, not the consumer's
// speed.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/clock.h"
#include "trace/record.h"

namespace {

constexpr int kKernels = 64;
CUfunction functions[kKernels];
CUdeviceptr memory;
char host[4096];

void require(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "calls: %s failed with %d\n", what, static_cast<int>(result));
  std::exit(1);
}

void set_up() {
  CUdevice device;
  CUcontext context;
  CUmodule module;
  require(cuInit(0), "cuInit");
  require(cuDeviceGet(&device, 0), "cuDeviceGet");
  require(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
  require(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  std::string image = ".version 7.0\n.target sm_52\n.address_size 64\n";
  for (int i = 0; i < kKernels; ++i)
    image += ".visible .entry kernel_" + std::to_string(100 + i).substr(1) + "() { ret; }\n";
  require(cuModuleLoadData(&module, image.c_str()), "cuModuleLoadData");
  for (int i = 0; i < kKernels; ++i) {
    require(cuModuleGetFunction(&functions[i], module, ("kernel_" + std::to_string(100 + i).substr(1)).c_str()),
            "cuModuleGetFunction");
  }
  require(cuMemAlloc(&memory, sizeof host), "cuMemAlloc");
}

void launch(int calls) {
  for (int i = 0; i < calls; ++i) cuLaunchKernel(functions[0], 64, 1, 1, 256, 1, 1, 0, nullptr, nullptr, nullptr);
}

void runtime(int calls) {
  for (int i = 0; i < calls; ++i) cudaLaunchKernel(functions[0], dim3(64, 1, 1), dim3(256, 1, 1), nullptr, 0, nullptr);
}

void mix(int calls) {
  for (int i = 0; i < calls; ++i) {
    switch (i % 16) {
      case 13:
        cuMemcpyHtoDAsync(memory, host, sizeof host, nullptr);
        break;
      case 14:
        cuMemsetD8Async(memory, 0, sizeof host, nullptr);
        break;
      case 15:
        cuStreamSynchronize(nullptr);
        break;
      default: {
        unsigned k = static_cast<unsigned>(i * 7) % kKernels;
        cuLaunchKernel(functions[k], 1 + k, 1, 1, 128, 1, 1, 0, nullptr, nullptr, nullptr);
      }
    }
  }
}

// What any tracer must at least do: a stamp before, a stamp after, the facts in memory. Around a real call a stamp
// costs more than alone, because it waits for what the call has begun.
template <bool kWithLaunch>
void stamps(int calls) {
  const gputrace::ClockKind clock = gputrace::detect_clock();
  // Filled field by field: zeroing it first with wide stores made a timestamp that follows 10 ns dearer, a floor too
  // high.
  static gputrace::KernelLaunch place;
  volatile gputrace::KernelLaunch& record = place;
  const gputrace::u64 function = reinterpret_cast<gputrace::u64>(functions[0]);
  for (int i = 0; i < calls; ++i) {
    record.header.begin = gputrace::ticks_of(clock);
    if (kWithLaunch) launch(1);
    record.header.end = gputrace::ticks_of(clock);
    record.header.call = 1;
    record.function = function;
    record.stream = 0;
    record.context = function;
    record.grid_x = static_cast<gputrace::u32>(i);
    record.grid_y = 1;
    record.grid_z = 1;
    record.block_x = 256;
    record.block_y = 1;
    record.block_z = 1;
    record.dynamic_shared_bytes = 0;
    record.flags = 0;
  }
}

double now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5)
    return std::fprintf(stderr, "usage: calls launch|stamps|stamped|runtime|mix BATCHES CALLS PAUSE_US\n"), 2;
  const std::string what = argv[1];
  const int batches = std::atoi(argv[2]), calls = std::atoi(argv[3]), pause_us = std::atoi(argv[4]);
  if (what != "stamps") {
    set_up();
    const timespec start{0, 300'000'000};  // the sidecar's own start is not what is measured
    nanosleep(&start, nullptr);
  }
  void (*work)(int) = what == "stamps"    ? stamps<false>
                      : what == "stamped" ? stamps<true>
                      : what == "mix"     ? mix
                      : what == "runtime" ? runtime
                                          : launch;
  std::vector<double> ns;
  for (int b = 0; b < batches; ++b) {
    const double begin = now_ns();
    work(calls);
    ns.push_back((now_ns() - begin) / calls);
    if (what != "stamps") require(cuCtxSynchronize(), "cuCtxSynchronize");
    if (pause_us > 0) {
      timespec pause{pause_us / 1000000, (pause_us % 1000000) * 1000L};
      nanosleep(&pause, nullptr);
    }
  }
  std::sort(ns.begin(), ns.end());
  std::printf("%.2f %.2f\n", ns.front(), ns[ns.size() / 2]);
  return 0;
}
