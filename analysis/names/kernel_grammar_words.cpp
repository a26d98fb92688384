// The words that grammars share: tokens, tiles, types.
#include "analysis/names/kernel_grammars.h"

namespace gputrace::grammar {

std::vector<std::string_view> tokens_of(std::string_view text, char separator) {
  std::vector<std::string_view> tokens;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] != separator) continue;
    if (i > begin) tokens.push_back(text.substr(begin, i - begin));
    begin = i + 1;
  }
  return tokens;
}

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

bool is_tile(std::string_view text, std::size_t parts) {
  const auto numbers = tokens_of(text, 'x');
  if (numbers.size() < parts || text.empty() || text.back() == 'x' || text.front() == 'x') return false;
  for (const std::string_view number : numbers) {
    if (!is_number(number)) return false;
  }
  return text.find("xx") == std::string_view::npos;
}

std::string cute_tile(std::string_view text) {
  std::string tile;
  std::size_t parts = 0;
  for (std::size_t i = 0; i + 1 < text.size(); ++i) {
    const bool constant = text.substr(i, 2) == "C<" || text.substr(i, 2) == "::_" || text.substr(i, 2) == ", ";
    if (!constant) continue;
    std::size_t at = i + 2, end = at;
    while (end < text.size() && is_number(text.substr(end, 1))) ++end;
    if (end == at || (end < text.size() && text[end] != '>' && text[end] != ',' && text[end] != 'u')) continue;
    if (parts++) tile += "x";
    tile += text.substr(at, end - at);
  }
  return parts >= 2 && parts <= 4 ? tile : "";
}

std::string type_name(std::string_view text) {
  struct Spelling {
    std::string_view spelled, name;
  };
  static constexpr Spelling kSpellings[] = {
      {"f16", "f16"},
      {"fp16", "f16"},
      {"half", "f16"},
      {"__half", "f16"},
      {"half_t", "f16"},
      {"Half", "f16"},
      {"bf16", "bf16"},
      {"bfloat16_t", "bf16"},
      {"bfloat16", "bf16"},
      {"__nv_bfloat16", "bf16"},
      {"BFloat16", "bf16"},
      {"f32", "f32"},
      {"fp32", "f32"},
      {"float", "f32"},
      {"tf32", "tf32"},
      {"tfloat32_t", "tf32"},
      {"f64", "f64"},
      {"fp64", "f64"},
      {"double", "f64"},
      {"e4m3", "e4m3"},
      {"f8e4m3", "e4m3"},
      {"float_e4m3_t", "e4m3"},
      {"__nv_fp8_e4m3", "e4m3"},
      {"Float8_e4m3fn", "e4m3"},
      {"fp8e4m3", "e4m3"},
      {"e5m2", "e5m2"},
      {"f8e5m2", "e5m2"},
      {"float_e5m2_t", "e5m2"},
      {"__nv_fp8_e5m2", "e5m2"},
      {"Float8_e5m2", "e5m2"},
      {"fp8e5m2", "e5m2"},
      {"f8", "f8"},
      {"fp8", "f8"},
      {"f6", "f6"},
      {"f4", "f4"},
      {"fp4", "f4"},
      {"e2m1", "f4"},
      {"float_e2m1_t", "f4"},
      {"s8", "i8"},
      {"i8", "i8"},
      {"int8", "i8"},
      {"int8_t", "i8"},
      {"int8x4", "i8"},
      {"int8x32", "i8"},
      {"signed char", "i8"},
      {"char", "i8"},
      {"u8", "u8"},
      {"uint8", "u8"},
      {"uint8x4", "u8"},
      {"uint8_t", "u8"},
      {"unsigned char", "u8"},
      {"s4", "i4"},
      {"i4", "i4"},
      {"u4", "u4"},
      {"b1", "b1"},
      {"s32", "i32"},
      {"i32", "i32"},
      {"int32", "i32"},
      {"int32_t", "i32"},
      {"int", "i32"},
      {"u32", "u32"},
      {"unsigned int", "u32"},
      {"i64", "i64"},
      {"int64", "i64"},
      {"int64_t", "i64"},
      {"long", "i64"},
      {"u64", "u64"},
      {"unsigned long", "u64"},
      {"short", "i16"},
      {"bool", "bool"},
      {"ci8", "ci8"},
      {"cf32", "cf32"},
      {"complex<float>", "cf32"},
      {"cf64", "cf64"},
      {"complex<double>", "cf64"},
  };
  // The namespace, but not a template's argument: cutlass::half_t, c10::complex<float>.
  const std::size_t open = text.find('<');
  const std::size_t scope = text.substr(0, open).rfind("::");
  if (scope != std::string_view::npos) text.remove_prefix(scope + 2);
  for (const Spelling& each : kSpellings) {
    if (text == each.spelled) return std::string(each.name);
  }
  return "";
}

std::string type_of_letter(char letter) {
  switch (letter) {
    case 's':
      return "f32";
    case 'd':
      return "f64";
    case 'h':
      return "f16";
    case 't':
      return "bf16";
    case 'q':
      return "f8";
    case 'c':
      return "cf32";
    case 'z':
      return "cf64";
    case 'i':
      return "i32";
    default:
      return "";
  }
}

}  // namespace gputrace::grammar
