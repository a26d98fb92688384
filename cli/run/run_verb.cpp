// gputrace run: starts a program with the library preloaded, ends as it ended, and says what was seen.
#include <dirent.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "analysis/words/safe_text.h"
#include "base/clock.h"
#include "cli/environment.h"
#include "cli/options.h"
#include "cli/output_directory.h"
#include "cli/run/launch.h"
#include "cli/run/memory_server.h"
#include "cli/run/missing_traces.h"
#include "cli/run/run_notes.h"
#include "cli/run/verdict.h"
#include "cli/simgpu_choice.h"
#include "cli/small_files.h"
#include "cli/target.h"

namespace gputrace {
namespace {

constexpr Nanos kSidecarPatience = 2'000'000'000;
constexpr int kCannotExecute = 126, kNotFound = 127;

// Our options end at "--" or at the first word that is neither an option nor an option's value.
std::size_t end_of_options(const Arguments& arguments) {
  const std::vector<std::string> with_value = {"-o",      "--output",  "-d",        "--duration",
                                               "--delay", "--capture", "--collect", "--color"};
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (word == "--" || word.size() < 2 || word[0] != '-') return i;
    if (std::find(with_value.begin(), with_value.end(), word) != with_value.end()) ++i;
  }
  return arguments.size();
}

std::string run_name() {
  u16 random = 0;
  if (getrandom(&random, sizeof random, GRND_NONBLOCK) != sizeof random) random = static_cast<u16>(monotonic_nanos());
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char day[32], name[64];
  std::strftime(day, sizeof day, "%Y%m%d-%H%M%S", &parts);
  std::snprintf(name, sizeof name, "%s-%d-%04x", day, static_cast<int>(getpid()), static_cast<unsigned>(random));
  return name;
}

// A sidecar, or what becomes one: between its fork and its exec it still goes by the program's name, but holds the
// segment.
bool is_sidecar(const std::string& folder) {
  if (read_file(folder + "/comm").compare(0, 15, "gputrace-sideca") == 0) return true;
  DIR* files = opendir((folder + "/fd").c_str());
  if (!files) return false;
  bool found = false;
  while (const dirent* entry = found ? nullptr : readdir(files)) {
    char target[1100] = {};
    found = readlinkat(dirfd(files), entry->d_name, target, sizeof target - 1) > 0 &&
            (std::strncmp(target, "/memfd:gputrace", 15) == 0 ||
             (std::strstr(target, "/gputrace-") && std::strstr(target, ".ring")));
  }
  closedir(files);
  return found;
}

// Is a sidecar of this run at work? It carries the run's name in its environment.
bool sidecar_at_work(const std::string& run) {
  DIR* processes = opendir("/proc");
  if (!processes) return false;
  const std::string wanted = std::string(1, '\0') + "GPUTRACE_RUN=" + run;
  bool found = false;
  while (const dirent* entry = found ? nullptr : readdir(processes)) {
    if (entry->d_name[0] < '0' || entry->d_name[0] > '9') continue;
    const std::string folder = std::string("/proc/") + entry->d_name;
    found =
        (std::string(1, '\0') + read_file(folder + "/environ")).find(wanted) != std::string::npos && is_sidecar(folder);
  }
  closedir(processes);
  return found;
}

void wait_for_sidecars(const std::string& run) {
  const Nanos until = monotonic_nanos() + kSidecarPatience;
  // Twice none: in the middle of its exec a sidecar has no environment.
  for (int none = 0; none < 2 && monotonic_nanos() < until;) {
    none = sidecar_at_work(run) ? 0 : none + 1;
    usleep(none == 1 ? 1000 : none == 0 ? 5000 : 0);
  }
}

int refuse(const PreparedOutput& prepared) {
  fail(kRunUsage, prepared.problem);
  std::fprintf(stderr, "          the program was not started\n          fix: %s\n", safe_text(prepared.fix).c_str());
  return kRunUsage;
}

int exec_failure(const std::string& command, int error) {
  return fail(error == ENOENT ? kNotFound : kCannotExecute, command + ": " + std::strerror(error));
}

std::vector<std::string> new_traces(const std::string& root, const std::set<std::string>& before) {
  std::vector<std::string> made;
  for (const std::string& path : traces_below(root)) {
    if (!before.count(path)) made.push_back(path);
  }
  return made;
}

std::string wanted_output(const TraceOptions& options) {
  if (!options.output.empty()) return options.output;
  const char* variable = std::getenv("GPUTRACE_OUTPUT");
  return variable && *variable ? variable : "gputrace-%j";
}

void report_ending(const Arguments& command, const Target& target, const Places& places, const OutputDirectory& output,
                   const std::vector<std::string>& traces, const std::vector<RunNote>& notes,
                   const std::string& color) {
  if (traces.empty()) {
    std::fputs(why_no_trace(notes, command, target, places).c_str(), stderr);
    return;
  }
  std::fputs(why_not_all(notes).c_str(), stderr);
  VerdictRequest request;
  request.files = traces;
  request.shown = output.shown;
  request.color = color;
  // A directory that held traces before is reported on without them.
  request.report_command =
      own_command(places) + " report" + (traces.size() < traces_below(output.root).size() ? " --last" : "");
  const std::string text = "\n" + verdict(request);
  std::fputs(text.c_str(), stderr);
}

}  // namespace

int run_verb(const Arguments& arguments, Globals& globals) {
  OptionParser parser("gputrace run", "Traces a program: sets the environment, runs it, ends as it ended.", globals);
  TraceOptions options;
  bool afresh = false, allow_shared = false;
  add_trace_options(parser, options);
  parser.quiet("not a word of ours on how it went and where the traces are");
  parser.flag("--allow-shared-dir", allow_shared, "write into a directory that other users own or may write to");
  parser.flag("-f,--force", afresh, "remove the traces that are in the output directory already");
  parser.footer(
      "Then: -- CMD [ARGUMENTS]. Exit code and signal are those of CMD; 125: our own failure, 126: CMD cannot be "
      "executed, 127: not found.");
  parser.command();
  const std::size_t end = end_of_options(arguments);
  const auto middle = arguments.begin() + static_cast<std::ptrdiff_t>(end);
  if (const auto code = parser.parse(Arguments(arguments.begin(), middle), kRunUsage)) return *code;
  const Arguments command(middle != arguments.end() && *middle == "--" ? middle + 1 : middle, arguments.end());
  const Places places = find_places();
  if (command.empty()) return fail(kRunUsage, "no command: gputrace run [OPTIONS] -- CMD [ARGUMENTS]");
  if (const auto wrong = check_trace_options(options, places)) return fail(kRunUsage, *wrong);
  if (const std::string missing = why_no_processes(); !missing.empty())
    return refuse({{}, missing, "mount it, or: LD_PRELOAD=" + shell_word(places.library) + " CMD"});

  const Target target = inspect_target(command[0]);
  const std::string unreachable = why_unreachable(target);
  if (!unreachable.empty()) warn(unreachable);
  for (const std::string& unknown : unknown_variables()) warn(unknown);
  const OutputDirectory output = resolve_output(wanted_output(options));
  allow_shared = allow_shared || variable("GPUTRACE_ALLOW_SHARED_DIR") == "1";
  PreparedOutput prepared = prepare_output(output.root, allow_shared);
  if (!prepared.problem.empty()) return refuse(prepared);
  if (afresh && output.pattern == output.root) remove_traces(output.root);
  const std::set<std::string> before = traces_below(output.root);
  const std::string run = run_name();
  const SimgpuChoice simulated = choose_simgpu(options, places, command);
  if (simulated.major != 0 && !simulated.complete) warn(what_is_incomplete(simulated));
  Variables variables = trace_variables(options, places, output.pattern, simulated.preloads);
  variables.emplace_back("GPUTRACE_RUN", run);
  if (allow_shared) variables.emplace_back("GPUTRACE_ALLOW_SHARED_DIR", "1");
  const RunNotes notes;
  variables.emplace_back("GPUTRACE_RUN_NOTES", notes.path());
  const MemoryServer memory;
  variables.emplace_back("GPUTRACE_RUN_MEMORY", memory.path());
  if (!globals.quiet && !target.path.empty()) say("writing to " + output.shown);

  const Ending ending = launch(command, variables);
  if (ending.pid) notes.ended(ending.pid, ending.status);
  if (ending.exec_error) {
    remove_if_empty(prepared);
    return exec_failure(command[0], ending.exec_error);
  }
  wait_for_sidecars(run);
  if (!globals.quiet)
    report_ending(command, target, places, output, new_traces(output.root, before), notes.read(), globals.color);
  remove_if_empty(prepared);
  end_as(ending);
}

}  // namespace gputrace
