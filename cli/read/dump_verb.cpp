// gputrace dump: every record, in time order, one line each.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "analysis/load.h"
#include "analysis/read/record_stream.h"
#include "analysis/read/record_text.h"
#include "analysis/words/safe_text.h"
#include "cli/options.h"
#include "cli/output.h"

namespace gputrace {
namespace {

// What is kept about the process and its host: one line for each fact, in the order of the file.
int dump_info(const std::string& path, bool json, Output& output) {
  auto opened = TraceReader::open(path);
  if (!opened) return fail(kNoInput, describe(path, opened.error()));
  std::string lines;
  for (const auto& [name, value] : opened.value().info_lines()) {
    if (json)
      lines += nlohmann::ordered_json{{"info", valid_utf8(name)}, {"value", valid_utf8(value)}}.dump() + "\n";
    else
      lines += safe_text(name) + "\t" + safe_text(value) + "\n";
  }
  output.write(lines);
  return kOk;
}

// What is wrong in the same way again and again is said once.
void say_damage(const std::string& path, const std::vector<Damage>& damage) {
  constexpr std::size_t kMostSaid = 200;
  std::size_t said = 0;
  for (std::size_t i = 0, same; i < damage.size(); i += same) {
    for (same = 1; i + same < damage.size() && damage[i + same].reason == damage[i].reason;) ++same;
    if (said++ == kMostSaid) return warn(path + ": " + std::to_string(damage.size() - i) + " more of that kind");
    warn(path + ": " + damage[i].reason + (same > 1 ? " (" + std::to_string(same) + " times)" : ""));
  }
}

int dump_file(const std::string& path, bool json, Output& output) {
  auto opened = TraceReader::open(path);
  if (!opened) return fail(kNoInput, describe(path, opened.error()));
  const TraceReader& trace = opened.value();
  RecordText writer(trace, json);
  std::string lines;
  bool going = true;
  RecordStream stream(trace);
  stream.for_each_span([&](const RecordStream::Span& span) {
    for (const u8* at = span.begin; going && at != span.end; at += reinterpret_cast<const RecordHeader*>(at)->size) {
      writer.append(*reinterpret_cast<const RecordHeader*>(at), span.thread, lines);
      if (lines.size() < (64u << 10)) continue;
      going = output.write(lines);
      lines.clear();
    }
    return going;
  });
  for (const InFlightCallInfo& open : trace.in_flight()) writer.append(open, lines);
  output.write(lines);
  say_damage(path, trace.damage());
  if (stream.unknown_records())
    warn(path + ": " + std::to_string(stream.unknown_records()) +
         " records are of types that this version does not know");
  return kOk;
}

}  // namespace

int dump_verb(const Arguments& arguments, Globals& globals) {
  OptionParser parser("gputrace dump", "Prints every record of traces, in time order, one line each.", globals);
  std::vector<std::string> paths;
  std::string to;
  bool json = false, info = false;
  parser.paths(paths, "traces or directories of traces; none: the newest gputrace-* directory here");
  parser.flag("--json", json, "one JSON object a line");
  parser.flag("--info", info, "what is kept about the process and its host, instead of records");
  parser.text("-o,--output", to, "write to FILE", "FILE");
  if (const auto code = parser.parse(arguments)) return *code;
  const auto files = find_trace_files(paths);
  if (!files) return fail(kNoInput, files.error().message);
  Output output(to);
  if (!output.open()) return kRuntimeError;
  int code = kOk;
  bool any = false;
  for (const std::string& file : files.value()) {
    const int one = info ? dump_info(file, json, output) : dump_file(file, json, output);
    any = any || one == kOk;
    if (one != kOk) code = one;
  }
  const int closed = output.close();
  return any ? closed : code;
}

}  // namespace gputrace
