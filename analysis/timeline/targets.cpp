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
  ++named_;
  ++left_by_symbol_[symbol];
  const auto [newest, added] = newest_by_symbol_.try_emplace(symbol, function);
  if (!added) newest->second = std::max(newest->second, function);
}

void Targets::name_function(u32 function, std::string_view symbol) {
  const u32 place = functions_[function];
  if (facts_.functions[place].symbol.empty()) has_symbol(place, symbol);
}

void Targets::function_is_gone(u32 function) {
  const auto left = left_by_symbol_.find(facts_.functions[functions_[function]].symbol);
  if (left != left_by_symbol_.end() && left->second != 0) --left->second;
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

void Targets::graph_is_new(u64 exec, u32 version, bool own_nodes) {
  graph_is_gone(exec);
  newest_[exec] = version;
  graphs_[version].own_nodes = own_nodes;
}

void Targets::graph_is_gone(u64 exec) {
  const auto known = newest_.find(exec);
  const auto graph = known == newest_.end() ? graphs_.end() : graphs_.find(known->second);
  if (graph == graphs_.end() || graph->second.gone) return;
  graph->second.gone = true;
  gone_.push_back({exec, known->second});
  if (gone_.size() <= kMostGone) return;
  const Gone oldest = gone_.front();
  gone_.pop_front();
  graphs_.erase(oldest.version);
  const auto named = newest_.find(oldest.exec);
  if (named != newest_.end() && named->second == oldest.version) newest_.erase(named);
}

Targets::Graph* Targets::graph_of(const NodeNames& names) {
  u64 version = names.version;
  if (version == 0) {
    const auto newest = names.exec ? newest_.find(names.exec) : newest_.end();
    if (newest == newest_.end()) return nullptr;
    version = newest->second;
  }
  const auto graph = graphs_.find(version);
  return graph == graphs_.end() ? nullptr : &graph->second;
}

void Targets::node_is(u32 version, u64 node, u32 function, u32 origin) {
  const auto of = graphs_.find(version);
  if (of == graphs_.end()) return;
  Graph& graph = of->second;
  const NodeIs is{function == kNone ? kNone : functions_[function], origin};
  const auto [known, added] = graph.nodes.try_emplace(node, is);
  if (!added && known->second.function == is.function && known->second.origin == is.origin) return;
  known->second = is;
  graph.by_symbol.clear();
}

// What all nodes of functions of that name have in common. Function kNone: the graph has none; kSeveral: they are of more than one.
// One that nobody named yet may be any.
Targets::NodeIs Targets::nodes_called(Graph& graph, std::string_view symbol) const {
  if (graph.named != named_) graph.by_symbol.clear(), graph.named = named_;
  const auto [known, added] = graph.by_symbol.try_emplace(symbol, NodeIs{});
  NodeIs& all = known->second;
  if (!added) return all;
  for (const auto& [node, is] : graph.nodes) {
    if (is.function == kNone) continue;
    const std::string_view name = facts_.functions[is.function].symbol;
    if (!name.empty() && name != symbol) continue;
    if (all.function == kNone)
      all = is;
    else if (all.function != is.function)
      all.function = kSeveral;
    if (all.origin != is.origin) all.origin = 0;
  }
  return all;
}

// Function kNone: the graph is not known, or has no such node.
Targets::NodeIs Targets::in_graph(const DeviceShape& shape, const NodeNames& names) {
  Graph* const graph = graph_of(names);
  if (!graph) return {};
  const NodeIs* const told = graph->told(names.node);
  if (told && told->function != kNone) {
    // A node may have been given another function since.
    const std::string_view symbol = facts_.functions[told->function].symbol;
    if (symbol.empty() || symbol == shape.symbol) return *told;
  }
  return nodes_called(*graph, shape.symbol);
}

// Stands for all that have this name and may be one of several.
u32 Targets::unjoined_function(std::string_view symbol) {
  const auto [known, added] = unjoined_.try_emplace(symbol, kNone);
  if (added) {
    known->second = make_function(kNone);
    facts_.functions[known->second].symbol = symbol;
  }
  return known->second;
}

// By the node, else by the symbol: the newest of that name. One that nobody named yet is made.
u32 Targets::function_of(const DeviceShape& shape, const NodeNames& names) {
  const u32 known = in_graph(shape, names).function;
  if (known == kSeveral) return unjoined_function(shape.symbol);
  if (known != kNone) {
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
  const auto several = unjoined_.find(shape.symbol);
  const bool unjoined = several != unjoined_.end() && several->second == known.function;
  if (context == kNone) std::copy(shape.cluster, shape.cluster + 3, known.cluster);  // nodes do not tell theirs
  known.dynamic_shared = shape.dynamic_shared;
  const u32 place = kernel_at(known);
  facts_.kernels[place].unjoined = unjoined;
  return place;
}

u32 Targets::origin_of(const DeviceShape& shape, const NodeNames& names) {
  if (!shape.symbol.empty()) return in_graph(shape, names).origin;
  const Graph* const graph = graph_of(names);
  const NodeIs* const told = graph ? graph->told(names.node) : nullptr;
  return told ? told->origin : 0;
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
