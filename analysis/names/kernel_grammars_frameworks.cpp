// Names of frameworks: PyTorch's at::native, Triton as TorchInductor names its kernels, attention kernels of many
// makers.
#include <algorithm>

#include "analysis/names/kernel_grammars.h"

namespace gputrace::grammar {
namespace {

bool contains(std::string_view text, std::string_view piece) { return text.find(piece) != std::string_view::npos; }

std::string first_type(const std::vector<std::string>& arguments) {
  for (const std::string& argument : arguments) {
    if (const std::string type = type_name(argument); !type.empty()) return type;
  }
  return "";
}

// The type behind leading numbers: what comes later may be an index type.
std::string leading_type(const std::vector<std::string>& arguments) {
  for (const std::string& argument : arguments) {
    if (!is_number(argument)) return type_name(argument);
  }
  return "";
}

}  // namespace

bool attention(const std::string&, KernelName& name) {
  const std::string words = words_of(name.parts.scope + name.parts.leaf);
  const std::string& body = name.parts.arguments.empty() ? name.parts.leaf : name.parts.arguments[0];
  const bool wrapped = name.parts.leaf == "device_kernel" && contains(body, "FlashAttn");
  const bool flash = contains(words, " flash fwd ") || contains(words, " flash bwd ") || wrapped;
  const bool fused = contains(words, " fmha ") || contains(words, " sdpa ");
  const bool paged =
      contains(words, " paged attention ") || contains(words, " paged kv") || contains(words, " ragged kv");
  if (!flash && !fused && !paged) return false;
  name.family = flash ? "flash" : contains(words, " cudnn ") ? "cudnn" : paged ? "paged" : "fmha";
  name.operation = "attention";
  const std::string where = wrapped ? words_of(body.substr(0, body.find("Collective"))) : words;
  if (contains(where, " fwd ") || contains(where, " fprop ") || contains(where, "cutlass f ") ||
      contains(where, " forward "))
    name.operation += " forward";
  else if (contains(where, " bwd ") || contains(where, " bprop ") || contains(where, "cutlass b ") ||
           contains(where, " backward "))
    name.operation += " backward";
  else if (contains(where, " prefill "))
    name.operation += " prefill";
  else if (contains(where, " decode "))
    name.operation += " decode";
  if (contains(words, " combine ")) name.detail = "combine";
  for (const std::string_view token : tokens_of(name.parts.leaf)) {
    if (name.types.input.empty()) name.types.input = type_name(token);
    if (name.tile.empty() && is_tile(token)) name.tile = std::string(token);
  }
  for (const char* traits : {"Flash_fwd_kernel_traits", "Flash_bwd_kernel_traits"}) {  // dim, M, N, warps, …, type
    const auto arguments = arguments_of(body, traits);
    if (arguments.size() < 4) continue;
    if (is_number(arguments[0])) name.detail = "dim " + arguments[0];
    if (is_number(arguments[1]) && is_number(arguments[2])) name.tile = arguments[1] + "x" + arguments[2];
    name.types.input = first_type(arguments);
  }
  for (const char* mainloop : {"CollectiveMainloopFwdSm90", "CollectiveMainloopBwdSm90", "CollectiveMainloopFwdSm80"}) {
    const auto arguments = arguments_of(body, mainloop);
    if (arguments.size() < 3) continue;
    name.types.input = first_type(arguments);
    name.tile = cute_tile(arguments[2]);
  }
  return true;
}

namespace {

// ATen operations whose names hold an underscore, longest first where one begins with another; all others are one word.
constexpr std::string_view kLongOperations[] = {"_native_batch_norm_legit_functional",
                                                "_native_batch_norm_legit",
                                                "_scaled_dot_product_flash_attention",
                                                "_scaled_dot_product_efficient_attention",
                                                "_unsafe_index_put",
                                                "_unsafe_index",
                                                "_unsafe_view",
                                                "_log_softmax",
                                                "_softmax",
                                                "_to_copy",
                                                "_foreach_add",
                                                "_scaled_mm",
                                                "native_layer_norm_backward",
                                                "native_layer_norm",
                                                "native_group_norm_backward",
                                                "native_group_norm",
                                                "native_batch_norm_backward",
                                                "native_batch_norm",
                                                "native_dropout_backward",
                                                "native_dropout",
                                                "embedding_dense_backward",
                                                "threshold_backward",
                                                "gelu_backward",
                                                "tanh_backward",
                                                "sigmoid_backward",
                                                "nll_loss_forward",
                                                "nll_loss_backward",
                                                "convolution_backward",
                                                "max_pool2d_with_indices_backward",
                                                "max_pool2d_with_indices",
                                                "avg_pool2d_backward",
                                                "avg_pool2d",
                                                "constant_pad_nd",
                                                "convert_element_type",
                                                "masked_fill",
                                                "new_zeros",
                                                "new_ones",
                                                "new_full",
                                                "ones_like",
                                                "zeros_like",
                                                "full_like",
                                                "slice_backward",
                                                "slice_scatter",
                                                "select_backward",
                                                "select_scatter",
                                                "index_select",
                                                "index_put",
                                                "index_add",
                                                "scatter_add",
                                                "clamp_min",
                                                "clamp_max",
                                                "bitwise_and",
                                                "bitwise_or",
                                                "bitwise_not",
                                                "logical_and",
                                                "logical_or",
                                                "logical_not",
                                                "var_mean",
                                                "mse_loss",
                                                "hard_swish",
                                                "leaky_relu",
                                                "layer_norm",
                                                "rms_norm",
                                                "batch_norm",
                                                "group_norm",
                                                "cross_entropy",
                                                "flex_attention",
                                                "prepare_softmax_online"};

// "add_native_layer_norm_relu": "add native_layer_norm relu".
std::string operations_of(std::string_view text) {
  std::string operations;
  const auto add = [&operations](std::string_view operation) {
    if (operation.empty()) return;
    if (!operations.empty()) operations += ' ';
    operations += operation;
  };
  std::size_t at = 0;
  while (at < text.size()) {
    std::string_view rest = text.substr(at);
    std::string_view taken;
    for (const std::string_view known : kLongOperations) {
      const bool ends = rest.size() == known.size() || (rest.size() > known.size() && rest[known.size()] == '_');
      if (rest.substr(0, known.size()) == known && ends && known.size() > taken.size()) taken = known;
    }
    if (taken.empty() && rest.front() == '_') {
      ++at;
      continue;
    }
    if (taken.empty()) taken = rest.substr(0, rest.find('_'));
    add(taken.front() == '_' ? taken.substr(1) : taken);
    at += taken.size();
    if (at < text.size()) ++at;  // the separator
  }
  return operations;
}

}  // namespace

// triton_poi_fused_add_relu_0, triton_red_fused__softmax_1, triton_per_fused_…, triton_tem_fused_mm_…,
// triton_for_fused_1.
bool triton(const std::string&, KernelName& name) {
  const auto tokens = tokens_of(name.parts.leaf);
  if (tokens.size() < 3 || tokens[0] != "triton") return false;
  struct Kind {
    std::string_view tag, operation;
  };
  static constexpr Kind kKinds[] = {{"poi", "pointwise"},       {"red", "reduction"}, {"per", "reduction"},
                                    {"tem", "template"},        {"for", "foreach"},   {"spl", "split scan"},
                                    {"mix", "mixed reduction"}, {"unk", "kernel"}};
  const auto kind =
      std::find_if(std::begin(kKinds), std::end(kKinds), [&](const Kind& each) { return each.tag == tokens[1]; });
  if (kind == std::end(kKinds)) return false;
  name.family = "triton";
  name.operation = std::string(kind->operation);
  if (tokens[1] == "per") name.detail = "persistent";
  std::string_view text = name.parts.leaf;
  text.remove_prefix(std::min<std::size_t>(text.size(), 11));  // "triton_poi_"
  std::string_view number;
  const std::size_t last = text.rfind('_');
  if (last != std::string_view::npos && is_number(text.substr(last + 1))) {
    number = text.substr(last + 1);
    text = text.substr(0, last);
  } else if (is_number(text)) {
    number = text;
    text = {};
  }
  if (text.substr(0, 6) == "fused_") text.remove_prefix(6);
  if (text == "fused") text = {};
  const std::string operations = operations_of(text);
  if (!operations.empty()) name.operation += " " + operations;
  if (!number.empty()) name.detail += (name.detail.empty() ? "#" : " #") + std::string(number);
  return true;
}

namespace {

bool is_identifier(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// "LayerNormForward" is "layer_norm_forward".
std::string snake(std::string_view text) {
  const std::string words = words_of(text);
  std::string out(words, 1, words.size() > 2 ? words.size() - 2 : 0);
  std::replace(out.begin(), out.end(), ' ', '_');
  return out;
}

// The operation in a functor's name: "CUDAFunctor_add", "MulFunctor", "exp_kernel_cuda", "GeluCUDAKernelImpl",
// "sum_functor", "MeanOps". Empty: the name is none, or only wraps another.
std::string operation_in(std::string_view identifier) {
  static constexpr std::string_view kWrappers[] = {"BinaryFunctor", "AUnaryFunctor", "BUnaryFunctor",
                                                   "UnaryFunctor",  "ReduceOp",      "TensorListMetadata",
                                                   "OpaqueType",    "CompareFunctor"};
  if (std::find(std::begin(kWrappers), std::end(kWrappers), identifier) != std::end(kWrappers)) return "";
  for (const std::string_view front : {"CUDAFunctor_", "CUDAFunctorOnSelf_", "CUDAFunctorOnOther_", "launch_"}) {
    if (identifier.size() > front.size() && identifier.substr(0, front.size()) == front)
      return snake(identifier.substr(front.size()));
  }
  for (const std::string_view back : {"CUDAKernelImpl", "MathFunctor", "KernelImpl", "_kernel_cuda", "_kernel_impl",
                                      "_cuda_kernel", "_functor", "Functor", "Ops"}) {
    if (identifier.size() <= back.size() || identifier.substr(identifier.size() - back.size()) != back) continue;
    const std::string operation = snake(identifier.substr(0, identifier.size() - back.size()));
    return operation == "direct_copy" ? "copy" : operation;
  }
  return "";
}

struct Functor {
  std::string operation, type;
};

// The innermost telling identifier: wrappers come first, what they wrap behind them.
Functor functor_in(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    if (!is_identifier(text[i])) {
      ++i;
      continue;
    }
    std::size_t end = i;
    while (end < text.size() && is_identifier(text[end])) ++end;
    Functor found{operation_in(text.substr(i, end - i)), ""};
    if (!found.operation.empty()) {
      if (end < text.size() && text[end] == '<')
        found.type = first_type(arguments_of(text.substr(i), text.substr(i, end - i)));
      if (const std::size_t lambda = text.find("{lambda(", end);
          found.type.empty() && lambda != std::string_view::npos) {
        for (std::size_t at = lambda; at != std::string_view::npos; at = text.find("{lambda(", at + 1)) {
          const std::string_view parameters = text.substr(at + 8, text.substr(at + 8).find_first_of(",)"));
          if (found.type.empty()) found.type = type_name(parameters);
        }
      }
      return found;
    }
    i = end;
  }
  return {};
}

}  // namespace

// at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >.
bool pytorch(const std::string&, KernelName& name) {
  if (name.parts.scope.compare(0, 4, "at::") != 0) return false;
  name.family = "pytorch";
  std::string all;
  for (const std::string& argument : name.parts.arguments) all += argument + ", ";
  const Functor functor = functor_in(all);
  static constexpr std::string_view kGeneric[] = {"vectorized_elementwise_kernel",
                                                  "unrolled_elementwise_kernel",
                                                  "elementwise_kernel",
                                                  "elementwise_kernel_with_index",
                                                  "reduce_kernel",
                                                  "multi_tensor_apply_kernel",
                                                  "vectorized_templated_elementwise_kernel",
                                                  "legacy::elementwise_kernel",
                                                  "elementwise_kernel_manual_unroll"};
  const bool generic = std::find(std::begin(kGeneric), std::end(kGeneric), name.parts.leaf) != std::end(kGeneric);
  const std::string what = contains(name.parts.leaf, "reduce")         ? "reduce "
                           : contains(name.parts.leaf, "multi_tensor") ? "foreach "
                                                                       : "";
  if (generic) {
    if (functor.operation.empty()) return false;
    name.operation = what + functor.operation;
    name.detail = "(" + name.parts.leaf + ")";
  } else {
    name.operation = snake(name.parts.leaf);
    for (const char* tail : {"_kernel", "_cuda"}) {
      const std::string_view end = tail;
      if (name.operation.size() > end.size() && name.operation.substr(name.operation.size() - end.size()) == end)
        name.operation.resize(name.operation.size() - end.size());
    }
  }
  name.types.input = functor.type;
  if (name.types.input.empty()) name.types.input = leading_type(name.parts.arguments);
  return true;
}

}  // namespace gputrace::grammar
