// speedscope's own format (https://www.speedscope.app/file-format-schema.json): one profile a measure, over the same stacks.
#include <fmt/format.h>

#include "analysis/export/formats.h"
#include "analysis/export/json_text.h"
#include "analysis/export/stacks.h"

namespace gputrace {
namespace {

class SpeedscopeSink : public StackSums {
 public:
  explicit SpeedscopeSink(const WriteBytes& write) : write_(write) {}

  void finish() {
    std::string out = R"({"$schema":"https://www.speedscope.app/file-format-schema.json","exporter":"gputrace",)";
    out += R"("name":"gputrace","activeProfileIndex":0,"shared":{"frames":[)";
    for (std::size_t i = 0; i < entries().size(); ++i) add_frame(entries()[i], i != 0, out);
    out += "\n]},\"profiles\":[";
    bool further = false;
    for (const StackProfile& profile : profiles()) {
      if (profile.sums.empty() && &profile != &profiles().front()) continue;
      add_profile(profile, further, out);
      further = true;
    }
    write_(out + "\n]}\n");
  }

 private:
  static void add_frame(const StackEntry& entry, bool further, std::string& out) {
    out += further ? ",\n{\"name\":" : "\n{\"name\":";
    json_string(out, entry.name);
    if (!entry.file.empty()) {
      out += ",\"file\":";
      json_string(out, entry.file);
      if (entry.line) out += fmt::format(R"(,"line":{})", entry.line);
    }
    out += '}';
  }

  static void add_profile(const StackProfile& profile, bool further, std::string& out) {
    std::string samples, weights;
    u64 sum = 0;
    for (const auto& [stack, amount] : profile.sums) {
      samples += samples.empty() ? "[" : ",[";
      for (std::size_t i = 0; i < stack.size(); ++i) samples += (i ? "," : "") + std::to_string(stack[i]);
      samples += ']';
      weights += (weights.empty() ? "" : ",") + std::to_string(amount);
      sum += amount;
    }
    out += further ? ",\n" : "\n";
    out += fmt::format(R"({{"type":"sampled","name":"{}","unit":"{}","startValue":0,"endValue":{},"samples":[)",
                       profile.name, profile.unit, sum);
    out += samples + "],\"weights\":[" + weights + "]}";
  }

  const WriteBytes write_;
};

}  // namespace

extern constexpr ExportFormat speedscope_export = {
    .name = "speedscope",
    .suffix = ".speedscope.json",
    .readers = "speedscope.app: device time, idle time, waits, bytes by stack",
    .make = [](const ExportTarget& target) -> std::unique_ptr<EventSink> {
      return std::make_unique<SpeedscopeSink>(target.write);
    },
    .finish = [](EventSink& sink) { return static_cast<SpeedscopeSink&>(sink).finish(), std::string(); },
};

}  // namespace gputrace
