// Stream capture: which streams and events belong to one, what it forbids.
#include "simgpu/driver/graph/capture.h"

#include <unistd.h>

#include <sys/syscall.h>

#include <algorithm>

#include "simgpu/driver/graph/capture_state.h"

namespace simgpu {

constinit std::atomic<unsigned> active_captures{0};

std::vector<Capture*>& captures() {
  static auto* all = new std::vector<Capture*>;
  return *all;
}

namespace {

int thread_id() { return static_cast<int>(syscall(SYS_gettid)); }

void forget_stream(Stream& stream) {
  stream.capture.store(nullptr, std::memory_order_release);
  stream.context->captures.fetch_sub(1, std::memory_order_acq_rel);
  release(&stream);
}

void forget_event(Event& event, const Capture& capture) {
  {
    std::lock_guard lock(event.mutex);
    if (event.capture == &capture) event.capture = nullptr;
  }
  release(&event);
}

// Whether this capture keeps the calling thread from calls that might wait for the device.
bool forbids(const Capture& capture, CUstreamCaptureMode thread_mode) {
  if (!capture.valid || thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED) return false;
  if (capture.thread == thread_id()) return capture.mode != CU_STREAM_CAPTURE_MODE_RELAXED;
  return thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL && capture.mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
}

}  // namespace

CUresult capture_of(Stream& stream, Capture** out) {
  *out = nullptr;
  Capture* capture = stream.capture.load(std::memory_order_acquire);
  if (capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  if (!capture->valid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  *out = capture;
  return CUDA_SUCCESS;
}

void invalidate(Capture& capture) { capture.valid = false; }

void join_stream(Capture& capture, Stream& stream, std::vector<Edge> after) {
  retain(&stream);
  stream.context->captures.fetch_add(1, std::memory_order_acq_rel);
  capture.streams[&stream] = std::move(after);
  stream.capture.store(&capture, std::memory_order_release);
}

void dissolve(Capture& capture) {
  for (const auto& [stream, after] : capture.streams) forget_stream(*stream);
  for (const auto& [event, after] : capture.events) forget_event(*event, capture);
  capture.graph->capture_target = false;
  captures().erase(std::remove(captures().begin(), captures().end(), &capture), captures().end());
  active_captures.fetch_sub(1, std::memory_order_acq_rel);
  delete &capture;
}

bool event_in_capture(Event& event) {
  if (active_captures.load(std::memory_order_acquire) == 0) return false;
  std::lock_guard lock(event.mutex);
  return event.capture != nullptr;
}

CUresult capture_event_record(Call& call, Stream& stream, Event& event, unsigned flags) {
  if ((flags & CU_EVENT_RECORD_EXTERNAL) != 0) return append(call, stream, EventNode{&event, true});
  GraphLock lock;
  Capture* capture = nullptr;
  if (const CUresult result = capture_of(stream, &capture); result != CUDA_SUCCESS) return result;
  Capture* before = nullptr;
  {
    std::lock_guard own(event.mutex);
    before = event.capture;
    event.capture = capture;
  }
  if (before != nullptr && before != capture) {
    before->events.erase(&event);
    release(&event);
  }
  if (capture->events.count(&event) == 0) retain(&event);
  capture->events[&event] = capture->streams[&stream];
  return CUDA_SUCCESS;
}

CUresult capture_event_wait(Call& call, Stream& stream, Event& event, unsigned flags) {
  GraphLock lock;
  Capture* source = nullptr;
  {
    std::lock_guard own(event.mutex);
    source = event.capture;
  }
  Capture* target = stream.capture.load(std::memory_order_acquire);
  if (source == nullptr && target == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  if (target != nullptr && !target->valid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (source == nullptr) {
    if ((flags & CU_EVENT_WAIT_EXTERNAL) != 0) return append(call, stream, EventNode{&event, false});
    invalidate(*target);
    return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
  }
  if (!source->valid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (target == nullptr) {
    if (stream.kind == Stream::Kind::legacy) {
      invalidate(*source);
      return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
    join_stream(*source, stream, source->events[&event]);
    return CUDA_SUCCESS;
  }
  if (source != target) {
    invalidate(*source);
    invalidate(*target);
    return CUDA_ERROR_STREAM_CAPTURE_MERGE;
  }
  std::vector<Edge>& after = target->streams[&stream];
  for (const Edge& edge : source->events[&event]) {
    const bool there = std::any_of(after.begin(), after.end(), [&](const Edge& e) { return e.node == edge.node; });
    if (!there) after.push_back(edge);
  }
  return CUDA_SUCCESS;
}

CUresult capture_refuses_sync(Call&, Stream& stream) {
  if (active_captures.load(std::memory_order_acquire) == 0) return CUDA_SUCCESS;
  GraphLock lock;
  Capture* capture = stream.capture.load(std::memory_order_acquire);
  if (capture == nullptr) return CUDA_SUCCESS;
  if (!capture->valid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  invalidate(*capture);
  return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult capture_refuses_event(Call&, Event& event) {
  if (active_captures.load(std::memory_order_acquire) == 0) return CUDA_SUCCESS;
  GraphLock lock;
  std::lock_guard own(event.mutex);
  if (event.capture == nullptr) return CUDA_SUCCESS;
  invalidate(*event.capture);
  return CUDA_ERROR_CAPTURED_EVENT;
}

CUresult capture_refuses_legacy(Call&, Stream& stream) {
  if (active_captures.load(std::memory_order_acquire) == 0) return CUDA_SUCCESS;
  if (stream.kind != Stream::Kind::legacy || stream.context->captures.load(std::memory_order_acquire) == 0) {
    return CUDA_SUCCESS;
  }
  GraphLock lock;
  CUresult result = CUDA_SUCCESS;
  for (Capture* capture : captures()) {
    for (const auto& [captured, after] : capture->streams) {
      if (captured->context != stream.context || !captured->waits_for_legacy()) continue;
      invalidate(*capture);
      result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
  }
  return result;
}

CUresult capture_refuses_unsafe(Call&) {
  if (active_captures.load(std::memory_order_acquire) == 0) return CUDA_SUCCESS;
  GraphLock lock;
  CUresult result = CUDA_SUCCESS;
  for (Capture* capture : captures()) {
    if (!forbids(*capture, static_cast<CUstreamCaptureMode>(thread_state.capture_mode))) continue;
    invalidate(*capture);
    result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return result;
}

void capture_stream_destroyed(Stream& stream) {
  if (!capturing(stream)) return;
  GraphLock lock;
  Capture* capture = stream.capture.load(std::memory_order_acquire);
  if (capture == nullptr) return;
  invalidate(*capture);
  if (capture->origin == &stream) {
    Graph* graph = capture->own_graph ? capture->graph : nullptr;
    dissolve(*capture);
    if (graph != nullptr) destroy_graph(*graph);
    return;
  }
  capture->streams.erase(&stream);
  forget_stream(stream);
}

}  // namespace simgpu
