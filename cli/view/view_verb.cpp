// gputrace view: the page of a run, served on this machine to one reader. Of a large run the page gets every event of the time that it shows.
#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>

#include "analysis/page/page.h"
#include "analysis/report.h"
#include "analysis/words/human.h"
#include "base/clock.h"
#include "base/fd.h"
#include "cli/environment.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/places.h"
#include "cli/read/last_writes.h"
#include "cli/read/report_options.h"
#include "cli/read/report_page.h"
#include "cli/version_generated.h"
#include "cli/view/http_server.h"
#include "page/template.h"

extern char** environ;

namespace gputrace {
namespace {

constexpr Nanos kReload = 3'000'000'000;  // for so long nobody asks when a page is loaded anew

volatile sig_atomic_t interrupted = 0;

// The second one ends the program, whatever it does.
void end_on_signals() {
  struct sigaction action {};
  action.sa_handler = [](int) { interrupted = 1; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (const int one : {SIGINT, SIGTERM, SIGHUP}) sigaction(one, &action, nullptr);
}

// What the page may ask for.
class PageService {
 public:
  PageService(const LoadedRun& run, LoadRequest request, std::size_t most)
      : run_(run), request_(std::move(request)), most_(most) {}

  // Empty, or why there is none.
  std::string make_page() {
    EventLog log(run_, most_);
    const auto read = export_events(request_, log);
    if (!read) return read.error().message;
    events_ = pack_events(log.tables(), log.picked());
    page_ = page_of(run_, "");
    return "";
  }

  HttpAnswer answer(const HttpRequest& asked) const {
    if (asked.path.empty() && asked.query.empty()) return {200, kHtml, page_};
    if (asked.path.empty()) return part(asked);
    if (asked.path == "events") return events(asked);
    if (asked.path == "here") return {200, kText, "\n", true};
    return {404, kText, "Not Found\n"};
  }

 private:
  static constexpr const char* kHtml = "text/html; charset=utf-8";
  static constexpr const char* kText = "text/plain; charset=utf-8";

  // Tables and charts of `run`, beside the events of the whole run.
  std::string page_of(const LoadedRun& run, std::string range) const {
    PageParts parts{page_template(), GPUTRACE_VERSION, &events_};
    parts.served = true;
    parts.range = std::move(range);
    return render_page(make_report(run, {}), parts);
  }

  // ?steps=A-B or ?from=NS&to=NS: the traces are read once more, as `report --steps` and `report --from` do.
  HttpAnswer part(const HttpRequest& asked) const {
    LoadRequest request = request_;
    std::string range;
    if (const auto steps = asked.query.find("steps"); steps != asked.query.end()) {
      request.steps = parse_steps(steps->second);
      if (!request.steps) return {400, kText, "steps: A-B, A-, -B or A, numbers from 1\n"};
      range = "steps " + steps->second;
    } else {
      request.from = instant(asked, "from"), request.to = instant(asked, "to");
      if (!request.from || !request.to || *request.from >= *request.to)
        return {400, kText, "from and to: whole numbers, in ns\n"};
      request.from = std::max<Nanos>(0, *request.from);
      range = human_nanos(*request.from) + " to " + human_nanos(*request.to);
    }
    const auto run = load_run(request);
    if (!run) return {400, kText, run.error().message + "\n"};
    return {200, kHtml, page_of(run.value(), range)};
  }

  // ns from the run's origin, as the page counts.
  static std::optional<Nanos> instant(const HttpRequest& asked, const char* name) {
    const auto found = asked.query.find(name);
    if (found == asked.query.end() || found->second.empty() || found->second.size() > 18) return {};
    const std::string& text = found->second;
    if (text.find_first_not_of("0123456789", text[0] == '-' ? 1 : 0) != std::string::npos || text == "-") return {};
    return std::strtoll(text.c_str(), nullptr, 10);
  }

  HttpAnswer events(const HttpRequest& asked) const {
    const auto from = instant(asked, "from"), to = instant(asked, "to");
    if (!from || !to || *from >= *to) return {400, kText, "from and to: whole numbers, in ns\n"};
    EventLog log(run_, most_, std::pair(*from, *to));
    const auto read = export_events(request_, log);
    if (!read) return {500, kText, "the traces cannot be read any more\n"};
    const EventBlock block = pack_events(log.tables(), log.picked());
    // The description is JSON already.
    return {200, "application/json",
            "{\"events\":" + block.description + ",\"columns\":" + nlohmann::json(block.columns).dump() + "}"};
  }

  const LoadedRun& run_;
  const LoadRequest request_;
  const std::size_t most_;
  EventBlock events_;
  std::string page_;
};

// A file that sends a browser on: the address, which holds the token, is then in no command line that others can read.
class WayIn {
 public:
  ~WayIn() {
    if (!path_.empty()) unlink(path_.c_str());
  }
  bool open_browser(const std::string& address) {
    const std::string base = variable("XDG_RUNTIME_DIR").empty() ? "/tmp" : variable("XDG_RUNTIME_DIR");
    std::string name = base + "/gputrace-view-XXXXXX.html";
    const Fd file(mkostemps(name.data(), 5, O_CLOEXEC));
    if (!file) return false;
    path_ = name;
    const std::string page = "<!doctype html><meta http-equiv=\"refresh\" content=\"0;url=" + address + "\">\n";
    if (::write(file.get(), page.data(), page.size()) != static_cast<ssize_t>(page.size())) return false;
    posix_spawn_file_actions_t quiet;
    posix_spawn_file_actions_init(&quiet);
    for (const int one : {0, 1, 2}) posix_spawn_file_actions_addopen(&quiet, one, "/dev/null", O_RDWR, 0);
    std::string program = "xdg-open";
    char* words[] = {program.data(), name.data(), nullptr};
    pid_t child = 0;
    const bool started = posix_spawnp(&child, words[0], &quiet, nullptr, words, environ) == 0;
    posix_spawn_file_actions_destroy(&quiet);
    return started;
  }

 private:
  std::string path_;
};

bool has_screen() {
  return variable("SSH_CONNECTION").empty() && (!variable("DISPLAY").empty() || !variable("WAYLAND_DISPLAY").empty()) &&
         !find_in_path("xdg-open").empty();
}

void say_how_to_get_there(u16 port) {
  char host[HOST_NAME_MAX + 1] = "";
  gethostname(host, sizeof host - 1);
  const std::string user = variable("USER").empty() ? "" : variable("USER") + "@";
  say(fmt::format(
      "no browser here: on the machine that has one run ssh -N -L {0}:127.0.0.1:{0} {1}, then open the address", port,
      shell_word(user + host)));
}

int serve(HttpServer& server, bool quiet) {
  Nanos seen = 0;  // when a page was there last
  server.serve([&] {
    if (interrupted) return true;
    const Nanos now = monotonic_nanos();
    if (server.pages() > 0) seen = now;
    if (!server.idle()) return false;
    return seen != 0 && now - seen > kReload;
  });
  if (!quiet) say(interrupted ? "ended" : "the page was closed: ended");
  return kOk;
}

}  // namespace

int view_verb(const Arguments& arguments, Globals& globals) {
  OptionParser parser("gputrace view", "Shows a run in a browser: its page, served on this machine alone.", globals);
  std::vector<std::string> paths;
  std::string rank;
  long long port = 0, most = kPageEvents;
  bool no_browser = false;
  parser.paths(paths, "traces or directories of traces; none: the newest gputrace-* directory here");
  parser.number("--port", port, "serve on this port (default: one that is free)", "PORT");
  parser.number("--events", most, "events in the page at a time (1000000): fewer for a slow browser", "N");
  parser.text("--rank", rank, "only processes of this rank", "R");
  parser.flag("--no-browser", no_browser, "start no browser: the address is printed");
  parser.quiet("nothing but the address");
  parser.footer("Ends when the page is closed, or with Ctrl-C.");
  if (const auto code = parser.parse(arguments)) return *code;
  if (port < 0 || port > 65535) return fail(kUsage, "--port: 1 to 65535");
  if (most < 100 || most > 100'000'000) return fail(kUsage, "--events: 100 to 100000000");
  if (!has_page()) return kRuntimeError;
  const auto files = find_trace_files(paths);
  if (!files) return fail(kNoInput, files.error().message);
  wait_for_last_writes(files.value());
  LoadRequest request;
  request.files = files.value();
  if (!rank.empty()) request.rank = rank;
  const auto run = load_run(request);
  if (!run) return fail(kNoInput, run.error().message);
  for (const std::string& unread : run.value().unread) warn(unread);
  PageService service(run.value(), request, static_cast<std::size_t>(most));
  if (const std::string wrong = service.make_page(); !wrong.empty()) return fail(kNoInput, wrong);

  const std::string token = random_token();
  if (token.empty()) return fail(kRuntimeError, "the system gives no random numbers: nobody could be kept out");
  HttpServer server(token, [&](const HttpRequest& asked) { return service.answer(asked); });
  if (const std::string wrong = server.listen(static_cast<u16>(port)); !wrong.empty())
    return fail(kRuntimeError, fmt::format("cannot serve on port {}: {}", port, wrong));
  end_on_signals();
  Output output("");
  if (!output.open()) return kRuntimeError;
  output.write(server.address() + "\n");
  if (const int code = output.close()) return code;
  WayIn way_in;
  const bool opened = !no_browser && has_screen() && way_in.open_browser(server.address());
  if (!opened && !globals.quiet) say_how_to_get_there(server.port());
  return serve(server, globals.quiet);
}

}  // namespace gputrace
