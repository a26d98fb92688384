// gputrace query: SQL over the events of traces, by DuckDB: its command line program, or Python's module. Neither is part of this program: the
// events are exported to Parquet in a folder of their own, which DuckDB reads and which is removed afterwards.
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "analysis/export/formats.h"
#include "cli/environment.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/places.h"
#include "cli/read/export_teller.h"
#include "cli/read/last_writes.h"

extern char** environ;

namespace gputrace {
namespace {

namespace files = std::filesystem;

constexpr int kNoModule = 90, kNotStarted = 127;

// What python3 runs: FOLDER FORMAT QUERY.
constexpr const char* kPython = R"PY(
import os, sys
try:
    import duckdb
except ImportError:
    sys.exit(90)
folder, form, query = sys.argv[1:4]
connection = duckdb.connect()
for table in sorted(os.listdir(folder)):
    place = os.path.join(folder, table, '*.parquet').replace("'", "''")
    connection.execute(f"CREATE VIEW {table} AS FROM read_parquet('{place}')")
try:
    result = connection.sql(query)
    if result is None:
        pass
    elif form == 'csv':
        import csv
        rows = csv.writer(sys.stdout)
        rows.writerow(result.columns)
        rows.writerows(result.fetchall())
    elif form == 'json':
        import json
        print(json.dumps([dict(zip(result.columns, row)) for row in result.fetchall()], default=str))
    else:
        result.show()
except duckdb.Error as error:
    sys.exit(f'gputrace: error: {error}')
except BrokenPipeError:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
)PY";

// A folder that goes with it.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    const std::string base = variable("TMPDIR");
    std::string name = (base.empty() ? "/tmp" : base) + "/gputrace-query-XXXXXX";
    if (mkdtemp(name.data())) path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) files::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }  // empty: none could be made

 private:
  std::string path_;
};

// Exit code of a program that is looked for in PATH; kNotStarted: there is none, or it did not end by itself.
int run_program(const std::vector<std::string>& words) {
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t child = 0;
  if (posix_spawnp(&child, arguments[0], nullptr, nullptr, arguments.data(), environ) != 0) return kNotStarted;
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : kNotStarted;
}

// The folder that `export --format parquet` made.
bool is_parquet(const std::string& path) {
  std::error_code ignored;
  return files::is_directory(path + "/kernels", ignored) && files::is_directory(path + "/processes", ignored);
}

std::string views_of(const std::string& folder) {
  std::string sql;
  for (const auto& entry : files::directory_iterator(folder)) {
    std::string place = entry.path().string() + "/*.parquet";
    for (std::size_t at = 0; (at = place.find('\'', at)) != std::string::npos; at += 2) place.insert(at, 1, '\'');
    sql += fmt::format("CREATE VIEW {} AS FROM read_parquet('{}'); ", entry.path().filename().string(), place);
  }
  return sql;
}

int ask(const std::string& folder, const std::string& form, const std::string& query) {
  const char* mode = form == "csv" ? "-csv" : form == "json" ? "-json" : "-box";
  const std::string program = find_places().program, own = program.substr(0, program.find_last_of('/') + 1);
  for (const std::string& duckdb : {own + "../libexec/gputrace/duckdb", std::string("duckdb")}) {
    const int code = run_program({duckdb, "-batch", "-bail", mode, "-c", views_of(folder) + query});
    if (code != kNotStarted) return code == 0 ? kOk : kRuntimeError;
  }
  for (const std::string& python : {own + "python3", std::string("python3"), std::string("python")}) {
    const int code = run_program({python, "-c", kPython, folder, form, query});
    if (code != kNotStarted && code != kNoModule) return code == 0 ? kOk : kRuntimeError;
  }
  return fail(kRuntimeError,
              "DuckDB is not here, which answers queries: pip install duckdb, or its program `duckdb` in PATH");
}

int export_to(const std::string& folder, const std::vector<std::string>& paths, bool quiet) {
  const auto found = find_trace_files(paths);
  if (!found) return fail(kNoInput, found.error().message);
  wait_for_last_writes(found.value());
  LoadRequest request;
  request.files = found.value();
  const ExportFormat& format = *find_export("parquet");
  const auto sink = format.make({nullptr, folder});
  ExportTeller teller("reading", !quiet);
  const auto done = export_events(request, *sink, &teller);
  if (!done) return fail(kNoInput, done.error().message);
  const std::string wrong = format.finish(*sink);
  warn_of_losses(done.value());
  return wrong.empty() ? kOk : fail(kRuntimeError, folder + ": " + wrong);
}

}  // namespace

int query_verb(const Arguments& arguments, Globals& globals) {
  OptionParser parser("gputrace query",
                      "Asks the events of traces in SQL, by DuckDB: gputrace query \"SELECT …\" [PATH…].", globals);
  std::vector<std::string> words;
  bool csv = false, json = false;
  parser.paths(
      words,
      "the query, then traces, directories of traces, or a folder of `export --format parquet`; none: the newest "
      "gputrace-* directory here");
  parser.flag("--csv", csv, "the rows as CSV");
  parser.flag("--json", json, "the rows as JSON, an object each");
  parser.exclude("--csv", "--json");
  parser.quiet("no word on how far it is");
  parser.footer(
      "Tables: processes kernels copies memsets graphs idle calls operations ranges; times are ns; process_id joins "
      "them,\n"
      "(process_id, flow_id) a call and its work. For example: SELECT name, SUM(duration_ns) FROM kernels GROUP BY "
      "name");
  if (const auto code = parser.parse(arguments)) return *code;
  if (words.empty())
    return fail(kUsage, "no query: gputrace query \"SELECT name, SUM(duration_ns) FROM kernels GROUP BY name\"");
  const std::string form = csv ? "csv" : json ? "json" : "text", query = words.front();
  words.erase(words.begin());
  if (words.size() == 1 && is_parquet(words.front())) return ask(words.front(), form, query);
  const TemporaryFolder folder;
  if (folder.path().empty())
    return fail(kRuntimeError, "no folder for the events could be made: " + std::string(std::strerror(errno)));
  if (const int code = export_to(folder.path() + "/events", words, globals.quiet)) return code;
  return ask(folder.path() + "/events", form, query);
}

}  // namespace gputrace
