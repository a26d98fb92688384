#include "writer/process_info.h"

#include <unistd.h>

#include "trace/info_text.h"
#include "writer/redact.h"

namespace gputrace {
namespace {

constexpr std::size_t kMaxVariables = 200;

}  // namespace

InfoLines parse_info(std::string_view text) {
  InfoLines lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    const std::size_t tab = line.find('\t');
    if (tab != std::string_view::npos && tab)
      lines.emplace_back(unescaped(line.substr(0, tab)), unescaped(line.substr(tab + 1)));
  }
  return lines;
}

std::string format_info(const InfoLines& lines) {
  std::string out;
  for (const auto& [key, value] : lines) append_info_line(out, key, value);
  return out;
}

std::string_view find_info(const InfoLines& lines, std::string_view key) {
  for (const auto& [name, value] : lines)
    if (name == key) return value;
  return {};
}

void redact_info(InfoLines& lines) {
  for (auto& [key, value] : lines) {
    if (key != "argv") continue;
    std::vector<std::string> arguments;
    for (std::size_t at = 0; at <= value.size();) {
      const std::size_t end = std::min(value.find('\x1f', at), value.size());
      arguments.push_back(value.substr(at, end - at));
      at = end + 1;
    }
    std::string joined;
    for (const std::string& argument : redact_arguments(arguments))
      joined.append(joined.empty() ? "" : "\x1f").append(argument);
    value = joined;
  }
}

OutputNames name_output(const InfoLines& lines, const SegmentHeader& header, const Environment& environment) {
  OutputNames names;
  names.host = host_name();
  std::string_view executable = find_info(lines, "executable");
  if (executable.ends_with(" (deleted)")) executable.remove_suffix(10);
  names.executable = executable.substr(executable.rfind('/') == std::string_view::npos ? 0 : executable.rfind('/') + 1);
  if (names.executable.empty()) names.executable = "program";
  names.rank = find_rank(environment);
  names.local_rank = find_local_rank(environment);
  names.job = find_job(environment, header.pid);
  names.start = format_utc(header.anchor.realtime_ns);
  names.pid = header.pid;
  names.random_id = header.random_id;
  return names;
}

void add_host_info(InfoLines& lines, const SegmentHeader& header, const OutputNames& names,
                   const Environment& environment, char** variables) {
  lines.emplace_back("host", names.host);
  lines.emplace_back("boot_id", boot_id());
  lines.emplace_back("kernel", kernel_release());
  if (!names.rank.empty()) lines.emplace_back("rank", names.rank);
  if (!names.local_rank.empty()) lines.emplace_back("local_rank", names.local_rank);
  lines.emplace_back("job", names.job);
  if (const std::string run = environment("GPUTRACE_RUN"); !run.empty()) lines.emplace_back("run", run.substr(0, 200));
  if (const std::string restart = environment("TORCHELASTIC_RESTART_COUNT"); !restart.empty())
    lines.emplace_back("restart", restart);
  if (const ProcessStat stat = process_stat(header.pid); stat.known)
    lines.emplace_back("parent_pid", std::to_string(stat.parent));
  lines.emplace_back("ns_pid", std::to_string(header.pid));
  lines.emplace_back("sidecar_pid", std::to_string(::getpid()));
  lines.emplace_back("clock", header.clock == ClockKind::Tsc ? "tsc" : "monotonic");
  lines.emplace_back("begin_realtime_ns", std::to_string(header.anchor.realtime_ns));
  std::size_t listed = 0;
  for (char** variable = variables; *variable && listed < kMaxVariables; ++variable) {
    const std::string_view entry(*variable);
    const std::size_t equals = entry.find('=');
    if (equals == std::string_view::npos || !environment_allowed(entry.substr(0, equals))) continue;
    lines.emplace_back("env." + std::string(entry.substr(0, equals)), environment_value(entry.substr(equals + 1)));
    ++listed;
  }
}

}  // namespace gputrace
