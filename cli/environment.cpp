#include "cli/environment.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "base/collect_parts.h"
#include "base/variables.h"
#include "cli/options.h"

namespace gputrace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}
namespace {

std::optional<std::string> check_duration(const char* option, const std::string& value) {
  if (value.empty()) return std::nullopt;
  const auto nanos = parse_duration(value);
  if (!nanos)
    return std::string(option) + ": '" + value +
           "' is no duration: 30s, 500ms, 5m (ns us ms s m h; a bare number is seconds)";
  return std::nullopt;
}

// A-B or A, from 1.
bool names_steps(const std::string& text) {
  u64 numbers[2] = {0, 0};
  std::size_t at = 0;
  for (u64& number : numbers) {
    const std::size_t begin = at;
    while (at < text.size() && at < begin + 8 && text[at] >= '0' && text[at] <= '9')
      number = number * 10 + static_cast<u64>(text[at++] - '0');
    if (number == 0) return false;
    if (at == text.size()) return numbers[1] == 0 || numbers[0] <= numbers[1];
    if (text[at++] != '-') return false;
  }
  return false;
}

std::optional<std::string> check_capture(const std::string& value) {
  if (value.empty() || value == "all" || value == "profiler-api") return std::nullopt;
  if (value.compare(0, 5, "nvtx:") == 0) {
    const std::string range = value.substr(5);
    const std::size_t at = range.rfind('@');
    if (!range.empty() && at != 0 && at + 1 != range.size()) return std::nullopt;
    return "--capture: '" + value + "' names no range: nvtx:NAME, nvtx:NAME@DOMAIN or nvtx:NAME@* (any domain)";
  }
  if (value.compare(0, 6, "steps:") == 0) {
    if (names_steps(value.substr(6))) return std::nullopt;
    return "--capture: '" + value + "' names no steps: steps:A-B or steps:A, numbers from 1";
  }
  return "--capture: '" + value + "' is none of all, profiler-api, nvtx:NAME[@DOMAIN], steps:A-B" +
         did_you_mean(value, {"all", "profiler-api"});
}

std::optional<std::string> check_collect(const std::string& list) {
  std::optional<std::string> wrong;
  collect::parts_of(list.c_str(), [&](const char* name, u64 length) {
    if (wrong) return;
    std::vector<std::string> names = {"all"};
    std::string list_of_names = "all";
    for (const collect::Part& part : collect::kParts) {
      if ((part.bit & collect::kBuilt) == 0) continue;
      names.emplace_back(part.name);
      list_of_names += std::string(", ") + part.name;
    }
    const std::string word(name, length);
    wrong = "--collect: '" + word + "' is none of " + list_of_names + did_you_mean(word, names);
  });
  return wrong;
}

// What `rest` has already stays where it is.
std::string put_first(const std::vector<std::string>& first, const std::string& rest) {
  const std::vector<std::string> there = split(rest, ':');
  std::string all;
  for (const std::string& entry : first) {
    if (std::find(there.begin(), there.end(), entry) == there.end()) all += (all.empty() ? "" : ":") + entry;
  }
  return all + (all.empty() || rest.empty() ? "" : ":") + rest;
}

// File calls and waits are counted by a library of their own, which programs do not load for anything else.
bool wants_host_library(const TraceOptions& options) {
  const std::string list = options.collect.empty() ? variable("GPUTRACE_COLLECT") : options.collect;
  return collect::parts_of(list.c_str()) & (collect::kIo | collect::kWaits);
}

}  // namespace

std::vector<std::string> unknown_variables() {
  const std::vector<std::string> known(std::begin(kVariables), std::end(kVariables));
  std::vector<std::string> unknown;
  for (char** entry = environ; *entry; ++entry) {
    const std::string text(*entry);
    const std::string name = text.substr(0, text.find('='));
    if (name.rfind("GPUTRACE", 0) == 0 && std::find(known.begin(), known.end(), name) == known.end())
      unknown.push_back(name + " is not a variable of gputrace; it is ignored" + did_you_mean(name, known));
  }
  return unknown;
}

void add_trace_options(OptionParser& parser, TraceOptions& options) {
  parser.text("-o,--output", options.output,
              "directory for the traces (default gputrace-%j; tokens %h %p %r %l %j %e %t %q{ENV} %n)", "DIR");
  parser.text("-d,--duration", options.duration, "record this long from the first CUDA call; the program goes on",
              "DUR");
  parser.text("--delay", options.delay, "begin this long after the first CUDA call", "DUR");
  parser.text(
      "--capture", options.capture,
      "what to record: all, profiler-api (cudaProfilerStart to Stop), nvtx:NAME[@DOMAIN] (that range) or steps:A-B "
      "(of PyTorch's optimizer)",
      "C");
  parser.values("--capture", {"all", "profiler-api", "nvtx:", "steps:"});
  // The library reads the list; a parser that took it apart would take -x for an option.
  std::vector<std::string> parts = {"all"};
  for (const collect::Part& part : collect::kParts)
    if (part.bit & collect::kBuilt) parts.emplace_back(part.name);
  std::string about = "what to collect, by comma:";
  for (const std::string& part : parts) about += " " + part;
  parser.text("--collect", options.collect, (about + "; +x adds one to the default, -x leaves one out").c_str(),
              "LIST");
  parser.values("--collect", parts, true);
  add_simgpu_option(parser, options);
}

void add_simgpu_option(OptionParser& parser, TraceOptions& options) {
  parser.flag_or("--simgpu", options.simgpu, {"auto", "12", "13"},
                 "on the simulated GPU; =12, =13: with libraries of that CUDA, whatever the program seems to want");
}

std::optional<std::string> check_trace_options(const TraceOptions& options, const Places& places) {
  for (const auto& wrong : {check_duration("--duration", options.duration), check_duration("--delay", options.delay),
                            check_capture(options.capture), check_collect(options.collect)}) {
    if (wrong) return wrong;
  }
  if (!options.duration.empty() && *parse_duration(options.duration) == 0) return "--duration: 0 would record nothing";
  if (places.library.empty())
    return "libgputrace.so is not where it belongs (../lib beside " + places.program +
           "): this installation is incomplete";
  for (const std::string& path : {places.library, options.simgpu.empty() ? "" : places.simgpu}) {
    if (path.find_first_of(": \t") != std::string::npos)
      return "the path " + path + " holds a blank or a colon, which LD_PRELOAD cannot take: move the tree";
  }
  if (!options.simgpu.empty() && places.simgpu.empty())
    return "--simgpu: the simulated GPU is not installed with this gputrace (lib/gputrace/simgpu)";
  return std::nullopt;
}

Variables trace_variables(const TraceOptions& options, const Places& places, const std::string& output,
                          const std::vector<std::string>& simulated) {
  Variables variables;
  std::string preload = variable("LD_PRELOAD");
  std::replace(preload.begin(), preload.end(), ' ', ':');
  std::vector<std::string> ours = {places.library};
  if (wants_host_library(options) && !places.host_library.empty()) ours.push_back(places.host_library);
  ours.insert(ours.end(), simulated.begin(), simulated.end());
  variables.emplace_back("LD_PRELOAD", put_first(ours, preload));
  if (!options.simgpu.empty())
    variables.emplace_back("LD_LIBRARY_PATH", put_first({places.simgpu}, variable("LD_LIBRARY_PATH")));
  variables.emplace_back("GPUTRACE_OUTPUT", output);
  if (!options.duration.empty()) variables.emplace_back("GPUTRACE_DURATION", options.duration);
  if (!options.delay.empty()) variables.emplace_back("GPUTRACE_DELAY", options.delay);
  if (!options.capture.empty()) variables.emplace_back("GPUTRACE_CAPTURE", options.capture);
  if (!options.collect.empty()) variables.emplace_back("GPUTRACE_COLLECT", options.collect);
  return variables;
}

}  // namespace gputrace
