// Where facts are that device records alone do not lead to. ProcessBuilder answers; asked once for each shape or
// handle.
#pragma once

#include "analysis/timeline/device_shapes.h"

namespace gputrace {

class FactsDoor {
 public:
  virtual ~FactsDoor() = default;
  // Index in ProcessTrace::kernels for a kernel that is a graph's node, or that was not joined (context kNone).
  // `node`, `exec`: CUgraphNode and CUgraphExec where they are known, else 0.
  virtual u32 kernel_of(const DeviceShape& shape, u32 context, u64 node, u64 exec) = 0;
  // Index in ProcessTrace::copies likewise.
  virtual u32 copies_of(const DeviceShape& shape, bool in_graph) = 0;
  // Index in ProcessTrace::contexts.
  virtual u32 context_of(u64 handle) = 0;
};

}  // namespace gputrace
