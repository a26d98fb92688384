#include "cli/read/report_page.h"

#include <csignal>

#include "analysis/events/events.h"
#include "analysis/page/event_log.h"
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

Result<IndexedRun, InputError> load_for_page(const LoadRequest& request) {
  const u64 most = most_bytes_of_index(bytes_of(request.files));
  if (Fd file = unnamed_file(most)) {
    // A limit on the size of files ends the index, not the report.
    const auto before = signal(SIGXFSZ, SIG_IGN);
    auto read = load_with_index(request, std::move(file), most);
    signal(SIGXFSZ, before);
    return read;
  }
  auto run = load_run(request);
  if (!run) return Failure{run.error()};
  return IndexedRun{std::move(run.value()), {}};
}

int write_page(const Report& report, const IndexedRun& run, const LoadRequest& request, const std::string& path) {
  EventBlock events;
  if (const auto picked = run.index ? run.index->pick(kPageEvents) : std::nullopt) {
    events = pack_events(run.index->tables(), *picked);
  } else {
    EventLog log(run.run, kPageEvents);
    const auto read = export_events(request, log);
    if (!read) return fail(kNoInput, read.error().message);
    events = pack_events(log.tables(), log.picked());
  }
  const std::string page = render_page(report, {page_template(), GPUTRACE_VERSION, &events});
  Output output(path);
  if (!output.open()) return kRuntimeError;
  output.write(page);
  const int code = output.close();
  if (code == kOk && !path.empty()) say("wrote " + path + " (" + human_bytes(page.size()) + ")");
  return code;
}

}  // namespace gputrace
