#include "analysis/read/identity.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string_view>
#include <vector>

#include "analysis/words/human.h"
#include "analysis/words/safe_text.h"

namespace gputrace {
namespace {

std::string info(const TraceReader& reader, std::string_view key) {
  const std::string* value = reader.info(key);
  return value ? *value : std::string();
}

// Joined by 0x1f. A program that writes a title over its arguments (setproctitle) leaves zeros behind it: empty ones at the end are none.
std::vector<std::string> arguments_of(const std::string& joined) {
  std::vector<std::string> arguments;
  for (std::size_t at = 0; at < joined.size();) {
    const std::size_t end = std::min(joined.find('\x1f', at), joined.size());
    arguments.push_back(joined.substr(at, end - at));
    at = end + 1;
  }
  while (!arguments.empty() && arguments.back().empty()) arguments.pop_back();
  return arguments;
}

// As a shell would take them, as far as plain quotes go.
std::string command_line(const std::vector<std::string>& arguments) {
  std::string line;
  for (const std::string& word : arguments) {
    const bool plain = !word.empty() && word.find_first_of(" \t\n'\"\\$`|&;<>()*?[]{}#~!") == std::string::npos;
    if (!line.empty()) line += ' ';
    if (plain) {
      line += word;
      continue;
    }
    line += '\'';
    for (const char c : word) line += c == '\'' ? std::string("'\\''") : std::string(1, c);
    line += '\'';
  }
  return line;
}

constexpr std::size_t kMostOfTitle = 48;  // columns

// What a Python program calls itself in place of its arguments ("ray::Trainer.fit"); empty: they are there.
std::string title_of(const std::string& executable, const std::vector<std::string>& arguments) {
  if (arguments.size() != 1 || !is_interpreter(executable) || is_interpreter(arguments[0])) return "";
  return shorten(safe_text(arguments[0]), kMostOfTitle, "…");
}

bool records_everything_from_the_start(const ProcessTrace& process) {
  const auto option = [&](const char* name) {
    const auto it = process.options.find(name);
    return it == process.options.end() ? std::string() : it->second;
  };
  const std::string delay = option("delay_ns"), capture = option("capture");
  return (delay.empty() || delay == "0") && (capture.empty() || capture == "all") && process.dropped == 0 &&
         process.damage.empty();
}

std::string window_of(const std::map<std::string, std::string>& options) {
  const auto value = [&options](const char* key) {
    const auto found = options.find(key);
    return found == options.end() || found->second == "0" || found->second == "all" ? std::string() : found->second;
  };
  const auto length = [](const std::string& nanos) {
    return human_nanos(static_cast<Nanos>(std::strtoull(nanos.c_str(), nullptr, 10)));
  };
  std::string words;
  const auto add = [&words](const std::string& more) { words += (words.empty() ? "" : ", ") + more; };
  if (const std::string capture = value("capture"); !capture.empty()) add("capture " + capture);
  if (const std::string delay = value("delay_ns"); !delay.empty()) add("delay " + length(delay));
  if (const std::string duration = value("duration_ns"); !duration.empty()) add("duration " + length(duration));
  return words;
}

}  // namespace

std::string end_reason(const TraceReader& reader) {
  if (!reader.end()) return "unknown";
  const EndEntry& end = *reader.end();
  const std::string detail = std::to_string(end.detail);
  switch (end.reason) {
    case EndReason::Exited:
      return end.detail == kUnknownCode ? "exited, code not known" : end.detail ? "exited " + detail : "exited";
    case EndReason::Vanished:
      return "vanished";
    case EndReason::Signalled:
      return "signal " + detail;
    case EndReason::Executed:
      return "exec";
    case EndReason::Stopped:
      return "stopped";
    case EndReason::SidecarError:
      return "sidecar error " + detail;
  }
  return "unknown";
}

// Somebody set the wall clock while the process ran: what it says of anchors that follow each other leaps.
void say_clock_steps(const TraceReader& reader, ProcessTrace& process) {
  constexpr u64 kStep = 100'000'000;  // ns; a clock that is only slewed changes by less from one anchor to the next
  const auto ahead = [](const Anchor& anchor) {
    return static_cast<u64>(anchor.realtime_ns) - static_cast<u64>(anchor.monotonic_ns);
  };
  const std::vector<Anchor>& anchors = reader.clock().anchors();
  u64 steps = 0, largest = 0;
  for (std::size_t i = 1; i < anchors.size(); ++i) {
    const u64 forward = ahead(anchors[i]) - ahead(anchors[i - 1]);
    const u64 step = std::min(forward, 0 - forward);
    if (step < kStep) continue;
    ++steps;
    largest = std::max(largest, step);
  }
  if (!steps) return;
  const std::string size = human_nanos(static_cast<Nanos>(largest));
  process.notes.push_back("the wall clock was set while it ran, " +
                          (steps == 1 ? "by " : human_count(steps) + " times, by up to ") + size +
                          ": durations are not affected, dates after it are those of the new clock");
}

void read_identity(const TraceReader& reader, ProcessTrace& process) {
  ProcessIdentity& who = process.who;
  who.host = info(reader, "host");
  who.boot_id = info(reader, "boot_id");
  who.executable = info(reader, "executable");
  const std::vector<std::string> arguments = arguments_of(info(reader, "argv"));
  who.command = command_line(arguments);
  who.title = title_of(who.executable, arguments);
  who.rank = info(reader, "rank");
  who.local_rank = info(reader, "local_rank");
  who.restart = static_cast<u32>(std::strtoul(info(reader, "restart").c_str(), nullptr, 10));
  who.job = info(reader, "job");
  who.run = info(reader, "run");
  who.gputrace_version = info(reader, "version");
  who.begin_realtime = info(reader, "begin_realtime_ns");
  who.pid = reader.header().pid;
  who.parent = static_cast<i32>(std::strtol(info(reader, "parent_pid").c_str(), nullptr, 10));
  who.random_id = reader.header().random_id;
  who.file_bytes = reader.file_size();
  who.ended = reader.end().has_value();
  who.died = who.ended && (reader.end()->reason == EndReason::Vanished || reader.end()->reason == EndReason::Signalled);
  who.failed = who.ended && (reader.end()->reason == EndReason::Signalled ||
                             (reader.end()->reason == EndReason::Exited && reader.end()->detail > 0));
  who.end_known =
      who.failed || (who.ended && (reader.end()->reason == EndReason::Executed ||
                                   (reader.end()->reason == EndReason::Exited && reader.end()->detail == 0)));
  who.signal = who.ended && reader.end()->reason == EndReason::Signalled ? reader.end()->detail : 0;
  who.end_realtime = who.ended ? reader.end()->realtime_ns : 0;
  who.end_reason = end_reason(reader);
  who.never_open = info(reader, "window_never_opened");
  process.images_not_read = std::strtoull(info(reader, "end_code_open").c_str(), nullptr, 10);
  for (const auto& [key, value] : reader.info_lines()) {
    if (key.compare(0, 7, "option.") == 0) process.options[key.substr(7)] = value;
    if (key.compare(0, 4, "env.") == 0) process.environment[key.substr(4)] = value;
    constexpr std::size_t kMostFolders = 16;  // the sidecar tells no more
    if (key == "python_packages" && who.package_folders.size() < kMostFolders) who.package_folders.push_back(value);
    if (key == "option_warning") process.warnings.push_back(value);
    if (key == "shared_directory")
      process.notes.push_back(
          "written into a directory that other users own or may write to (GPUTRACE_ALLOW_SHARED_DIR)");
    if (key == "disk_stop" || key == "user_given_up") process.notes.push_back("writing stopped: " + value);
    if (key != "not_collected") continue;
    const std::size_t colon = value.find(": ");
    std::pair<std::string, std::string> entry{value.substr(0, colon),
                                              colon == std::string::npos ? "" : value.substr(colon + 2)};
    if (std::find(process.not_collected.begin(), process.not_collected.end(), entry) == process.not_collected.end()) {
      process.not_collected.push_back(std::move(entry));
    }
  }
  process.window = window_of(process.options);
  say_clock_steps(reader, process);
}

void read_counters(const TraceReader& reader, ProcessTrace& process) {
  const Counters& whole = reader.conservation();
  process.seen = whole.seen;
  process.counters_exact = whole.exact;
  for (u32 i = 0; i < kDropReasons; ++i) process.dropped_by[i] = whole.dropped[i];
  ThreadFacts rest;
  rest.process_wide = true;
  rest.seen = whole.seen;
  rest.stored = whole.stored;
  std::copy(std::begin(whole.dropped), std::end(whole.dropped), rest.dropped.begin());
  for (const ThreadInfo& thread : reader.threads()) {
    ThreadFacts& facts = process.threads.emplace_back();
    facts.tid = thread.tid;
    facts.slot = thread.slot;
    facts.incarnation = thread.incarnation;
    facts.name = thread.slot == kSidecarSlot ? "(sidecar)" : thread.tid == 0 ? "(definitions)" : thread.name;
    facts.seen = thread.counters.seen;
    facts.stored = thread.counters.stored;
    facts.exact = thread.counters.exact;
    rest.seen -= std::min(rest.seen, facts.seen);
    rest.stored -= std::min(rest.stored, facts.stored);
    for (u32 i = 0; i < kDropReasons; ++i) {
      facts.dropped[i] = thread.counters.dropped[i];
      rest.dropped[i] -= std::min(rest.dropped[i], facts.dropped[i]);
    }
  }
  if (rest.seen) process.threads.push_back(rest);
  process.dropped = 0;
  for (const u64 count : process.dropped_by) process.dropped += count;
}

void read_damage(const TraceReader& reader, ProcessTrace& process) {
  constexpr std::size_t kMost = 200;
  for (const Damage& damage : reader.damage()) {
    if (process.damage.size() == kMost) break;
    process.damage.push_back(damage.reason);
  }
  if (reader.damage().size() > kMost)
    process.damage.push_back(std::to_string(reader.damage().size() - kMost) + " more");
  if (reader.unknown_chunks()) {
    process.notes.push_back(std::to_string(reader.unknown_chunks()) +
                            " chunks are of a kind that this version does not know (newer writer)");
  }
  for (const InFlightCallInfo& open : reader.in_flight()) {
    const TraceCall* call = open.call <= 0xffff ? reader.schema().call(static_cast<u16>(open.call)) : nullptr;
    process.in_flight.push_back({open.tid, call ? call->name : "call " + std::to_string(open.call), open.argument,
                                 open.depth, reader.clock().nanos(open.begin)});
  }
  process.ledger_complete = records_everything_from_the_start(process);
}

}  // namespace gputrace
