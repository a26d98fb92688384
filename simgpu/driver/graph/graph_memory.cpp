// Memory that belongs to graphs: one address per allocation node, fixed when the node is made, given back when neither
// graph nor executable graph holds it any more and it is not live. A launch makes it live; a free node, cuMemFree or
// cuMemFreeAsync ends that.
#include <algorithm>
#include <map>
#include <mutex>

#include "simgpu/driver/context/device.h"
#include "simgpu/driver/graph/graph.h"
#include "simgpu/driver/graph/graph_add.h"
#include "simgpu/driver/memory/pool.h"

namespace simgpu {

namespace {

struct Counters {
  uint64_t used = 0, used_high = 0, reserved = 0, reserved_high = 0;
};

constinit std::mutex counters_mutex;  // guards the counters alone: memory may go on the worker, without GraphLock

Counters& counters_of(const Device& device) {
  static auto* all = new std::map<int, Counters>;
  return (*all)[device.ordinal];
}

void count_used(const GraphMemory& memory, bool on) {
  std::lock_guard lock(counters_mutex);
  Counters& counters = counters_of(*memory.device);
  counters.used = on ? counters.used + memory.bytes : counters.used - memory.bytes;
  counters.used_high = std::max(counters.used_high, counters.used);
}

GraphMemory* graph_memory_at(CUdeviceptr address) {
  const std::optional<Allocation> allocation = find_allocation(address);
  if (!allocation || allocation->address != address || !is_graph_memory(*allocation)) return nullptr;
  return static_cast<GraphMemory*>(allocation->owner);
}

void truth_memory(Call& call, const char* op, CUdeviceptr address) {
  if (const std::optional<Allocation> allocation = find_allocation(address)) truth_alloc(call, op, *allocation);
}

void end_life(Call& call, GraphMemory& memory) {
  const std::shared_ptr<GraphMemory> last = std::move(memory.itself);
  truth_memory(call, "free", memory.address);
  memory.live = false;
  count_used(memory, false);
}

// Frees what an earlier launch left, or says that it must not be.
CUresult before_alloc(Call& call, GraphMemory& memory, bool auto_free) {
  if (!memory.live) return CUDA_SUCCESS;
  if (!auto_free) return CUDA_ERROR_INVALID_VALUE;
  end_life(call, memory);
  return CUDA_SUCCESS;
}

template <class Visit>
CUresult for_memory_nodes(const ExecBody& body, Visit&& visit) {
  for (size_t i : body.order) {
    const Payload& payload = body.nodes[i].payload;
    CUresult result = CUDA_SUCCESS;
    if (const auto* child = std::get_if<ChildNode>(&payload)) result = for_memory_nodes(*child->body, visit);
    if (result == CUDA_SUCCESS) result = visit(payload);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

}  // namespace

GraphMemory::~GraphMemory() {
  if (address == 0) return;
  remove_allocation(address);
  {
    std::lock_guard lock(counters_mutex);
    counters_of(*device).reserved -= bytes;
  }
  device_return(*device, reinterpret_cast<void*>(address), bytes);
}

CUresult make_graph_memory(Device& device, size_t bytes, std::shared_ptr<GraphMemory>* out) {
  void* p = device_reserve(device, bytes);
  if (p == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  auto memory = std::make_shared<GraphMemory>();
  memory->address = reinterpret_cast<CUdeviceptr>(p);
  memory->bytes = bytes;
  memory->device = &device;
  Allocation allocation;
  allocation.address = memory->address;
  allocation.bytes = bytes;
  allocation.kind = MemoryKind::pool;
  allocation.device = &device;
  allocation.flags = kGraphMemoryFlag;
  allocation.owner = memory.get();
  add_allocation(allocation);
  std::lock_guard lock(counters_mutex);
  Counters& counters = counters_of(device);
  counters.reserved += bytes;
  counters.reserved_high = std::max(counters.reserved_high, counters.reserved);
  *out = std::move(memory);
  return CUDA_SUCCESS;
}

CUresult alloc_node_from(CUDA_MEM_ALLOC_NODE_PARAMS_v2& params, AllocNode* out) {
  const CUmemPoolProps& props = params.poolProps;
  if (props.allocType != CU_MEM_ALLOCATION_TYPE_PINNED || props.location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (props.handleTypes != CU_MEM_HANDLE_TYPE_NONE || params.bytesize == 0) return CUDA_ERROR_INVALID_VALUE;
  if (params.accessDescCount != 0 && params.accessDescs == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Device* device = device_at(props.location.id);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  AllocNode node;
  if (const CUresult result = make_graph_memory(*device, params.bytesize, &node.memory); result != CUDA_SUCCESS) {
    return result;
  }
  params.dptr = node.memory->address;
  node.access.assign(params.accessDescs, params.accessDescs + params.accessDescCount);
  node.params = params;
  node.params.accessDescs = nullptr;
  *out = std::move(node);
  return CUDA_SUCCESS;
}

CUresult free_node_from(const Graph& graph, CUdeviceptr address, FreeNode* out) {
  const GraphMemory* memory = graph_memory_at(address);
  if (memory == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (const GraphNode* node : graph.nodes) {  // freed once only
    const auto* other = std::get_if<FreeNode>(&node->payload);
    if (other != nullptr && other->address == address) return CUDA_ERROR_INVALID_VALUE;
  }
  out->address = address;
  return CUDA_SUCCESS;
}

CUresult replay_memory(Call& call, const ExecBody& body, uint64_t flags) {
  GraphLock lock;
  const bool auto_free = (flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0;
  if (!auto_free) {
    const CUresult result = for_memory_nodes(body, [](const Payload& payload) {
      const auto* alloc = std::get_if<AllocNode>(&payload);
      return alloc != nullptr && alloc->memory->live ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    });
    if (result != CUDA_SUCCESS) return result;
  }
  return for_memory_nodes(body, [&](const Payload& payload) {
    if (const auto* alloc = std::get_if<AllocNode>(&payload)) {
      const CUresult result = before_alloc(call, *alloc->memory, auto_free);
      if (result != CUDA_SUCCESS) return result;
      alloc->memory->live = true;
      alloc->memory->itself = alloc->memory;
      count_used(*alloc->memory, true);
      truth_memory(call, "alloc", alloc->memory->address);
    }
    if (const auto* free = std::get_if<FreeNode>(&payload)) {
      GraphMemory* memory = graph_memory_at(free->address);
      if (memory == nullptr || !memory->live) return CUDA_ERROR_INVALID_VALUE;
      end_life(call, *memory);
    }
    return CUDA_SUCCESS;
  });
}

CUresult free_graph_memory(Call& call, CUdeviceptr address) {
  GraphLock lock;
  GraphMemory* memory = graph_memory_at(address);
  if (memory == nullptr || !memory->live) return CUDA_ERROR_INVALID_VALUE;
  end_life(call, *memory);
  return CUDA_SUCCESS;
}

}  // namespace simgpu

using namespace simgpu;

SIM_API(cuGraphAddMemAllocNode, "cuGraphAddMemAllocNode",
        (CUgraphNode * out, CUgraph graph, const CUgraphNode* dependencies, size_t count,
         CUDA_MEM_ALLOC_NODE_PARAMS_v1* params),
        (out, graph, dependencies, count, params)) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  GraphLock lock;
  return add_made_node(out, graph, dependencies, nullptr, count, [&](Graph&, Payload& payload) {
    CUDA_MEM_ALLOC_NODE_PARAMS_v2 wide{params->poolProps, params->accessDescs, params->accessDescCount,
                                       params->bytesize, 0};
    AllocNode node;
    const CUresult result = alloc_node_from(wide, &node);
    if (result != CUDA_SUCCESS) return result;
    params->dptr = wide.dptr;
    payload = std::move(node);
    return CUDA_SUCCESS;
  });
}

SIM_API(cuGraphMemAllocNodeGetParams, "cuGraphMemAllocNodeGetParams",
        (CUgraphNode handle, CUDA_MEM_ALLOC_NODE_PARAMS_v1* params), (handle, params)) {
  GraphLock lock;
  const auto* node = payload_of<AllocNode>(handle);
  if (node == nullptr || params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *params = {node->params.poolProps, node->access.data(), node->access.size(), node->params.bytesize,
             node->params.dptr};
  return CUDA_SUCCESS;
}

SIM_API(cuGraphAddMemFreeNode, "cuGraphAddMemFreeNode",
        (CUgraphNode * out, CUgraph graph, const CUgraphNode* dependencies, size_t count, CUdeviceptr address),
        (out, graph, dependencies, count, address)) {
  GraphLock lock;
  return add_made_node(out, graph, dependencies, nullptr, count, [&](Graph& owner, Payload& payload) {
    FreeNode node;
    const CUresult result = free_node_from(owner, address, &node);
    if (result == CUDA_SUCCESS) payload = node;
    return result;
  });
}

SIM_API(cuGraphMemFreeNodeGetParams, "cuGraphMemFreeNodeGetParams", (CUgraphNode handle, CUdeviceptr* out),
        (handle, out)) {
  GraphLock lock;
  const auto* node = payload_of<FreeNode>(handle);
  if (node == nullptr || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = node->address;
  return CUDA_SUCCESS;
}

SIM_API(cuDeviceGetGraphMemAttribute, "cuDeviceGetGraphMemAttribute",
        (CUdevice ordinal, CUgraphMem_attribute attribute, void* value), (ordinal, attribute, value)) {
  const Device* device = device_at(ordinal);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(counters_mutex);
  const Counters& counters = counters_of(*device);
  auto* out = static_cast<cuuint64_t*>(value);
  switch (attribute) {
    case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT:
      *out = counters.used;
      return CUDA_SUCCESS;
    case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH:
      *out = counters.used_high;
      return CUDA_SUCCESS;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT:
      *out = counters.reserved;
      return CUDA_SUCCESS;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH:
      *out = counters.reserved_high;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

SIM_API(cuDeviceSetGraphMemAttribute, "cuDeviceSetGraphMemAttribute",
        (CUdevice ordinal, CUgraphMem_attribute attribute, void* value), (ordinal, attribute, value)) {
  const Device* device = device_at(ordinal);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  if (value == nullptr || *static_cast<const cuuint64_t*>(value) != 0) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(counters_mutex);
  Counters& counters = counters_of(*device);
  switch (attribute) {
    case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH:
      counters.used_high = counters.used;
      return CUDA_SUCCESS;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH:
      counters.reserved_high = counters.reserved;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

// Memory of graphs goes with the graphs: there is never anything unused to give back.
SIM_API(cuDeviceGraphMemTrim, "cuDeviceGraphMemTrim", (CUdevice ordinal), (ordinal)) {
  return device_at(ordinal) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
