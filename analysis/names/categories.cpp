#include "analysis/names/categories.h"

#include <string.h>

#include <algorithm>

namespace gputrace {
namespace {

enum class Looked { Family, Operation, Name, Arguments, Library, Code };

struct Rule {
  Category category;
  Looked at;
  std::string_view text;
};

constexpr Rule kRules[] = {
#define GT_CATEGORY(category, at, text, why) {Category::category, Looked::at, text},
#include "analysis/names/categories.def"
};

struct Subject {
  const KernelName& name;
  const KernelEvidence& evidence;
  std::string words, argument_words;
};

bool begins(std::string_view text, std::string_view prefix) { return text.substr(0, prefix.size()) == prefix; }

// Whole words: "converting_copy" does not begin with "conv".
bool begins_with_words(std::string_view text, std::string_view words) {
  if (!begins(text, words)) return false;
  const char next = text.size() > words.size() ? text[words.size()] : ' ';
  return next < 'a' || next > 'z';
}

// Up to where a name is looked at. memmem, because its time is that of the text: words that begin alike do not add to it.
constexpr std::size_t kLookedAt = 4096;
bool has(const std::string& text, std::string_view words) {
  return ::memmem(text.data(), std::min(text.size(), kLookedAt), words.data(), words.size()) != nullptr;
}

bool holds(const Rule& rule, const Subject& subject) {
  switch (rule.at) {
    case Looked::Family:
      return subject.name.family == rule.text;
    case Looked::Operation:
      return begins_with_words(subject.name.operation, rule.text);
    case Looked::Name:
      return has(subject.words, rule.text);
    case Looked::Arguments:
      return has(subject.argument_words, rule.text);
    case Looked::Library:
      return !subject.evidence.library.empty() && begins(subject.evidence.library, rule.text);
    case Looked::Code:
      return subject.evidence.has_mma;
  }
  return false;
}

std::string said(const Rule& rule) {
  std::string_view text = rule.text;
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  const std::string quoted = "\"" + std::string(text) + "\"";
  switch (rule.at) {
    case Looked::Family:
      return "a kernel of " + std::string(text);
    case Looked::Operation:
      return "its name's grammar says " + quoted;
    case Looked::Name:
      return "its name has " + quoted;
    case Looked::Arguments:
      return "its template arguments have " + quoted;
    case Looked::Library:
      return "launched by " + std::string(text);
    case Looked::Code:
      return "its code has matrix-multiply instructions";
  }
  return quoted;
}

}  // namespace

const char* category_name(Category category) {
  switch (category) {
    case Category::Gemm:
      return "gemm";
    case Category::Convolution:
      return "convolution";
    case Category::Attention:
      return "attention";
    case Category::Reduction:
      return "normalization/reduction";
    case Category::Elementwise:
      return "elementwise";
    case Category::Copy:
      return "copy";
    case Category::Collective:
      return "collective";
    case Category::SortScan:
      return "sort/scan";
    case Category::Random:
      return "random";
    case Category::Other:
      return "other";
  }
  return "other";
}

CategoryChoice categorize(const KernelName& name, const KernelEvidence& evidence) {
  std::string arguments;
  for (const std::string& argument : name.parts.arguments) arguments += argument + " ";
  const Subject subject{name, evidence, words_of(name.parts.scope + name.parts.leaf), words_of(arguments)};
  for (const Rule& rule : kRules) {
    if (holds(rule, subject)) return {rule.category, said(rule)};
  }
  return {Category::Other, "no rule holds"};
}

bool only_converts_layout(const KernelName& name) {
  const std::string words = words_of(name.parts.leaf);
  for (const char* conversion : {" nchw to nhwc ", " nhwc to nchw ", " ncdhw to ndhwc ", " ndhwc to ncdhw "}) {
    if (has(words, conversion)) return true;
  }
  return false;
}

}  // namespace gputrace
