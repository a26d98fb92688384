// PTX that nobody compiled yet: the matrix instructions and the floating-point arithmetic that its text names, by kernel
// and the functions it calls.
#include <algorithm>
#include <unordered_map>

#include "cubin/sass_code.h"

namespace gputrace {
namespace {

constexpr std::size_t kMaxReached = 4096;  // functions that one kernel may reach

bool is_colon_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$' ||
         c == '%' || c == '.' || c == ':';
}

// Words (with their colons: kind::f16) and single signs; comments and strings are skipped. Empty at the end.
class Words {
 public:
  explicit Words(std::string_view text) : text_(text) {}

  std::string_view next() {
    while (at_ < text_.size() && text_[at_] != '\0') {
      const char c = text_[at_];
      if (c == ' ' || (c >= '\t' && c <= '\r')) {
        ++at_;
      } else if (c == '"') {
        at_ = after(text_.find('"', at_ + 1), 1);
      } else if (text_.substr(at_, 2) == "//") {
        at_ = after(text_.find('\n', at_), 1);
      } else if (text_.substr(at_, 2) == "/*") {
        at_ = after(text_.find("*/", at_ + 2), 2);
      } else {
        const std::size_t begin = at_++;
        while (is_colon_word(c) && at_ < text_.size() && is_colon_word(text_[at_])) ++at_;
        return text_.substr(begin, at_ - begin);
      }
    }
    return {};
  }

 private:
  std::size_t after(std::size_t found, std::size_t length) const {
    return found == std::string_view::npos ? text_.size() : found + length;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

std::uint64_t type_bit(std::string_view part) {
  struct Row {
    std::string_view part;
    std::uint64_t bit;
  };
  static constexpr Row kTypes[] = {
      {"f64", kFp64}, {"tf32", kTf32}, {"bf16", kBf16}, {"f16", kFp16}, {"e4m3", kFp8}, {"e5m2", kFp8},
      {"e3m2", kFp6}, {"e2m3", kFp6},  {"e2m1", kFp4},  {"s8", kInt8},  {"u8", kInt8},  {"s4", kInt4},
      {"u4", kInt4},  {"b1", kB1},     {"f32", kFp32},  {"s32", 0},
  };
  for (const Row& row : kTypes) {
    if (row.part == part) return row.bit;
  }
  return UINT64_MAX;
}

// The types that an instruction's suffix names, in order (accumulators among them).
std::vector<std::uint64_t> types_of(std::string_view word) {
  std::vector<std::uint64_t> types;
  while (!word.empty()) {
    const std::size_t dot = word.find('.');
    const std::uint64_t bit = type_bit(word.substr(0, dot));
    if (bit != UINT64_MAX) types.push_back(bit);
    word = dot == std::string_view::npos ? std::string_view{} : word.substr(dot + 1);
  }
  return types;
}

void tcgen05(std::string_view word, CodeFacts& facts) {
  const std::size_t at = word.find("kind::");
  const std::string_view kind = at == std::string_view::npos ? word : word.substr(at + 6, word.find('.', at) - at - 6);
  if (kind == "f16" || kind == "tf32") facts.mma |= kUtchmma;
  if (kind == "i8") facts.mma |= kUtcimma;
  if (kind == "f8f6f4" || kind == "mxf8f6f4") facts.mma |= kUtcqmma;
  if (kind == "mxf4" || kind == "mxf4nvf4") facts.mma |= kUtcomma;
  if (kind == "tf32") {
    facts.precision |= kTf32;
  } else if (kind == "i8") {
    facts.precision |= kInt8;
  } else if (kind.starts_with("mxf4")) {
    facts.precision |= kFp4;
  } else {
    facts.flags |= kCodePrecisionPart;  // in a descriptor
  }
}

std::uint64_t class_of(std::uint64_t inputs, bool warp_group, bool block_fp4) {
  if (inputs & kFp64) return kDmma;
  if (inputs & kB1) return warp_group ? kBgmma : kBmma;
  if (inputs & (kInt8 | kInt4)) return warp_group ? kIgmma : kImma;
  if (block_fp4) return kOmma;
  if (inputs & (kFp8 | kFp6 | kFp4)) return warp_group ? kQgmma : kQmma;
  return warp_group ? kHgmma : kHmma;
}

void matrix(std::string_view word, CodeFacts& facts) {
  if (word.starts_with("tcgen05")) return tcgen05(word, facts);
  const std::vector<std::uint64_t> types = types_of(word);
  const bool warp_group = word.starts_with("wgmma");
  std::uint64_t inputs = 0;
  if (types.size() >= 3) {
    inputs = types[1] | types[2];
  } else if (types.size() == 2) {
    inputs = kFp16;  // wmma names only the accumulators where the inputs are f16
  }
  if (inputs == 0 || (inputs & kFp32) != 0) {
    facts.flags |= kCodePrecisionPart;
    inputs = 0;
  }
  facts.mma |= class_of(inputs, warp_group, word.find("kind::mxf4") != std::string_view::npos);
  facts.precision |= inputs;
}

// Arithmetic, by the type that its name ends in.
void arithmetic(std::string_view word, CodeFacts& facts) {
  static constexpr std::string_view kNames[] = {"add", "sub",  "mul",   "fma", "mad", "div", "rcp", "min",
                                                "max", "sqrt", "rsqrt", "sin", "cos", "lg2", "ex2", "tanh"};
  const std::string_view name = word.substr(0, word.find('.'));
  if (std::find(std::begin(kNames), std::end(kNames), name) == std::end(kNames)) return;
  const std::string_view type = word.substr(word.rfind('.') + 1);
  facts.fp64 += type == "f64";
  facts.fp32 += type == "f32";
  facts.fp16 += type == "f16" || type == "f16x2";
  facts.bf16 += type == "bf16" || type == "bf16x2";
}

void instruction(std::string_view word, CodeFacts& facts) {
  if (word.starts_with("mma.") || word.starts_with("wmma.mma.") || word.starts_with("wgmma.mma_async.") ||
      word.starts_with("tcgen05.mma.")) {
    matrix(word, facts);
  } else if (word.starts_with("cp.async.bulk.") || word.starts_with("cp.reduce.async.bulk.")) {
    if (!word.starts_with("cp.async.bulk.commit") && !word.starts_with("cp.async.bulk.wait")) {
      facts.flags |= kCodeTma;
    }
  } else if (word.starts_with("cp.async.c")) {  // .ca .cg, and not commit_group
    if (!word.starts_with("cp.async.commit")) facts.flags |= kCodeAsyncCopy;
  } else if (word.find('.') != std::string_view::npos) {
    arithmetic(word, facts);
  }
}

struct Function {
  std::string_view name;
  bool kernel = false;
  bool body = false;
  CodeFacts facts;
  std::vector<std::string_view> calls;  // an empty name: through a pointer
};

class PtxFunctions {
 public:
  explicit PtxFunctions(std::string_view text) : words_(text) {}

  std::vector<Function> read() {
    for (word_ = words_.next(); !word_.empty();) {
      if (word_ == ".entry" || word_ == ".func") {
        read_function(word_ == ".entry");
      } else {
        word_ = words_.next();
      }
    }
    return std::move(functions_);
  }

 private:
  void skip_group() {  // at its '('
    for (int depth = 0; !word_.empty(); word_ = words_.next()) {
      if (word_ == "(") ++depth;
      if (word_ == ")" && --depth == 0) {
        word_ = words_.next();
        return;
      }
    }
  }

  void read_function(bool kernel) {
    Function function;
    function.kernel = kernel;
    word_ = words_.next();
    if (word_ == "(") skip_group();
    function.name = word_;
    while (!word_.empty() && word_ != "{" && word_ != ";") word_ = words_.next();
    if (word_ == "{") {
      function.body = true;
      read_body(function);
    }
    functions_.push_back(std::move(function));
  }

  void read_body(Function& function) {
    int depth = 0;
    while (!word_.empty()) {
      if (word_ == "{") ++depth;
      if (word_ == "}" && --depth == 0) return;
      if (word_ == "call" || word_.starts_with("call.")) {
        word_ = words_.next();
        if (word_ == "(") {
          skip_group();
          if (word_ == ",") word_ = words_.next();
        }
        function.calls.push_back(word_.starts_with("%") ? std::string_view{} : word_);
        continue;
      }
      instruction(word_, function.facts);
      word_ = words_.next();
    }
  }

  Words words_;
  std::string_view word_;
  std::vector<Function> functions_;
};

bool is_called_system_function(std::string_view name) {
  return name == "vprintf" || name == "malloc" || name == "free" || name == "__assertfail" ||
         name.starts_with("cuda") || name.starts_with("cnp");
}

}  // namespace

std::vector<PtxMmaFacts> scan_ptx(std::string_view text) {
  const std::vector<Function> functions = PtxFunctions(text).read();
  std::unordered_map<std::string_view, const Function*> bodies;
  for (const Function& function : functions) {
    if (function.body) bodies.emplace(function.name, &function);
  }
  std::vector<PtxMmaFacts> kernels;
  for (const Function& kernel : functions) {
    if (!kernel.kernel || !kernel.body) continue;
    PtxMmaFacts& result = kernels.emplace_back();
    result.kernel = kernel.name;
    std::vector<const Function*> reached{&kernel};
    for (std::size_t i = 0; i < reached.size(); ++i) {
      result.facts.add(reached[i]->facts);
      for (const std::string_view callee : reached[i]->calls) {
        const auto body = bodies.find(callee);
        if (body == bodies.end() || reached.size() >= kMaxReached) {
          result.incomplete |= body != bodies.end() || !is_called_system_function(callee);
        } else if (std::find(reached.begin(), reached.end(), body->second) == reached.end()) {
          reached.push_back(body->second);
        }
      }
    }
  }
  return kernels;
}

}  // namespace gputrace
