#include "interpose/settings/options.h"

#include <cstring>

#include "base/collect_parts.h"
#include "base/sentence.h"
#include "base/variables.h"

namespace gputrace {
namespace {

constexpr Bytes kLeastBuffer = 512u << 10, kMostBuffer = 1u << 30;

bool equals(const char* text, u64 length, const char* word) {
  return std::strlen(word) == length && std::memcmp(text, word, length) == 0;
}
bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Digits with an optional fraction; the value in units of 1e-9. Advances `text`.
bool parse_number(const char*& text, u64& whole, u64& billionths) {
  if (!is_digit(*text)) return false;
  whole = billionths = 0;
  for (; is_digit(*text); ++text) {
    if (whole > 1'000'000'000'000'000ull) return false;
    whole = whole * 10 + static_cast<u64>(*text - '0');
  }
  if (*text != '.') return true;
  ++text;
  u64 scale = 100'000'000;
  for (; is_digit(*text); ++text, scale /= 10) billionths += static_cast<u64>(*text - '0') * scale;
  return true;
}

u32 edit_distance(const char* a, u32 a_length, const char* b) {
  constexpr u32 kMax = 32;
  const u32 b_length = static_cast<u32>(std::strlen(b));
  if (a_length >= kMax || b_length >= kMax) return kMax;
  u32 row[kMax + 1];
  for (u32 j = 0; j <= b_length; ++j) row[j] = j;
  for (u32 i = 1; i <= a_length; ++i) {
    u32 diagonal = row[0];
    row[0] = i;
    for (u32 j = 1; j <= b_length; ++j) {
      const u32 above = row[j];
      u32 best = diagonal + (a[i - 1] != b[j - 1]);
      if (above + 1 < best) best = above + 1;
      if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
      row[j] = best;
      diagonal = above;
    }
  }
  return row[b_length];
}

void warn_unknown(const char* name, u32 length, const char*, void* data) {
  const char* nearest = nullptr;
  u32 distance = ~0u;
  for (const char* known : kVariables) {
    if (equals(name, length, known)) return;
    const u32 d = edit_distance(name, length, known);
    if (d < distance) {
      distance = d;
      nearest = known;
    }
  }
  Sentence text;
  text.put(name, length) << " is not a variable of gputrace; it is ignored. Nearest: " << nearest;
  static_cast<InfoText*>(data)->add("option_warning", text.text());
}

void warn_value(InfoText& info, const char* name, const char* value, const char* expected, const char* used) {
  Sentence text;
  text << name << "=" << value << " cannot be used (" << expected << "); " << used << " is used";
  info.add("option_warning", text.text());
}

// Variables of the interface that this version does not act on.
void warn_not_built(InfoText& info) {
  constexpr struct {
    const char *name, *used;
  } kNotBuilt[] = {
      {"GPUTRACE_KEEP", "first"}, {"GPUTRACE_SIGNAL", "off"}, {"GPUTRACE_METRICS", "off"}, {"GPUTRACE_CONFIG", "off"}};
  for (const auto& row : kNotBuilt) {
    const char* value = copied_variable(row.name);
    if (value && *value && std::strcmp(value, row.used) != 0)
      warn_value(info, row.name, value, "not built in this version", row.used);
  }
}

void warn_part(InfoText& info, const char* name, u64 length) {
  Sentence text;
  (text << "GPUTRACE_COLLECT: '").put(name, length) << "' is not one of";
  for (const collect::Part& part : collect::kParts) text << " " << part.name;
  text << " all; it is ignored";
  info.add("option_warning", text.text());
}

void add_parts(InfoText& info, u32 parts) {
  Sentence in_effect;
  bool first = true;
  for (const collect::Part& part : collect::kParts) {
    if (!(parts & part.bit)) continue;
    if (part.bit & collect::kBuilt) {
      in_effect << (first ? "" : ",") << part.name;
      first = false;
      continue;
    }
    Sentence text;
    text << part.name << ": not built in this version";
    info.add("not_collected", text.text());
  }
  info.add("option.collect", in_effect.text());
}

// NAME, NAME@DOMAIN or NAME@*, as nsys has it.
bool read_capture_range(Options& options, const char* value) {
  const char* at = std::strrchr(value, '@');
  options.capture_range = value;
  options.capture_range_length = static_cast<u32>(at ? static_cast<u64>(at - value) : std::strlen(value));
  options.capture_domain = at ? at + 1 : "";
  return options.capture_range_length > 0 && !(at && !at[1]);
}

void read_capture(InfoText& info, Options& options, const char* value) {
  options.capture = CaptureMode::All;
  const char* effective = "all";
  if (!value || !*value || std::strcmp(value, "all") == 0) {
  } else if (std::strcmp(value, "manual") == 0) {
    warn_value(info, "GPUTRACE_CAPTURE", value, "start and stop are not built in this version", "all");
  } else if (std::strcmp(value, "profiler-api") == 0) {
    options.capture = CaptureMode::ProfilerApi;
    effective = "profiler-api";
  } else if (std::strncmp(value, "nvtx:", 5) == 0) {
    if (!options.collect_nvtx) {
      warn_value(info, "GPUTRACE_CAPTURE", value, "GPUTRACE_COLLECT leaves nvtx out", "all");
    } else if (!read_capture_range(options, value + 5)) {
      warn_value(info, "GPUTRACE_CAPTURE", value, "expected nvtx:NAME, nvtx:NAME@DOMAIN or nvtx:NAME@*", "all");
    } else {
      options.capture = CaptureMode::Nvtx;
      effective = value;
    }
  } else if (std::strncmp(value, "steps:", 6) == 0) {
    if (!options.collect_operations) {
      warn_value(info, "GPUTRACE_CAPTURE", value, "GPUTRACE_COLLECT leaves ops out, which tell of steps", "all");
    } else if (!parse_steps(value + 6, options.first_step, options.last_step)) {
      warn_value(info, "GPUTRACE_CAPTURE", value, "expected steps:A-B or steps:A, numbers from 1", "all");
    } else {
      options.capture = CaptureMode::Steps;
      effective = value;
    }
  } else {
    warn_value(info, "GPUTRACE_CAPTURE", value, "expected all, profiler-api, nvtx:NAME[@DOMAIN] or steps:A-B", "all");
  }
  info.add("option.capture", effective);
}

void read_device(InfoText& info, Options& options, u32 parts) {
  options.latency = parts & collect::kLatency;
  options.environment = parts & collect::kEnvironment;
  options.collect_device = parts & collect::kFromCupti;
  if (!options.collect_device) info.add("not_collected", "device: not asked for (GPUTRACE_COLLECT)");
  if (const char* value = copied_variable("GPUTRACE_CUPTI"); value && *value && std::strcmp(value, "auto") != 0) {
    if (std::strcmp(value, "off") == 0) {
      if (options.collect_device) info.add("not_collected", "device: GPUTRACE_CUPTI=off");
      options.collect_device = options.latency = options.environment = false;
    } else if (*value == '/') {
      options.cupti = value;
    } else {
      warn_value(info, "GPUTRACE_CUPTI", value, "expected auto, off or the absolute path of a libcupti", "auto");
    }
  }
  if (options.collect_device && !options.latency)
    info.add("not_collected", "latency: not asked for (GPUTRACE_COLLECT): kernels have no queued and submitted stamps");
  if (options.collect_device && !options.environment)
    info.add("not_collected", "environment: not asked for (GPUTRACE_COLLECT): clocks, power, temperature");
  if (const char* value = copied_variable("GPUTRACE_GRAPHS"); value && *value) {
    options.node_graphs = std::strcmp(value, "node") == 0;
    if (!options.node_graphs && std::strcmp(value, "launch") != 0)
      warn_value(info, "GPUTRACE_GRAPHS", value, "expected launch or node", "launch");
  }
  info.add("option.graphs", options.node_graphs ? "node" : "launch");
}

void read_duration(InfoText& info, const char* name, const char* key, Nanos& nanos) {
  const char* value = copied_variable(name);
  if (value && *value && !parse_duration(value, nanos)) {
    nanos = 0;
    warn_value(info, name, value, "expected a duration such as 30s, 500ms or 5m", "no limit");
  }
  info.add(key, static_cast<u64>(nanos));
}

}  // namespace

bool parse_size(const char* text, Bytes& bytes) {
  u64 whole, billionths;
  if (!parse_number(text, whole, billionths)) return false;
  u32 shift = 0;
  switch (*text) {
    case 'K':
    case 'k':
      shift = 10;
      break;
    case 'M':
    case 'm':
      shift = 20;
      break;
    case 'G':
    case 'g':
      shift = 30;
      break;
    case 0:
      bytes = whole;
      return billionths == 0;
    default:
      return false;
  }
  ++text;
  if (*text == 'i') ++text;
  if (*text == 'B') ++text;
  if (*text || whole > (1ull << 30)) return false;
  bytes = (whole << shift) + ((billionths << shift) / 1'000'000'000);
  return true;
}

bool parse_steps(const char* text, u32& first, u32& last) {
  const auto number = [](const char*& at, u32& value) {
    const char* const begin = at;
    for (value = 0; *at >= '0' && *at <= '9' && value < 100'000'000; ++at)
      value = value * 10 + static_cast<u32>(*at - '0');
    return at != begin && value > 0;
  };
  if (!number(text, first)) return false;
  last = first;
  return (!*text || (*text == '-' && number(++text, last))) && !*text && first <= last;
}

bool parse_duration(const char* text, Nanos& nanos) {
  u64 whole, billionths;
  if (!parse_number(text, whole, billionths)) return false;
  u64 unit = 0;
  if (!*text || std::strcmp(text, "s") == 0) unit = 1'000'000'000;
  if (std::strcmp(text, "ns") == 0) unit = 1;
  if (std::strcmp(text, "us") == 0) unit = 1'000;
  if (std::strcmp(text, "ms") == 0) unit = 1'000'000;
  if (std::strcmp(text, "m") == 0) unit = 60'000'000'000;
  if (std::strcmp(text, "h") == 0) unit = 3'600'000'000'000;
  if (!unit || whole > 9'000'000'000'000'000'000ull / unit) return false;
  nanos = static_cast<Nanos>(whole * unit +
                             static_cast<u64>(static_cast<double>(billionths) * 1e-9 * static_cast<double>(unit)));
  return true;
}

bool rank_selected(const char* list, const Rank& rank, bool& valid) {
  bool selected = false;
  valid = *list != 0;
  while (*list) {
    const bool local = std::strncmp(list, "local", 5) == 0;
    if (local) list += 5;
    u64 from, to, fraction;
    if (!parse_number(list, from, fraction)) return valid = false;
    to = from;
    if (*list == '-' && !parse_number(++list, to, fraction)) return valid = false;
    const i64 own = local ? rank.local_rank : rank.rank;
    selected |= own >= 0 && static_cast<u64>(own) >= from && static_cast<u64>(own) <= to;
    if (*list && *list != ',') return valid = false;
    if (*list) ++list;
  }
  return selected;
}

bool nvtx_is_collected() { return collect::parts_of(copied_variable("GPUTRACE_COLLECT")) & collect::kNvtx; }
bool libraries_are_collected() { return collect::parts_of(copied_variable("GPUTRACE_COLLECT")) & collect::kLibraries; }

Options read_options(InfoText& info) {
  Options options;
  visit_copied_variables(warn_unknown, &info);
  read_duration(info, "GPUTRACE_DURATION", "option.duration_ns", options.duration_ns);
  read_duration(info, "GPUTRACE_DELAY", "option.delay_ns", options.delay_ns);
  const u32 parts = collect::parts_of(copied_variable("GPUTRACE_COLLECT"),
                                      [&](const char* name, u64 length) { warn_part(info, name, length); });
  options.collect_any = parts & collect::kBuilt;
  options.collect_nvtx = parts & collect::kNvtx;
  read_capture(info, options, copied_variable("GPUTRACE_CAPTURE"));
  options.collect_libraries = parts & collect::kLibraries;
  options.collect_code = parts & collect::kCode;
  if (!options.collect_code) info.add("not_collected", "code: not asked for (GPUTRACE_COLLECT)");
  options.collect_python = parts & collect::kPython;
  options.collect_stacks = parts & collect::kStacks;
  options.collect_operations = parts & collect::kOps;
  options.collect_files = parts & collect::kIo;
  options.collect_waits = parts & collect::kWaits;
  if (!options.collect_operations) info.add("not_collected", "ops: not asked for (GPUTRACE_COLLECT)");
  if (!options.collect_python) info.add("not_collected", "python: not asked for (GPUTRACE_COLLECT)");
  if (!options.collect_stacks) info.add("not_collected", "stacks: not asked for (GPUTRACE_COLLECT)");
  read_device(info, options, parts);
  add_parts(info, parts);
  if (const char* value = copied_variable("GPUTRACE_BUFFER"); value && *value) {
    if (Bytes bytes; !parse_size(value, bytes)) {
      warn_value(info, "GPUTRACE_BUFFER", value, "expected a size from 512K to 1G, such as 16M", "16M");
    } else {
      options.buffer = bytes < kLeastBuffer ? kLeastBuffer : bytes > kMostBuffer ? kMostBuffer : bytes;
      if (bytes < kLeastBuffer) warn_value(info, "GPUTRACE_BUFFER", value, "the least possible is 512K", "512K");
      if (bytes > kMostBuffer) warn_value(info, "GPUTRACE_BUFFER", value, "the most possible is 1G", "1G");
    }
  }
  if (const char* value = copied_variable("GPUTRACE_ON_FULL"); value && *value) {
    if (std::strcmp(value, "overwrite") == 0)
      options.on_full = OnFull::Overwrite;
    else if (std::strcmp(value, "drop") != 0)
      warn_value(info, "GPUTRACE_ON_FULL", value, "expected drop or overwrite", "drop");
  }
  info.add("option.on_full", options.on_full == OnFull::Drop ? "drop" : "overwrite");
  if (const char* value = copied_variable("GPUTRACE_SIDECAR"); value && *value && std::strcmp(value, "auto") != 0) {
    if (std::strcmp(value, "off") == 0)
      options.start_sidecar = false;
    else
      options.sidecar = value;
  }
  if (const char* value = copied_variable("GPUTRACE_SHM"); value && *value) {
    options.shm_by_itself = std::strcmp(value, "auto") == 0;
    if (std::strncmp(value, "file:", 5) == 0 && value[5])
      options.shm_directory = value + 5;
    else if (!options.shm_by_itself && std::strcmp(value, "memfd") != 0)
      warn_value(info, "GPUTRACE_SHM", value, "expected memfd or file:DIR", "memfd");
  }
  warn_not_built(info);
  if (const char* value = copied_variable("GPUTRACE_RANKS"); value && *value) options.ranks = value;
  if (const char* value = copied_variable("GPUTRACE_PROCESS"); value && *value) options.process = value;
  const char* enabled = copied_variable("GPUTRACE");
  options.enabled = !(enabled && std::strcmp(enabled, "0") == 0);
  return options;
}

}  // namespace gputrace
