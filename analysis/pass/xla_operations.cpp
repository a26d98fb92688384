#include "analysis/pass/xla_operations.h"

#include <algorithm>

namespace gputrace {
namespace {

constexpr u32 kNoName = 0xffffffffu;             // no operation
constexpr u32 kCompiler = 0xfffffffeu;           // none either: XLA compiles a module
constexpr std::size_t kMostMessages = 1u << 17;  // of which it is remembered what they stand for
constexpr std::size_t kMostNameBytes = 512;

// The value of "key=value" between the '#' of a message; values end at the next key. Empty: it has none.
std::string_view value_of(std::string_view facts, std::string_view key) {
  for (std::size_t at = facts.find(key); at != std::string_view::npos; at = facts.find(key, at + 1)) {
    if (at != 0 && facts[at - 1] != ',') continue;
    const std::string_view rest = facts.substr(at + key.size());
    // A name may hold commas ("jit(f)/a[0,1]"): the value goes on until a comma that a key follows.
    for (std::size_t comma = rest.find(','); comma != std::string_view::npos; comma = rest.find(',', comma + 1)) {
      const std::size_t equals = rest.find_first_not_of("abcdefghijklmnopqrstuvwxyz_", comma + 1);
      if (equals != std::string_view::npos && equals != comma + 1 && rest[equals] == '=') return rest.substr(0, comma);
    }
    return rest;
  }
  return {};
}

// "XlaCompile:#module=jit_step#" → "jit_step"
std::string compiled_module(std::string_view message) {
  const std::size_t from = message.find('#'), to = message.rfind('#');
  if (from == to) return "";
  const std::string_view module = value_of(message.substr(from + 1, to - from - 1), "module=");
  return std::string(xla_function(module).substr(0, kMostNameBytes));
}

}  // namespace

std::string xla_operation(std::string_view message) {
  const std::size_t colon = message.find(":#");
  if (colon == std::string_view::npos || message.back() != '#' || message.size() < colon + 3) return "";
  const std::string_view kind = message.substr(0, colon);
  const std::string_view facts = message.substr(colon + 2, message.size() - colon - 3);
  if (kind == "XlaModule") return std::string(xla_function(value_of(facts, "hlo_module=")).substr(0, kMostNameBytes));
  if (kind != "Thunk") return "";
  std::string name(value_of(facts, "hlo_op=").substr(0, kMostNameBytes));
  const std::string_view of_framework = value_of(facts, "name=").substr(0, kMostNameBytes);
  if (!name.empty() && !of_framework.empty()) name += " (" + std::string(of_framework) + ")";
  return name;
}

u32 XlaOperations::name_of(u64 message) {
  const auto known = messages_.find(message);
  if (known != messages_.end()) return known->second;
  const std::string_view whole = texts_.find(message);
  const std::string text = told_ ? xla_operation(whole) : "";
  u32 name = whole.rfind("XlaCompile:#", 0) == 0 ? kCompiler : kNoName;
  if (!text.empty() && names_.size() < kMost) {
    const auto [place, fresh] = places_.emplace(text, static_cast<u32>(names_.size()));
    if (fresh) names_.push_back(text);
    name = place->second;
  }
  if (messages_.size() < kMostMessages) messages_.emplace(message, name);
  return name;
}

u32 XlaOperations::operation_of(u32 parent, u32 name) {
  const u64 key = static_cast<u64>(parent) << 32 | name;
  const auto known = by_names_.find(key);
  if (known != by_names_.end()) return known->second;
  if (made_.size() == kMost) return 0;
  const u32 number = kFirst + static_cast<u32>(made_.size());
  made_.push_back({parent, name, {}});
  by_names_.emplace(key, number);
  return number;
}

u32 XlaOperations::innermost(u32 thread) const {
  const std::vector<Open>& open = open_[thread];
  const auto found = std::find_if(open.rbegin(), open.rend(), [](const Open& each) { return each.operation != 0; });
  return found == open.rend() ? 0 : found->operation;
}

bool XlaOperations::add(const Nvtx& value, u32 thread, Nanos at, bool counted) {
  const auto what = static_cast<NvtxAct>(value.what);
  if (what != NvtxAct::Push && what != NvtxAct::Pop) return false;
  const auto domain = domains_.find(value.domain);
  const bool ours = domain != domains_.end() ? domain->second : texts_.find(value.domain) == "TSL";
  if (domain == domains_.end() && domains_.size() < kMostMessages) domains_.emplace(value.domain, ours);
  if (!ours) return false;
  std::vector<Open>& open = open_[thread];
  if (what == NvtxAct::Push) {
    constexpr std::size_t kDeepest = kDeepestFrame;
    const u32 name = open.size() < kDeepest ? name_of(value.message) : kNoName;
    const u32 operation = name == kNoName || name == kCompiler ? 0 : operation_of(innermost(thread), name);
    open.push_back({at, 0, value.message, operation, counted && !(value.flags & kNvtxOpenBefore), name == kCompiler});
    compiling_[thread] += name == kCompiler;
    return operation != 0;
  }
  if (open.empty()) return false;
  const Open ended = open.back();
  open.pop_back();
  if (ended.compiles && --compiling_[thread] == 0 && ended.counted && compiled_.size() < kMost)
    compiled_.push_back({ended.begin, at, thread, compiled_module(texts_.find(ended.message))});
  if (ended.operation == 0) return false;
  const u64 length = static_cast<u64>(std::max<Nanos>(0, at - ended.begin));
  const auto around = std::find_if(open.rbegin(), open.rend(), [](const Open& each) { return each.operation != 0; });
  if (around != open.rend()) around->within_ns += length;
  if (ended.counted) {
    OperationTotals& totals = made_[ended.operation - kFirst].totals;
    ++totals.count;
    totals.total_ns += length;
    totals.self_ns += length - std::min(length, ended.within_ns);
  }
  return true;
}

void XlaOperations::finish(SourceLines& lines) {
  if (made_.empty()) return;
  if (lines.frames.empty()) lines.frames.emplace_back();  // the first one stands for none
  const u32 base = static_cast<u32>(lines.frames.size());
  // Of frames that were lost the number may be one that is given now.
  const auto place = [base](u32 number) {
    if (number < kFirst) return number < base ? number : 0;
    return base + (number - kFirst);
  };
  for (const Made& made : made_) {  // callers come first
    SourceFrame& frame = lines.frames.emplace_back();
    frame.function = names_[made.name];
    frame.parent = place(made.parent);
    frame.xla = true;
  }
  lines.operations.resize(base);
  lines.operations.resize(lines.frames.size());
  for (u32 i = 0; i < made_.size(); ++i) lines.operations[base + i] = made_[i].totals;
  for (CallOrigin& origin : lines.origins) origin = {place(origin.frame), place(origin.operation)};
}

}  // namespace gputrace
