#include "analysis/pass/function_table.h"

#include <algorithm>

namespace gputrace {

void FunctionTable::module_loaded(const ModuleLoad& load) {
  ModuleInstance module;
  module.handle = load.module;
  module.bytes = load.bytes;
  module.hash = load.image_hash;
  module.path = copy_of(texts_.find(load.path));
  module.image = static_cast<ImageKind>(load.image);
  module.what = static_cast<ModuleAct>(load.what);
  if (const u32 before = module_of(load.module); before != kNone) forget(before);
  modules_by_handle_[load.module] = {static_cast<u32>(modules_.size()), load.header.end};
  modules_.push_back(std::move(module));
}

// A module that nobody loaded by a call of its own (cuLibraryGetModule) gets its entry here.
void FunctionTable::has_image(const CodeImage& image) {
  if (image.module == 0) return;
  if (module_of(image.module) == kNone) {
    modules_by_handle_[image.module] = {static_cast<u32>(modules_.size()), 0};
    ModuleInstance module;
    module.handle = image.module;
    module.bytes = image.bytes;
    module.path = copy_of(texts_.find(image.path));
    module.image = static_cast<ImageKind>(image.kind);
    modules_.push_back(std::move(module));
  }
  std::vector<u64>& images = modules_[module_of(image.module)].images;
  if (std::find(images.begin(), images.end(), image.image) == images.end()) images.push_back(image.image);
}

void FunctionTable::module_unloaded(u64 module, Ticks begin) {
  const auto it = modules_by_handle_.find(module);
  if (it == modules_by_handle_.end() || it->second.since > begin) return;
  forget(it->second.module);
  modules_by_handle_.erase(it);
}

// What its handles meant.
void FunctionTable::forget(u32 gone) {
  for (auto it = by_handle_.begin(); it != by_handle_.end();) {
    const bool of_it = functions_[it->second].module == gone;
    if (of_it) timeline_.function_is_gone(it->second), ++version_;
    it = of_it ? by_handle_.erase(it) : std::next(it);
  }
  last_index_ = kNone;
}

u32 FunctionTable::module_of(u64 handle) const {
  const auto it = modules_by_handle_.find(handle);
  return it == modules_by_handle_.end() ? kNone : it->second.module;
}

std::string FunctionTable::copy_of(std::string_view name) {
  name = name.substr(0, kMostNameBytes);
  if (name.size() > name_bytes_) return std::string(name.substr(0, kCutNameBytes));
  name_bytes_ -= name.size();
  return std::string(name);
}

u32 FunctionTable::make(u64 handle) {
  const u32 index = static_cast<u32>(functions_.size());
  functions_.emplace_back().handle = handle;
  symbols_.emplace_back();
  timeline_.function_came();
  by_handle_[handle] = index;
  ++version_;
  last_handle_ = handle;
  last_index_ = index;
  return index;
}

u32 FunctionTable::find(u64 handle) {
  if (handle == last_handle_ && last_index_ != kNone) return last_index_;
  const auto it = by_handle_.find(handle);
  if (it == by_handle_.end()) return make(handle);
  last_handle_ = handle;
  last_index_ = it->second;
  return it->second;
}

u32 FunctionTable::entry_for(u64 handle, std::string_view symbol, u32 module) {
  const u32 index = find(handle);
  const Function& known = functions_[index];
  const bool other_name = !known.symbol.empty() && !symbol.empty() && known.symbol != symbol;
  const bool other_module = known.module != kNone && module != kNone && known.module != module;
  return other_name || other_module ? make(handle) : index;
}

void FunctionTable::give_symbol(u32 function, std::string_view symbol) {
  if (!symbols_[function].empty() || symbol.empty()) return;
  symbols_[function] = symbol;
  functions_[function].symbol = copy_of(symbol);
  timeline_.name_function(function, symbol);
}

void FunctionTable::named(const FunctionGet& get) {
  if (get.header.result != 0 || get.function == 0) return;
  const std::string_view symbol = texts_.find(get.name);
  u32 module = module_of(get.module);
  // A CUfunction made from a CUkernel belongs to the kernel's library, and may take its name from it.
  const auto parent = by_handle_.find(get.module);
  const bool from_kernel = module == kNone && parent != by_handle_.end() && get.module != get.function;
  if (from_kernel) module = functions_[parent->second].module;
  const std::string_view name = !symbol.empty() || !from_kernel ? symbol : symbols_[parent->second];
  const u32 function = entry_for(get.function, name, module);
  give_symbol(function, name);
  if (functions_[function].module == kNone) functions_[function].module = module;
}

void FunctionTable::described(const FunctionFacts& facts) {
  if (facts.function == 0) return;
  const std::string_view symbol = texts_.find(facts.name);
  const u32 index = entry_for(facts.function, symbol, kNone);
  give_symbol(index, symbol);
  Function& function = functions_[index];
  function.registers =
      facts.registers > 0 ? facts.registers : -1;  // no compiled kernel has 0: PTX that nobody compiled
  function.static_shared = facts.static_shared_bytes;
  function.local_bytes = facts.registers > 0 ? facts.local_bytes : -1;
  function.max_threads = facts.max_threads;
  function.ptx_version = facts.ptx_version;
  function.binary_version = facts.binary_version;
}

}  // namespace gputrace
