#include "analysis/timeline/targets.h"

#include <algorithm>

namespace gputrace {

u32 Targets::make_function(u32 pass_number) {
  facts_.functions.emplace_back().pass_number = pass_number;
  return static_cast<u32>(facts_.functions.size() - 1);
}

void Targets::function_came() {
  const u32 pass_number = static_cast<u32>(functions_.size());
  functions_.push_back(make_function(pass_number));
}

void Targets::has_symbol(u32 function, std::string_view symbol) {
  facts_.functions[function].symbol = symbol;
  const auto [newest, added] = newest_by_symbol_.try_emplace(symbol, function);
  if (!added) newest->second = std::max(newest->second, function);
}

void Targets::name_function(u32 function, std::string_view symbol) {
  const u32 place = functions_[function];
  if (facts_.functions[place].symbol.empty()) has_symbol(place, symbol);
}

void Targets::learn_symbol(u32 function, std::string_view symbol) {
  if (!facts_.functions[function].symbol.empty() || symbol.empty()) return;
  has_symbol(function, symbol);
}

void Targets::kernel_came(const KernelShape& shape) {
  KernelShape own = shape;
  if (shape.function != kNone) own.function = functions_[shape.function];
  if (shape.context != kNone) own.context = contexts_[shape.context];
  const u32 place = kernel_at(own);
  facts_.kernels[place].pass_number = static_cast<u32>(kernels_.size());
  kernels_.push_back(place);
}

void Targets::copies_came(const CopyKey& key) {
  const u32 place = copies_at(key);
  facts_.copies[place].pass_number = static_cast<u32>(copies_.size());
  copies_.push_back(place);
}

void Targets::context_came(i32 device) {
  const u32 pass_number = static_cast<u32>(contexts_.size());
  contexts_.push_back(static_cast<u32>(facts_.contexts.size()));
  facts_.contexts.push_back({device, pass_number});
}

void Targets::graph_is_gone(u64 exec) {
  const auto known = graphs_.find(exec);
  if (known == graphs_.end()) return;
  known->second.gone = true;
  gone_.push_back(exec);
  if (gone_.size() <= kMostGone) return;
  const auto oldest = graphs_.find(gone_.front());
  if (oldest != graphs_.end() && oldest->second.gone) graphs_.erase(oldest);
  gone_.pop_front();
}

void Targets::node_is(u64 exec, u64 node, u32 function, const KernelShape& shape) {
  Graph& graph = graphs_[exec];
  const auto [known, added] = graph.by_handle.try_emplace(node, static_cast<u32>(graph.nodes.size()));
  if (added) graph.nodes.emplace_back();
  Node& told = graph.nodes[known->second];
  told.function = function == kNone ? kNone : functions_[function];
  std::copy(shape.grid, shape.grid + 3, told.grid);
  std::copy(shape.block, shape.block + 3, told.block);
}

u32 Targets::clone_of(Graph& graph, const DeviceShape& shape) {
  const auto first = [&](auto symbol) {
    return std::find_if(graph.nodes.begin(), graph.nodes.end(), [&](const Node& each) {
      return !each.taken && each.function != kNone && facts_.functions[each.function].symbol == symbol &&
             std::equal(each.grid, each.grid + 3, shape.grid) && std::equal(each.block, each.block + 3, shape.block);
    });
  };
  auto found = first(shape.symbol);
  if (found == graph.nodes.end()) found = first(std::string_view());  // nobody named that function yet
  if (found == graph.nodes.end()) return kNone;
  found->taken = true;
  return static_cast<u32>(found - graph.nodes.begin());
}

// kNone: the graph is not known, or has no such node.
u32 Targets::function_in_graph(const DeviceShape& shape, const NodeNames& names) {
  const auto graph = names.exec ? graphs_.find(names.exec) : graphs_.end();
  if (graph == graphs_.end()) return kNone;
  if (const auto told = graph->second.by_handle.find(names.node); told != graph->second.by_handle.end())
    return graph->second.nodes[told->second].function;
  const auto [known, added] = graph->second.by_id.try_emplace(names.id, kNone);
  if (added) known->second = clone_of(graph->second, shape);
  return known->second == kNone ? kNone : graph->second.nodes[known->second].function;
}

// By the node, else by the symbol: the newest of that name. One that nobody named yet is made.
u32 Targets::function_of(const DeviceShape& shape, const NodeNames& names) {
  if (const u32 known = function_in_graph(shape, names); known != kNone) {
    learn_symbol(known, shape.symbol);
    return known;
  }
  const auto named = shape.symbol.empty() ? newest_by_symbol_.end() : newest_by_symbol_.find(shape.symbol);
  if (named != newest_by_symbol_.end()) return named->second;
  const u32 made = make_function(kNone);
  if (!shape.symbol.empty()) has_symbol(made, shape.symbol);
  return made;
}

// A context of that device: the newest one, else one that stands for all that we do not know.
u32 Targets::context_on(i32 device) {
  for (u32 i = static_cast<u32>(facts_.contexts.size()); i-- > 0;) {
    if (facts_.contexts[i].device == device) return i;
  }
  facts_.contexts.push_back({device, kNone});
  return static_cast<u32>(facts_.contexts.size() - 1);
}

u32 Targets::kernel_at(const KernelShape& shape) {
  const auto [known, added] = kernels_by_shape_.try_emplace(shape, static_cast<u32>(facts_.kernels.size()));
  if (added) facts_.kernels.emplace_back().shape = shape;
  return known->second;
}

u32 Targets::kernel_of(const DeviceShape& shape, u32 context, const NodeNames& names) {
  KernelShape known;
  known.function = function_of(shape, names);
  known.context = context != kNone ? contexts_[context] : context_on(shape.device);
  std::copy(shape.grid, shape.grid + 3, known.grid);
  std::copy(shape.block, shape.block + 3, known.block);
  if (context == kNone) std::copy(shape.cluster, shape.cluster + 3, known.cluster);  // nodes do not tell theirs
  known.dynamic_shared = shape.dynamic_shared;
  return kernel_at(known);
}

u32 Targets::copies_at(const CopyKey& key) {
  const auto known = std::find_if(facts_.copies.begin(), facts_.copies.end(),
                                  [&](const TimelineCopies& each) { return each.key == key; });
  if (known != facts_.copies.end()) return static_cast<u32>(known - facts_.copies.begin());
  facts_.copies.emplace_back().key = key;
  return static_cast<u32>(facts_.copies.size() - 1);
}

u32 Targets::copies_of(const DeviceShape& shape, bool in_graph) {
  HostMemory memory = shape.memory;
  if (in_graph) {  // as the pass counts the nodes of a replay
    const bool device_only = shape.transfer == TransferKind::Memset || shape.transfer == TransferKind::DtoD ||
                             shape.transfer == TransferKind::PtoP;
    memory = device_only ? HostMemory::Device : HostMemory::Unknown;
  }
  return copies_at({shape.transfer, memory, in_graph || shape.asynchronous, shape.device});
}

}  // namespace gputrace
