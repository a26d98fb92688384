// The command line: one verb, one file. A verb gets its own arguments (without "gputrace VERB") and returns the exit
// code.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace gputrace {

// Exit codes: docs and every script rely on them.
enum Exit : int {
  kOk = 0,
  kRuntimeError = 1,
  kUsage = 2,
  kNoInput = 3,     // missing, unreadable, not a trace, a newer major, nothing in it
  kIncomplete = 4,  // incomplete data under --strict
  kExceeded = 5,    // a threshold was exceeded
  kRunUsage = 125,  // of `run`: our own failure; 126: CMD cannot be executed; 127: CMD not found
};

using Arguments = std::vector<std::string>;

// What stands before the verb, or behind it: --color; -q and -v where the verb has them.
struct Globals {
  std::string color = "auto";
  bool quiet = false;
  bool verbose = false;
};

struct Verb {
  const char* name;
  const char* about;  // one line
  int (*run)(const Arguments& arguments, Globals& globals);
};

#define GT_VERB(name, about) int name##_verb(const Arguments& arguments, Globals& globals);
#include "cli/list.def"

std::span<const Verb> all_verbs();

}  // namespace gputrace
