// What the stand-ins of the vendor's libraries share: launching named kernels through the driver API. Test-only. A
// stand-in has the exported names, the sonames and the symbol versions of the real library, keeps what its setters are
// given, launches kernels whose names look like the real ones, and computes nothing.
//
// Its bodies come from interpose/library.def, so that every intercepted name exists; the programs that call them are
// compiled against the vendor's own headers.
#pragma once

// The bodies take what the table names and use little of it.
#pragma GCC diagnostic ignored "-Wunused-parameter"

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#define GT_EXPORT extern "C" __attribute__((visibility("default")))

namespace standin {

// cudaDataType, cufftType
enum : int { kR32F = 0, kR64F = 1, kR16F = 2, kC32F = 4, kC64F = 5, kC16F = 6 };
enum : int { kFftR2C = 0x2a, kFftC2R = 0x2c, kFftC2C = 0x29, kFftD2Z = 0x6a, kFftZ2D = 0x6c, kFftZ2Z = 0x69 };
enum : unsigned { kPointerBatch = 16, kStrided = 32 };
enum class ConvolutionKind { Forward = 1, BackwardData, BackwardFilter };
enum class CollectiveKind {
  AllReduce = 1,
  Broadcast,
  Reduce,
  AllGather,
  ReduceScatter,
  Send,
  Recv,
  AllToAll,
  Gather,
  Scatter
};
struct NcclId {
  char internal[128];
};

inline void must(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "stand-in: %s: %d\n", what, static_cast<int>(result));
  std::abort();
}

// Compiles one kernel a name and context.
inline CUfunction kernel(const std::string& name) {
  static std::mutex mutex;
  static std::map<std::pair<CUcontext, std::string>, CUfunction> known;
  CUcontext context = nullptr;
  must(cuCtxGetCurrent(&context), "cuCtxGetCurrent");
  const std::lock_guard lock(mutex);
  CUfunction& function = known[{context, name}];
  if (!function) {
    const std::string text =
        ".version 7.0\n.target sm_52\n.address_size 64\n.visible .entry " + name + "(.param .u64 p) { ret; }\n";
    CUmodule module = nullptr;
    must(cuModuleLoadData(&module, text.c_str()), "cuModuleLoadData");
    must(cuModuleGetFunction(&function, module, name.c_str()), "cuModuleGetFunction");
  }
  return function;
}

inline void launch(const std::string& name, void* stream, unsigned grid, unsigned block = 128) {
  const CUfunction function = kernel(name);
  std::uint64_t argument = 0;
  void* arguments[] = {&argument};
  must(cuLaunchKernel(function, grid ? grid : 1, 1, 1, block, 1, 1, 0, static_cast<CUstream>(stream), arguments,
                      nullptr),
       "cuLaunchKernel");
}

inline unsigned tiles(long long n, long long tile) { return static_cast<unsigned>((n + tile - 1) / tile); }

// A handle of any of the libraries.
struct Handle {
  void* stream = nullptr;
  int math_mode = 0;
};

// The scope of a row's record: how a call hands out what it makes.
struct Did {
  const char* name;
  template <typename T>
  T* out(T** made) const {
    return *made = reinterpret_cast<T*>(new Handle);
  }
  int out(int* plan) const {
    static int plans = 0;
    return *plan = ++plans;
  }
  void* begun(void** made) const { return *made; }
};
inline void object(const Did&, const void*) {}
inline void object(const Did&, std::uint64_t) {}

}  // namespace standin

using u64 = std::uint64_t;

// The bodies of one library: GT_STANDIN_cublas and so on say which rows are wanted.
#define GT_STANDIN_BODY(name, signature, record) \
  GT_EXPORT int name signature {                 \
    using namespace standin;                     \
    const Did did{#name};                        \
    record;                                      \
    return 0;                                    \
  }
