// A graph's replay on the timeline. A node starts when the launch may start and all that it depends on has ended;
// branches run side by side. Nodes that need the host (functions, waits) cut the replay into parts, which go to the
// stream's queue one after the other.
#include <algorithm>
#include <map>
#include <mutex>

#include "simgpu/driver/graph/graph.h"
#include "simgpu/driver/life/knobs.h"
#include "simgpu/driver/time/event_share.h"
#include "simgpu/driver/time/timeline.h"

namespace simgpu {

namespace {

struct Step {
  const ExecNode* node = nullptr;  // null: the end of a child graph
  std::vector<size_t> after;
};

// One launch. Parts of it may run on the worker, one at a time.
struct Replay {
  std::shared_ptr<const ExecBody> body;
  Origin origin;
  size_t node_count = 0;
  std::vector<Step> steps;  // in an order that respects the dependencies
  std::vector<Nanos> ends;
  std::vector<Nanos> waits;  // by step: when the event that it waits for is recorded, as of the launch
  std::map<size_t, KernelExecution> executions;  // by step: of kernels with work
  bool begun = false;
  Nanos begin = 0;
  Nanos end = 0;
  // Events that nodes recorded. Steps may run under their stream's lock, where no event may be touched; what they
  // record while the launch call is under way, the call settles, and what they record later, they do.
  std::mutex mutex;
  bool call_settles = true;
  std::vector<std::pair<Event*, Nanos>> records;
};

// Appends the body's nodes; `entry`: the step that its roots come after, or SIZE_MAX. Returns the step that ends it.
size_t flatten(const ExecBody& body, size_t entry, std::vector<Step>& steps) {
  std::vector<size_t> place(body.nodes.size());
  std::vector<size_t> all;
  for (size_t i : body.order) {
    const ExecNode& node = body.nodes[i];
    Step step;
    for (size_t before : node.dependencies) step.after.push_back(place[before]);
    if (step.after.empty() && entry != SIZE_MAX) step.after.push_back(entry);
    const auto* child = std::get_if<ChildNode>(&node.payload);
    if (child == nullptr) step.node = &node;
    steps.push_back(std::move(step));
    place[i] = steps.size() - 1;
    if (child != nullptr) place[i] = flatten(*child->body, place[i], steps);
    all.push_back(place[i]);
  }
  steps.push_back({nullptr, std::move(all)});
  if (steps.back().after.empty() && entry != SIZE_MAX) steps.back().after.push_back(entry);
  return steps.size() - 1;
}

bool waits_for_value(const CUstreamBatchMemOpParams& operation) {
  return operation.operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 || operation.operation == CU_STREAM_MEM_OP_WAIT_VALUE_64;
}

bool value_has_come(const CUstreamBatchMemOpParams& operation) {
  const auto& wait = operation.waitValue;
  const bool wide = wait.operation == CU_STREAM_MEM_OP_WAIT_VALUE_64;
  const uint64_t now = wide ? __atomic_load_n(reinterpret_cast<const uint64_t*>(wait.address), __ATOMIC_ACQUIRE)
                            : __atomic_load_n(reinterpret_cast<const uint32_t*>(wait.address), __ATOMIC_ACQUIRE);
  const uint64_t want = wide ? wait.value64 : wait.value;
  switch (wait.flags & 0x3) {
    case CU_STREAM_WAIT_VALUE_EQ:
      return now == want;
    case CU_STREAM_WAIT_VALUE_AND:
      return (now & want) != 0;
    case CU_STREAM_WAIT_VALUE_NOR:
      return wide ? ~(now | want) != 0 : static_cast<uint32_t>(~(now | want)) != 0;
    default:
      break;
  }
  // Greater or equal, by the signed distance.
  return wide ? static_cast<int64_t>(now - want) >= 0
              : static_cast<int32_t>(static_cast<uint32_t>(now) - static_cast<uint32_t>(want)) >= 0;
}

void write_value(const CUstreamBatchMemOpParams& operation) {
  const auto& write = operation.writeValue;
  if (write.operation == CU_STREAM_MEM_OP_WRITE_VALUE_64) {
    __atomic_store_n(reinterpret_cast<uint64_t*>(write.address), write.value64, __ATOMIC_RELEASE);
  } else if (write.operation == CU_STREAM_MEM_OP_WRITE_VALUE_32) {
    __atomic_store_n(reinterpret_cast<uint32_t*>(write.address), write.value, __ATOMIC_RELEASE);
  }
}

void settle_records(Replay& replay, bool by_call) {
  std::vector<std::pair<Event*, Nanos>> records;
  {
    std::lock_guard lock(replay.mutex);
    if (by_call) replay.call_settles = false;
    if (replay.call_settles) return;
    records.swap(replay.records);
  }
  for (const auto& [event, at] : records) {
    std::lock_guard lock(event->mutex);
    ++event->generation;
    set_event_time(*event, at);
  }
}

// What the device does at a node; the end.
struct Performer {
  Replay& replay;
  const Origin& origin;
  size_t step;
  Nanos start;
  Nanos operator()(const KernelNode& n) const {
    if (!n.launch.work) return perform(n.launch, origin, start).end;
    const Span& span = replay.executions.at(step).span();
    show_kernel(n.launch, origin, span);
    return span.end;
  }
  Nanos operator()(const CopyNode& n) const { return perform(n.copy, origin, start).end; }
  Nanos operator()(const MemsetNode& n) const { return perform(n.memset, origin, start).end; }
  Nanos operator()(const EventNode& n) const {
    if (!n.record) return std::max(start, replay.waits[step]);
    std::lock_guard lock(replay.mutex);
    replay.records.emplace_back(n.event, start);
    return start;
  }
  Nanos operator()(const MemoryOpsNode& n) const {
    for (const CUstreamBatchMemOpParams& operation : n.operations) write_value(operation);
    return start;
  }
  Nanos operator()(const HostNode&) const { return start; }
  Nanos operator()(const ChildNode&) const { return start; }
  Nanos operator()(const EmptyNode&) const { return start; }
  Nanos operator()(const AllocNode&) const { return start; }
  Nanos operator()(const FreeNode&) const { return start; }
};

Nanos start_of(const Replay& replay, size_t step) {
  Nanos start = replay.begin;
  for (size_t before : replay.steps[step].after)
    start = std::max(start, replay.ends[before] + knobs().graph_node_latency);
  return start;
}

Nanos run_step(Replay& replay, size_t i) {
  const ExecNode* node = replay.steps[i].node;
  const Nanos start = start_of(replay, i);
  if (node == nullptr || !node->enabled) return start;
  replay.origin.graph.node = node->origin;
  replay.origin.graph.node_id = node->id;
  return std::visit(Performer{replay, replay.origin, i, start}, node->payload);
}

void finish(Replay& replay) {
  if (looked_at(look::device)) show_graph(replay.origin, {replay.begin, replay.end}, replay.node_count);
  if (!replay.origin.stamp) return;
  TruthFields fields("graph_launch");
  fields.add("exec", replay.origin.graph.exec)
      .add("nodes", uint64_t{replay.node_count})
      .add("device", replay.origin.stream->context->device->ordinal)
      .add("stream", replay.origin.stream->id)
      .add("correlation", replay.origin.correlation)
      .add("start_ns", replay.begin)
      .add("end_ns", replay.end);
  replay.origin.stamp->add(fields);
}

void begin_once(Replay& replay, Nanos ready) {
  if (replay.begun) return;
  replay.begun = true;
  replay.begin = replay.end = ready;
}

// Steps [from, to) and, if they are the last, the launch's own line. Returns when the next step may start.
Nanos run_steps(Replay& replay, size_t from, size_t to, Nanos ready) {
  begin_once(replay, ready);
  for (size_t i = from; i < to; ++i) {
    replay.ends[i] = run_step(replay, i);
    replay.end = std::max(replay.end, replay.ends[i]);
  }
  settle_records(replay, false);
  if (to < replay.steps.size()) return start_of(replay, to);
  finish(replay);
  return replay.end;
}

// When the event a node waits for is recorded; 0 for other nodes.
Nanos waited_for(const Step& step) {
  const auto* wait = step.node != nullptr ? std::get_if<EventNode>(&step.node->payload) : nullptr;
  if (wait == nullptr || wait->record) return 0;
  std::lock_guard lock(wait->event->mutex);
  return wait->event->recorded && !wait->event->pending ? wait->event->at : 0;
}

bool needs_host(const Step& step) {
  if (step.node == nullptr) return false;
  const Payload& payload = step.node->payload;
  if (const auto* event = std::get_if<EventNode>(&payload)) {
    if (event->record) return false;
    std::lock_guard lock(event->event->mutex);
    return event->event->pending;
  }
  if (const auto* operations = std::get_if<MemoryOpsNode>(&payload)) {
    return std::any_of(operations->operations.begin(), operations->operations.end(), waits_for_value);
  }
  if (const auto* kernel = std::get_if<KernelNode>(&payload)) return kernel->launch.work && step.node->enabled;
  return std::holds_alternative<HostNode>(payload);
}

bool condition_holds(const Payload& payload) {
  if (const auto* event = std::get_if<EventNode>(&payload)) {
    std::lock_guard lock(event->event->mutex);
    return !event->event->pending;
  }
  const auto& operations = std::get<MemoryOpsNode>(payload).operations;
  return std::all_of(operations.begin(), operations.end(),
                     [](const CUstreamBatchMemOpParams& o) { return !waits_for_value(o) || value_has_come(o); });
}

void queue_host_step(Call& call, Stream& stream, const std::shared_ptr<Replay>& replay, size_t i) {
  const Payload& payload = replay->steps[i].node->payload;
  if (const auto* host = std::get_if<HostNode>(&payload)) {
    on_worker(call, stream, [replay, i, host = *host](Nanos ready) {
      host.function(host.data);
      const Nanos next = run_steps(*replay, i, i + 1, ready);
      replay->ends[i] = now_ns();
      replay->end = std::max(replay->end, replay->ends[i]);
      return std::max(next, replay->ends[i]);
    });
    return;
  }
  if (const auto* kernel = std::get_if<KernelNode>(&payload)) {
    if (call.stamp()) call.stamp()->promise();
    KernelExecution& execution = replay->executions.emplace(i, kernel->launch).first->second;
    const auto ended = [replay, i, &execution](Nanos ready) {
      begin_once(*replay, ready);
      return execution.ended(start_of(*replay, i));
    };
    const auto finish = [replay, i](Nanos ready) { return run_steps(*replay, i, i + 1, ready); };
    defer(stream, Work{call.begin() + knobs().launch_latency, {}, ended, finish, false});
    return;
  }
  wait_for_condition(call, stream, [replay, i](Nanos) {
    if (!condition_holds(replay->steps[i].node->payload)) return false;
    replay->waits[i] = waited_for(replay->steps[i]);
    return true;
  });
  in_order(call, stream, [replay, i](Nanos ready) {
    const Nanos next = run_steps(*replay, i, i + 1, ready);
    if (std::holds_alternative<MemoryOpsNode>(replay->steps[i].node->payload)) {
      replay->ends[i] = std::max(replay->ends[i], now_ns());
    }
    replay->end = std::max(replay->end, replay->ends[i]);
    return std::max(next, replay->ends[i]);
  });
}

void queue_in_parts(Call& call, Stream& stream, const std::shared_ptr<Replay>& replay) {
  size_t from = 0;
  for (size_t i = 0; i <= replay->steps.size(); ++i) {
    const bool last = i == replay->steps.size();
    if (!last && !needs_host(replay->steps[i])) continue;
    if (from < i || last) {
      in_order(call, stream, [replay, from, i](Nanos ready) { return run_steps(*replay, from, i, ready); });
    }
    if (!last) queue_host_step(call, stream, replay, i);
    from = i + 1;
  }
}

}  // namespace

CUresult launch_graph(Call& call, GraphExec& exec, std::shared_ptr<const ExecBody> body, Stream& stream) {
  if (body->has_memory) {
    if (const CUresult result = replay_memory(call, *body, exec.flags); result != CUDA_SUCCESS) return result;
  }
  auto replay = std::make_shared<Replay>();
  replay->node_count = body->node_count;
  replay->origin = Origin::of(call, stream);
  replay->origin.in_graph = true;
  replay->origin.graph = {reinterpret_cast<uint64_t>(&exec), 0, call.seq(), exec.id, 0};
  flatten(*body, SIZE_MAX, replay->steps);
  replay->ends.resize(replay->steps.size());
  for (const Step& step : replay->steps) replay->waits.push_back(body->needs_host ? waited_for(step) : 0);
  const bool whole = !body->needs_host;
  replay->body = std::move(body);
  if (whole) {
    in_order(call, stream, [replay](Nanos ready) { return run_steps(*replay, 0, replay->steps.size(), ready); });
  } else {
    queue_in_parts(call, stream, replay);
  }
  settle_records(*replay, true);
  return CUDA_SUCCESS;
}

}  // namespace simgpu
