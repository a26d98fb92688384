// PTX: what its declarations say, no more: kernels with parameters and limits, globals with their initial data, and
// the shared memory that a kernel declares or names. Instructions are skipped.
#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <unordered_map>

#include "cubin/bytes.h"

namespace gputrace {
namespace {

constexpr std::uint64_t kMaxVariableBytes = std::uint64_t{1} << 40;
constexpr std::size_t kMaxInitBytes = std::size_t{256} << 20;

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$' ||
         c == '%' || c == '.';
}

// Words (identifiers, numbers, directives with their dot), strings with their quotes, and single signs.
class Tokens {
 public:
  explicit Tokens(std::string_view text) : text_(text) { advance(); }

  std::string_view now() const { return now_; }  // empty at the end
  bool at_end() const { return now_.empty(); }

  std::string_view take() {
    const std::string_view token = now_;
    advance();
    return token;
  }

  bool accept(std::string_view token) {
    if (now_ != token) return false;
    advance();
    return true;
  }

 private:
  void advance() {
    skip_blanks();
    if (at_ >= text_.size() || text_[at_] == '\0') {
      now_ = {};
      at_ = text_.size();
      return;
    }
    const std::size_t begin = at_++;
    if (text_[begin] == '"') {
      while (at_ < text_.size() && text_[at_] != '"') ++at_;
      at_ = std::min(at_ + 1, text_.size());
    } else if (is_word(text_[begin])) {
      while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    }
    now_ = text_.substr(begin, at_ - begin);
  }

  void skip_blanks() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == ' ' || (c >= '\t' && c <= '\r')) {
        ++at_;
      } else if (text_.substr(at_, 2) == "//") {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (text_.substr(at_, 2) == "/*") {
        const std::size_t end = text_.find("*/", at_ + 2);
        at_ = end == std::string_view::npos ? text_.size() : end + 2;
      } else {
        return;
      }
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string_view now_;
};

// The bits of a PTX literal: integers of any base, 0fXXXXXXXX, 0dXXXXXXXXXXXXXXXX. Nothing for anything else.
std::optional<std::uint64_t> literal(std::string_view token) {
  if (token.empty() || token[0] < '0' || token[0] > '9' || token.size() > 80) return std::nullopt;
  int base = 10;
  std::string digits(token);
  while (!digits.empty() && (digits.back() == 'U' || digits.back() == 'u')) digits.pop_back();
  if (digits.size() > 1 && digits[0] == '0') {
    const char mark = digits[1];
    const bool hex = mark == 'x' || mark == 'X' || mark == 'f' || mark == 'F' || mark == 'd' || mark == 'D';
    const bool binary = mark == 'b' || mark == 'B';
    base = hex ? 16 : binary ? 2 : 8;
    digits.erase(0, hex || binary ? 2 : 1);
  }
  char* end = nullptr;
  const std::uint64_t value = std::strtoull(digits.c_str(), &end, base);
  if (digits.empty() || *end != '\0') return std::nullopt;
  return value;
}

// A decimal fraction as the bits of a float or double; 0 for anything else.
std::uint64_t decimal_bits(std::string_view token, std::uint32_t element_bytes) {
  const std::string text(token.substr(0, 80));
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || *end != '\0') return 0;
  if (element_bytes == 8) return std::bit_cast<std::uint64_t>(value);
  return element_bytes == 4 ? std::bit_cast<std::uint32_t>(static_cast<float>(value)) : 0;
}

std::uint32_t type_bytes(std::string_view type) {
  struct Row {
    std::string_view type;
    std::uint32_t bytes;
  };
  static constexpr std::array<Row, 27> kTypes{
      {{".b8", 1},     {".u8", 1},         {".s8", 1},      {".pred", 1},  {".b16", 2},  {".u16", 2}, {".s16", 2},
       {".f16", 2},    {".bf16", 2},       {".b32", 4},     {".u32", 4},   {".s32", 4},  {".f32", 4}, {".tf32", 4},
       {".f16x2", 4},  {".bf16x2", 4},     {".b64", 8},     {".u64", 8},   {".s64", 8},  {".f64", 8}, {".f32x2", 8},
       {".texref", 8}, {".samplerref", 8}, {".surfref", 8}, {".b128", 16}, {".e4m3", 1}, {".e5m2", 1}}};
  for (const Row& row : kTypes) {
    if (row.type == type) return row.bytes;
  }
  return 0;
}

std::uint64_t align_up(std::uint64_t value, std::uint64_t alignment) {
  return alignment <= 1 ? value : (value + alignment - 1) / alignment * alignment;
}

struct Variable {
  std::string_view name;
  std::uint32_t element_bytes = 0;
  std::uint32_t alignment = 1;
  std::uint64_t bytes = 0;
  bool managed = false;
  std::vector<std::byte> init;
};

class PtxReader {
 public:
  explicit PtxReader(std::string_view text) : in_(text) {}

  std::optional<CodeModule> read(std::string* why) {
    module_.kind = ContainerKind::kPtx;
    bool versioned = false;
    bool external = false;
    while (!in_.at_end()) {
      const std::string_view token = in_.take();
      if (token == ".version") versioned = true;
      if (token == ".target") read_target();
      if (token == ".extern") external = true;
      if (token == ".entry" && !read_entry()) {
        explain(why, "a kernel declaration in the PTX text is broken");
        return std::nullopt;
      }
      if (token == ".func" || token == ".section") skip_statement();
      if (token == ".global" || token == ".const" || token == ".shared") read_module_variables(token, external);
      if (token == ";" || token == ".entry" || token == ".func" || token == ".global" || token == ".const" ||
          token == ".shared") {
        external = false;
      }
    }
    if (versioned && module_.sm.number != 0) return std::move(module_);
    explain(why, "not a PTX text");
    return std::nullopt;
  }

 private:
  void read_target() {
    const std::string_view name = in_.take();
    if (name.substr(0, 3) != "sm_") return;
    std::uint32_t number = 0;
    std::size_t i = 3;
    for (; i < name.size() && i < 8 && name[i] >= '0' && name[i] <= '9'; ++i) {
      number = number * 10 + static_cast<std::uint32_t>(name[i] - '0');
    }
    module_.sm.number = number;
    if (name.substr(i) == "a") module_.sm.variant = SmVariant::kArchitecture;
    if (name.substr(i) == "f") module_.sm.variant = SmVariant::kFamily;
  }

  // Just after `{`: past the matching `}`. False at the end of the text.
  template <typename Visit>
  bool skip_block(Visit&& visit) {
    for (int depth = 1; !in_.at_end();) {
      const std::string_view token = in_.take();
      if (token == "{") ++depth;
      if (token == "}" && --depth == 0) return true;
      visit(token);
    }
    return false;
  }

  // A declaration up to its `;`, or a definition with its block.
  void skip_statement() {
    while (!in_.at_end()) {
      const std::string_view token = in_.take();
      if (token == ";") return;
      if (token == "{") {
        skip_block([](std::string_view) {});
        return;
      }
    }
  }

  // After the state space: `.align 8 .b8 name[4][2] = {…}`; stops at what follows it.
  std::optional<Variable> read_variable() {
    Variable variable;
    std::uint32_t lanes = 1;
    bool aligned = false;
    while (!in_.at_end() && in_.now()[0] == '.') {
      const std::string_view word = in_.take();
      if (word == ".align") {
        const auto value = literal(in_.take());
        if (!value || *value == 0 || *value > 4096) return std::nullopt;
        if (!aligned || !after_pointer_) variable.alignment = static_cast<std::uint32_t>(*value);
        aligned = true;
      } else if (word == ".ptr") {
        after_pointer_ = true;  // the alignment that follows is the target's, not the parameter's
        aligned = true;
      } else if (word == ".attribute") {
        while (!in_.at_end() && in_.now() != ")") variable.managed |= in_.take() == ".managed";
        in_.accept(")");
      } else if (word == ".v2" || word == ".v4" || word == ".v8") {
        lanes = static_cast<std::uint32_t>(word[2] - '0');
      } else if (const std::uint32_t bytes = type_bytes(word)) {
        variable.element_bytes = bytes;
      }
    }
    after_pointer_ = false;
    variable.name = in_.take();
    if (variable.element_bytes == 0 || variable.name.empty() || !is_word(variable.name[0])) return std::nullopt;
    variable.alignment = std::max(variable.alignment, variable.element_bytes * lanes);
    return read_extent(variable, lanes) ? std::optional<Variable>(std::move(variable)) : std::nullopt;
  }

  bool read_extent(Variable& variable, std::uint32_t lanes) {
    std::uint64_t count = lanes;
    bool open = false;
    while (in_.accept("[")) {
      if (in_.accept("]")) {
        open = true;
        continue;
      }
      const auto n = literal(in_.take());
      if (!n || !in_.accept("]") || (*n != 0 && count > kMaxVariableBytes / *n)) return false;
      count *= *n;
    }
    if (count > kMaxVariableBytes / variable.element_bytes) return false;
    variable.bytes = open ? 0 : count * variable.element_bytes;
    if (!in_.accept("=")) return true;
    std::vector<std::byte> data;
    if (!read_initializer(variable.element_bytes, data)) return false;
    if (open) variable.bytes = data.size();
    if (variable.bytes > kMaxInitBytes || data.size() > variable.bytes) return false;
    data.resize(static_cast<std::size_t>(variable.bytes));
    variable.init = std::move(data);
    return true;
  }

  // Elements in order; an element that is not a number (an address) counts as zero: the linker would know it.
  bool read_initializer(std::uint32_t element_bytes, std::vector<std::byte>& data) {
    int depth = 0;
    bool negative = false;
    bool pending = false;
    std::uint64_t value = 0;
    const auto flush = [&] {
      if (!pending) return;
      const std::uint64_t bits = negative ? ~value + 1 : value;
      for (std::uint32_t i = 0; i < element_bytes; ++i) {
        data.push_back(i < 8 ? static_cast<std::byte>(bits >> (8 * i)) : std::byte{0});
      }
      pending = negative = false;
      value = 0;
    };
    while (!in_.at_end() && data.size() < kMaxInitBytes) {
      const std::string_view token = in_.now();
      if (depth == 0 && (token == ";" || token == ",")) {
        flush();
        return true;
      }
      in_.take();
      if (token == "{" || token == "(") ++depth;
      if (token == "}" || token == ")") --depth;
      if (token == "," || token == "}") flush();
      if (token == "-") negative = true;
      if (is_word(token[0])) {
        pending = true;
        value = literal(token).value_or(decimal_bits(token, element_bytes));
      }
    }
    return false;
  }

  void read_module_variables(std::string_view space, bool external) {
    std::optional<Variable> variable = read_variable();
    if (variable && !external) {
      if (space == ".shared") {
        shared_[variable->name].bytes = variable->bytes;
      } else {
        add_global(*variable, space == ".const");
      }
    }
    while (!in_.at_end() && in_.now() != ";") in_.take();
  }

  void add_global(Variable& variable, bool constant) {
    if (constant) {
      const std::uint64_t end = align_up(module_.const_bytes, variable.alignment) + variable.bytes;
      module_.const_bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(end, UINT32_MAX));
    }
    module_.globals.push_back(
        {std::string(variable.name), variable.bytes, constant, variable.managed, std::move(variable.init)});
  }

  bool read_entry() {
    if (in_.at_end() || !is_word(in_.now()[0]) || module_.kernels.size() >= kMaxKernels) return false;
    ImageKernel kernel;
    kernel.symbol = in_.take();
    if (in_.accept("(") && !read_parameters(kernel)) return false;
    while (!in_.at_end() && in_.now() != "{" && in_.now() != ";") read_limit(kernel);
    if (in_.accept(";")) return true;  // declared only
    if (!in_.accept("{")) return false;
    if (!read_body(kernel)) return false;
    module_.kernels.push_back(std::move(kernel));
    return true;
  }

  bool read_parameters(ImageKernel& kernel) {
    while (!in_.accept(")")) {
      if (in_.at_end()) return false;
      if (in_.accept(",")) continue;
      if (!in_.accept(".param")) return false;
      const auto parameter = read_variable();
      if (!parameter || kernel.parameters.size() >= kMaxParameters || parameter->bytes > 65536) return false;
      const std::uint64_t offset = align_up(kernel.parameter_bytes, parameter->alignment);
      if (offset > (1 << 20)) return false;
      kernel.parameters.push_back({static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(parameter->bytes)});
      kernel.parameter_bytes = static_cast<std::uint32_t>(offset + parameter->bytes);
    }
    return true;
  }

  void read_limit(ImageKernel& kernel) {
    const std::string_view word = in_.take();
    const bool limit = word == ".maxntid", block = word == ".reqntid", cluster = word == ".reqnctapercluster";
    if (!limit && !block && !cluster) return;
    std::uint32_t n[3] = {1, 1, 1};
    for (std::size_t i = 0; i < 3; ++i) {
      const auto value = literal(in_.now());
      if (!value || *value > 65536) break;
      n[i] = static_cast<std::uint32_t>(*value);
      in_.take();
      if (!in_.accept(",")) break;
    }
    const std::uint64_t product = std::uint64_t{n[0]} * n[1] * n[2];
    if (limit && product <= 65536) kernel.max_threads = static_cast<std::uint32_t>(product);
    if (block) std::copy(n, n + 3, kernel.required_block);
    if (cluster) std::copy(n, n + 3, kernel.required_cluster);
  }

  bool read_body(ImageKernel& kernel) {
    std::uint64_t shared = 0;
    bool external = false;
    const bool whole = skip_block([&](std::string_view token) {
      if (token == ".shared") {
        if (const auto variable = read_variable(); variable && !external) {
          shared = align_up(shared, variable->alignment) + variable->bytes;
        }
      }
      external = token == ".extern";
      const auto used = shared_.empty() ? shared_.end() : shared_.find(token);
      if (used == shared_.end() || used->second.last_user == module_.kernels.size()) return;
      used->second.last_user = module_.kernels.size();
      shared = align_up(shared, 16) + used->second.bytes;
    });
    kernel.static_shared_bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(shared, UINT32_MAX));
    return whole;
  }

  struct Shared {
    std::uint64_t bytes = 0;
    std::size_t last_user = SIZE_MAX;  // the kernel, by its place, that was the last to name it
  };

  Tokens in_;
  bool after_pointer_ = false;
  std::unordered_map<std::string_view, Shared> shared_;  // of the whole module
  CodeModule module_;
};

}  // namespace

std::optional<CodeModule> read_ptx(std::string_view text, std::string* why) { return PtxReader(text).read(why); }

}  // namespace gputrace
