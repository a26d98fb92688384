// Prints one document: bash, zsh, fish, gputrace or gputrace-VERB. A program of the build only.
#include <cstdio>
#include <string>

#include "cli/documents/documents.h"

namespace gputrace {

std::vector<DescribedVerb> described_verbs() {
  std::vector<DescribedVerb> verbs;
  for (const Verb& verb : all_verbs()) {
    DescribedVerb one{verb.name, verb.about, {}};
    OptionParser::describe_to(&one.reference);
    Globals globals;
    verb.run({}, globals);
    verbs.push_back(std::move(one));
  }
  OptionParser::describe_to(nullptr);
  return verbs;
}

static std::string document(const std::string& name) {
  const std::vector<DescribedVerb> verbs = described_verbs();
  if (name == "bash") return bash_completion(verbs);
  if (name == "zsh") return zsh_completion(verbs);
  if (name == "fish") return fish_completion(verbs);
  if (name == "gputrace") return main_manual(verbs);
  for (const DescribedVerb& verb : verbs)
    if (name == "gputrace-" + verb.name) return verb_manual(verb, verbs);
  return {};
}

}  // namespace gputrace

int main(int argc, char** argv) {
  const std::string text = argc == 2 ? gputrace::document(argv[1]) : "";
  if (text.empty()) return std::fputs("usage: write_document bash|zsh|fish|gputrace|gputrace-VERB\n", stderr), 2;
  return std::fputs(text.c_str(), stdout) < 0 || std::fflush(stdout) != 0;
}
