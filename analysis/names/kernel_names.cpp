#include "analysis/names/kernel_names.h"

#include "analysis/names/demangle.h"
#include "analysis/names/kernel_grammars.h"

namespace gputrace {
namespace {

// nvcc names a kernel with internal linkage __nv_static_NN__HASH_FILE__Z…: the name proper is behind.
std::string without_static_prefix(const std::string& symbol) {
  if (symbol.compare(0, 12, "__nv_static_") != 0) return symbol;
  const std::size_t at = symbol.find("__Z", 12);
  return at == std::string::npos ? symbol : symbol.substr(at + 1);
}

std::string joined(std::initializer_list<std::string> words) {
  std::string text;
  for (const std::string& word : words) {
    if (word.empty()) continue;
    if (!text.empty()) text += ' ';
    text += word;
  }
  return text;
}

std::string brief_of(const KernelName& name) {
  if (!name.family.empty() && !name.operation.empty())
    return joined({name.family, name.operation, name.tile, types_text(name.types), name.layout, name.detail});
  return name.parts.scope + name.parts.leaf + (name.parts.is_template ? "<…>" : "");
}

}  // namespace

std::string types_text(const NamedTypes& types) {
  std::string text = types.input;
  if (!types.arithmetic.empty() && types.arithmetic != types.input)
    text += text.empty() ? types.arithmetic : " as " + types.arithmetic;
  if (!types.output.empty() && types.output != types.input) text += "→" + types.output;
  return text;
}

KernelName parse_kernel_name(const std::string& symbol) {
  KernelName name;
  const std::string proper = without_static_prefix(symbol);
  name.full = demangle(proper);
  if (name.full == proper && proper != symbol) name.full = symbol;
  name.parts = split_cpp_name(name.full);
  if (name.parts.leaf.empty()) name.parts.leaf = name.full;
  for (const auto grammar :
       {grammar::nccl, grammar::nvjet, grammar::xmma, grammar::attention, grammar::cutlass_symbol,
        grammar::cutlass_templates, grammar::chip_prefix, grammar::triton, grammar::pytorch, grammar::fft}) {
    KernelName read = name;
    if (!grammar(proper, read)) continue;
    name = std::move(read);
    break;
  }
  name.brief = brief_of(name);
  return name;
}

}  // namespace gputrace
