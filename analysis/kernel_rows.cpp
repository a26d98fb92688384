#include "analysis/kernel_rows.h"

#include <cstdio>

#include "analysis/demangle.h"

namespace gputrace {

std::string image_key(const ProcessTrace& process, u32 module) {
  if (module == kNone) return "";
  const ModuleInstance& instance = process.modules[module];
  if (instance.hash) return "hash " + std::to_string(instance.hash);
  if (instance.bytes)
    return "size " + std::to_string(instance.bytes) + " " + std::to_string(static_cast<u32>(instance.image));
  return "process " + std::to_string(process.who.pid) + " module " + std::to_string(module);
}

Value symbol_of(const Function& function) { return function.symbol.empty() ? Value() : Value(function.symbol); }

std::string display_name(const Function& function) {
  if (!function.symbol.empty()) return demangle(function.symbol);
  char text[48];
  std::snprintf(text, sizeof text, "(function 0x%llx)", static_cast<unsigned long long>(function.handle));
  return text;
}

}  // namespace gputrace
