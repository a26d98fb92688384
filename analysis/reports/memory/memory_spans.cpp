// When each piece of memory came and went that was there when a device held most.
#include <cstdio>

#include "analysis/lines/sites.h"
#include "analysis/reports/section_report.h"
#include "analysis/run/devices.h"
#include "analysis/run/quality.h"

namespace gputrace {
namespace {

class SpanRows {
 public:
  SpanRows(const ProcessTrace& process, const FileNames& names, Table& table)
      : process_(process), sites_(process.lines, names), table_(table) {}

  void add(const Value& device, const MemorySpans& spans, Nanos peak_at) {
    for (const MemorySpan& span : spans.largest) {
      const bool ended = span.end != kStillAllocated;
      table_.rows.push_back({device, std::string(span.kind), text_or_null(sites_.of(span.origin)),
                             text_or_null(allocation_of_origin(process_.lines, span.origin)), address(span),
                             number(span.bytes), span.begin, ended ? Value(span.end) : Value(),
                             ended ? Value(span.end - span.begin) : Value(), peak_at, i64{process_.who.pid}});
    }
    if (spans.others == 0) return;
    table_.notes.push_back("the " + std::to_string(spans.largest.size()) + " largest of process " +
                           std::to_string(process_.who.pid) + "; " + std::to_string(spans.others) + " more, " +
                           std::to_string(spans.other_bytes) + " bytes in all, were there too");
  }

 private:
  static Value address(const MemorySpan& span) {
    if (span.address == 0) return {};
    char words[32];
    std::snprintf(words, sizeof words, "0x%llx", static_cast<unsigned long long>(span.address));
    return std::string(words);
  }

  const ProcessTrace& process_;
  OriginSites sites_;
  Table& table_;
};

// Of a device on which the framework's allocator gave something out: its tensors, which lie within what the driver gave.
bool add_tensors(SpanRows& rows, const ProcessTrace& process, i32 ordinal, const Value& device) {
  bool any = false;
  for (const FrameworkMemory& memory : process.tensors) {
    if (memory.peak_bytes == 0 || memory.device != ordinal) continue;
    rows.add(device, memory.spans, memory.peak_at);
    any = true;
  }
  return any;
}

void fill_memory_spans(const LoadedRun& run, Table& table) {
  if (ledger_has_holes(run)) table.notes.push_back(kHolesInTheLedger);
  const DeviceMap devices(run);
  const FileNames names(run);
  for (std::size_t p = 0; p < run.processes.size(); ++p) {
    const ProcessTrace& process = run.processes[p];
    SpanRows rows(process, names, table);
    for (const DeviceMemory& memory : process.device_memory) {
      const Value device = devices.number(p, memory.device);
      if (!add_tensors(rows, process, memory.device, device)) rows.add(device, memory.spans, memory.peak_at);
    }
  }
  sort_table(table, "bytes");
}

}  // namespace

extern constexpr SectionReport memory_spans_report = {
    .section = "memory-spans",
    .title = "Life spans of the memory at the peak",
    .answers =
        "each piece of memory that was there when a process held most of a device: what for, from where, when "
        "it came and went",
    .shown = Shown::OnDemand,
    .needs = {Need::Calls},
    .columns = {{"device", Unit::None},
                {"kind", Unit::Text},
                {"site", Unit::Text},
                {"op", Unit::Text},
                {"address", Unit::Text},
                {"bytes", Unit::Bytes},
                {"begin_ns", Unit::Nanos},
                {"end_ns", Unit::Nanos},
                {"duration_ns", Unit::Nanos},
                extra({"peak_at_ns", Unit::Nanos, Hint::Detail}),
                extra({"pid", Unit::None, Hint::Detail})},
    .notes = {"with PyTorch: tensors, at the peak of what its allocator had given out; else what the program had from "
              "the driver, by pool; of each process the largest 2,000; no end: still there when the trace ended; no "
              "address: arrays, and physical memory that is mapped elsewhere"},
    .fill = fill_memory_spans,
};

}  // namespace gputrace
