#include "cli/read/report_page.h"

#include "analysis/page/page.h"
#include "analysis/words/human.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/version_generated.h"
#include "page/template.h"

namespace gputrace {

bool has_page() {
  if (!page_template().empty()) return true;
  fail(kRuntimeError,
       "--html: this gputrace was built without the page (no node and no network then); --format json has the same");
  return false;
}

int write_page(const Report& report, const LoadedRun& run, const LoadRequest& request, const std::string& path) {
  EventLog log(run, kPageEvents);
  const auto read = export_events(request, log);
  if (!read) return fail(kNoInput, read.error().message);
  const EventBlock events = pack_events(log.tables(), log.picked());
  const std::string page = render_page(report, {page_template(), GPUTRACE_VERSION, &events});
  Output output(path);
  if (!output.open()) return kRuntimeError;
  output.write(page);
  const int code = output.close();
  if (code == kOk && !path.empty()) say("wrote " + path + " (" + human_bytes(page.size()) + ")");
  return code;
}

}  // namespace gputrace
