// What all verbs need to read their arguments: strict values, and messages that name the fix.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"
#include "cli/verb.h"

namespace gputrace {

// "30s", "500ms", "1.5h"; a bare number is seconds. Nothing for anything else, negative or above 292 years.
std::optional<Nanos> parse_duration(std::string_view text);
// "16M", "10G", "4096"; binary. Nothing for anything else.
std::optional<Bytes> parse_size(std::string_view text);

// The candidate that `word` most probably means; empty where none is near.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);
// ", did you mean 'x'?" or nothing.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

// What a parser knows of its verb: for completion and manual pages.
struct OptionReference {
  std::vector<std::string> names;  // as they are typed: "-o", "--output"
  std::string value;               // how its value is called: "FILE"; empty: it takes none
  std::string help;
  std::vector<std::string> values;  // what the value may be, or some of that; empty: anything
  bool optional = false;            // the value may be left out, and follows after '='
  bool list = false;                // several values, by comma
};
struct VerbReference {
  std::string name, about, paths, footer;  // paths: what its PATHs are; empty: it takes none
  bool command = false;                    // takes -- CMD [ARGUMENTS]
  std::vector<OptionReference> options;
};

// The options of one verb, over CLI11 (which is slow to compile: options.cpp alone includes it).
// Every parser has -h and --color; -q and -v those for which they mean something. The variables must outlive it.
class OptionParser {
 public:
  // `name`: "gputrace report"
  OptionParser(const std::string& name, const std::string& about, Globals& globals);
  ~OptionParser();

  void quiet(const char* help);    // -q
  void verbose(const char* help);  // -v
  void flag(const char* names, bool& value, const char* help);
  void text(const char* names, std::string& value, const char* help, const char* type);
  // --name or --name=VALUE: what `values` has; the first one is meant without a value.
  void flag_or(const char* name, std::string& value, const std::vector<std::string>& values, const char* help);
  void number(const char* names, long long& value, const char* help, const char* type);
  void comma_list(const char* names, std::vector<std::string>& values, const char* help, const char* type);
  // One value each time it is given; commas are part of it.
  void each(const char* names, std::vector<std::string>& values, const char* help, const char* type);
  void paths(std::vector<std::string>& values, const char* help);
  void exclude(const char* option, const char* other);
  void footer(const char* text);
  void command();  // what follows "--" is a command of its own
  // What an option's value may be. The verb checks values itself; this is what completion offers. `list`: several, by comma.
  void values(const char* option, std::vector<std::string> words, bool list = false);

  // Nothing: go on. Else the exit code: 0 after help (printed), `usage_code` after a message on what was wrong.
  std::optional<int> parse(const Arguments& arguments, int usage_code = kUsage);
  bool given(const char* option) const;

  // While `to` is set, parse() reads nothing: it says what it knows and ends the verb with 0.
  static void describe_to(VerbReference* to);

 private:
  void describe(VerbReference& to) const;

  struct Parts;
  std::unique_ptr<Parts> parts_;
};

// "gputrace: error: TEXT" on stderr, what comes from outside made safe. Returns `code`.
int fail(int code, const std::string& text);
void warn(const std::string& text);
void say(const std::string& text);  // "gputrace: TEXT" on stderr

std::vector<std::string> split(const std::string& text, char at);

}  // namespace gputrace
