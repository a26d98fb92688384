// gputrace doctor: what tracing needs here, checked in less than a second; one line each, with the fix where one is
// needed.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "analysis/render/render.h"
#include "analysis/render/safe_text.h"
#include "base/fd.h"
#include "cli/capture_output.h"
#include "cli/environment.h"
#include "cli/options.h"
#include "cli/output_directory.h"
#include "cli/target.h"

namespace gputrace {
namespace {

class Checks {
 public:
  void ok(const std::string& text) { line("ok", text); }
  void info(const std::string& text) { line("info", text); }
  void warning(const std::string& text, const std::string& fix) {
    line("warn", text);
    if (!fix.empty()) line("", "fix: " + fix);
  }
  void error(const std::string& text, const std::string& fix) {
    ready_ = false;
    line("error", text);
    if (!fix.empty()) line("", "fix: " + fix);
  }
  bool ready() const { return ready_; }

 private:
  static void line(const char* what, const std::string& text) {
    std::printf("  %-5s %s\n", what, safe_text(text).c_str());
  }
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

bool cache_knows(const char* name) {
  const Fd cache(open("/etc/ld.so.cache", O_RDONLY | O_CLOEXEC));
  std::string content;
  char piece[65536];
  for (ssize_t got; cache && content.size() < (16u << 20) && (got = read(cache.get(), piece, sizeof piece)) > 0;) {
    content.append(piece, static_cast<std::size_t>(got));
  }
  return content.find(std::string("/") + name + std::string(1, '\0')) != std::string::npos;
}

void check_driver(const TraceOptions& options, const Places& places, Checks& checks) {
  std::vector<std::string> folders;
  const char* path = std::getenv("LD_LIBRARY_PATH");
  if (options.simgpu) folders.push_back(places.simgpu);
  for (const std::string& folder : split(path ? path : "", ':')) {
    if (!folder.empty()) folders.push_back(folder);
  }
  for (const char* usual : {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib",
                            "/usr/lib/wsl/lib", "/usr/local/nvidia/lib64", "/usr/local/cuda/compat"}) {
    folders.emplace_back(usual);
  }
  for (const std::string& folder : folders) {
    const std::string file = folder + "/libcuda.so.1";
    if (access(file.c_str(), R_OK) == 0) return checks.ok("driver library found: " + file);
  }
  if (cache_knows("libcuda.so.1")) return checks.ok("driver library found: libcuda.so.1 in the loader's cache");
  checks.warning("libcuda.so.1 is not in the usual places: no GPU driver here?",
                 places.simgpu.empty()
                     ? "run where a GPU driver is"
                     : "run where a GPU driver is, or try the simulated GPU: gputrace run --simgpu -- CMD");
}

void check_output(const TraceOptions& options, Checks& checks) {
  const char* variable = std::getenv("GPUTRACE_OUTPUT");
  const std::string wanted = !options.output.empty() ? options.output
                             : variable && *variable ? variable
                                                     : "gputrace-%j";
  const OutputDirectory output = resolve_output(wanted);
  std::string parent = output.root;
  struct stat about;
  while (parent.size() > 1 && stat(parent.c_str(), &about) != 0) {
    const std::size_t slash = parent.find_last_of('/');
    parent = slash == 0 ? "/" : parent.substr(0, slash);
  }
  if (stat(parent.c_str(), &about) != 0 || !S_ISDIR(about.st_mode))
    return checks.error("output: " + parent + " is no directory", "-o DIR");
  const std::string probe = parent + "/.gputrace-doctor-" + std::to_string(getpid());
  const Fd file(open(probe.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file)
    return checks.error("output: " + parent + " cannot be written: " + std::strerror(errno),
                        "-o DIR, or GPUTRACE_OUTPUT=$HOME/gputrace-%j");
  unlink(probe.c_str());
  struct statvfs space;
  if (statvfs(parent.c_str(), &space) != 0) return checks.ok("output directory writable: " + parent);
  const u64 free_bytes = static_cast<u64>(space.f_bavail) * space.f_frsize;
  if (free_bytes < (256ull << 20))
    return checks.warning("output: only " + human_bytes(free_bytes) + " free in " + parent,
                          "-o DIR where there is room");
  checks.ok("output directory writable, " + human_bytes(free_bytes) + " free: " + parent);
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

void check_target(const Arguments& command, Checks& checks) {
  if (command.empty()) return;
  const Target target = inspect_target(command[0]);
  if (target.path.empty()) return checks.error(command[0] + ": not found, or not executable", "");
  const std::string why = why_unreachable(target);
  if (!why.empty()) return checks.error(why, "trace the dynamically linked, unprivileged program");
  checks.ok("program can be traced: " + target.path +
            (target.interpreter.empty() ? "" : " (run by " + target.interpreter + ")"));
}

}  // namespace

int doctor_verb(const Arguments& arguments, Globals& globals) {
  OptionParser parser("gputrace doctor", "Checks whether tracing works here.", globals);
  TraceOptions options;
  parser.text("-o,--output", options.output, "the directory that traces shall go to", "DIR");
  parser.flag("--simgpu", options.simgpu, "for the simulated GPU");
  parser.footer("Then: -- CMD [ARGUMENTS], to check that program too. Exit code 0: ready, 1: not.");
  std::size_t end = 0;
  while (end < arguments.size() && arguments[end] != "--") ++end;
  const auto middle = arguments.begin() + static_cast<std::ptrdiff_t>(end);
  if (const auto code = parser.parse(Arguments(arguments.begin(), middle))) return *code;
  const Arguments command(end < arguments.size() ? middle + 1 : middle, arguments.end());

  const Places places = find_places();
  Checks checks;
  check_library(places, checks);
  check_sidecar(places, checks);
  check_driver(options, places, checks);
  check_output(options, checks);
  check_memory(checks);
  check_target(command, checks);
  if (!checks.ready()) {
    std::fputs("  not ready.\n", stdout);
    return kRuntimeError;
  }
  std::string next = own_command(places) + " run" + (options.simgpu ? " --simgpu" : "");
  if (!options.output.empty()) next += " -o " + shell_word(options.output);
  next += " --";
  for (const std::string& word : command) next += " " + shell_word(word);
  std::printf("  ready.  next:  %s%s\n", next.c_str(), command.empty() ? " CMD" : "");
  return kOk;
}

}  // namespace gputrace
