#include "cli/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "analysis/words/safe_text.h"

namespace gputrace {
namespace {

// Digits with at most one point, no sign, no exponent: the number and what follows it.
std::optional<std::pair<double, std::string_view>> leading_number(std::string_view text) {
  std::size_t end = 0;
  bool point = false, digit = false;
  double value = 0, scale = 1;
  for (; end < text.size(); ++end) {
    const char c = text[end];
    if (c >= '0' && c <= '9') {
      digit = true;
      if (point)
        value += (c - '0') * (scale /= 10);
      else
        value = value * 10 + (c - '0');
    } else if (c == '.' && !point) {
      point = true;
    } else {
      break;
    }
  }
  if (!digit) return std::nullopt;
  return std::pair{value, text.substr(end)};
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row.back();
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

}  // namespace

std::optional<Nanos> parse_duration(std::string_view text) {
  const auto number = leading_number(text);
  if (!number) return std::nullopt;
  static constexpr std::pair<std::string_view, double> kUnits[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6},  {"s", 1e9},
                                                                   {"", 1e9}, {"m", 60e9}, {"h", 3600e9}};
  for (const auto& [unit, nanos] : kUnits) {
    if (number->second != unit) continue;
    const double value = number->first * nanos;
    return value < 9.2e18 ? std::optional<Nanos>(static_cast<Nanos>(std::llround(value))) : std::nullopt;
  }
  return std::nullopt;
}

std::optional<Bytes> parse_size(std::string_view text) {
  const auto number = leading_number(text);
  if (!number) return std::nullopt;
  static constexpr std::pair<std::string_view, double> kUnits[] = {
      {"", 1}, {"K", 1024.0}, {"M", 1048576.0}, {"G", 1073741824.0}, {"T", 1099511627776.0}};
  for (const auto& [unit, bytes] : kUnits) {
    if (number->second != unit) continue;
    const double value = number->first * bytes;
    return value < 9.2e18 ? std::optional<Bytes>(static_cast<Bytes>(value)) : std::nullopt;
  }
  return std::nullopt;
}

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    if (!word.empty() && candidate.size() > word.size() && candidate.compare(0, word.size(), word) == 0 &&
        word.size() >= 3)
      return candidate;
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string near = nearest(word, candidates);
  return near.empty() ? "" : ", did you mean '" + near + "'?";
}

struct OptionParser::Parts {
  CLI::App app;
  Globals& globals;
  Parts(const std::string& about, const std::string& name, Globals& all) : app(about, name), globals(all) {}

  std::vector<CLI::Option*> numbers;
  std::vector<std::pair<const CLI::Option*, std::vector<std::string>>> values;
  std::vector<const CLI::Option*> lists;
  bool command = false;

  // Which option's value is no number; the only conversions are of numbers.
  std::string not_a_number() const {
    for (const CLI::Option* option : numbers) {
      for (const std::string& value : option->results()) {
        long long number = 0;
        if (!CLI::detail::lexical_cast(value, number)) return option->get_name() + ": '" + value + "' is no number";
      }
    }
    return "a value is no number";
  }
};

namespace {

VerbReference* described = nullptr;

// An option whose value may be left out, as "--simgpu[={auto,12,13}]"; CLI11 has "--simgpu{auto} :{auto,12,13}".
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_name(const CLI::Option* option, bool positional) const override {
    const std::string name = CLI::Formatter::make_option_name(option, positional);
    return name.substr(0, name.find('{'));
  }
  std::string make_option_opts(const CLI::Option* option) const override {
    const std::string type = option->get_type_name();
    if (option->get_items_expected_max() == 0 && !type.empty() && type[0] == ':') return "[=" + type.substr(1) + "]";
    return CLI::Formatter::make_option_opts(option);
  }
};

// "WHEN" of CLI11's "WHEN:{auto,always,never}".
std::string one_word(const std::string& type) { return type.substr(0, type.find(':')); }

}  // namespace

OptionParser::OptionParser(const std::string& name, const std::string& about, Globals& globals)
    : parts_(std::make_unique<Parts>(about, name, globals)) {
  CLI::App& app = parts_->app;
  app.formatter(std::make_shared<HelpFormatter>());
  app.set_help_flag("-h,--help", "print this help and exit");
  const std::vector<std::string> when = {"auto", "always", "never"};
  app.add_option("--color", globals.color, "auto, always or never")->check(CLI::IsMember(when))->type_name("WHEN");
  values("--color", when);
}

OptionParser::~OptionParser() = default;

void OptionParser::quiet(const char* help) { parts_->app.add_flag("-q,--quiet", parts_->globals.quiet, help); }
void OptionParser::verbose(const char* help) { parts_->app.add_flag("-v,--verbose", parts_->globals.verbose, help); }

void OptionParser::flag(const char* names, bool& value, const char* help) { parts_->app.add_flag(names, value, help); }
void OptionParser::text(const char* names, std::string& value, const char* help, const char* type) {
  parts_->app.add_option(names, value, help)->type_name(type);
}
void OptionParser::flag_or(const char* name, std::string& value, const std::vector<std::string>& values,
                           const char* help) {
  parts_->app.add_flag(std::string(name) + "{" + values[0] + "}", value, help)->check(CLI::IsMember(values));
  parts_->values.emplace_back(parts_->app.get_option(name), values);
}
void OptionParser::number(const char* names, long long& value, const char* help, const char* type) {
  parts_->numbers.push_back(parts_->app.add_option(names, value, help)->type_name(type));
}
void OptionParser::comma_list(const char* names, std::vector<std::string>& values, const char* help, const char* type) {
  // One argument each time: what follows it is a PATH.
  parts_->lists.push_back(
      parts_->app.add_option(names, values, help)->delimiter(',')->type_name(type)->allow_extra_args(false));
}
void OptionParser::each(const char* names, std::vector<std::string>& values, const char* help, const char* type) {
  parts_->app.add_option(names, values, help)->type_name(type)->allow_extra_args(false);
}
void OptionParser::paths(std::vector<std::string>& values, const char* help) {
  parts_->app.add_option("PATH", values, help);
}
void OptionParser::exclude(const char* option, const char* other) {
  parts_->app.get_option(option)->excludes(parts_->app.get_option(other));
}
void OptionParser::footer(const char* text) { parts_->app.footer(text); }
void OptionParser::command() { parts_->command = true; }
void OptionParser::values(const char* option, std::vector<std::string> words, bool list) {
  if (list) parts_->lists.push_back(parts_->app.get_option(option));
  parts_->values.emplace_back(parts_->app.get_option(option), std::move(words));
}
void OptionParser::describe_to(VerbReference* to) { described = to; }

void OptionParser::describe(VerbReference& to) const {
  const CLI::App& app = parts_->app;
  to.name = app.get_name(), to.about = app.get_description(), to.footer = app.get_footer();
  to.command = parts_->command;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) {
      to.paths = option->get_description();
      continue;
    }
    OptionReference one;
    for (const std::string& name : option->get_snames()) one.names.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) one.names.push_back("--" + name);
    one.help = option->get_description();
    if (option->get_items_expected_max() > 0) one.value = one_word(option->get_type_name());
    for (const auto& [of, words] : parts_->values)
      if (of == option) one.values = words;
    if (one.value.empty() && !one.values.empty()) one.value = "VALUE", one.optional = true;
    one.list = std::find(parts_->lists.begin(), parts_->lists.end(), option) != parts_->lists.end();
    to.options.push_back(std::move(one));
  }
}

bool OptionParser::given(const char* option) const { return parts_->app.count(option) > 0; }

std::optional<int> OptionParser::parse(const Arguments& arguments, int usage_code) {
  if (described) return describe(*described), kOk;
  CLI::App& app = parts_->app;
  const std::string name = app.get_name();
  std::vector<const char*> words = {name.c_str()};
  for (const std::string& argument : arguments) words.push_back(argument.c_str());
  try {
    app.parse(static_cast<int>(words.size()), words.data());
  } catch (const CLI::CallForHelp&) {
    std::fputs(app.help().c_str(), stdout);
    return kOk;
  } catch (const CLI::ExtrasError&) {
    std::string unknown;
    for (const std::string& extra : app.remaining(true)) {
      unknown = extra.substr(0, extra.find('='));
      if (extra.size() > 1 && extra[0] == '-') break;
    }
    const bool option = unknown.size() > 1 && unknown[0] == '-';
    return fail(usage_code, option ? "unknown option '" + unknown + "'" + did_you_mean(unknown, option_names(app))
                                   : "unexpected argument '" + unknown + "'");
  } catch (const CLI::ConversionError&) {
    return fail(usage_code, parts_->not_a_number());
  } catch (const CLI::ParseError& error) {
    std::string text = error.what();
    std::replace(text.begin(), text.end(), '\n', ' ');
    return fail(usage_code, text);
  }
  return std::nullopt;
}

int fail(int code, const std::string& text) {
  std::fprintf(stderr, "gputrace: error: %s\n", safe_text(text).c_str());
  return code;
}

void warn(const std::string& text) { std::fprintf(stderr, "gputrace: warning: %s\n", safe_text(text).c_str()); }
void say(const std::string& text) { std::fprintf(stderr, "gputrace: %s\n", safe_text(text).c_str()); }

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  while (true) {
    const std::size_t end = text.find(at, begin);
    parts.push_back(text.substr(begin, end - begin));
    if (end == std::string::npos) return parts;
    begin = end + 1;
  }
}

}  // namespace gputrace
