// gputrace: traces unmodified CUDA programs and reports on the traces. This file: what stands before the verb.
#include <malloc.h>

#include <cstdio>
#include <exception>
#include <new>

#include "cli/options.h"
#include "cli/verb.h"
#include "cli/version_generated.h"

namespace gputrace {
namespace {

void print_usage(std::FILE* to) {
  std::fputs("gputrace " GPUTRACE_VERSION ": traces unmodified CUDA programs\n\nusage: gputrace VERB [OPTIONS]\n\n",
             to);
  for (const Verb& verb : all_verbs()) std::fprintf(to, "  %-8s %s\n", verb.name, verb.about);
  std::fputs(
      "\n  -h, --help     this text, and `gputrace VERB --help`\n  --version      the version\n"
      "  --color WHEN   auto, always, never\n  -q, -v         say less, say more, where a verb has it\n",
      to);
}

int unknown_verb(const std::string& name) {
  std::vector<std::string> names;
  for (const Verb& verb : all_verbs()) names.emplace_back(verb.name);
  const std::string hint = did_you_mean(name, names);
  return fail(kUsage, "unknown verb '" + name + "'" + (hint.empty() ? ": try gputrace --help" : hint));
}

int dispatch(const Arguments& words) {
  Globals globals;
  Arguments of_verb;  // what stands before the verb and is its own matter
  std::size_t at = 0;
  for (; at < words.size() && words[at].size() > 1 && words[at][0] == '-'; ++at) {
    const std::string& word = words[at];
    if (word == "-h" || word == "--help") return print_usage(stdout), kOk;
    if (word == "--version") return std::puts("gputrace " GPUTRACE_VERSION), kOk;
    if (word == "-q" || word == "--quiet" || word == "-v" || word == "--verbose")
      of_verb.push_back(word);
    else if (word.compare(0, 8, "--color=") == 0)
      globals.color = word.substr(8);
    else if (word == "--color" && at + 1 < words.size())
      globals.color = words[++at];
    else
      return fail(kUsage, "unknown option '" + word + "'" +
                              did_you_mean(word, {"--help", "--version", "--color", "--quiet", "--verbose"}));
  }
  if (globals.color != "auto" && globals.color != "always" && globals.color != "never") {
    return fail(kUsage, "--color: '" + globals.color + "' is none of auto, always, never");
  }
  if (at == words.size()) return print_usage(stderr), kUsage;
  for (const Verb& verb : all_verbs()) {
    if (words[at] != verb.name) continue;
    of_verb.insert(of_verb.end(), words.begin() + static_cast<std::ptrdiff_t>(at) + 1, words.end());
    return verb.run(of_verb, globals);
  }
  return unknown_verb(words[at]);
}

// What one trace gave back serves the next one, and one thread's the others: memory that goes back to the kernel comes again
// page by page, zeroed, which was up to a third of a report's time. Blocks above 32 MiB are mapped one by one where the
// heap has no room for them as it is.
void keep_freed_memory() {
#ifdef __GLIBC__
  ::mallopt(M_ARENA_MAX, 1);  // else each thread has one of its own, and what is free there is for nobody else
  ::mallopt(M_MMAP_THRESHOLD, 32 << 20);
  ::mallopt(M_TRIM_THRESHOLD, 256 << 20);  // a server that has read a large trace gives back most of it
#endif
}

}  // namespace
}  // namespace gputrace

int main(int argc, char** argv) {
  gputrace::keep_freed_memory();
  try {
    return gputrace::dispatch(gputrace::Arguments(argv + (argc > 0), argv + argc));
  } catch (const std::bad_alloc&) {
    return gputrace::fail(gputrace::kRuntimeError, "out of memory");
  } catch (const std::exception& error) {
    return gputrace::fail(gputrace::kRuntimeError, error.what());
  }
}
