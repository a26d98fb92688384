// gputrace doctor: what tracing needs here, checked in less than a second; one line each, with the fix where one is
// needed.
#include <fcntl.h>
#include <regex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <vector>

#include "analysis/words/human.h"
#include "analysis/words/safe_text.h"
#include "base/fd.h"
#include "cli/capture_output.h"
#include "cli/cupti_choice.h"
#include "cli/environment.h"
#include "cli/options.h"
#include "cli/output_directory.h"
#include "cli/simgpu_choice.h"
#include "cli/small_files.h"
#include "cli/target.h"

namespace gputrace {
namespace {

class Checks {
 public:
  struct Line {
    const char* status;  // ok, info, warn, error
    std::string text, fix;
  };
  void ok(const std::string& text) { lines_.push_back({"ok", text, ""}); }
  void info(const std::string& text) { lines_.push_back({"info", text, ""}); }
  void warning(const std::string& text, const std::string& fix) { lines_.push_back({"warn", text, fix}); }
  void error(const std::string& text, const std::string& fix) {
    ready_ = false;
    lines_.push_back({"error", text, fix});
  }
  bool ready() const { return ready_; }
  const std::vector<Line>& lines() const { return lines_; }

 private:
  std::vector<Line> lines_;
  bool ready_ = true;
};

void check_library(const Places& places, Checks& checks) {
  if (places.library.empty()) {
    return checks.error("libgputrace.so is not where it belongs, in ../lib beside " + places.program,
                        "install the whole tree: ./dev install PREFIX");
  }
  const Captured run = capture_output({"/bin/true"}, {{"LD_PRELOAD", places.library}, {"GPUTRACE", "0"}}, 500);
  if (!run.started) return checks.info("library " + places.library + " (not tried: /bin/true could not be run)");
  if (run.errors.find("cannot be preloaded") != std::string::npos || run.exit_code != 0) {
    return checks.error("the library does not load: " + run.errors.substr(0, run.errors.find('\n')),
                        "glibc 2.28 or newer is needed");
  }
  const Captured libc = capture_output({"getconf", "GNU_LIBC_VERSION"}, {}, 300);
  const std::string version =
      libc.started && libc.exit_code == 0 ? libc.output.substr(0, libc.output.find('\n')) : "glibc of unknown version";
  checks.ok("library loads (" + version + ", 2.28 is enough): " + places.library);
}

void check_sidecar(const Places& places, Checks& checks) {
  const char* chosen = std::getenv("GPUTRACE_SIDECAR");
  const std::string path = chosen && *chosen && std::strcmp(chosen, "auto") != 0 ? chosen : places.sidecar;
  if (path == "off")
    return checks.warning("GPUTRACE_SIDECAR=off: nothing drains the rings, no trace is written",
                          "unset GPUTRACE_SIDECAR");
  if (path.empty())
    return checks.error("gputrace-sidecar is not where it belongs", "install the whole tree: ./dev install PREFIX");
  const Captured run = capture_output({path, "--version"}, {}, 300);
  if (!run.started) return checks.error("the sidecar does not start: " + path + ": " + std::strerror(run.error), "");
  checks.ok("sidecar starts: " + path);
}

void check_driver(const TraceOptions& options, const Places& places, Checks& checks) {
  const std::string driver = find_driver(options, places);
  if (driver.find('/') != std::string::npos) return checks.ok("driver library found: " + driver);
  if (!driver.empty()) return checks.ok("driver library found: " + driver + " in the loader's cache");
  checks.warning("libcuda.so.1 is not in the usual places: no GPU driver here?",
                 places.simgpu.empty()
                     ? "run where a GPU driver is"
                     : "run where a GPU driver is, or try the simulated GPU: gputrace run --simgpu -- CMD");
}

void check_simgpu(const TraceOptions& options, const Places& places, const SimgpuChoice& choice, Checks& checks) {
  if (options.simgpu.empty()) return;
  if (places.simgpu.empty())
    return checks.error("the simulated GPU is not installed with this gputrace (lib/gputrace/simgpu)",
                        "build it: ./dev install PREFIX");
  if (!choice.complete) return checks.warning(what_is_incomplete(choice), "");
  checks.ok("simulated CUDA " + std::to_string(choice.major) + " (" + choice.reason + "), preloaded from " +
            places.simgpu + ": " + names_of_preloads(choice));
}

std::string simgpu_word(const TraceOptions& options) {
  if (options.simgpu.empty()) return "";
  return options.simgpu == "auto" ? " --simgpu" : " --simgpu=" + options.simgpu;
}

void check_cupti(const CuptiChoice& choice, Checks& checks) {
  switch (choice.kind) {
    case CuptiChoice::Kind::Chosen:
      return checks.ok("device times from " + choice.path + ": " + choice.reason +
                       (choice.reason.find("GPUTRACE_CUPTI") == std::string::npos
                            ? "; one that the program has loaded by its first cuInit comes first"
                            : ""));
    case CuptiChoice::Kind::Off:
      return checks.info("no device times: " + choice.reason);
    case CuptiChoice::Kind::Absent:
      return checks.warning(
          "no device times, unless the program brings a libcupti: " + choice.reason,
          "install CUPTI (the toolkit's cuda-cupti, or pip install nvidia-cuda-cupti), or GPUTRACE_CUPTI=PATH");
  }
}

void check_output(const TraceOptions& options, Checks& checks) {
  const std::string chosen = variable("GPUTRACE_OUTPUT");
  const std::string wanted = !options.output.empty() ? options.output : !chosen.empty() ? chosen : "gputrace-%j";
  const OutputDirectory output = resolve_output(wanted);
  // As `run` does it, and undone: what it would refuse is refused here.
  const PreparedOutput prepared = prepare_output(output.root, variable("GPUTRACE_ALLOW_SHARED_DIR") == "1");
  struct statvfs space;
  const bool known = statvfs(output.root.c_str(), &space) == 0;
  remove_if_empty(prepared);
  if (!prepared.problem.empty()) return checks.error("output: " + prepared.problem, prepared.fix);
  if (!known) return checks.ok("output directory writable: " + output.root);
  const u64 free_bytes = static_cast<u64>(space.f_bavail) * space.f_frsize;
  if (free_bytes < (256ull << 20))
    return checks.warning("output: only " + human_bytes(free_bytes) + " free in " + output.root,
                          "-o DIR where there is room");
  checks.ok("output directory writable, " + human_bytes(free_bytes) + " free: " + output.root);
}

void check_memory(Checks& checks) {
  const Fd memory(memfd_create("gputrace-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory || fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0) {
    return checks.error(std::string("memfd_create with seals does not work here: ") + std::strerror(errno),
                        "a kernel of 3.17 or newer, or a laxer seccomp profile");
  }
  struct statvfs shared;
  std::string more;
  if (statvfs("/dev/shm", &shared) == 0) {
    const u64 size = static_cast<u64>(shared.f_blocks) * shared.f_frsize;
    more = "; /dev/shm is " + human_bytes(size) + ", which does not matter";
  }
  checks.ok("sealed memory works (memfd)" + more);
}

void check_processes(const Places& places, Checks& checks) {
  if (const std::string missing = why_no_processes(); !missing.empty())
    checks.error(missing, "mount it, or: LD_PRELOAD=" + shell_word(places.library) + " CMD");
}

// Lines between two CUDA calls are read from outside of the program: where only its ancestor may, by `run`.
void check_reading(Checks& checks) {
  constexpr u64 kSysPtrace = 1u << 19;  // CAP_SYS_PTRACE
  const std::string text = read_file("/proc/sys/kernel/yama/ptrace_scope"), status = read_file("/proc/self/status");
  const std::size_t at = status.find("CapEff:\t");
  const u64 rights = at == std::string::npos ? 0 : std::strtoull(status.c_str() + at + 8, nullptr, 16);
  const long scope = std::strtol(text.c_str(), nullptr, 10);
  if (scope <= 0 || (scope < 3 && rights & kSysPtrace)) return;
  if (scope == 1)
    return checks.info(
        "lines between two CUDA calls: with gputrace run; not by LD_PRELOAD alone (kernel.yama.ptrace_scope is 1)");
  checks.info("lines between two CUDA calls are not seen (kernel.yama.ptrace_scope is " + std::to_string(scope) + ")");
}

// What the environment keeps from being traced.
void check_variables(const Target& target, Checks& checks) {
  if (variable("GPUTRACE") == "0") checks.error("GPUTRACE=0: tracing is off", "unset GPUTRACE");
  for (const std::string& unknown : unknown_variables()) checks.warning(unknown, "");
  const std::string pattern = variable("GPUTRACE_PROCESS");
  const std::string name = base_name(target.interpreter.empty() ? target.path : target.interpreter);
  regex_t regex;
  if (pattern.empty() || name.empty() || regcomp(&regex, pattern.c_str(), REG_EXTENDED | REG_NOSUB) != 0) return;
  if (regexec(&regex, name.c_str(), 0, nullptr, 0) != 0)
    checks.warning("GPUTRACE_PROCESS=" + pattern + " does not match " + name + ": only what it starts may be traced",
                   "unset GPUTRACE_PROCESS");
  regfree(&regex);
}

void check_target(const Arguments& command, const Target& target, Checks& checks) {
  if (command.empty()) return;
  if (target.path.empty()) return checks.error(command[0] + ": not found, or not executable", "");
  const std::string why = why_unreachable(target);
  if (!why.empty()) return checks.error(why, "trace the dynamically linked, unprivileged program");
  checks.ok("program can be traced: " + target.path +
            (target.interpreter.empty() ? "" : " (run by " + target.interpreter + ")"));
}

void print_text(const Checks& checks) {
  for (const Checks::Line& line : checks.lines()) {
    std::printf("  %-5s %s\n", line.status, safe_text(line.text).c_str());
    if (!line.fix.empty()) std::printf("  %-5s fix: %s\n", "", safe_text(line.fix).c_str());
  }
}

void print_json(const Checks& checks, const CuptiChoice& cupti) {
  using Json = nlohmann::ordered_json;
  Json all{{"ready", checks.ready()}, {"checks", Json::array()}};
  for (const Checks::Line& line : checks.lines()) {
    Json row{{"status", line.status}, {"text", line.text}};
    if (!line.fix.empty()) row["fix"] = line.fix;
    all["checks"].push_back(row);
  }
  const bool chosen = cupti.kind == CuptiChoice::Kind::Chosen;
  Json& out = all["cupti"];
  out["path"] = chosen ? Json(cupti.path) : Json();
  out["reason"] = cupti.reason;
  out["places"] = Json::array();
  for (const CuptiChoice::Place& place : cupti.places)
    out["places"].push_back({{"path", place.path}, {"reason", place.reason}, {"found", place.found}});
  std::printf("%s\n", all.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
}

}  // namespace

int doctor_verb(const Arguments& arguments, Globals& globals) {
  OptionParser parser("gputrace doctor", "Checks whether tracing works here.", globals);
  TraceOptions options;
  parser.text("-o,--output", options.output, "the directory that traces shall go to", "DIR");
  add_simgpu_option(parser, options);
  bool json = false;
  parser.flag("--json", json, "the same as JSON, with every place where a libcupti was looked for");
  parser.footer("Then: -- CMD [ARGUMENTS], to check that program too. Exit code 0: ready, 1: not.");
  parser.command();
  std::size_t end = 0;
  while (end < arguments.size() && arguments[end] != "--") ++end;
  const auto middle = arguments.begin() + static_cast<std::ptrdiff_t>(end);
  if (const auto code = parser.parse(Arguments(arguments.begin(), middle))) return *code;
  const Arguments command(end < arguments.size() ? middle + 1 : middle, arguments.end());

  const Places places = find_places();
  const Target target = command.empty() ? Target{} : inspect_target(command[0]);
  const CuptiChoice cupti = choose_cupti(options, places, target);
  Checks checks;
  check_library(places, checks);
  check_sidecar(places, checks);
  check_driver(options, places, checks);
  check_simgpu(options, places, choose_simgpu(options, places, command), checks);
  check_cupti(cupti, checks);
  check_output(options, checks);
  check_memory(checks);
  check_processes(places, checks);
  check_reading(checks);
  check_variables(target, checks);
  check_target(command, target, checks);
  if (json) {
    print_json(checks, cupti);
    return checks.ready() ? kOk : kRuntimeError;
  }
  print_text(checks);
  if (!checks.ready()) {
    std::fputs("  not ready.\n", stdout);
    return kRuntimeError;
  }
  std::string next = own_command(places) + " run" + simgpu_word(options);
  if (!options.output.empty()) next += " -o " + shell_word(options.output);
  next += " --";
  for (const std::string& word : command) next += " " + shell_word(word);
  std::printf("  ready.  next:  %s%s\n", next.c_str(), command.empty() ? " CMD" : "");
  return kOk;
}

}  // namespace gputrace
