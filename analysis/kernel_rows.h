// What a kernel is called, and which machine code it comes from.
#pragma once

#include <string>

#include "analysis/facts.h"
#include "analysis/table.h"

namespace gputrace {

// The module as far as it is the same code: by hash, else by size and kind, else by handle.
std::string image_key(const ProcessTrace& process, u32 module);

// The symbol as loaded; null where nobody said it.
Value symbol_of(const Function& function);
// For people: demangled; the handle where the name is not known.
std::string display_name(const Function& function);

}  // namespace gputrace
