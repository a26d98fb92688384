// Every way to launch a kernel.
#include <algorithm>
#include <deque>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "simgpu/driver/context/device.h"
#include "simgpu/driver/graph/capture.h"
#include "simgpu/driver/launch/operation.h"
#include "simgpu/driver/life/call.h"
#include "simgpu/driver/time/event_share.h"
#include "simgpu/driver/time/timeline.h"

using namespace simgpu;

namespace {

// What comes with a launch beside the kernel itself.
struct LaunchRequest {
  CUfunction function = nullptr;
  CUstream stream = nullptr;
  void** params = nullptr;
  void** extra = nullptr;
  bool check_params = true;  // the legacy calls pass them another way
  const CUlaunchConfig* config = nullptr;
  Event* at_start = nullptr;  // recorded when the kernel starts
};

Dim3 required_cluster(const Function& function) {
  const auto width = [&](int attribute) {
    return static_cast<uint32_t>(
        std::max(1, function.attributes[static_cast<size_t>(attribute)].load(std::memory_order_relaxed)));
  };
  return {width(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH), width(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT),
          width(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH)};
}

void record_at(Event& event, Nanos at) {
  std::lock_guard lock(event.mutex);
  ++event.generation;
  set_event_time(event, at);
}

// Gives the kernel its time in its stream, under the stream's lock; a programmatic launch may begin when its predecessor, if that is a kernel,
// has begun. Returns the stream's end.
Nanos run_kernel(const KernelLaunch& launch, Stream& stream, Event* at_start, Nanos submitted, Nanos ready,
                 Span* span) {
  if (launch.programmatic && stream.last_kernel_start != 0) ready = std::max(submitted, stream.last_kernel_start);
  *span = {ready, ready + kernel_duration(launch)};
  stream.last_kernel_start = span->start;
  if (at_start != nullptr) record_at(*at_start, span->start);
  return std::max(span->end, stream.end.load(std::memory_order_relaxed));
}

// The launches of each stream that have not started, for SIMGPU_QUEUE.
class LaunchQueues {
 public:
  // Returns when the stream holds fewer than the limit.
  void wait_for_room(uint64_t stream) {
    for (;;) {
      Nanos first = 0;
      {
        std::lock_guard lock(mutex_);
        std::deque<Nanos>& starts = starts_[stream];
        while (!starts.empty() && starts.front() <= now_ns()) starts.pop_front();
        if (starts.size() < static_cast<size_t>(knobs().queue)) return;
        first = starts.front();
      }
      wait_until(first);
    }
  }
  void launched(uint64_t stream, Nanos start) {
    std::lock_guard lock(mutex_);
    starts_[stream].push_back(start);
  }

 private:
  std::mutex mutex_;
  std::unordered_map<uint64_t, std::deque<Nanos>> starts_;
};
LaunchQueues& launch_queues() {
  static LaunchQueues& queues = *new LaunchQueues;  // never destroyed: launches come late too
  return queues;
}

// A kernel whose end is not known yet: it, and all that follows, waits in the stream's queue.
void queue_work(Call& call, const KernelLaunch& launch, const Origin& origin, Event* at_start, Nanos submitted) {
  if (call.stamp()) call.stamp()->promise();
  if (at_start != nullptr) retain(at_start);
  auto execution = std::make_shared<KernelExecution>(launch);
  const auto finish = [execution, origin, at_start](Nanos) {
    const Span& span = execution->span();
    show_kernel(execution->launch(), origin, span);
    origin.stream->last_kernel_start = span.start;
    if (at_start != nullptr) record_at(*at_start, span.start), release(at_start);
    return span.end;
  };
  defer(*origin.stream,
        Work{submitted, {}, [execution](Nanos ready) { return execution->ended(ready); }, finish, false});
}

CUresult launch_kernel(Call& call, const LaunchRequest& request, KernelLaunch& launch) {
  if (thread_state.next_kernel != nullptr) launch.work = take_next_kernel();
  launch.least = std::exchange(thread_state.next_kernel_least, 0);
  Context* context = call.context();
  if (context == nullptr) return call.context_error();
  Function* function = function_from_handle(request.function, context);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  Stream* stream = call.stream(request.stream);
  if (stream == nullptr) return call.stream_error(request.stream);
  if (stream->context != function->context) {
    function = function->kernel != nullptr ? function_in(function->kernel, stream->context) : nullptr;
    if (function == nullptr || live<Kernel>(request.function) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  }
  launch.function = function;
  if (request.check_params) {
    if (request.params != nullptr && request.extra != nullptr) return CUDA_ERROR_INVALID_VALUE;
    const bool given = request.params != nullptr || request.extra != nullptr;
    if (!given && !function->code->parameters.empty()) return CUDA_ERROR_INVALID_VALUE;
  }
  if (launch.cluster.count() == 1) launch.cluster = required_cluster(*function);
  if (CUresult result = check_launch(launch); result != CUDA_SUCCESS) return result;
  if (active_captures.load(std::memory_order_relaxed) != 0) {
    if (capturing(*stream)) {
      return capture_kernel(call, *stream, launch, request.params, request.extra, request.config);
    }
    if (CUresult refused = capture_refuses_legacy(call, *stream); refused != CUDA_SUCCESS) return refused;
  }
  Nanos submitted = call.begin() + knobs().launch_latency;
  const bool limited = knobs().queue > 0;
  if (limited) {
    launch_queues().wait_for_room(stream->id);
    submitted = std::max(submitted, now_ns());
  }
  const Origin origin = Origin::of(call, *stream);
  if (launch.work) {
    queue_work(call, launch, origin, request.at_start, submitted);
    return CUDA_SUCCESS;
  }
  if (!deferring(*stream)) [[likely]] {  // what in_order would do, without a copy of the launch
    Span span;
    at_once(*stream, submitted, [&](Nanos ready) {
      if (limited) launch_queues().launched(stream->id, ready);
      return run_kernel(launch, *stream, request.at_start, submitted, ready, &span);
    });
    // Not under the stream's lock: an observer may ask its client for a buffer, and other threads launch.
    show_kernel(launch, origin, span);
    return CUDA_SUCCESS;
  }
  Event* at_start = request.at_start;
  if (at_start != nullptr) retain(at_start);
  in_order(call, *stream, [launch, at_start, submitted, origin](Nanos ready) {
    Span span;
    const Nanos end = run_kernel(launch, *origin.stream, at_start, submitted, ready, &span);
    show_kernel(launch, origin, span);
    if (at_start != nullptr) release(at_start);
    return end;
  });
  return CUDA_SUCCESS;
}

CUresult plain_launch(Call& call, CUfunction function, const Dim3& grid, const Dim3& block, uint32_t shared,
                      CUstream stream, void** params, void** extra, bool cooperative) {
  KernelLaunch launch;
  launch.grid = grid;
  launch.block = block;
  launch.dynamic_shared = shared;
  launch.cooperative = cooperative;
  LaunchRequest request;
  request.function = function;
  request.stream = stream;
  request.params = params;
  request.extra = extra;
  return launch_kernel(call, request, launch);
}

CUresult read_attribute(const CUlaunchAttribute& attribute, KernelLaunch& launch, LaunchRequest& request) {
  switch (static_cast<int>(attribute.id)) {
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION: {
      const auto& dim = attribute.value.clusterDim;
      if (dim.x == 0 || dim.y == 0 || dim.z == 0) return CUDA_ERROR_INVALID_VALUE;
      launch.cluster = {dim.x, dim.y, dim.z};
      return CUDA_SUCCESS;
    }
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
      launch.cooperative = attribute.value.cooperative != 0;
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
      launch.priority = attribute.value.priority;
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
      launch.programmatic = attribute.value.programmaticStreamSerializationAllowed != 0;
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
      request.at_start = live<Event>(attribute.value.programmaticEvent.event);
      return request.at_start != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
    case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
      request.at_start = live<Event>(attribute.value.launchCompletionEvent.event);
      return request.at_start != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
    default:
      return static_cast<unsigned>(attribute.id) <= CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING
                 ? CUDA_SUCCESS
                 : CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult legacy_launch(Call& call, CUfunction handle, int width, int height, CUstream stream) {
  Context* context = call.context();
  if (context == nullptr) return call.context_error();
  const Function* function = function_from_handle(handle, context);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (width <= 0 || height <= 0) return CUDA_ERROR_INVALID_VALUE;
  KernelLaunch launch;
  launch.grid = {static_cast<uint32_t>(width), static_cast<uint32_t>(height), 1};
  launch.block = function->legacy_block;
  launch.dynamic_shared = function->legacy_shared;
  LaunchRequest request;
  request.function = handle;
  request.stream = stream;
  request.check_params = false;
  return launch_kernel(call, request, launch);
}

}  // namespace

SIM_API_PTSZ(cuLaunchKernel, "cuLaunchKernel",
             (CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
              unsigned shared, CUstream stream, void** params, void** extra),
             (f, gx, gy, gz, bx, by, bz, shared, stream, params, extra)) {
  return plain_launch(call, f, {gx, gy, gz}, {bx, by, bz}, shared, stream, params, extra, false);
}

SIM_API_PTSZ(cuLaunchCooperativeKernel, "cuLaunchCooperativeKernel",
             (CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
              unsigned shared, CUstream stream, void** params),
             (f, gx, gy, gz, bx, by, bz, shared, stream, params)) {
  return plain_launch(call, f, {gx, gy, gz}, {bx, by, bz}, shared, stream, params, nullptr, true);
}

SIM_API_PTSZ(cuLaunchKernelEx, "cuLaunchKernelEx",
             (const CUlaunchConfig* config, CUfunction f, void** params, void** extra), (config, f, params, extra)) {
  if (config == nullptr || (config->numAttrs > 0 && config->attrs == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  KernelLaunch launch;
  launch.grid = {config->gridDimX, config->gridDimY, config->gridDimZ};
  launch.block = {config->blockDimX, config->blockDimY, config->blockDimZ};
  launch.dynamic_shared = config->sharedMemBytes;
  LaunchRequest request;
  request.function = f;
  request.stream = config->hStream;
  request.params = params;
  request.extra = extra;
  request.config = config;
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    if (CUresult result = read_attribute(config->attrs[i], launch, request); result != CUDA_SUCCESS) return result;
  }
  return launch_kernel(call, request, launch);
}

// One kernel on each of several devices; all are judged before the first starts.
SIM_API(cuLaunchCooperativeKernelMultiDevice, "cuLaunchCooperativeKernelMultiDevice",
        (CUDA_LAUNCH_PARAMS * launches, unsigned count, unsigned flags), (launches, count, flags)) {
  if (launches == nullptr || count == 0 || count > devices().size() || flags > 3) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < count; ++i) {
    const Stream* stream = live<Stream>(launches[i].hStream);
    if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    for (unsigned j = 0; j < i; ++j) {
      if (live<Stream>(launches[j].hStream)->context->device == stream->context->device)
        return CUDA_ERROR_INVALID_DEVICE;
    }
  }
  for (unsigned i = 0; i < count; ++i) {
    const CUDA_LAUNCH_PARAMS& one = launches[i];
    const CUresult result = plain_launch(call, one.function, {one.gridDimX, one.gridDimY, one.gridDimZ},
                                         {one.blockDimX, one.blockDimY, one.blockDimZ}, one.sharedMemBytes, one.hStream,
                                         one.kernelParams, nullptr, true);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

SIM_API(cuLaunch, "cuLaunch", (CUfunction f), (f)) { return legacy_launch(call, f, 1, 1, nullptr); }

SIM_API(cuLaunchGrid, "cuLaunchGrid", (CUfunction f, int width, int height), (f, width, height)) {
  return legacy_launch(call, f, width, height, nullptr);
}

SIM_API(cuLaunchGridAsync, "cuLaunchGridAsync", (CUfunction f, int width, int height, CUstream stream),
        (f, width, height, stream)) {
  return legacy_launch(call, f, width, height, stream);
}

SIM_API_PTSZ(cuLaunchHostFunc, "cuLaunchHostFunc", (CUstream handle, CUhostFn function, void* data),
             (handle, function, data)) {
  if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Stream* stream = call.stream(handle);
  if (stream == nullptr) return call.stream_error(handle);
  if (capturing(*stream)) return capture_host_function(call, *stream, function, data);
  if (CUresult refused = capture_refuses_legacy(call, *stream); refused != CUDA_SUCCESS) return refused;
  on_worker(call, *stream, [function, data](Nanos) {
    function(data);
    return now_ns();
  });
  return CUDA_SUCCESS;
}

SIM_API_PTSZ(cuStreamAddCallback, "cuStreamAddCallback",
             (CUstream handle, CUstreamCallback callback, void* data, unsigned flags),
             (handle, callback, data, flags)) {
  if (callback == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  Stream* stream = call.stream(handle);
  if (stream == nullptr) return call.stream_error(handle);
  if (capturing(*stream)) return capture_refuses_sync(call, *stream);
  if (CUresult refused = capture_refuses_legacy(call, *stream); refused != CUDA_SUCCESS) return refused;
  on_worker(call, *stream, [callback, handle, data](Nanos) {
    callback(handle, CUDA_SUCCESS, data);
    return now_ns();
  });
  return CUDA_SUCCESS;
}
