// One capture: from cuStreamBeginCapture to cuStreamEndCapture. Under GraphLock.
#pragma once

#include <map>
#include <vector>

#include "simgpu/driver/graph/capture.h"
#include "simgpu/driver/graph/graph.h"

namespace simgpu {

struct Capture {
  uint64_t id = 0;
  Graph* graph = nullptr;
  bool own_graph = true;  // false: cuStreamBeginCaptureToGraph
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  int thread = 0;  // that began it
  Stream* origin = nullptr;
  bool valid = true;
  // What the next operation of each stream comes after. A stream is in here from its begin or first wait until the end.
  std::map<Stream*, std::vector<Edge>> streams;
  std::map<Event*, std::vector<Edge>> events;  // recorded in this capture
  // What cuStreamGetCaptureInfo points its caller to.
  std::map<Stream*, std::vector<CUgraphNode>> shown_nodes;
  std::map<Stream*, std::vector<CUgraphEdgeData>> shown_edges;
};

std::vector<Capture*>& captures();  // all that are under way

// The capture of a stream, if its work may go on; else the error, with `*out` null.
CUresult capture_of(Stream& stream, Capture** out);
void invalidate(Capture& capture);
void join_stream(Capture& capture, Stream& stream, std::vector<Edge> after);
// Ends the capture: streams and events forget it. The graph stays.
void dissolve(Capture& capture);
// Adds a node after all of the stream's, which then alone comes next.
CUresult append(Call& call, Stream& stream, Payload payload, bool programmatic = false);

}  // namespace simgpu
