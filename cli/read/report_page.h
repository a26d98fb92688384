// gputrace report --html FILE.
#pragma once

#include <string>

#include "analysis/load.h"
#include "analysis/table/table.h"

namespace gputrace {

// Nothing: this program carries no page; it has said so. Before anything is read.
bool has_page();
// Events that a page shows one by one: what a browser has ready within a second.
inline constexpr std::size_t kPageEvents = 1'000'000;
// Reads the events of the run, which `request` loaded, for the timeline. Writes it, and says where. The exit code.
int write_page(const Report& report, const LoadedRun& run, const LoadRequest& request, const std::string& path);

}  // namespace gputrace
