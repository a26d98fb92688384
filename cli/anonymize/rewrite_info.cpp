// Info lines: which of them name something, and what.
#include <algorithm>
#include <cstring>

#include "cli/anonymize/rewrite.h"

namespace gputrace {
namespace {

enum class InfoKind : u8 { Kept, Path, Arguments, Host, Boot, Job, Value, Kernel, Sentence, Option, Warning };

struct InfoRule {
  std::string_view key;
  InfoKind kind;
};
constexpr InfoRule kInfoRules[] = {{"argv", InfoKind::Arguments},
                                   {"begin_realtime_ns", InfoKind::Kept},
                                   {"boot_id", InfoKind::Boot},
                                   {"clock", InfoKind::Kept},
                                   {"cwd", InfoKind::Path},
                                   {"disk_stop", InfoKind::Sentence},
                                   {"end_code_open", InfoKind::Kept},
                                   {"end_open_calls", InfoKind::Kept},
                                   {"end_realtime_ns", InfoKind::Kept},
                                   {"executable", InfoKind::Path},
                                   {"host", InfoKind::Host},
                                   {"job", InfoKind::Job},
                                   {"kernel", InfoKind::Kernel},
                                   {"not_collected", InfoKind::Sentence},
                                   {"ns_pid", InfoKind::Kept},
                                   {"option_warning", InfoKind::Warning},
                                   {"output", InfoKind::Path},
                                   {"parent_pid", InfoKind::Kept},
                                   {"parent_random_id", InfoKind::Kept},
                                   {"python_packages", InfoKind::Path},
                                   {"python_version", InfoKind::Option},
                                   {"recovered", InfoKind::Sentence},
                                   {"ring_file", InfoKind::Path},
                                   {"run", InfoKind::Job},
                                   {"sidecar_pid", InfoKind::Kept},
                                   {"torch_version", InfoKind::Option},
                                   {"user_given_up", InfoKind::Sentence},
                                   {"version", InfoKind::Option},
                                   {"window_never_opened", InfoKind::Sentence},
                                   {"end_bad_blocks", InfoKind::Kept},
                                   {"io_left_out", InfoKind::Kept},
                                   {"waits_left_out", InfoKind::Kept},
                                   {"samples", InfoKind::Kept},
                                   {"samples_cpu_ns", InfoKind::Kept},
                                   {"samples_of_workers", InfoKind::Kept},
                                   {"samples_of_other_threads", InfoKind::Kept},
                                   {"samples_outer_part", InfoKind::Kept},
                                   {"samples_torn", InfoKind::Kept},
                                   {"samples_unreadable", InfoKind::Kept},
                                   {"thread_looks", InfoKind::Kept},
                                   {"thread_looks_cpu_ns", InfoKind::Kept},
                                   {"thread_unseen_cpu_ns", InfoKind::Kept},
                                   {"thread_looks_left_out", InfoKind::Kept},
                                   {"shared_directory", InfoKind::Value}};

// Numbers, words of ours and versions: short, and nothing in them that a path or a sentence would have.
bool is_plain_value(std::string_view value) {
  return value.size() <= 160 && std::all_of(value.begin(), value.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == ',' || c == '.' || c == '+' || c == '-' ||
                  c == '_';
         });
}

bool is_figure(std::string_view value) {
  return value.size() <= 24 &&
         std::all_of(value.begin(), value.end(), [](char c) { return (c >= '0' && c <= '9') || c == '.' || c == '-'; });
}

std::string command_arguments(std::string_view joined, Pseudonyms& names) {
  std::string out;
  for (std::size_t at = 0; at <= joined.size();) {
    const std::size_t end = std::min(joined.find('\x1f', at), joined.size());
    out += names.of(at == 0 ? NameKind::Path : NameKind::Argument, joined.substr(at, end - at));
    if (end < joined.size()) out += '\x1f';
    at = end + 1;
  }
  return out;
}

// "Linux 6.18.44-site3 x86_64": what a site calls its kernels goes.
std::string kernel_release(std::string_view release) {
  if (!release.starts_with("Linux ")) return "Linux";
  std::size_t end = 6;
  while (end < release.size() && (release[end] == '.' || (release[end] >= '0' && release[end] <= '9'))) ++end;
  return std::string(release.substr(0, end));
}

// Of what the user asked for only which variable it was.
std::string option_note(std::string_view text) {
  constexpr std::string_view kPrefix = "GPUTRACE_";
  const std::size_t at = text.find(kPrefix);
  if (at == std::string_view::npos) return "a note about the options (left out of the anonymized trace)";
  std::size_t end = at + kPrefix.size();
  while (end < text.size() && text[end] >= 'A' && text[end] <= 'Z') ++end;
  return std::string(text.substr(at, end - at)) + ": a note about this option (left out of the anonymized trace)";
}

InfoKind info_kind(std::string_view key, bool& known) {
  known = true;
  for (const InfoRule& rule : kInfoRules)
    if (rule.key == key) return rule.kind;
  if (key.starts_with("option.")) return InfoKind::Option;
  if (key.starts_with("env.")) return InfoKind::Value;
  for (const std::string_view rank : {"rank", "local_rank", "restart"})
    if (key == rank) return InfoKind::Value;
  known = false;
  return InfoKind::Value;
}

}  // namespace

std::string rewrite_info(std::string_view key, std::string_view value, Pseudonyms& names, bool& known) {
  if (value.empty()) return {};
  switch (info_kind(key, known)) {
    case InfoKind::Kept:
      return is_plain_value(value) ? std::string(value) : names.of(NameKind::Value, value);
    case InfoKind::Option: {
      if (is_plain_value(value)) return std::string(value);
      const std::size_t colon = value.find(':');  // nvtx:NAME
      const std::string_view word = value.substr(0, colon);
      if (colon == std::string_view::npos || !is_plain_value(word)) return names.of(NameKind::Value, value);
      return std::string(word) + ":" + names.of(NameKind::Range, value.substr(colon + 1));
    }
    case InfoKind::Path:
      return names.of(NameKind::Path, value);
    case InfoKind::Arguments:
      return command_arguments(value, names);
    case InfoKind::Host:
      return names.of(NameKind::Host, value);
    case InfoKind::Boot:
      return names.of(NameKind::Boot, value);
    case InfoKind::Job:
      return names.of(NameKind::Job, value);
    case InfoKind::Kernel:
      return kernel_release(value);
    case InfoKind::Sentence:
      return names.of(NameKind::Sentence, value);
    case InfoKind::Warning:
      return option_note(value);
    case InfoKind::Value:
      break;
  }
  return is_figure(value) ? std::string(value) : names.of(NameKind::Value, value);
}

}  // namespace gputrace
