// In which functions of a compilation unit an instruction lies. libdw's own search (dwarf_getscopes) finds none that is written down within
// a namespace, as Rust's and clang's are. One thread.
#pragma once

#include <elfutils/libdw.h>

#include <map>
#include <vector>

#include "base/types.h"

namespace gputrace {

class Scopes {
 public:
  // Innermost first: what was inlined there (DW_TAG_inlined_subroutine), then the function that it was inlined into (DW_TAG_subprogram).
  // Empty where no function is known. The entries are as good as the Dwarf that `unit` is of.
  std::vector<Dwarf_Die> at(Dwarf_Die* unit, u64 address);

 private:
  struct Function {
    u64 begin = 0, end = 0;
    Dwarf_Off entry = 0;
  };
  static void find_functions(Dwarf_Die* of, int depth, std::vector<Function>& found);

  std::map<Dwarf_Off, std::vector<Function>> units_;  // by the unit's offset; the functions by their begin
};

}  // namespace gputrace
