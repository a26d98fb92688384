// drv_loop [threads=T] [calls=N] [seconds=S] [call=launch|event|query] [progress=FILE] [sync=1] [exit=E]: T threads call
// as fast as they can: N times each, or for S seconds, or for ever. FILE holds one 64-bit count per thread, of calls that
// have returned, always up to date: it outlives a SIGKILL. sync: waits for the device at the end. Prints calls, and ns
// per call (thread time).
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "tests/programs/drv_calls.h"

using Clock = std::chrono::steady_clock;
using Counter = std::atomic<unsigned long long>;

static Counter* counters(const char* path, std::size_t count) {
  if (path == nullptr) {
    return new Counter[count]();
  }
  const int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
  void* memory = MAP_FAILED;
  if (file >= 0 && ftruncate(file, static_cast<off_t>(count * sizeof(Counter))) == 0) {
    memory = mmap(nullptr, count * sizeof(Counter), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  }
  if (memory == MAP_FAILED) {
    std::perror(path);
    std::exit(72);
  }
  close(file);
  return static_cast<Counter*>(memory);
}

struct Loop {
  unsigned long long calls = 0;  // 0: no limit
  Clock::time_point end = Clock::time_point::max();
  std::atomic<long long> nanoseconds{0};

  template <typename Call>
  void run(Call&& call, Counter* counter) {
    const Clock::time_point begin = Clock::now();
    for (unsigned long long done = 0; calls == 0 || done < calls; ++done) {
      if ((done & 1023) == 0 && Clock::now() >= end) {
        break;
      }
      MUST(call());
      counter->store(done + 1, std::memory_order_relaxed);
    }
    nanoseconds += std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count();
  }
};

int main(int argc, char** argv) {
  const auto threads = static_cast<std::size_t>(option(argc, argv, "threads", 1));
  const char* which = text_option(argc, argv, "call", "launch");
  Counter* counts = counters(text_option(argc, argv, "progress", nullptr), threads);
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  MUST(cuInit(0));
  MUST(cuDeviceGet(&device, 0));
  MUST(cuDevicePrimaryCtxRetain(&context, device));
  MUST(cuCtxSetCurrent(context));
  MUST(cuModuleLoadData(&module, ptx_text));
  MUST(cuModuleGetFunction(&function, module, "third"));
  Loop loop;
  loop.calls = static_cast<unsigned long long>(option(argc, argv, "calls", 0));
  if (const long seconds = option(argc, argv, "seconds", 0); seconds > 0) {
    loop.end = Clock::now() + std::chrono::seconds(seconds);
  }
  std::vector<std::thread> workers;
  for (std::size_t index = 0; index < threads; ++index) {
    workers.emplace_back([&, index] {
      CUstream stream = nullptr;
      CUevent event = nullptr;
      MUST(cuCtxSetCurrent(context));
      MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
      MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
      if (std::strcmp(which, "event") == 0) {
        loop.run([&] { return cuEventRecord(event, stream); }, &counts[index]);
      } else if (std::strcmp(which, "query") == 0) {
        loop.run([&] { return cuEventQuery(event); }, &counts[index]);
      } else {
        loop.run([&] { return cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, nullptr, nullptr); },
                 &counts[index]);
      }
    });
  }
  unsigned long long calls = 0;
  for (std::size_t index = 0; index < threads; ++index) {
    workers[index].join();
    calls += counts[index].load();
  }
  if (option(argc, argv, "sync", 0) != 0) MUST(cuCtxSynchronize());
  std::printf("calls %llu ns per call %.1f\n", calls,
              calls > 0 ? static_cast<double>(loop.nanoseconds.load()) / static_cast<double>(calls) : 0.0);
  return static_cast<int>(option(argc, argv, "exit", 0));
}
