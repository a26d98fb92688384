// cuStreamBeginCapture … cuStreamEndCapture.
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "simgpu/driver/graph/capture_state.h"

using namespace simgpu;

namespace {

uint64_t next_capture_id = 1;  // under GraphLock

bool valid_mode(CUstreamCaptureMode mode) {
  return mode == CU_STREAM_CAPTURE_MODE_GLOBAL || mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL ||
         mode == CU_STREAM_CAPTURE_MODE_RELAXED;
}

// `graph`: null for a graph of its own.
CUresult begin(Call& call, CUstream handle, CUstreamCaptureMode mode, Graph* graph, std::vector<Edge> after) {
  if (!valid_mode(mode)) return CUDA_ERROR_INVALID_VALUE;
  Stream* stream = call.stream(handle);
  if (stream == nullptr) return call.stream_error(handle);
  if (stream->kind == Stream::Kind::legacy) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (capturing(*stream)) return CUDA_ERROR_ILLEGAL_STATE;
  auto* capture = new Capture;
  capture->own_graph = graph == nullptr;
  capture->graph = graph != nullptr ? graph : make_graph();
  if (capture->graph == nullptr) {
    delete capture;
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  capture->graph->capture_target = true;
  capture->id = next_capture_id++;
  capture->mode = mode;
  capture->thread = static_cast<int>(syscall(SYS_gettid));
  capture->origin = stream;
  captures().push_back(capture);
  active_captures.fetch_add(1, std::memory_order_acq_rel);
  join_stream(*capture, *stream, std::move(after));
  return CUDA_SUCCESS;
}

// Whether all that other streams did has come back to the origin.
bool all_joined(const Capture& capture) {
  std::set<const GraphNode*> reached;
  std::vector<const GraphNode*> open;
  const auto reach = [&](const std::vector<Edge>& edges) {
    for (const Edge& edge : edges) {
      if (reached.insert(edge.node).second) open.push_back(edge.node);
    }
  };
  reach(capture.streams.at(capture.origin));
  while (!open.empty()) {
    const GraphNode* node = open.back();
    open.pop_back();
    reach(node->dependencies);
  }
  return std::all_of(capture.streams.begin(), capture.streams.end(), [&](const auto& entry) {
    return std::all_of(entry.second.begin(), entry.second.end(),
                       [&](const Edge& edge) { return reached.count(edge.node) != 0; });
  });
}

CUresult end(Call& call, CUstream handle, CUgraph* out) {
  Stream* stream = call.stream(handle);
  if (stream == nullptr) return call.stream_error(handle);
  Capture* capture = stream->capture.load(std::memory_order_acquire);
  if (capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  const bool own_thread = capture->thread == static_cast<int>(syscall(SYS_gettid));
  if (!own_thread && capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  if (capture->origin != stream) {
    invalidate(*capture);
    return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  }
  CUresult result = CUDA_SUCCESS;
  if (!capture->valid) {
    result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  } else if (!all_joined(*capture)) {
    result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
  }
  Graph* graph = capture->graph;
  const bool own_graph = capture->own_graph;
  dissolve(*capture);
  if (result != CUDA_SUCCESS && own_graph) destroy_graph(*graph);
  *out = result == CUDA_SUCCESS ? handle_of(graph) : nullptr;
  return result;
}

// The capture that a query about `handle` means, null for none; an error for the legacy stream beside a capture.
CUresult queried(Call& call, CUstream handle, Stream** stream, Capture** capture) {
  *stream = call.stream(handle);
  if (*stream == nullptr) return call.stream_error(handle);
  *capture = (*stream)->capture.load(std::memory_order_acquire);
  if ((*stream)->kind != Stream::Kind::legacy) return CUDA_SUCCESS;
  for (Capture* other : captures()) {
    for (const auto& [captured, after] : other->streams) {
      if (captured->context == (*stream)->context && captured->waits_for_legacy()) {
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
      }
    }
  }
  return CUDA_SUCCESS;
}

CUstreamCaptureStatus status_of(const Capture* capture) {
  if (capture == nullptr) return CU_STREAM_CAPTURE_STATUS_NONE;
  return capture->valid ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_INVALIDATED;
}

struct InfoOut {
  CUstreamCaptureStatus* status;
  cuuint64_t* id;
  CUgraph* graph;
  const CUgraphNode** nodes;
  const CUgraphEdgeData** edges;
  size_t* count;
};

CUresult info(Call& call, CUstream handle, const InfoOut& out) {
  if (out.status == nullptr) return CUDA_ERROR_INVALID_VALUE;
  GraphLock lock;
  Stream* stream = nullptr;
  Capture* capture = nullptr;
  if (const CUresult result = queried(call, handle, &stream, &capture); result != CUDA_SUCCESS) return result;
  *out.status = status_of(capture);
  if (*out.status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return CUDA_SUCCESS;
  std::vector<CUgraphNode>& nodes = capture->shown_nodes[stream];
  std::vector<CUgraphEdgeData>& edges = capture->shown_edges[stream];
  nodes.clear();
  edges.clear();
  bool annotated = false;
  for (const Edge& edge : capture->streams[stream]) {
    nodes.push_back(handle_of(edge.node));
    edges.push_back(edge.data);
    annotated |= edge.data.type != 0 || edge.data.from_port != 0;
  }
  if (annotated && out.nodes != nullptr && out.edges == nullptr) return CUDA_ERROR_LOSSY_QUERY;
  if (out.id != nullptr) *out.id = capture->id;
  if (out.graph != nullptr) *out.graph = handle_of(capture->graph);
  if (out.nodes != nullptr) *out.nodes = nodes.data();
  if (out.edges != nullptr) *out.edges = edges.data();
  if (out.count != nullptr) *out.count = nodes.size();
  return CUDA_SUCCESS;
}

CUresult update(Call& call, CUstream handle, const CUgraphNode* nodes, const CUgraphEdgeData* data, size_t count,
                unsigned flags) {
  if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES) return CUDA_ERROR_INVALID_VALUE;
  GraphLock lock;
  Stream* stream = call.stream(handle);
  if (stream == nullptr) return call.stream_error(handle);
  Capture* capture = nullptr;
  if (const CUresult result = capture_of(*stream, &capture); result != CUDA_SUCCESS) return result;
  std::vector<Edge> added;
  const CUresult valid = dependencies_from(*capture->graph, nodes, data, count, &added);
  if (valid != CUDA_SUCCESS) return valid;
  std::vector<Edge>& after = capture->streams[stream];
  if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES) after.clear();
  for (const Edge& edge : added) {
    const bool there = std::any_of(after.begin(), after.end(), [&](const Edge& e) { return e.node == edge.node; });
    if (!there) after.push_back(edge);
  }
  return CUDA_SUCCESS;
}

}  // namespace

SIM_API_PTSZ(cuStreamBeginCapture, "cuStreamBeginCapture", (CUstream stream), (stream)) {
  GraphLock lock;
  return begin(call, stream, CU_STREAM_CAPTURE_MODE_GLOBAL, nullptr, {});
}

SIM_API_PTSZ(cuStreamBeginCapture_v2, "cuStreamBeginCapture", (CUstream stream, CUstreamCaptureMode mode),
             (stream, mode)) {
  GraphLock lock;
  return begin(call, stream, mode, nullptr, {});
}

SIM_API_PTSZ(cuStreamBeginCaptureToGraph, "cuStreamBeginCaptureToGraph",
             (CUstream stream, CUgraph handle, const CUgraphNode* dependencies, const CUgraphEdgeData* data,
              size_t count, CUstreamCaptureMode mode),
             (stream, handle, dependencies, data, count, mode)) {
  GraphLock lock;
  Graph* graph = live<Graph>(handle);
  if (graph == nullptr || graph->capture_target) return CUDA_ERROR_INVALID_VALUE;
  std::vector<Edge> after;
  const CUresult valid = dependencies_from(*graph, dependencies, data, count, &after);
  return valid == CUDA_SUCCESS ? begin(call, stream, mode, graph, std::move(after)) : valid;
}

SIM_API_PTSZ(cuStreamEndCapture, "cuStreamEndCapture", (CUstream stream, CUgraph* graph), (stream, graph)) {
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *graph = nullptr;
  GraphLock lock;
  return end(call, stream, graph);
}

SIM_API_PTSZ(cuStreamIsCapturing, "cuStreamIsCapturing", (CUstream handle, CUstreamCaptureStatus* status),
             (handle, status)) {
  if (status == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (active_captures.load(std::memory_order_acquire) == 0) {
    if (call.stream(handle) == nullptr) return call.stream_error(handle);
    *status = CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
  }
  GraphLock lock;
  Stream* stream = nullptr;
  Capture* capture = nullptr;
  const CUresult result = queried(call, handle, &stream, &capture);
  if (result == CUDA_SUCCESS) *status = status_of(capture);
  return result;
}

SIM_API_PTSZ(cuStreamGetCaptureInfo, "cuStreamGetCaptureInfo",
             (CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id), (stream, status, id)) {
  return info(call, stream, {status, id, nullptr, nullptr, nullptr, nullptr});
}

SIM_API_PTSZ(cuStreamGetCaptureInfo_v2, "cuStreamGetCaptureInfo",
             (CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph, const CUgraphNode** nodes,
              size_t* count),
             (stream, status, id, graph, nodes, count)) {
  return info(call, stream, {status, id, graph, nodes, nullptr, count});
}

SIM_API_PTSZ(cuStreamGetCaptureInfo_v3, "cuStreamGetCaptureInfo",
             (CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph, const CUgraphNode** nodes,
              const CUgraphEdgeData** edges, size_t* count),
             (stream, status, id, graph, nodes, edges, count)) {
  return info(call, stream, {status, id, graph, nodes, edges, count});
}

SIM_API_PTSZ(cuStreamUpdateCaptureDependencies, "cuStreamUpdateCaptureDependencies",
             (CUstream stream, CUgraphNode* nodes, size_t count, unsigned flags), (stream, nodes, count, flags)) {
  return update(call, stream, nodes, nullptr, count, flags);
}

SIM_API_PTSZ(cuStreamUpdateCaptureDependencies_v2, "cuStreamUpdateCaptureDependencies",
             (CUstream stream, CUgraphNode* nodes, const CUgraphEdgeData* data, size_t count, unsigned flags),
             (stream, nodes, data, count, flags)) {
  return update(call, stream, nodes, data, count, flags);
}

SIM_API_ALWAYS(cuThreadExchangeStreamCaptureMode, "cuThreadExchangeStreamCaptureMode", (CUstreamCaptureMode * mode),
               (mode)) {
  if (mode == nullptr || !valid_mode(*mode)) return CUDA_ERROR_INVALID_VALUE;
  const auto before = static_cast<CUstreamCaptureMode>(thread_state.capture_mode);
  thread_state.capture_mode = *mode;
  *mode = before;
  return CUDA_SUCCESS;
}
