#pragma once

#include <cuda.h>

#include "tests/programs/drv_check.h"
#include "tests/programs/options.h"

// The driver as a set of pointers that each program fills by its own route, and one piece of work on it that is the
// same for all: so that every route must leave the same records.
struct Calls {
#define GT_CALL(name, symbol, since) decltype(&::symbol) name##_;
#include "tests/programs/drv_calls.def"
#undef GT_CALL
};

struct Work {
  long launches = 0;
  Checksum seen;
};

// A context, a module, a stream; ends with all of them given back.
class Session {
 public:
  explicit Session(const Calls& calls) : calls_(calls) {
    MUST(calls_.cuInit_(0));
    MUST(calls_.cuDeviceGet_(&device_, 0));
    MUST(calls_.cuDevicePrimaryCtxRetain_(&context_, device_));
    MUST(calls_.cuCtxSetCurrent_(context_));
    MUST(calls_.cuModuleLoadData_(&module_, ptx_text));
    MUST(calls_.cuModuleGetFunction_(&functions_[0], module_, "first"));
    MUST(calls_.cuModuleGetFunction_(&functions_[1], module_, "second"));
    MUST(calls_.cuModuleGetFunction_(&functions_[2], module_, "third"));
    MUST(calls_.cuStreamCreate_(&stream_, CU_STREAM_NON_BLOCKING));
    MUST(calls_.cuMemAlloc_(&memory_, sizeof bytes_));
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() {
    MUST(calls_.cuMemFree_(memory_));
    MUST(calls_.cuStreamDestroy_(stream_));
    MUST(calls_.cuModuleUnload_(module_));
    MUST(calls_.cuCtxSetCurrent_(nullptr));
    MUST(calls_.cuDevicePrimaryCtxRelease_(device_));
  }

  // In a thread that the session was not made in.
  void enter() { MUST(calls_.cuCtxSetCurrent_(context_)); }

  void launch(Work* work, unsigned grid = 1, unsigned block = 32) {
    unsigned count = 16;
    void* arguments[] = {&memory_, &count};
    MUST(calls_.cuLaunchKernel_(functions_[work->launches % 3], grid, 1, 1, block, 1, 1, 0, stream_, arguments,
                                nullptr));
    ++work->launches;
    work->seen.add(grid);
    work->seen.add(block);
  }

  // One copy in, `launches` launches of changing shape, an event, one copy out.
  void round(Work* work, int launches) {
    CUevent event = nullptr;
    for (std::size_t index = 0; index < sizeof bytes_; ++index) {
      bytes_[index] = static_cast<unsigned char>(index + static_cast<std::size_t>(work->launches));
    }
    MUST(calls_.cuMemcpyHtoD_(memory_, bytes_, sizeof bytes_));
    MUST(calls_.cuMemsetD8_(memory_, 0x7e, 16));
    for (int index = 0; index < launches; ++index) {
      launch(work, 1 + static_cast<unsigned>(index % 5), 32u << (index % 3));
    }
    MUST(calls_.cuEventCreate_(&event, CU_EVENT_DEFAULT));
    MUST(calls_.cuEventRecord_(event, stream_));
    MUST(calls_.cuStreamSynchronize_(stream_));
    MUST(calls_.cuMemcpyDtoH_(bytes_, memory_, sizeof bytes_));
    MUST(calls_.cuEventDestroy_(event));
    work->seen.add(bytes_);
  }

 private:
  const Calls& calls_;
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  CUmodule module_ = nullptr;
  CUfunction functions_[3] = {};
  CUstream stream_ = nullptr;
  CUdeviceptr memory_ = 0;
  unsigned char bytes_[256] = {};
};

// The main of the programs that differ in their route only: `count` rounds of seven launches.
inline int run_rounds(const Calls& calls, int argc, char** argv) {
  Work work;
  {
    Session session(calls);
    for (long round = option(argc, argv, "count", 3); round > 0; --round) {
      session.round(&work, 7);
    }
  }
  std::printf("launches %ld checksum %016llx\n", work.launches, work.seen.value);
  return static_cast<int>(option(argc, argv, "exit", 0));
}

// For programs that link libcuda.
inline Calls linked_calls() {
  Calls calls{};
#define GT_CALL(name, symbol, since) calls.name##_ = &::symbol;
#include "tests/programs/drv_calls.def"
#undef GT_CALL
  return calls;
}
