// A framework's allocator that could not give what was asked of it.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/advice/advice.h"
#include "analysis/findings/rules.h"
#include "analysis/lines/sites.h"
#include "analysis/run/quality.h"
#include "analysis/words/human.h"

namespace gputrace {
namespace {

// What most of the memory was for when it held most.
const TensorPart* largest_part(const FrameworkMemory& memory) {
  const TensorPart* largest = nullptr;
  for (const TensorPart& part : memory.at_peak) {
    if (!largest || part.bytes > largest->bytes) largest = &part;
  }
  return largest;
}

constexpr double kMuchUnused = 0.1;  // of what the allocator held

void judge_refusals(const ProcessTrace& process, const FrameworkMemory& memory, Findings& found) {
  std::string more;
  if (const TensorPart* part = largest_part(memory)) {
    const std::string site = site_of_origin(process.lines, part->origin, FileNames(process));
    more = fmt::format(", most of it {}, {}{}", kTensorKinds[static_cast<std::size_t>(part->kind)],
                       human_bytes(part->bytes), site.empty() ? "" : " allocated at " + site);
  }
  const u64 grown = growth_of_memory(process, memory.device);
  if (grown) more += fmt::format("; what is in use grows all through the loop, by {}", human_bytes(grown));
  more += failure_of(process);
  const u64 unused = memory.peak_reserved_bytes - std::min(memory.peak_bytes, memory.peak_reserved_bytes);
  const double share =
      memory.peak_reserved_bytes ? static_cast<double>(unused) / static_cast<double>(memory.peak_reserved_bytes) : 0;
  std::string fix = grown ? advise(Advice::KeepNothing, process) : advise(Advice::HoldLess, process);
  if (share >= kMuchUnused) {
    fix += fmt::format("; {:.0f} % of what it holds is unused: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
                       share * 100);
  }
  Finding finding{"out-of-memory",
                  Severity::Problem,
                  "memory-peak",
                  fmt::format("{}: {} refused by PyTorch's allocator on device {} for want of memory, the largest {}; "
                              "at its peak it had given out {} of the {} that it held{}",
                              name_of(process), counted(memory.refused, "allocation"), memory.device,
                              human_bytes(memory.refused_bytes), human_bytes(memory.peak_bytes),
                              human_bytes(memory.peak_reserved_bytes), more),
                  fix,
                  {{"device", static_cast<i64>(memory.device)},
                   {"refused", number(memory.refused)},
                   {"largest_refused_bytes", number(memory.refused_bytes)},
                   {"peak_bytes", number(memory.peak_bytes)},
                   {"reserved_bytes", number(memory.peak_reserved_bytes)},
                   {"grown_bytes", grown ? number(grown) : Value{}},
                   {"pid", static_cast<i64>(process.who.pid)}}};
  finding.site = site_of_origin(process.lines, memory.refused_origin, FileNames(process));
  finding.ended_it = process.who.failed;
  found.push_back(std::move(finding));
}

void find_out_of_memory(const LoadedRun& run, Findings& found) {
  for (const ProcessTrace& process : run.processes) {
    for (const FrameworkMemory& memory : process.tensors) {
      if (memory.refused) judge_refusals(process, memory, found);
    }
  }
}

}  // namespace

bool was_refused_memory(const ProcessTrace& process) {
  return std::any_of(process.tensors.begin(), process.tensors.end(),
                     [](const FrameworkMemory& memory) { return memory.refused != 0; });
}

extern constexpr FindingRule out_of_memory_rule = {
    .findings = {{"out-of-memory",
                  "allocations that PyTorch's allocator refused; `memory-peak` has what the memory was for"}},
    .needs = {Need::Operations},
    .find = find_out_of_memory,
};

}  // namespace gputrace
