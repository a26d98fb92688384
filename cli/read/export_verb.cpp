// gputrace export: the events of traces in the formats that other programs read.
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "analysis/export/formats.h"
#include "analysis/words/human.h"
#include "base/clock.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/places.h"
#include "cli/read/export_teller.h"
#include "cli/read/last_writes.h"
#include "cli/read/report_options.h"

namespace gputrace {
namespace {

struct ExportOptions {
  std::vector<std::string> paths;
  std::string format, output, rank, from, to, steps;
};

std::string format_words(const char* between) {
  std::string words;
  for (const ExportFormat* format : all_exports()) words += (words.empty() ? "" : between) + std::string(format->name);
  return words;
}

void add_options(OptionParser& parser, ExportOptions& options) {
  parser.paths(options.paths, "traces or directories of traces; none: the newest gputrace-* directory here");
  const std::string formats = "one of " + format_words(", ");
  parser.text("--format", options.format, formats.c_str(), "FORMAT");
  std::vector<std::string> names;
  for (const ExportFormat* format : all_exports()) names.emplace_back(format->name);
  parser.values("--format", std::move(names));
  parser.text("-o,--output", options.output, "write to FILE; -: standard output; else named after the first PATH",
              "FILE");
  parser.text("--rank", options.rank, "only processes of this rank", "R");
  parser.text("--from", options.from, "leave out what begins before T (after the first record: 500ms, 2s)", "T");
  parser.text("--to", options.to, "leave out what begins from T on", "T");
  parser.text("--steps", options.steps, "only what happened in steps A to B, from 1 (5-9, 5-, -9, 5)", "A-B");
  parser.quiet("no word on how far it is and what was written");
  std::string footer = "Formats and who reads them:\n";
  for (const ExportFormat* format : all_exports())
    footer += fmt::format("  {:<11} {}\n", format->name, format->readers);
  parser.footer(footer.c_str());
}

int check_options(const ExportOptions& options) {
  std::vector<std::string> names;
  for (const ExportFormat* format : all_exports()) names.emplace_back(format->name);
  if (options.format.empty()) return fail(kUsage, "--format is missing: one of " + format_words(", "));
  if (!find_export(options.format))
    return fail(kUsage, "--format: '" + options.format + "' is none of " + format_words(", ") +
                            did_you_mean(options.format, names));
  for (const auto& [name, value] : {std::pair{"--from", &options.from}, std::pair{"--to", &options.to}}) {
    if (!value->empty() && !parse_duration(*value))
      return fail(kUsage, std::string(name) + ": '" + *value + "' is no duration: 500ms, 2s, 1m");
  }
  if (!options.from.empty() && !options.to.empty() && *parse_duration(options.from) >= *parse_duration(options.to))
    return fail(kUsage, "--from must be before --to");
  if (!options.steps.empty() && !parse_steps(options.steps))
    return fail(kUsage, "--steps: '" + options.steps + "' is none of A-B, A-, -B, A (numbers from 1)");
  if (!options.steps.empty() && (!options.from.empty() || !options.to.empty()))
    return fail(kUsage, "--steps and --from, --to exclude each other");
  if (options.output == "-" && find_export(options.format)->kind != ExportFormat::Kind::Stream)
    return fail(kUsage, "--format " + options.format + " is no stream: name a file with -o");
  return 0;
}

// "gputrace-20261122" of a directory, "rank0" of a file.
std::string default_name(const std::string& first_file, const ExportFormat& format, bool several) {
  std::string path = first_file;
  const std::size_t slash = path.rfind('/');
  if (several && slash != std::string::npos) path.resize(slash);
  std::string name = base_name(path);
  const std::size_t dot = name.rfind(".gtrace");
  if (dot != std::string::npos && dot + 7 == name.size()) name.resize(dot);
  return (name.empty() || name == "." || name == ".." ? "gputrace" : name) + format.suffix;
}

// Where the bytes of an export go, and how many they were: through an Output, or into a file or folder of the format's own, which takes
// its name once it is whole.
class Destination {
 public:
  Destination(std::string path, ExportFormat::Kind kind)
      : kind_(kind), path_(std::move(path)), output_(kind == ExportFormat::Kind::Stream ? path_ : "") {}
  ~Destination() {
    if (!own_.empty()) remove_own();
  }

  // 0, or the exit code after a message.
  int open() {
    if (kind_ == ExportFormat::Kind::Stream) return output_.open() ? kOk : kRuntimeError;
    std::error_code error;
    if (kind_ == ExportFormat::Kind::Folder && std::filesystem::exists(path_, error))
      return fail(kRuntimeError, path_ + " is there already: remove it, or name another with -o");
    own_ = path_ + ".new" + std::to_string(getpid());
    remove_own();
    return kOk;
  }
  ExportTarget target() {
    return {[this](std::string_view piece) {
              bytes_ += piece.size();
              return output_.write(piece);
            },
            own_};
  }
  // Exit code. `wrong`: what the format has to say; empty: all went well.
  int close(const std::string& wrong) {
    if (kind_ == ExportFormat::Kind::Stream) return output_.close();
    if (!wrong.empty()) return fail(kRuntimeError, path_ + ": " + wrong);
    std::error_code error;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(own_, error))
      bytes_ += entry.is_regular_file(error) ? entry.file_size(error) : 0;
    if (kind_ == ExportFormat::Kind::File) bytes_ = std::filesystem::file_size(own_, error);
    std::filesystem::rename(own_, path_, error);
    if (error) return fail(kRuntimeError, path_ + ": cannot be written: " + error.message());
    own_.clear();
    return kOk;
  }
  void discard() { output_.discard(); }
  u64 bytes() const { return bytes_; }

 private:
  void remove_own() const {
    std::error_code ignored;
    std::filesystem::remove_all(own_, ignored);
  }

  const ExportFormat::Kind kind_;
  const std::string path_;
  std::string own_;  // while it is not whole
  Output output_;
  u64 bytes_ = 0;
};

LoadRequest request_of(const ExportOptions& options, const std::vector<std::string>& files) {
  LoadRequest load;
  load.files = files;
  if (!options.rank.empty()) load.rank = options.rank;
  if (!options.from.empty()) load.from = parse_duration(options.from);
  if (!options.to.empty()) load.to = parse_duration(options.to);
  if (!options.steps.empty()) load.steps = parse_steps(options.steps);
  return load;
}

}  // namespace

int export_verb(const Arguments& arguments, Globals& globals) {
  OptionParser parser("gputrace export", "Writes the events of traces for other programs.", globals);
  ExportOptions options;
  add_options(parser, options);
  if (const auto code = parser.parse(arguments)) return *code;
  if (const int code = check_options(options)) return code;
  const auto files = find_trace_files(options.paths);
  if (!files) return fail(kNoInput, files.error().message);
  wait_for_last_writes(files.value());

  const ExportFormat& format = *find_export(options.format);
  const bool to_stdout = options.output == "-";
  const std::string path = to_stdout ? ""
                           : options.output.empty()
                               ? default_name(files.value().front(), format, files.value().size() > 1)
                               : options.output;
  Destination destination(path, format.kind);
  if (const int code = destination.open()) return code;
  const Nanos began = monotonic_nanos();
  const auto sink = format.make(destination.target());
  const auto done = [&] {
    ExportTeller teller("exporting", !globals.quiet);
    return export_events(request_of(options, files.value()), *sink, &teller);
  }();
  if (!done) {
    if (const std::string wrong = sink->failed() ? format.finish(*sink) : ""; !wrong.empty())
      return destination.close(wrong);
    destination.discard();
    return fail(kNoInput, done.error().message);
  }
  const int code = destination.close(format.finish(*sink));
  const Exported& said = done.value();
  warn_of_losses(said);
  if (code == kOk && !globals.quiet) {
    const double seconds = static_cast<double>(monotonic_nanos() - began) / 1e9;
    say(fmt::format("{}: {} device slices, {} host slices of {} process{}, {} in {:.1f} s", to_stdout ? "wrote" : path,
                    human_count(said.device_slices), human_count(said.host_slices), said.processes,
                    said.processes == 1 ? "" : "es", human_bytes(destination.bytes()), seconds));
  }
  return code;
}

}  // namespace gputrace
