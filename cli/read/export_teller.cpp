#include "cli/read/export_teller.h"

#include <fmt/format.h>

#include "analysis/words/human.h"
#include "cli/options.h"

namespace gputrace {

void ExportTeller::reached(u32 file, u32 files, u64 events) {
  progress_.show(fmt::format("{} events, trace {} of {}", human_count(events), file + 1, files));
}

void warn_of_losses(const Exported& said) {
  for (const std::string& unread : said.unread) warn(unread);
  for (const std::string& damage : said.damage) warn(damage);
  if (said.dropped)
    warn(human_count(said.dropped) + " records were dropped when it was traced: what they told is missing here");
}

}  // namespace gputrace
