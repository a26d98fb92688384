// The end of a cuLaunchKernel that began in launch_x86_64.S, when something is out of the ordinary; and the check of
// the numbers that file works with.
#include "interpose/entry/launch_layout.h"
#include "interpose/hot/traced.h"
#include "interpose/record/make_record.h"

#if defined(__x86_64__)

namespace gputrace {
namespace {

static_assert(offsetof(ThreadState, generation) == GT_THREAD_GENERATION);
static_assert(offsetof(ThreadState, cursor) == GT_THREAD_CURSOR && offsetof(ThreadState, limit) == GT_THREAD_LIMIT);
static_assert(offsetof(ThreadState, block) == GT_THREAD_BLOCK && offsetof(ThreadState, slot) == GT_THREAD_SLOT);
static_assert(offsetof(ThreadState, context) == GT_THREAD_CONTEXT && kUnknownContext == ~0ull);
static_assert(offsetof(ThreadState, frame) == GT_THREAD_FRAME && offsetof(ThreadState, busy) == GT_THREAD_BUSY);
static_assert(offsetof(ThreadSlot, seen) == GT_SLOT_SEEN && offsetof(ThreadSlot, depth) == GT_SLOT_DEPTH);
static_assert(offsetof(ThreadSlot, in_flight) + offsetof(InFlightCall, begin) == GT_SLOT_BEGIN);
static_assert(offsetof(ThreadSlot, in_flight) + offsetof(InFlightCall, argument) == GT_SLOT_ARGUMENT);
static_assert(offsetof(ThreadSlot, in_flight) + offsetof(InFlightCall, call) == GT_SLOT_CALL);
static_assert(sizeof(InFlightCall) == GT_CALL_SIZE && kBegunDepth == 2 && kBegunDepth <= kInFlightDepth);
static_assert(offsetof(Gate, generation) == 0 && offsetof(Gate, launch) == GT_GATE_LAUNCH);
static_assert(offsetof(Producer, control) == GT_PRODUCER_CONTROL);
static_assert(offsetof(SegmentControl, window_begin) == GT_CONTROL_WINDOW_BEGIN);
static_assert(offsetof(SegmentControl, window_end) == GT_CONTROL_WINDOW_END);
static_assert(sizeof(BlockHeader) == GT_BLOCK_HEADER && offsetof(BlockHeader, committed) == 0);
static_assert(static_cast<int>(RecordType::KernelLaunch) == GT_RECORD_TYPE && sizeof(KernelLaunch) == GT_RECORD_SIZE);
static_assert(sizeof(KernelLaunch) <= kLargestBegun);
static_assert(offsetof(RecordHeader, begin) == GT_RECORD_BEGIN && offsetof(RecordHeader, end) == GT_RECORD_END);
static_assert(offsetof(KernelLaunch, function) == GT_RECORD_FUNCTION);
static_assert(offsetof(KernelLaunch, stream) == GT_RECORD_STREAM);
static_assert(offsetof(KernelLaunch, context) == GT_RECORD_CONTEXT);
static_assert(offsetof(KernelLaunch, grid_x) == GT_RECORD_GRID && offsetof(KernelLaunch, block_x) == GT_RECORD_BLOCK);
static_assert(offsetof(KernelLaunch, dynamic_shared_bytes) == GT_RECORD_SHARED);
static_assert(offsetof(KernelLaunch, flags) == GT_RECORD_SHARED + 4 && kLaunchPerThread == 1);
static_assert(offsetof(KernelLaunch, cluster_x) == GT_RECORD_CLUSTER && sizeof(KernelLaunch) == GT_RECORD_CLUSTER + 8);
static_assert(kFunctionHash == GT_FUNCTION_HASH && kFunctionShift == GT_FUNCTION_SHIFT);

void finish(const FinishedCall& call) {
  ThreadState& thread = thread_state;
  const u64 context = call.context();
  if (!call.in_window()) {
    if (has_begun(thread)) thread.busy = 0;
    return;
  }
  char* at = reserve_begun(thread, sizeof(KernelLaunch), call.begin, call.end);
  if (!at) return;
  KernelLaunch& record = *reinterpret_cast<KernelLaunch*>(at);
  const u64 function = record.function;
  record.context = context;
  record.flags = stream_flags(call, reinterpret_cast<CUstream>(record.stream));
  fill_header(record, call);
  commit(thread, at, sizeof(KernelLaunch), call.generation);
  work_given();
  function_launched(call, function);
}

}  // namespace
}  // namespace gputrace

extern "C" __attribute__((visibility("hidden"), cold)) unsigned gputrace_launch_finished(unsigned result,
                                                                                         gputrace::Ticks begin,
                                                                                         gputrace::Ticks end,
                                                                                         gputrace::u32 id) {
  using namespace gputrace;
  FinishedCall call;
  call.generation = thread_state.generation;
  call.begin = begin;
  call.end = end;
  call.set(static_cast<u16>(id), static_cast<u16>(result));
  call.per_thread = id == kCall_cuLaunchKernel_ptsz;
  finish(call);
  return result;
}

#endif
