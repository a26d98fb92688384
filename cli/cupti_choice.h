// Which libcupti device collection would use, and why, as far as one can know without running the program: what the
// program itself will have loaded by its first cuInit is known only for what it is linked against.
#pragma once

#include <string>
#include <vector>

#include "cli/environment.h"
#include "cli/places.h"
#include "cli/target.h"

namespace gputrace {

struct CuptiChoice {
  enum class Kind {
    Chosen,
    Off,     // device times are not collected
    Absent,  // nothing was found, or not what was asked for
  };
  struct Place {
    std::string path;
    std::string reason;
    bool found = false;
  };
  Kind kind = Kind::Absent;
  std::string path;           // of what is chosen
  std::string reason;         // why that, or why none: one sentence
  std::vector<Place> places;  // all that were looked at, in their order
};

// The folder and file of libcuda.so.1 that the loader would take; its name alone where only the loader's cache knows it;
// empty: none.
std::string find_driver(const TraceOptions& options, const Places& places);

CuptiChoice choose_cupti(const TraceOptions& options, const Places& places, const Target& target);

}  // namespace gputrace
