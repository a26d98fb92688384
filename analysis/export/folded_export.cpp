// Folded stacks, a line each: what flamegraph.pl, inferno, speedscope and others read. The weight is device time in ns.
#include "analysis/export/formats.h"
#include "analysis/export/stacks.h"
#include "analysis/words/safe_text.h"

namespace gputrace {
namespace {

// A frame as py-spy writes it. No ';', which stands between frames.
std::string folded_frame(const StackEntry& entry) {
  std::string text = entry.name;
  if (!entry.file.empty()) text += " (" + entry.file + (entry.line ? ":" + std::to_string(entry.line) : "") + ")";
  text = safe_text(text);
  for (char& c : text)
    if (c == ';') c = ',';
  return text;
}

class FoldedSink : public StackSums {
 public:
  explicit FoldedSink(const WriteBytes& write) : write_(write) {}
  void finish() {
    std::string text;
    for (const auto& [stack, nanos] : profiles()[Device].sums) {
      for (std::size_t i = 0; i < stack.size(); ++i) text += (i ? ";" : "") + folded_frame(entries()[stack[i]]);
      text += ' ' + std::to_string(nanos) + '\n';
    }
    write_(text);
  }

 private:
  const WriteBytes write_;
};

}  // namespace

extern constexpr ExportFormat folded_export = {
    .name = "folded",
    .suffix = ".folded",
    .readers = "flamegraph.pl, inferno, speedscope: device time by stack",
    .make = [](const ExportTarget& target) -> std::unique_ptr<EventSink> {
      return std::make_unique<FoldedSink>(target.write);
    },
    .finish = [](EventSink& sink) { return static_cast<FoldedSink&>(sink).finish(), std::string(); },
};

}  // namespace gputrace
