// The exported wrappers of library.def. On the way out of the process they keep what they are given: arguments, result,
// errno, exceptions and the frame (traced.h).
#include "interpose/library/library_records.h"

namespace gputrace {
namespace {

// What a wrapper returns when there is no library: a program that calls one directly is linked against it, so this
// needs an object that promised the function and does not have it.
enum : int {
  kAbsent_cublas = 1,    // CUBLAS_STATUS_NOT_INITIALIZED
  kAbsent_cublasLt = 1,  // the same
  kAbsent_cudnn = 1001,  // CUDNN_STATUS_NOT_INITIALIZED
  kAbsent_cusparse = 1,  // CUSPARSE_STATUS_NOT_INITIALIZED
  kAbsent_cufft = 5,     // CUFFT_INTERNAL_ERROR
  kAbsent_nccl = 3,      // ncclInternalError
};

GT_HOT LibraryTarget target_of(u16 id, u16 row, void* caller) {
  const LibraryEntry& entry = library_entries[row];
  const u64 at = reinterpret_cast<u64>(caller);
  const u64 begin = entry.begin.load(std::memory_order_acquire);
  if (at - begin < entry.size.load(std::memory_order_acquire)) [[likely]]
    return {entry.real.load(std::memory_order_relaxed), true};
  return find_library_function(id, row, caller);
}

GT_HOT bool open_library_call(OpenCall& open, u16 id, u64 argument) {
  if (gate.libraries.load(std::memory_order_relaxed) != kLibrariesOn) [[unlikely]] {
    if (!enter_library_session()) return false;
  }
  return open_call(open, id, argument);
}

// Where calls of libraries are not collected a communicator is a definition alone, made when the call is over.
bool may_define(FinishedCall& call) {
  if (gate_generation() < kFirstGeneration) return false;
  if (thread_state.generation != gate_generation() && !enter_session()) return false;
  call.generation = thread_state.generation;
  call.begin = call.end = record_ticks();
  return true;
}

}  // namespace

#define GT_TRACED_LIBRARY(name, library, signature, forwarded, record, defines)                            \
  extern "C" __attribute__((visibility("hidden"), noinline)) int gputrace_traced_##name signature;         \
  extern "C" int gputrace_traced_##name signature {                                                        \
    const LibraryTarget target = target_of(kCall_##name, kLibrary_##name, __builtin_return_address(0));    \
    const auto real = reinterpret_cast<int(*) signature>(target.function);                                 \
    if (!real) [[unlikely]]                                                                                \
      return kAbsent_##library;                                                                            \
    OpenCall open;                                                                                         \
    const bool traced = target.recorded && open_library_call(open, kCall_##name, main_argument forwarded); \
    if (!traced && !(defines && target.recorded)) return real forwarded;                                   \
    const int result = real forwarded;                                                                     \
    FinishedCall call;                                                                                     \
    if (!(traced ? close_call(open, call) : may_define(call))) [[unlikely]]                                \
      return result;                                                                                       \
    call.set(kCall_##name, static_cast<u16>(result));                                                      \
    call.per_thread = false;                                                                               \
    const LibraryCall did{call, target.function, traced};                                                  \
    record;                                                                                                \
    return result;                                                                                         \
  }
#define GT_LIBRARY(name, library, signature, forwarded, record) \
  GT_TRACED_LIBRARY(name, library, signature, forwarded, record, false)
#define GT_COMMUNICATOR(name, library, signature, forwarded, record) \
  GT_TRACED_LIBRARY(name, library, signature, forwarded, record, true)
#include "interpose/library.def"
#undef GT_TRACED_LIBRARY

}  // namespace gputrace

// x86-64: entries_x86_64.S.
#if !defined(__x86_64__)
#define GT_LIBRARY(name, library, signature, forwarded, record)          \
  extern "C" __attribute__((visibility("default"))) int name signature { \
    return gputrace::gputrace_traced_##name forwarded;                   \
  }
#include "interpose/library.def"
#endif
