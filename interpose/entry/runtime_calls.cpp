// The exported wrappers of the runtime rows of api.def. Several runtimes may be loaded at once: each call goes to the
// one that its caller would have reached without us, so the way there is remembered per call site.
#include <cuda_profiler_api.h>
#include <cuda_runtime_api.h>

#include "interpose/hot/traced.h"
#include "interpose/lookup/elf_lookup.h"
#include "interpose/record/make_record.h"

// The entry points that nvcc's launch stubs call are declared in the stubs only.
extern "C" cudaError_t CUDARTAPI __cudaLaunchKernel(cudaKernel_t kernel, dim3 gridDim, dim3 blockDim, void** args,
                                                    size_t sharedMem, cudaStream_t stream);

namespace gputrace {
namespace {

// Filled once, never changed: a reader that sees the key sees its function.
struct CallSite {
  std::atomic<u64> key;  // return address and call id
  std::atomic<void*> real;
};
constexpr u32 kCallSites = 4096;
constexpr u32 kProbes = 4;
constinit CallSite call_sites[kCallSites]{};

GT_HOT u32 place_of(u64 key) { return static_cast<u32>((key * 0x9e3779b97f4a7c15ull) >> 52); }
static_assert(kCallSites == 1u << 12);

GT_COLD void* resolve_call_site(u16 id, void* caller, u64 key) {
  void* real = resolve_runtime(id, caller);
  if (real) keep_loaded(real);
  for (u32 i = 0; real && i < kProbes; ++i) {
    CallSite& site = call_sites[(place_of(key) + i) % kCallSites];
    if (site.key.load(std::memory_order_acquire) == key) break;
    void* nothing = nullptr;
    if (!site.real.compare_exchange_strong(nothing, real, std::memory_order_relaxed)) continue;
    site.key.store(key, std::memory_order_release);
    break;
  }
  return real;
}

GT_HOT void* runtime_function(u16 id, void* caller) {
  const u64 key = reinterpret_cast<u64>(caller) ^ u64 { id } << 48;
  for (u32 i = 0; i < kProbes; ++i) {
    const CallSite& site = call_sites[(place_of(key) + i) % kCallSites];
    if (site.key.load(std::memory_order_acquire) == key) [[likely]]
      return site.real.load(std::memory_order_relaxed);
  }
  return resolve_call_site(id, caller, key);
}

// The toolkit's own header says whether a row is right; the per-thread variants have no declaration, and their base's
// signature.
#define GT_RUNTIME(name, signature, forwarded, record)                                \
  static_assert(std::is_same_v<decltype(&::name), cudaError_t(CUDARTAPI*) signature>, \
                #name " differs from cuda_runtime_api.h");
#define GT_RUNTIME_PTSZ(name, signature, forwarded, record) GT_RUNTIME(name, signature, forwarded, record)
#define GT_RUNTIME_PTDS(name, signature, forwarded, record) GT_RUNTIME(name, signature, forwarded, record)
#include "interpose/api.def"

}  // namespace
}  // namespace gputrace

#define GT_RUNTIME(name, signature, forwarded, record)                                                         \
  extern "C" __attribute__((visibility("default"))) cudaError_t CUDARTAPI name signature {                     \
    using namespace gputrace;                                                                                  \
    const auto real = reinterpret_cast<cudaError_t(CUDARTAPI*) signature>(                                     \
        runtime_function(kCall_##name, __builtin_return_address(0)));                                          \
    if (!real) [[unlikely]]                                                                                    \
      return cudaErrorStubLibrary;                                                                             \
    OpenCall open;                                                                                             \
    if (gate_generation() == kGateOff || !open_call(open, kCall_##name, main_argument forwarded)) [[unlikely]] \
      return real forwarded;                                                                                   \
    const cudaError_t result = real forwarded;                                                                 \
    FinishedCall call;                                                                                         \
    if (!close_call(open, call)) [[unlikely]]                                                                  \
      return result;                                                                                           \
    call.set(kCall_##name, static_cast<u16>(result));                                                          \
    call.per_thread = names_per_thread(#name);                                                                 \
    record;                                                                                                    \
    return result;                                                                                             \
  }
#include "interpose/api.def"
