// The entry of every exported function.
//
//   SIM_API_PTSZ(cuLaunchKernel, "cuLaunchKernel", (CUfunction f, …, CUstream stream), (f, …, stream)) {
//     Stream* s = call.stream(stream);
//     if (s == nullptr) return CUDA_ERROR_INVALID_HANDLE;
//     …
//     return CUDA_SUCCESS;
//   }
// defines cuLaunchKernel and cuLaunchKernel_ptsz around one body that has `Call& call`. The macros do what every call
// does: SIMGPU_ERROR, ABORT_AT, HANG, ERRNO; not-initialized, also in the child of a fork; stamps, sequence number and
// truth line; SIMGPU_CALL_TIME; out of memory as an error. Exported functions never call one another: shared code lives
// in plain functions.
#pragma once

#include <atomic>
#include <exception>

#include "simgpu/driver/life/clock.h"
#include "simgpu/driver/life/cuda_api.h"
#include "simgpu/driver/life/truth.h"
#include "simgpu/missing/missing.h"

namespace simgpu {

struct Context;
struct Stream;

// What NULL means as a stream: the legacy default stream, or (ptsz, ptds) the per-thread one.
enum class DefaultStream { legacy, per_thread };

// Works before cuInit and after fork (`always`), or only between cuInit and fork (`initialized`).
enum class Need { always, initialized };

class Call {
 public:
  Call(const char* name, const char* variant, DefaultStream default_stream)
      : name_(name), variant_(variant), default_stream_(default_stream) {}
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // CUDA_SUCCESS: go on with the body.
  CUresult enter(Need need) {
    if (fast_mode()) [[likely]]
      return CUDA_SUCCESS;
    return enter_slow(need);
  }
  CUresult leave(CUresult result) {
    if (result == CUDA_ERROR_NOT_SUPPORTED) [[unlikely]]
      simgpu_missing("libcuda.so.1", variant_);
    if (!slow_) [[likely]]
      return result;
    return leave_slow(result);
  }

  // When the call began; read once, at the first use where nothing else needs it.
  Nanos begin() {
    if (begin_ == 0) begin_ = now_ns();
    return begin_;
  }

  const char* name() const { return name_; }
  const char* variant() const { return variant_; }
  DefaultStream default_stream() const { return default_stream_; }

  // The context current to this thread; null if there is none or it was destroyed (`context_error` tells which).
  Context* context();
  CUresult context_error();

  // The stream a handle means in this call (NULL, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD, created); null if it is none.
  // The default streams need a current context.
  Stream* stream(CUstream handle);
  CUresult stream_error(CUstream handle);  // why `stream` gave null

  // Truth: null when off.
  const Stamp& stamp() const { return stamp_; }
  void truth(const TruthFields& fields) {
    if (stamp_) stamp_->add(fields);
  }
  uint64_t seq() const { return stamp_ ? stamp_->seq() : 0; }  // 0 when truth is off
  // The number that device records carry, and the one of this call's own record. They differ only inside a runtime
  // call, and only where those keep their own ids. 0: nobody looks.
  uint32_t correlation() const { return device_correlation_; }
  uint32_t own_correlation() const { return correlation_; }
  uint64_t* client() { return &client_; }  // the observer's, from enter to leave

 private:
  static bool fast_mode();
  CUresult enter_slow(Need need);
  CUresult leave_slow(CUresult result);

  const char* name_;
  const char* variant_;
  DefaultStream default_stream_;
  bool slow_ = false;
  bool shown_ = false;
  int leave_errno_ = 0;
  uint32_t correlation_ = 0;
  uint32_t device_correlation_ = 0;
  Nanos begin_ = 0;
  uint64_t client_ = 0;
  Stamp stamp_;
};

// State of this process. Lives in a page that a forked child sees zeroed.
enum class Mode : uint32_t {
  unknown = 0,  // before cuInit, or the child of a fork
  fast = 1,     // initialized, nothing to do per call
  slow = 2,     // initialized, with call time, truth, faults or somebody who looks
};
extern std::atomic<std::atomic<Mode>*> process_mode;
CUresult initialize_process();  // cuInit
bool process_initialized();     // cuInit succeeded here, and this is not a forked child

struct KernelWork;

// What a thread has of its own. Trivial, so it works in thread-exit destructors too.
struct ThreadState {
  Context* current;  // top of its context stack
  Context** below;   // the rest of the stack, bottom first; freed when the thread ends
  uint32_t below_count;
  uint32_t below_capacity;
  Context* per_thread_context;  // the per-thread default stream used last, and its context
  Stream* per_thread_stream;
  bool in_host_function;         // the driver's worker, while it runs the program's code
  uint32_t runtime_correlation;  // of the runtime call that it is in; 0: none; kNotDrawn: not needed yet
  uint32_t call_correlation;     // of the last call of this thread that took the slow way, and when it began
  Nanos call_begin;
  int capture_mode;         // cuThreadExchangeStreamCaptureMode; kept by the capture files
  KernelWork* next_kernel;  // what simgpu_next_kernel left for the next launch; owned
  Nanos next_kernel_least;  // what simgpu_next_kernel_takes left for it
};
extern constinit thread_local ThreadState thread_state __attribute__((tls_model("initial-exec")));

inline bool Call::fast_mode() {
  return process_mode.load(std::memory_order_acquire)->load(std::memory_order_relaxed) == Mode::fast &&
         !thread_state.in_host_function;
}

}  // namespace simgpu

#define SIM_BODY_PARAMS(...) ([[maybe_unused]] ::simgpu::Call & call __VA_OPT__(, ) __VA_ARGS__)
#define SIM_BODY_ARGS(...) (call __VA_OPT__(, ) __VA_ARGS__)

#define SIM_EXPORT(exported, body, documented, params, args, default_stream, need)                                \
  extern "C" CUresult CUDAAPI exported params {                                                                   \
    ::simgpu::Call call(documented, #exported, ::simgpu::DefaultStream::default_stream);                          \
    if (CUresult refused = call.enter(::simgpu::Need::need); refused != CUDA_SUCCESS) return call.leave(refused); \
    try {                                                                                                         \
      return call.leave(body SIM_BODY_ARGS args);                                                                 \
    } catch (const std::exception&) { /* not (...): cancelling a thread unwinds through here */                   \
      return call.leave(CUDA_ERROR_OUT_OF_MEMORY);                                                                \
    }                                                                                                             \
  }

// One exported function.
#define SIM_API(exported, documented, params, args)                                    \
  static CUresult body_##exported SIM_BODY_PARAMS params;                              \
  SIM_EXPORT(exported, body_##exported, documented, params, args, legacy, initialized) \
  static CUresult body_##exported SIM_BODY_PARAMS params

// One that works before cuInit and in a forked child.
#define SIM_API_ALWAYS(exported, documented, params, args)                        \
  static CUresult body_##exported SIM_BODY_PARAMS params;                         \
  SIM_EXPORT(exported, body_##exported, documented, params, args, legacy, always) \
  static CUresult body_##exported SIM_BODY_PARAMS params

// With its per-thread-default-stream twin.
#define SIM_API_TWIN(exported, suffix, documented, params, args)                                   \
  static CUresult body_##exported SIM_BODY_PARAMS params;                                          \
  SIM_EXPORT(exported, body_##exported, documented, params, args, legacy, initialized)             \
  SIM_EXPORT(exported##suffix, body_##exported, documented, params, args, per_thread, initialized) \
  static CUresult body_##exported SIM_BODY_PARAMS params
#define SIM_API_PTSZ(exported, documented, params, args) SIM_API_TWIN(exported, _ptsz, documented, params, args)
#define SIM_API_PTDS(exported, documented, params, args) SIM_API_TWIN(exported, _ptds, documented, params, args)

// A second exported name with the same parameters and the same effect as `of` (older ABI version, no twin).
#define SIM_ALIAS(exported, of, documented, params, args) \
  SIM_EXPORT(exported, body_##of, documented, params, args, legacy, initialized)
