#include "cli/verb.h"

namespace gputrace {

std::span<const Verb> all_verbs() {
  static constexpr Verb kVerbs[] = {
#define GT_VERB(name, about) {#name, about, name##_verb},
#include "cli/list.def"
  };
  return kVerbs;
}

}  // namespace gputrace
