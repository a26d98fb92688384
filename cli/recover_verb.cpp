// gputrace recover: what was in the ring of a program when it and its sidecar died together. Rings in files (GPUTRACE_SHM=file:DIR, and by
// itself where the program is the first process of a container) outlive both.
#include <sys/stat.h>

#include <cstdlib>
#include <cstring>
#include <set>

#include "analysis/words/human.h"
#include "cli/capture_output.h"
#include "cli/options.h"
#include "cli/output_directory.h"
#include "cli/places.h"

namespace gputrace {
namespace {

constexpr int kPatienceMs = 600'000;

// The trace that its sidecar had begun: both names end with a number of the process's own. Empty: there is none.
std::string trace_of(const std::string& ring, const std::set<std::string>& traces) {
  const std::string name = base_name(ring);
  const std::size_t dash = name.rfind('-'), dot = name.rfind('.');
  if (dash == std::string::npos || dot == std::string::npos || dot < dash) return "";
  const std::string end = name.substr(dash, dot - dash) + ".gtrace";
  for (const std::string& path : traces) {
    if (path.size() > end.size() && path.compare(path.size() - end.size(), end.size(), end) == 0) return path;
  }
  return "";
}

// Returns true where nothing is left of the ring.
bool recover_one(const std::string& ring, const std::string& trace, const Places& places, const std::string& output) {
  const Captured done =
      capture_output({places.sidecar, "--recover", ring, trace}, {{"GPUTRACE_OUTPUT", output}}, kPatienceMs);
  const std::vector<std::string> words = split(done.output.substr(0, done.output.find('\n')), '\t');
  if (words.size() < 3) {
    fail(kRuntimeError, ring + ": gputrace-sidecar could not be run");
    return false;
  }
  const u64 records = std::strtoull(words[1].c_str(), nullptr, 10);
  if (words[0] == "in-use") {
    warn(words[2] + ": left as it is");
    return true;
  }
  if (words[0] == "failed") {
    fail(kRuntimeError, words[2]);
    return false;
  }
  if (words[0] == "complete")
    say(ring + ": its trace has its end already: " + words[2]);
  else
    say(counted(records, "record") + " recovered into " + words[2]);
  return true;
}

}  // namespace

int recover_verb(const Arguments& arguments, Globals& globals) {
  OptionParser parser("gputrace recover",
                      "Finishes traces whose ring was left in a file by a program that died with its sidecar.",
                      globals);
  std::vector<std::string> paths;
  std::string output;
  parser.paths(paths, "directories, or *.ring files (default: here)");
  parser.text("-o,--output", output, "directory for traces that had not been begun (default: the ring's own)", "DIR");
  if (const auto code = parser.parse(arguments)) return *code;
  const Places places = find_places();
  if (places.sidecar.empty())
    return fail(kRuntimeError, "gputrace-sidecar is not where it belongs: this installation is incomplete");
  if (paths.empty()) paths.emplace_back(".");

  std::vector<std::string> rings, roots;
  for (const std::string& path : paths) {
    struct stat about;
    if (stat(path.c_str(), &about) != 0) return fail(kNoInput, path + ": " + std::strerror(errno));
    if (S_ISDIR(about.st_mode)) {
      for (const std::string& ring : rings_below(path)) rings.push_back(ring);
      roots.push_back(path);
      continue;
    }
    rings.push_back(path);
    const std::size_t slash = path.rfind('/');
    roots.push_back(slash == std::string::npos ? "." : path.substr(0, slash + 1));
  }
  if (!output.empty()) roots.push_back(output);
  if (rings.empty()) return fail(kNoInput, "no ring was left in a file there (gputrace-*.ring)");
  std::set<std::string> traces;
  for (const std::string& root : roots) traces.merge(traces_below(root));
  bool all = true;
  for (const std::string& ring : rings) {
    const std::size_t slash = ring.rfind('/');
    const std::string beside = slash == std::string::npos ? "." : ring.substr(0, slash + 1);
    all = recover_one(ring, trace_of(ring, traces), places, output.empty() ? beside : output) && all;
  }
  return all ? kOk : kRuntimeError;
}

}  // namespace gputrace
