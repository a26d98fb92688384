// gputrace view: the page of a run, served on this machine to one reader. Of a large run the page gets every event of the time that it shows.
#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include <cstdlib>

#include "base/clock.h"
#include "base/fd.h"
#include "cli/environment.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/places.h"
#include "cli/read/last_writes.h"
#include "cli/read/report_page.h"
#include "cli/view/page_service.h"

extern char** environ;

namespace gputrace {
namespace {

constexpr u64 kWorthAnIndex = 4 << 20;    // bytes of traces: what takes less is read in half a second
constexpr Nanos kReload = 3'000'000'000;  // for so long nobody asks when a page is loaded anew

volatile sig_atomic_t interrupted = 0;

// The second one ends the program, whatever it does.
void end_on_signals() {
  struct sigaction action {};
  action.sa_handler = [](int) { interrupted = 1; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (const int one : {SIGINT, SIGTERM, SIGHUP}) sigaction(one, &action, nullptr);
}

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
  std::string rank, index = "auto";
  long long port = 0, most = kPageEvents;
  bool no_browser = false;
  parser.paths(paths, "traces or directories of traces; none: the newest gputrace-* directory here");
  parser.number("--port", port, "serve on this port (default: one that is free)", "PORT");
  parser.number("--events", most, "events in the page at a time (1000000): fewer for a slow browser", "N");
  parser.text("--rank", rank, "only processes of this rank", "R");
  parser.text("--index", index,
              "keep an index of the events, which makes the next start and each time looked at quick: auto (from 4 MiB "
              "of traces on), always, never",
              "WHEN");
  parser.values("--index", {"auto", "always", "never"});
  parser.flag("--no-browser", no_browser, "start no browser: the address is printed");
  parser.quiet("nothing but the address");
  parser.footer("Ends when the page is closed, or with Ctrl-C.");
  if (const auto code = parser.parse(arguments)) return *code;
  if (port < 0 || port > 65535) return fail(kUsage, "--port: 1 to 65535");
  if (most < 100 || most > 100'000'000) return fail(kUsage, "--events: 100 to 100000000");
  if (index != "auto" && index != "always" && index != "never")
    return fail(kUsage, "--index: '" + index + "' is none of auto, always, never");
  if (!has_page()) return kRuntimeError;
  const auto files = find_trace_files(paths);
  if (!files) return fail(kNoInput, files.error().message);
  wait_for_last_writes(files.value());
  LoadRequest request;
  request.files = files.value();
  if (!rank.empty()) request.rank = rank;
  IndexHome home(request.files, rank);
  const bool indexed = index == "always" || (index == "auto" && home.trace_bytes() >= kWorthAnIndex);
  PageService service(request, static_cast<std::size_t>(most), indexed ? &home : nullptr);
  // A limit on the size of files ends the index, not the program. The browser gets it as it was.
  const auto before = signal(SIGXFSZ, SIG_IGN);
  const std::string wrong = service.make_page(globals.quiet);
  signal(SIGXFSZ, before);
  if (!wrong.empty()) return fail(kNoInput, wrong);

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
