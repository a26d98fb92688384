// Names of the vendor's libraries: cuBLAS, cuDNN, cuFFT, CUTLASS, NCCL. Read off the libraries of CUDA 13 and public
// traces; the cases are in tests/unit/data/kernel_names.tsv.
#include <algorithm>

#include "analysis/names/kernel_grammars.h"

namespace gputrace::grammar {
namespace {

using Tokens = std::vector<std::string_view>;

bool begins(std::string_view text, std::string_view prefix) { return text.substr(0, prefix.size()) == prefix; }
bool has(const Tokens& tokens, std::string_view word) {
  return std::find(tokens.begin(), tokens.end(), word) != tokens.end();
}
// Only of these letters, and that many.
bool made_of(std::string_view text, std::string_view letters, std::size_t size) {
  return text.size() == size && text.find_first_not_of(letters) == std::string_view::npos;
}

std::string with(std::string text, const std::string& word) { return text.empty() ? word : text + " " + word; }

// "f16f32": two types in one word.
bool two_types(std::string_view text, std::string& first, std::string& second) {
  for (std::size_t i = 2; i + 2 <= text.size(); ++i) {
    first = type_name(text.substr(0, i));
    second = type_name(text.substr(i));
    if (!first.empty() && !second.empty()) return true;
  }
  return false;
}

// "s16816gemm": accumulator, shape of the MMA instruction (none: no Tensor Cores), operation.
struct Core {
  bool valid = false;
  std::string letter, shape, operation;
};
Core core_of(std::string_view token, std::initializer_list<std::string_view> operations) {
  Core core;
  for (const std::string_view operation : operations) {
    if (token.size() <= operation.size() || token.substr(token.size() - operation.size()) != operation) continue;
    std::string_view front = token.substr(0, token.size() - operation.size());
    if (front.size() > 1 && front[0] == 'g' && !is_number(front.substr(1, 1))) front.remove_prefix(1);  // gauss: gcgemm
    if (front.empty() || std::string_view("shdczi").find(front[0]) == std::string_view::npos) continue;
    const std::string_view shape = front.substr(1);
    if (!shape.empty() && !is_number(shape) && !is_tile(shape)) continue;
    core = {true, std::string(front.substr(0, 1)), std::string(shape), std::string(operation)};
    return core;
  }
  return core;
}

std::string conv(std::string_view what) { return "conv " + std::string(what); }

}  // namespace

bool nccl(const std::string&, KernelName& name) {
  const std::string& leaf = name.parts.leaf;
  const Tokens tokens = tokens_of(leaf);
  if (leaf == "oneRankReduce") {
    name.family = "nccl";
    name.operation = "one-rank reduce";
    return true;
  }
  if (tokens.size() < 2 || !begins(tokens[0], "nccl") || tokens[0].find("Kernel") == std::string_view::npos)
    return false;
  name.family = "nccl";
  name.operation = std::string(tokens[1]);
  for (std::size_t i = 2; i < tokens.size(); ++i) {
    const std::string type = type_name(tokens[i]);
    const bool reduction = words_of(tokens[i]) == " sum " || words_of(tokens[i]) == " prod " ||
                           words_of(tokens[i]) == " max " || words_of(tokens[i]) == " min " ||
                           words_of(tokens[i]) == " min max " || words_of(tokens[i]) == " avg " ||
                           begins(words_of(tokens[i]), " pre mul sum") || begins(words_of(tokens[i]), " sum post div");
    if (!type.empty())
      name.types.input = type;
    else if (reduction)
      name.operation += " " + std::string(tokens[i]);
    else if (!is_number(tokens[i]))
      name.detail = with(name.detail, std::string(tokens[i]));
  }
  return true;
}

// nvjet_sm90_hsh_128x256_64x4_1x2_h_bz_coopA_NTT: types, tile M x N, K x stages, cluster, schedule, layouts.
bool nvjet(const std::string&, KernelName& name) {
  const Tokens tokens = tokens_of(name.parts.leaf);
  if (tokens.size() < 4 || tokens[0] != "nvjet") return false;
  std::size_t at = begins(tokens[1], "sm") && is_number(tokens[1].substr(2)) ? 2 : 1;
  name.family = "nvjet";
  name.operation = "gemm";
  const std::string_view types = tokens[at];
  if (types.size() == 3) {  // operands, accumulator, result
    name.types.input = type_of_letter(types[0]);
    name.types.accumulator = type_of_letter(types[1]);
    name.types.output = type_of_letter(types[2]);
  } else if (types.size() == 5) {  // A, B, C, accumulator, D
    name.types.input = type_of_letter(types[0]);
    name.types.accumulator = type_of_letter(types[3]);
    name.types.output = type_of_letter(types[4]);
  }
  for (++at; at < tokens.size(); ++at) {
    if (is_tile(tokens[at])) break;
  }
  if (at < tokens.size()) name.tile = std::string(tokens[at]);
  if (at + 1 < tokens.size() && is_tile(tokens[at + 1]))
    name.tile += "x" + std::string(tokens[at + 1].substr(0, tokens[at + 1].find('x')));
  if (made_of(tokens.back(), "NT", 3) || made_of(tokens.back(), "NT", 2)) name.layout = std::string(tokens.back());
  if (has(tokens, "splitK")) name.detail = "split-k";
  return true;
}

// sm90_xmma_gemm_f16f32_f16f32_f32_nn_n_tilesize128x128x64_…: [in memory in, out] [multiplied, summed] [epilogue].
bool xmma(const std::string&, KernelName& name) {
  const Tokens tokens = tokens_of(name.parts.leaf);
  if (tokens.size() < 4 || !begins(tokens[0], "sm") || !is_number(tokens[0].substr(2)) || tokens[1] != "xmma")
    return false;
  name.family = "xmma";
  std::string words, first, second;
  std::size_t at = 2;
  for (; at < tokens.size() && !two_types(tokens[at], first, second); ++at)
    words = with(words, std::string(tokens[at]));
  name.operation = words;
  for (const char* direction : {"fprop", "dgrad", "wgrad"}) {
    if (words.find(direction) == std::string::npos) continue;
    name.operation = conv(direction);
    if (words.find("depthwise") != std::string::npos) name.operation = "depthwise " + name.operation;
  }
  if (at < tokens.size()) {
    name.types.input = first;
    name.types.output = second;
    if (at + 1 < tokens.size() && two_types(tokens[at + 1], first, second)) {
      name.types.arithmetic = first;
      name.types.accumulator = second;
    }
  }
  for (std::size_t i = at; i < tokens.size(); ++i) {
    if (begins(tokens[i], "tilesize") && is_tile(tokens[i].substr(8))) name.tile = std::string(tokens[i].substr(8));
    if (made_of(tokens[i], "ntc", 2) && name.layout.empty()) name.layout = std::string(tokens[i]);
    if (tokens[i] == "nhwc" || tokens[i] == "nchw" || tokens[i] == "ndhwc") name.layout = std::string(tokens[i]);
  }
  if (name.parts.leaf.find("split_k") != std::string::npos) name.detail = "split-k";
  if (name.parts.leaf.find("segment_k_on") != std::string::npos) name.detail = "segment-k";
  return true;
}

namespace {

// The part behind "cutlass_": [80] [wmma] tensorop [f16] s16816gemm [words] [f16] 128x256_32x3 nn align8.
bool read_cutlass(const Tokens& tokens, KernelName& name) {
  const auto operations = {std::string_view("gemm"),  std::string_view("fprop"), std::string_view("dgrad"),
                           std::string_view("wgrad"), std::string_view("syrk"),  std::string_view("trmm"),
                           std::string_view("symm"),  std::string_view("herk"),  std::string_view("implicit"),
                           std::string_view("")};
  std::size_t at = 1;
  Core core;
  for (; at < tokens.size(); ++at) {
    core = core_of(tokens[at], operations);
    const bool bare = core.valid && core.operation.empty();  // s128x64x16_conv2d_fprop: only where a tile is there
    if (core.valid && (!bare || is_tile(core.shape, 3))) break;
    if (at > 1 && !type_name(tokens[at]).empty()) name.types.output = type_name(tokens[at]);
  }
  if (at == tokens.size()) return false;
  const bool third = begins(tokens[0], "cutlass3x");
  name.family = "cutlass";
  name.operation = core.operation;
  for (const char* direction : {"fprop", "dgrad", "wgrad"}) {
    if (core.operation == direction || has(tokens, direction)) name.operation = conv(direction);
  }
  name.types.accumulator = type_of_letter(core.letter[0]);
  std::vector<std::string> types;
  std::size_t tile = tokens.size();
  for (std::size_t i = at + 1; i < tokens.size(); ++i) {
    const bool is_mma_tile = i == at + 1 && third && !is_tile(tokens[i], 3);
    if (is_tile(tokens[i]) && !is_mma_tile) {
      tile = i;
      break;
    }
    std::string_view word = tokens[i];
    if (word.substr(0, 2) == "ue" && word.find('x') != std::string_view::npos) word.remove_prefix(word.find('x') + 1);
    if (word == "void" || !type_name(word).empty()) types.emplace_back(type_name(word));
  }
  const bool simt = has(tokens, "simt");
  if (!types.empty()) name.types.input = types[0];
  if (types.empty() && (simt || core.letter == "h" || core.letter == "d")) name.types.input = name.types.accumulator;
  if (third && types.size() >= 3 && !types[2].empty()) name.types.accumulator = types[2];
  if (third && types.size() >= 4) name.types.output = types[types.size() >= 5 ? 4 : 3];
  if (name.types.output.empty() && !third && !name.types.input.empty() && types.size() < 2 &&
      (core.letter == "h" || core.letter == "d" || simt))
    name.types.output = name.types.input;
  if (tile < tokens.size()) {
    name.tile = std::string(tokens[tile]);
    if (!is_tile(tokens[tile], 3) && tile + 1 < tokens.size() && is_tile(tokens[tile + 1]))
      name.tile += "x" + std::string(tokens[tile + 1].substr(0, tokens[tile + 1].find('x')));
  }
  for (const std::string_view token : tokens) {
    if (made_of(token, "ntc", 2) || (third && made_of(token, "nt", 3))) name.layout = std::string(token);
    if (token == "nhwc" || token == "ndhwc" || token == "nchw") name.layout = std::string(token);
  }
  if (has(tokens, "splitk") || name.parts.leaf.find("split_k") != std::string::npos) name.detail = "split-k";
  if (has(tokens, "stream") && has(tokens, "k")) name.detail = "stream-k";
  return true;
}

}  // namespace

bool cutlass_symbol(const std::string&, KernelName& name) {
  std::string_view subject = name.parts.leaf;
  if (!begins(subject, "cutlass")) {
    const bool wrapped = begins(name.parts.scope, "cutlass") && !name.parts.arguments.empty();
    if (!wrapped || !begins(name.parts.arguments[0], "cutlass_")) return false;
    subject = name.parts.arguments[0];
  }
  return read_cutlass(tokens_of(subject), name);
}

namespace {

std::string direction_of(std::string_view text) {
  const std::size_t at = text.find("conv::Operator)");
  if (at == std::string_view::npos || at + 15 >= text.size()) return "conv";
  switch (text[at + 15]) {
    case '0':
      return conv("fprop");
    case '1':
      return conv("dgrad");
    case '2':
      return conv("wgrad");
    default:
      return "conv";
  }
}

}  // namespace

bool cutlass_templates(const std::string&, KernelName& name) {
  if (name.parts.scope.compare(0, 7, "cutlass") != 0 || name.parts.arguments.empty()) return false;
  const std::string& body = name.parts.arguments[0];
  const bool convolution = body.find("::conv::") != std::string::npos;
  auto main = arguments_of(body, convolution ? "CollectiveConv" : "CollectiveMma");
  if (main.size() >= 3) {  // CUTLASS 3
    name.family = "cutlass";
    name.operation = convolution ? direction_of(body) : "gemm";
    name.tile = cute_tile(main[1]);
    name.types.input = type_name(main[2]);
    const auto epilogue = arguments_of(body, "CollectiveEpilogue");
    if (epilogue.size() >= 6) name.types.output = type_name(epilogue[5]);
    return true;
  }
  const auto shape = arguments_of(body, "GemmShape");
  if (shape.size() != 3) return false;
  name.family = "cutlass";
  name.operation = convolution ? direction_of(body) : "gemm";
  name.tile = shape[0] + "x" + shape[1] + "x" + shape[2];
  const auto iterator = arguments_of(body, "PredicatedTileIterator");
  if (iterator.size() >= 2) name.types.input = type_name(iterator[1]);
  return name.tile.find_first_not_of("0123456789x") == std::string::npos;
}

// ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_stages_64x6_tn, _5x_cudnn_volta_scudnn_128x32_relu_small_nn_v1:
// chip, [output], core, [input], tile, …, layout.
bool chip_prefix(const std::string&, KernelName& name) {
  std::string_view subject = name.parts.leaf;
  const bool fifth = begins(subject, "_5x_cudnn_");
  if (fifth) subject.remove_prefix(10);
  const Tokens tokens = tokens_of(subject);
  if (tokens.size() < 3) return false;
  bool chip = false;
  for (const char* known : {"maxwell", "pascal", "volta", "turing", "ampere", "ada", "hopper", "blackwell"})
    chip = chip || tokens[0] == known;
  if (!chip) return false;
  Core core;
  std::size_t at = 1;
  for (; at < tokens.size(); ++at) {
    core = core_of(tokens[at], {"gemm", "cudnn"});
    if (core.valid) break;
    if (!type_name(tokens[at]).empty()) name.types.output = type_name(tokens[at]);
  }
  if (at == tokens.size()) return false;
  const bool convolution = core.operation == "cudnn";
  name.family = convolution || fifth ? "cudnn" : "cublas";
  name.operation = convolution ? conv(has(tokens, "dgrad")   ? "dgrad"
                                      : has(tokens, "wgrad") ? "wgrad"
                                                             : "fprop")
                               : "gemm";
  name.types.accumulator = type_of_letter(core.letter[0]);
  if (at + 1 < tokens.size()) name.types.input = type_name(tokens[at + 1]);
  // Without a word for it the letter is the operands' type too, but for MMA into fp32, where it may be any.
  if (name.types.input.empty() && !(core.letter == "s" && !core.shape.empty()))
    name.types.input = name.types.accumulator;
  if (name.types.output.empty()) name.types.output = name.types.accumulator;
  for (const std::string_view token : tokens) {
    if (name.tile.empty() && is_tile(token)) name.tile = std::string(token);
    if (made_of(token, "ntc", 2)) name.layout = std::string(token);
  }
  if (has(tokens, "splitK")) name.detail = "split-k";
  if (has(tokens, "relu")) name.detail = with(name.detail, "relu");
  return true;
}

bool fft(const std::string&, KernelName& name) {
  const Tokens tokens = tokens_of(name.parts.leaf);
  const auto at = std::find(tokens.begin(), tokens.end(), std::string_view("fft"));
  if (at == tokens.end() || !name.parts.scope.empty() || !name.parts.is_template) return false;
  name.family = "cufft";
  name.operation = "fft";
  if (at + 1 != tokens.end() && ((at[1] == "r2c") || (at[1] == "c2r"))) name.operation += " " + std::string(at[1]);
  if (at != tokens.begin()) name.detail = std::string(tokens[0]);
  if (!name.parts.arguments.empty()) {
    const std::string& length = name.parts.arguments[0];
    const std::size_t digits = length.find_first_not_of("0123456789");
    if (digits) name.tile = length.substr(0, digits);
  }
  return true;
}

}  // namespace gputrace::grammar
