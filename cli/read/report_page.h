// gputrace report --html FILE.
#pragma once

#include <string>

#include "analysis/table/table.h"

namespace gputrace {

// Nothing: this program carries no page; it has said so. Before anything is read.
bool has_page();
// Writes it, and says where. The exit code.
int write_page(const Report& report, const std::string& path);

}  // namespace gputrace
