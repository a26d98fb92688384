// What is made of the verbs' own tables while building, beside --help: completion for shells, manual pages.
#pragma once

#include <string>
#include <vector>

#include "cli/options.h"

namespace gputrace {

// All verbs, as their parsers describe them, in the order in which they are listed. `about`: the list's line.
struct DescribedVerb {
  std::string name;  // "report"
  std::string line;  // as `gputrace --help` has it
  VerbReference reference;
};
std::vector<DescribedVerb> described_verbs();

std::string bash_completion(const std::vector<DescribedVerb>& verbs);
std::string zsh_completion(const std::vector<DescribedVerb>& verbs);
std::string fish_completion(const std::vector<DescribedVerb>& verbs);

std::string main_manual(const std::vector<DescribedVerb>& verbs);                             // gputrace(1)
std::string verb_manual(const DescribedVerb& verb, const std::vector<DescribedVerb>& verbs);  // gputrace-VERB(1)

}  // namespace gputrace
