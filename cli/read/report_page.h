// gputrace report --html FILE.
#pragma once

#include <string>

#include "analysis/load.h"
#include "analysis/page/index_writer.h"
#include "analysis/table/table.h"

namespace gputrace {

// Nothing: this program carries no page; it has said so. Before anything is read.
bool has_page();
// Events that a page shows one by one: what a browser has ready within a second.
inline constexpr std::size_t kPageEvents = 1'000'000;
// load_run(), with the events for the page's timeline from the same reading, where there is room for them.
Result<IndexedRun, InputError> load_for_page(const LoadRequest& request);
// Without an index the events of the run, which `request` loaded, are read for the timeline. Writes it, and says where. The exit code.
int write_page(const Report& report, const IndexedRun& run, const LoadRequest& request, const std::string& path);

}  // namespace gputrace
