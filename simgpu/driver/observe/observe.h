// Where the driver shows what it does to whoever looks (observer.h). Call these only where `looked_at` says so.
#pragma once

#include "simgpu/driver/observe/observer.h"

namespace simgpu {

class Call;
struct Allocation;
struct Context;
struct Copy;
struct Event;
struct Graph;
struct GraphExec;
struct GraphNode;
struct KernelLaunch;
struct Memset;
struct Module;
struct Origin;
struct Pool;
struct Span;
struct Stream;

uint32_t draw_correlation();
extern constinit std::atomic<bool> separate_runtime_ids;
// Not in the child of a fork: whoever looked is in its parent, and may have been forked with its locks held.
bool may_be_shown();
void process_mode_changed();  // whether calls take the slow way is to be judged again

void show(const KernelLaunch& launch, const Origin& origin, const Span& span);
void show(const Copy& copy, const Origin& origin, const Span& span);
void show(const Memset& memset, const Origin& origin, const Span& span);
void show_graph(const Origin& origin, const Span& span, uint64_t nodes);
void show_sync(Call& call, SyncNotice::Kind kind, const Context& context, const Stream* stream, const Event* event);
void show_memory(Call& call, bool allocation, const Allocation& what, const Stream* stream);
void show_pool(Call& call, PoolNotice::Act act, Pool& pool, uint64_t keep);
void show_context(ResourceNotice::Act act, const Context& context);
void show_stream(ResourceNotice::Act act, const Stream& stream);
void show_module(ResourceNotice::Act act, const Module& module);
void show_graph_object(ResourceNotice::Act act, const Graph* graph, const GraphExec* exec);
void show_graph_node(ResourceNotice::Act act, const GraphNode& node);
// A node of an executable graph has no handle of its own; it gets one for as long as it is shown.
void show_exec_node(const GraphNode& original, uint64_t id);
// Whether show_call() shall be asked to show the calls of that exported name.
bool shows_call(const char* variant, bool runtime);
void show_call(Call& call, bool entering, int result);

}  // namespace simgpu
