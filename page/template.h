// The page of the report, as it was built into the program: one file of HTML with its script and its style in it, and the
// places into which analysis/page puts a report. Empty: the program was built without it (no node, no network).
#pragma once

#include <string_view>

namespace gputrace {

std::string_view page_template();

}  // namespace gputrace
