#include "analysis/names/cpp_name.h"

#include <algorithm>

namespace gputrace {
namespace {

bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
char to_lower(char c) { return is_upper(c) ? static_cast<char>(c - 'A' + 'a') : c; }

bool opens(char c) { return c == '<' || c == '(' || c == '{' || c == '['; }
bool closes(char c) { return c == '>' || c == ')' || c == '}' || c == ']'; }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// The arguments between `begin` (just behind a '<') and its '>'.
std::vector<std::string> arguments_from(std::string_view text, std::size_t begin) {
  std::vector<std::string> arguments;
  int depth = 0;
  std::size_t start = begin;
  for (std::size_t i = begin; i < text.size(); ++i) {
    const char c = text[i];
    const bool last = depth == 0 && c == '>';
    if (last || (depth == 0 && c == ',')) {
      const std::string_view piece = trimmed(text.substr(start, i - start));
      if (!piece.empty()) arguments.emplace_back(piece);
      start = i + 1;
      if (last) break;
    } else if (opens(c)) {
      ++depth;
    } else if (closes(c) && depth > 0) {
      --depth;
    }
  }
  return arguments;
}

// Where the parameter list begins, or the end. "(anonymous namespace)" is a name.
std::size_t parameters_at(std::string_view text) {
  constexpr std::string_view kAnonymous = "(anonymous namespace)";
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (depth == 0 && text[i] == '(') {
      if (text.substr(i, kAnonymous.size()) != kAnonymous) return i;
      i += kAnonymous.size() - 1;
    } else if (opens(text[i])) {
      ++depth;
    } else if (closes(text[i]) && depth > 0) {
      --depth;
    }
  }
  return text.size();
}

// Namespaces that only say which version or file something comes from.
bool is_noise(std::string_view scope) {
  const auto ends = [scope](std::string_view end) {
    return scope.size() >= end.size() && scope.substr(scope.size() - end.size()) == end;
  };
  return scope == "(anonymous namespace)" || ends("_NS") || scope.substr(0, 10) == "_GLOBAL__N";
}

}  // namespace

CppName split_cpp_name(std::string_view demangled) {
  CppName name;
  const std::string_view text = demangled.substr(0, parameters_at(demangled));
  int depth = 0;
  std::string part;
  const auto component_ends = [&] {
    if (!part.empty() && !is_noise(part)) name.scope += part + "::";
    part.clear();
    name.arguments.clear();
  };
  constexpr std::string_view kAnonymous = "(anonymous namespace)";
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (depth == 0 && text.substr(i, kAnonymous.size()) == kAnonymous) {
      part = kAnonymous;
      i += kAnonymous.size() - 1;
    } else if (opens(c)) {
      if (depth++ == 0) {
        name.is_template = name.is_template || c == '<';
        if (c == '<') name.arguments = arguments_from(text, i + 1);
      }
    } else if (closes(c)) {
      if (depth > 0) --depth;
    } else if (depth == 0 && c == ' ') {  // what stood before was the return type
      name = {};
      part.clear();
    } else if (depth == 0 && c == ':' && i + 1 < text.size() && text[i + 1] == ':') {
      component_ends();
      ++i;
    } else if (depth == 0) {
      part += c;
    }
  }
  name.leaf = part;
  return name;
}

std::vector<std::string> arguments_of(std::string_view text, std::string_view name) {
  std::size_t at = 0;
  while ((at = text.find(name, at)) != std::string_view::npos) {
    const std::size_t behind = at + name.size();
    const bool whole =
        at == 0 || !(is_lower(text[at - 1]) || is_upper(text[at - 1]) || is_digit(text[at - 1]) || text[at - 1] == '_');
    if (whole && behind < text.size() && text[behind] == '<') return arguments_from(text, behind + 1);
    at = behind;
  }
  return {};
}

std::string words_of(std::string_view text) {
  std::string words = " ";
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (!is_lower(c) && !is_upper(c) && !is_digit(c)) {
      if (words.back() != ' ') words += ' ';
      continue;
    }
    const char before = i ? text[i - 1] : ' ';
    const char after = i + 1 < text.size() ? text[i + 1] : ' ';
    const bool starts = is_upper(c) && (is_lower(before) || (is_upper(before) && is_lower(after)));
    if (starts && words.back() != ' ') words += ' ';
    words += to_lower(c);
  }
  if (words.back() != ' ') words += ' ';
  return words;
}

}  // namespace gputrace
