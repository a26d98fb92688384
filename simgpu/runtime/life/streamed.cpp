#include "simgpu/runtime/life/streamed.h"

// The exported pairs. Legacy and per-thread differ in the mode alone.
using simgpu::runtime::Mode;
using simgpu::runtime::Seen;
namespace streamed = simgpu::runtime::streamed;

#define GT_ARGUMENTS(...) __VA_ARGS__
#define GT_STREAMED(name, suffix, arguments, ...)                               \
  extern "C" cudaError_t name(__VA_ARGS__) {                                    \
    Seen seen(#name);                                                           \
    return seen.left(streamed::name(Mode::legacy, GT_ARGUMENTS arguments));     \
  }                                                                             \
  extern "C" cudaError_t name##_##suffix(__VA_ARGS__) {                         \
    Seen seen(#name "_" #suffix);                                               \
    return seen.left(streamed::name(Mode::per_thread, GT_ARGUMENTS arguments)); \
  }
#include "simgpu/runtime/life/streamed.def"
#undef GT_STREAMED
#undef GT_ARGUMENTS
