// Graphs: what they consist of when they become executable, and what is changed in them later. Cold but for
// graph_launch().
#pragma once

#include "interpose/definition/facts.h"

namespace gputrace {

// The exec came to be (or was updated as a whole) from `graph`: one GraphInstantiate, then one GraphNode for each node,
// child graphs included.
GT_COLD void graph_instantiated(const FinishedCall& call, CUgraph graph, CUgraphExec exec);
GT_COLD void graph_updated(const FinishedCall& call, CUgraph graph, CUgraphExec exec);

// Parameters of one node of an exec were set.
GT_COLD void kernel_node_set(const FinishedCall& call, CUgraphExec exec, CUgraphNode node,
                             const CUDA_KERNEL_NODE_PARAMS_v1* params);
GT_COLD void kernel_node_set(const FinishedCall& call, CUgraphExec exec, CUgraphNode node,
                             const CUDA_KERNEL_NODE_PARAMS* params);
GT_COLD void copy_node_set(const FinishedCall& call, CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D* params);
GT_COLD void memset_node_set(const FinishedCall& call, CUgraphExec exec, CUgraphNode node,
                             const CUDA_MEMSET_NODE_PARAMS* params);
GT_COLD void node_set(const FinishedCall& call, CUgraphExec exec, CUgraphNode node, const CUgraphNodeParams* params);
GT_COLD void other_node_set(const FinishedCall& call, CUgraphExec exec, CUgraphNode node, CUgraphNodeType type);
GT_COLD void node_enabled(const FinishedCall& call, CUgraphExec exec, CUgraphNode node, unsigned enabled);

// Captures that this process has begun and not ended.
GT_COLD void capture_begun(const FinishedCall& call, CUstream stream);
GT_COLD void capture_ended(const FinishedCall& call, CUstream stream, CUgraph graph);
// Of a call that put work on a stream while some stream captures, before its own record: capture_flags(), and a CapturedNode
// where the session reads stacks and the stream captures.
GT_COLD u32 captured_work(const FinishedCall& call, CUstream stream);

}  // namespace gputrace
