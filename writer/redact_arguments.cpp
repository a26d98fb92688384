// Secrets in argument lists, where the value may be the argument after its name, and an argument a command line of its own.
#include <algorithm>

#include "base/types.h"
#include "writer/redact.h"
#include "writer/secret_words.h"

namespace gputrace {
namespace {

constexpr u32 kMostDepth = 4;  // of command lines within command lines

// What an argument's own form says of the next one.
enum class Next : u8 { Plain, Secret, Login };

// USER:S, and Samba's USER%S.
std::string hide_login(std::string_view login) {
  const std::size_t colon = login.find_first_of(":%");
  return colon == std::string_view::npos ? redact(login) : std::string(login.substr(0, colon + 1)).append(kHidden);
}

// "-pSECRET": a letter with its value. Words that begin so are few.
bool is_password_letter(std::string_view argument) {
  if (argument.size() < 3 || argument.substr(0, 2) != "-p" || is_small_number(argument.substr(2))) return false;
  for (const std::string_view word : {"-pthread", "-pedantic", "-print", "-profile", "-port", "-plugin", "-path",
                                      "-pipe", "-pix_fmt", "-preset", "-pass"}) {
    if (argument.starts_with(word)) return false;
  }
  return true;
}

std::string redact_argument(const std::string& argument, Next& next) {
  next = Next::Plain;
  const std::size_t begin = argument.find_first_not_of('-');
  if (begin == std::string::npos) return argument;
  const bool option = begin > 0;
  const std::size_t equals = argument.find('=');
  const std::string_view name = std::string_view(argument).substr(begin, equals - begin);
  const bool word = !name.empty() && std::all_of(name.begin(), name.end(), is_word);
  if (equals != std::string::npos && word) {  // the whole rest is the value, blanks too
    const std::string_view value = std::string_view(argument).substr(equals + 1);
    if (is_secret_name(name) && !value.empty() && !is_small_number(value))
      return argument.substr(0, equals + 1).append(kHidden);
    if (option && (name == "user" || name == "proxy-user")) return argument.substr(0, equals + 1) + hide_login(value);
  }
  if (!option || equals != std::string::npos) return redact(argument);
  if (argument == "-p" || argument == "-b" || is_secret_name(name)) next = Next::Secret;
  if (argument == "-u" || argument == "-U" || argument == "--user" || argument == "--proxy-user") next = Next::Login;
  if (is_password_letter(argument)) return std::string("-p").append(kHidden);
  if (argument.starts_with("-u") && argument.find(':') != std::string::npos) return hide_login(argument);
  return redact(argument);
}

std::vector<std::string> redact_words(const std::vector<std::string>& arguments) {
  std::vector<std::string> out;
  Next next = Next::Plain;
  for (const std::string& argument : arguments) {
    const bool option = argument.size() > 1 && argument[0] == '-';
    if (next != Next::Plain && !option && !is_small_number(argument)) {
      out.push_back(next == Next::Login ? hide_login(argument) : std::string(kHidden));
      next = Next::Plain;
      continue;
    }
    out.push_back(redact_argument(argument, next));
  }
  return out;
}

// The words of a line, each with the blanks before it; what is quoted is one word.
std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  std::size_t begin = 0;
  char quote = 0;
  bool in_word = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const bool blank = !quote && is_blank(line[i]);
    if (quote ? line[i] == quote : line[i] == '"' || line[i] == '\'') quote = quote ? '\0' : line[i];
    if (blank && in_word) {
      words.emplace_back(line.substr(begin, i - begin));
      begin = i;
    }
    in_word = !blank;
  }
  words.emplace_back(line.substr(begin));
  return words;
}

bool has_options(std::string_view argument) {
  for (std::size_t i = 1; i < argument.size(); ++i)
    if (argument[i] == '-' && is_blank(argument[i - 1])) return true;
  return false;
}

// A command line within an argument: sh -c "prog --password S"; and one that is quoted there.
std::string redact_line(std::string_view line, u32 depth = 0) {
  std::vector<std::string> words = words_of(line), blanks;
  for (std::string& word : words) {
    const auto end = std::find_if_not(word.begin(), word.end(), is_blank);
    blanks.emplace_back(word.begin(), end);
    word.erase(word.begin(), end);
  }
  words = redact_words(words);
  std::string out;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const bool quoted = word.size() > 2 && (word[0] == '"' || word[0] == '\'') && word.back() == word[0];
    out += blanks[i];
    if (quoted && depth < kMostDepth && has_options(word))
      out += word[0] + redact_line(std::string_view(word).substr(1, word.size() - 2), depth + 1) + word[0];
    else
      out += word;
  }
  return out;
}

}  // namespace

std::vector<std::string> redact_arguments(const std::vector<std::string>& arguments) {
  std::vector<std::string> out = redact_words(arguments);
  for (std::string& argument : out)
    if (has_options(argument)) argument = redact_line(argument);
  return out;
}

}  // namespace gputrace
