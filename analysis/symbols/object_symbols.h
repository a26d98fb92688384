// Functions and lines of one object, from its ELF symbols and its DWARF (elfutils), as long as it is the file that ran: its
// build id says so. Debug information that was split off is looked for in /usr/lib/debug/.build-id. One thread.
#pragma once

#include <memory>
#include <string>

#include "base/types.h"

namespace gputrace {

class ObjectSymbols {
 public:
  // Files of a trace are named by whoever wrote it: only plain files are opened, and only symbols of at most kMostBytes are
  // read. What cannot be had leaves everything unknown.
  static constexpr u64 kMostBytes = 256u << 20;

  ObjectSymbols(const std::string& path, const std::string& build_id);
  ~ObjectSymbols();
  ObjectSymbols(const ObjectSymbols&) = delete;
  ObjectSymbols& operator=(const ObjectSymbols&) = delete;

  bool known() const;

  // Of the instruction at `offset` from where the object would lie at address 0.
  struct Place {
    std::string function;  // without parameters; "": not known
    std::string file;      // "": not known
    u32 line = 0;          // 0: not known
    bool others = false;   // the function itself stands in the source of the system, a library or a package
  };
  Place at(u64 offset) const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace gputrace
