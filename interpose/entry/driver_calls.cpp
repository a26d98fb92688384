// The exported wrappers of the driver rows of api.def.
#include "interpose/cuda_api.h"
#include "interpose/hot/traced.h"
#include "interpose/record/make_record.h"

namespace gputrace {

GT_HOT void* driver_function(u16 id) {
  void* real = real_functions[id].load(std::memory_order_relaxed);
  if (!real) [[unlikely]]
    real = resolve_driver(id);
  return real;
}

// The toolkit's own header says whether a row is right.
#define GT_API(name, pfn, signature, forwarded, record)                                                                \
  static_assert(std::is_same_v<decltype(&::name), CUresult(CUDAAPI*) signature>, #name " differs from cuda.h");        \
  static_assert(std::is_same_v<decltype(&::name), pfn>, #name " is not " #pfn);                                        \
  GT_WRAPPER(CUresult, CUDA_ERROR_STUB_LIBRARY, name, reinterpret_cast<pfn>(driver_function(kCall_##name)), signature, \
             forwarded, record)
#include "interpose/api.def"

}  // namespace gputrace

// x86-64: entries_x86_64.S.
#if !defined(__x86_64__)
#define GT_API(name, pfn, signature, forwarded, record)                                         \
  extern "C" __attribute__((visibility("default"))) CUresult CUDAAPI name signature {           \
    if (gputrace::gate_generation() != gputrace::kGateOff) [[likely]]                           \
      return gputrace_traced_##name forwarded;                                                  \
    const auto real = reinterpret_cast<pfn>(gputrace::driver_function(gputrace::kCall_##name)); \
    return real ? real forwarded : CUDA_ERROR_STUB_LIBRARY;                                     \
  }
#include "interpose/api.def"
#endif
