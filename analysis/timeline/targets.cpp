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

void Targets::node_is(u64 exec, u64 node, u32 function) {
  Graph& graph = graphs_[exec];
  const u32 place = function == kNone ? kNone : functions_[function];
  const auto [known, added] = graph.functions.try_emplace(node, place);
  if (!added && known->second == place) return;
  known->second = place;
  graph.by_symbol.clear();
}

// kNone: the graph has none of that name; kSeveral: it has more than one. One that nobody named yet may be any.
u32 Targets::function_called(Graph& graph, std::string_view symbol) const {
  if (graph.named != named_) graph.by_symbol.clear(), graph.named = named_;
  const auto [known, added] = graph.by_symbol.try_emplace(symbol, kNone);
  if (!added) return known->second;
  for (const auto& [node, function] : graph.functions) {
    if (function == kNone) continue;
    const std::string_view name = facts_.functions[function].symbol;
    if (!name.empty() && name != symbol) continue;
    if (known->second != kNone && known->second != function) return known->second = kSeveral;
    known->second = function;
  }
  return known->second;
}

// kNone: the graph is not known, or has no such node.
u32 Targets::function_in_graph(const DeviceShape& shape, const NodeNames& names) {
  const auto graph = names.exec ? graphs_.find(names.exec) : graphs_.end();
  if (graph == graphs_.end()) return kNone;
  const auto told = graph->second.functions.find(names.node);
  if (told != graph->second.functions.end() && told->second != kNone) {
    // A node may have been given another function since.
    const std::string_view symbol = facts_.functions[told->second].symbol;
    if (symbol.empty() || symbol == shape.symbol) return told->second;
  }
  return function_called(graph->second, shape.symbol);
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
  const u32 known = function_in_graph(shape, names);
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
