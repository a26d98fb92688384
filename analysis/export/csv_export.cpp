// CSV: one event a row, in base units, for pandas, spreadsheets and awk. Columns that mean nothing for a kind are empty.
#include <fmt/format.h>

#include <unordered_map>

#include "analysis/export/formats.h"
#include "analysis/facts/kind_names.h"
#include "analysis/words/csv_text.h"

namespace gputrace {
namespace {

constexpr std::size_t kCsvPiece = 1u << 20;

constexpr const char* kCsvHead =
    "kind,name,begin_ns,end_ns,duration_ns,process,rank,pid,tid,level,device,context,stream,flow,correlation,bytes,"
    "memory,grid,block,cluster,registers,static_shared_bytes,dynamic_shared_bytes,graph_node,result,site\r\n";

class CsvSink : public EventSink {
 public:
  explicit CsvSink(const WriteBytes& write) : write_(write), out_(kCsvHead) {}

  void begin(const ExportProcess& process) override {
    threads_ = &process.threads;
    works_.clear();
    of_process_ = fmt::format(",{},", process.number);
    csv_field(of_process_, csv_harmless(process.who->rank));
    of_process_ += fmt::format(",{},", process.who->pid);
  }

  void ran(const DeviceSlice& slice) override {
    const Described& work = description_of(*slice.work);
    out_ += work.head;
    times(slice.begin, slice.end);
    out_ += of_process_;
    fmt::format_to(std::back_inserter(out_), ",,{},{},{},{},{},", slice.device, slice.context, slice.stream, slice.flow,
                   slice.correlation);
    const bool moves = slice.work->kind == OperationKind::Copy || slice.work->kind == OperationKind::Memset;
    if (moves) fmt::format_to(std::back_inserter(out_), "{}", slice.bytes);
    out_ += work.tail;
    if (slice.graph_node) fmt::format_to(std::back_inserter(out_), "{}", slice.graph_node);
    end_row(",,");
  }

  void idled(const IdleGap& gap) override {
    out_ += "idle,";
    csv_field(out_, idle_cause_name(gap.largest()));
    times(gap.begin, gap.end);
    out_ += of_process_;
    fmt::format_to(std::back_inserter(out_), ",,{}", gap.device);
    end_row(",,,,,,,,,,,,,,,");
  }

  void host(const HostSlice& slice) override {
    constexpr const char* kKinds[] = {"call,", "operation,", "range,", "mark,"};
    out_ += kKinds[static_cast<unsigned>(slice.kind)];
    csv_field(out_, csv_harmless(slice.name));
    times(slice.begin, slice.end);
    out_ += of_process_;
    const i32 tid = (*threads_)[slice.thread].tid;
    if (tid) out_ += std::to_string(tid);
    out_ += ',';
    csv_field(out_, csv_harmless(slice.level));
    out_ += ",,,,";
    if (slice.flow) out_ += std::to_string(slice.flow);
    out_ += ",,,,,,,,,,,";
    if (slice.kind == HostKind::Call) out_ += std::to_string(slice.result);
    out_ += ',';
    csv_field(out_, csv_harmless(slice.site));
    end_row("");
  }

  bool failed() const override { return failed_; }

  void flush() {
    if (!failed_ && !out_.empty()) failed_ = !write_(out_);
    out_.clear();
  }

 private:
  // What all rows of that work say alike: before its times, behind its bytes.
  struct Described {
    std::string head, tail;
  };

  static std::string crossed(const u32 (&size)[3]) { return fmt::format("{}x{}x{}", size[0], size[1], size[2]); }

  const Described& description_of(const DeviceWork& work) {
    Described& known = works_[&work];
    if (!known.head.empty()) return known;
    known.head = work.kind == OperationKind::Kernel   ? "kernel,"
                 : work.kind == OperationKind::Graph  ? "graph,"
                 : work.kind == OperationKind::Memset ? "memset,"
                                                      : "copy,";
    csv_field(known.head, csv_harmless(work.name));
    if (work.kind == OperationKind::Kernel) {
      known.tail = fmt::format(",,{},{},{},{},{},{},", crossed(work.grid), crossed(work.block),
                               work.cluster[0] ? crossed(work.cluster) : "", work.registers, work.static_shared,
                               work.dynamic_shared);
    } else {
      const bool copy = work.kind == OperationKind::Copy;
      known.tail = fmt::format(",{},,,,,,,", copy ? host_memory_name(work.memory) : "");
    }
    return known;
  }

  void times(Nanos begin, Nanos end) { fmt::format_to(std::back_inserter(out_), ",{},{},{}", begin, end, end - begin); }
  void end_row(const char* rest) {
    out_ += rest;
    out_ += "\r\n";
    if (out_.size() >= kCsvPiece) flush();
  }

  const WriteBytes write_;
  std::string out_, of_process_;
  bool failed_ = false;
  const std::vector<ExportThread>* threads_ = nullptr;
  std::unordered_map<const DeviceWork*, Described> works_;
};

}  // namespace

extern constexpr ExportFormat csv_export = {
    .name = "csv",
    .suffix = ".csv",
    .readers = "pandas, spreadsheets, awk: an event a row",
    .make = [](const ExportTarget& target) -> std::unique_ptr<EventSink> {
      return std::make_unique<CsvSink>(target.write);
    },
    .finish = [](EventSink& sink) { return static_cast<CsvSink&>(sink).flush(), std::string(); },
};

}  // namespace gputrace
