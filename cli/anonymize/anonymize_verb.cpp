// gputrace anonymize: traces that may leave the house. Times and structure stay, names do not.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>

#include "analysis/load.h"
#include "analysis/words/human.h"
#include "cli/anonymize/rewrite.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/output_directory.h"
#include "cli/places.h"

namespace gputrace {
namespace {

// No gputrace-*: those are runs, of which the newest is read where none is named.
constexpr const char* kDefaultDirectory = "anonymized";

// In the order of the originals, whose names may tell a host and a program.
std::string numbered_name(std::size_t number) {
  char name[32];
  std::snprintf(name, sizeof name, "process_%04zu.gtrace", number);
  return name;
}

// An earlier run's. False, with a message: it is there and is no map.
bool read_map(const std::string& path, Pseudonyms& names) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return errno == ENOENT || (fail(kNoInput, path + ": " + std::strerror(errno)), false);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return names.read(text) || (fail(kNoInput, path + ": is no map of gputrace anonymize"), false);
}

// Whoever has it can undo all: for its owner alone.
int write_map(const std::string& path, const Pseudonyms& names) {
  const mode_t before = ::umask(0077);
  Output output(path);
  const bool opened = output.open();
  ::umask(before);
  if (!opened) return kRuntimeError;
  output.write(names.text());
  return output.close();
}

Result<Fd, std::string> make_target(const std::string& path) {
  const PreparedOutput prepared = prepare_output(path, false);
  if (!prepared.problem.empty()) return Failure{prepared.problem};
  if (!traces_below(path).empty()) return Failure{path + " holds traces already: name another directory with -o"};
  Fd directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory) return Failure{path + ": " + std::strerror(errno)};
  return directory;
}

}  // namespace

int anonymize_verb(const Arguments& arguments, Globals& globals) {
  OptionParser parser(
      "gputrace anonymize",
      "Writes traces anew without the names in them: times, counts and structure stay as they are, and every "
      "command reads the result.",
      globals);
  std::vector<std::string> paths, keep;
  std::string to = kDefaultDirectory, map;
  parser.paths(paths, "traces or directories of traces; none: the newest gputrace-* directory here");
  parser.text("-o,--output", to, "directory for the new traces (default: anonymized)", "DIR");
  parser.text("--map", map,
              "keep in FILE what stands for what; where it is there already, names get the same pseudonyms again",
              "FILE");
  parser.comma_list("--keep", keep, "names that stay", "LIST");
  parser.values("--keep", Pseudonyms::keepable(), true);
  if (const auto code = parser.parse(arguments)) return *code;
  Pseudonyms names;
  for (const std::string& word : keep)
    if (!names.keep(word))
      return fail(kUsage, "--keep " + word + ": no such kind of names" + did_you_mean(word, Pseudonyms::keepable()));
  if (!map.empty() && !read_map(map, names)) return kNoInput;
  const auto files = find_trace_files(paths);
  if (!files) return fail(kNoInput, files.error().message);
  const auto directory = make_target(to);
  if (!directory) return fail(kRuntimeError, directory.error());

  u64 records = 0, left_out = 0;
  std::size_t written = 0;
  int code = kOk;
  for (const std::string& file : files.value()) {
    auto opened = TraceReader::open(file);
    if (!opened) {
      code = fail(kNoInput, describe(file, opened.error()));
      continue;
    }
    const std::string name = numbered_name(++written);
    const auto done = rewrite_trace(opened.value(), names, directory.value().get(), name);
    if (!done) return fail(kRuntimeError, fmt::format("{}/{}: {}", to, name, done.error()));
    records += done.value().records;
    left_out += done.value().left_out;
  }
  if (!map.empty() && write_map(map, names) != kOk) return kRuntimeError;
  if (left_out)
    warn(counted(left_out, "piece") +
         " of the originals could not be read, or not understood by this version: left out");
  if (written)
    say(counted(records, "record") + " of " + counted(written, "trace") + " written into " + to +
        "; look at what is left: " + own_command(find_places()) + " dump --info " + shell_word(to));
  return code;
}

}  // namespace gputrace
