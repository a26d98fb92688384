// Chrome's trace events as PyTorch's profiler (Kineto) writes them, so that what reads its files reads ours: HTA, TensorBoard's
// plugin, chrome://tracing, ui.perfetto.dev.
//   · Categories, names and arguments are Kineto's: kernel, gpu_memcpy, gpu_memset, cuda_runtime, cuda_driver, cpu_op,
//     user_annotation; `correlation` joins a call and its work.
//   · One file is one process, as Kineto's are; of several processes the first one's rank is named in distributedInfo.
#include <fmt/format.h>

#include <set>
#include <unordered_map>

#include "analysis/export/formats.h"
#include "analysis/export/json_text.h"
#include "analysis/facts/kind_names.h"

namespace gputrace {
namespace {

constexpr std::size_t kPiece = 1u << 20;

// "Memcpy HtoD (Pageable -> Device)".
std::string copy_name(const DeviceWork& work) {
  std::string host = host_memory_name(work.memory);
  if (host.empty()) host = "unknown";
  host.front() = static_cast<char>(host.front() - 'a' + 'A');
  switch (work.transfer) {
    case TransferKind::HtoD:
      return "Memcpy HtoD (" + host + " -> Device)";
    case TransferKind::DtoH:
      return "Memcpy DtoH (Device -> " + host + ")";
    case TransferKind::HtoH:
      return "Memcpy HtoH (" + host + " -> " + host + ")";
    case TransferKind::DtoD:
    case TransferKind::PtoP:
      return work.name + " (Device -> Device)";
    default:
      return work.name;
  }
}

class ChromeSink : public EventSink {
 public:
  explicit ChromeSink(const WriteBytes& write) : write_(write) {}

  void begin(const ExportProcess& process) override {
    if (!begun_) open(process);
    threads_ = &process.threads;
    pid_ = process.who->pid;
    if (!pids_.insert(pid_).second) pid_ = 1'000'000'000 + static_cast<i32>(process.number);
    works_.clear();
    named_threads_.clear(), named_streams_.clear();
    std::string name = process.who->executable.substr(process.who->executable.find_last_of('/') + 1);
    if (!process.who->rank.empty()) name = "rank " + process.who->rank + " " + name;
    metadata("process_name", pid_, 0, name);
  }

  void ran(const DeviceSlice& slice) override {
    const i64 stream_pid = device_pid(slice.device);
    if (named_streams_.emplace(slice.device, slice.stream).second)
      metadata("thread_name", stream_pid, slice.stream, fmt::format("stream {}", slice.stream));
    const OperationKind kind = slice.work->kind;
    const char* category = kind == OperationKind::Kernel   ? "kernel"
                           : kind == OperationKind::Memset ? "gpu_memset"
                           : kind == OperationKind::Graph  ? "gpu_user_annotation"
                                                           : "gpu_memcpy";
    event('X', category, description_of(*slice.work).name, stream_pid, slice.stream, slice.begin, slice.length());
    out_ += fmt::format(R"(,"args":{{"device":{},"context":{},"stream":{})", slice.device, slice.context, slice.stream);
    if (slice.flow) out_ += fmt::format(R"(,"correlation":{})", correlation_of(slice.flow));
    out_ += description_of(*slice.work).arguments;
    if (kind == OperationKind::Copy || kind == OperationKind::Memset) {
      out_ += fmt::format(R"(,"bytes":{})", slice.bytes);
      if (slice.length() > 0)
        out_ += fmt::format(R"x(,"memory bandwidth (GB/s)":{:.6f})x",
                            static_cast<double>(slice.bytes) / static_cast<double>(slice.length()));
    }
    if (slice.graph_node) out_ += fmt::format(R"(,"graph node id":{})", slice.graph_node);
    end_event();
  }

  void host(const HostSlice& slice) override {
    const ExportThread& thread = (*threads_)[slice.thread];
    const i64 tid = thread.tid ? thread.tid : 2'000'000'000 + static_cast<i64>(slice.thread);
    if (named_threads_.insert(slice.thread).second)
      metadata("thread_name", pid_, static_cast<u64>(tid),
               thread.tid ? fmt::format("thread {} ({})", tid, thread.name) : "threads that are not told");
    const char* category = slice.kind == HostKind::Operation ? "cpu_op"
                           : slice.kind != HostKind::Call    ? "user_annotation"
                           : slice.level == "runtime"        ? "cuda_runtime"
                           : slice.level == "driver"         ? "cuda_driver"
                                                             : "library";
    event(slice.kind == HostKind::Mark ? 'i' : 'X', category, slice.name.empty() ? "unnamed" : std::string(slice.name),
          pid_, static_cast<u64>(tid), slice.begin, slice.length());
    if (slice.kind == HostKind::Mark) out_ += R"(,"s":"t")";
    out_ += R"(,"args":{)";
    const char* before = "";
    if (slice.kind == HostKind::Call) {
      out_ += fmt::format(R"("cbid":{})", slice.call);
      if (slice.flow) out_ += fmt::format(R"(,"correlation":{})", correlation_of(slice.flow));
      before = ",";
    }
    if (slice.result) out_ += fmt::format(R"({}"result":{})", before, slice.result), before = ",";
    if (!slice.site.empty()) {
      out_ += fmt::format(R"({}"line":)", before);
      json_string(out_, slice.site);
    }
    end_event();
  }

  bool failed() const override { return failed_; }

  void finish() {
    if (!begun_) out_ += R"({"schemaVersion":1,"traceEvents":[)";
    out_ += "\n]}\n";
    flush();
  }

 private:
  struct Described {
    std::string name, arguments;
  };

  void open(const ExportProcess& process) {
    begun_ = true;
    out_ += "{\n\"schemaVersion\": 1,\n\"traceName\": ";
    json_string(out_, process.who->command);
    out_ += ",\n\"displayTimeUnit\": \"ns\",\n\"baseTimeNanoseconds\": 0,\n";
    const std::string& rank = process.who->rank;
    const bool number = !rank.empty() && rank.find_first_not_of("0123456789") == std::string::npos;
    if (number) out_ += "\"distributedInfo\": {\"rank\": " + rank + "},\n";
    out_ += "\"traceEvents\": [";
  }

  // A number that JavaScript keeps whole, from the thread and the call's begin (of which it has 73 minutes).
  static u64 correlation_of(u64 flow) {
    return (flow_thread(flow) & 0x7ff) << 42 | (flow_time(flow) & ((u64{1} << 42) - 1));
  }

  // Kineto gives a device a process of its own, with its ordinal for a number.
  i64 device_pid(i32 device) {
    if (devices_.insert(device).second) metadata("process_name", device, 0, fmt::format("GPU {}", device));
    return device;
  }

  const Described& description_of(const DeviceWork& work) {
    Described& known = works_[&work];
    if (!known.name.empty()) return known;
    known.name = work.kind == OperationKind::Copy     ? copy_name(work)
                 : work.kind == OperationKind::Memset ? "Memset (Device)"
                                                      : work.name;
    if (work.kind == OperationKind::Kernel) {
      known.arguments =
          fmt::format(R"(,"registers per thread":{},"shared memory":{},"grid":[{},{},{}],"block":[{},{},{}])",
                      work.registers, u64{work.static_shared} + work.dynamic_shared, work.grid[0], work.grid[1],
                      work.grid[2], work.block[0], work.block[1], work.block[2]);
    }
    return known;
  }

  void comma() {
    out_ += first_ ? "\n" : ",\n";
    first_ = false;
  }
  void metadata(const char* what, i64 pid, u64 tid, const std::string& name) {
    comma();
    out_ += fmt::format(R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{"name":)", what, pid, tid);
    json_string(out_, name);
    out_ += "}}";
  }
  void event(char phase, const char* category, const std::string& name, i64 pid, u64 tid, Nanos at, u64 length) {
    comma();
    out_ += fmt::format(R"({{"ph":"{}","cat":"{}","name":)", phase, category);
    json_string(out_, name);
    out_ += fmt::format(R"(,"pid":{},"tid":{},"ts":)", pid, tid);
    json_micros(out_, at);
    if (phase != 'X') return;
    out_ += R"(,"dur":)";
    json_micros(out_, static_cast<Nanos>(length));
  }
  void end_event() {
    out_ += "}}";
    if (out_.size() >= kPiece) flush();
  }
  void flush() {
    if (!failed_ && !out_.empty()) failed_ = !write_(out_);
    out_.clear();
  }

  const WriteBytes write_;
  std::string out_;
  bool begun_ = false, first_ = true, failed_ = false;
  i64 pid_ = 0;
  const std::vector<ExportThread>* threads_ = nullptr;
  std::set<i64> pids_;
  std::set<i32> devices_;
  std::set<u32> named_threads_;
  std::set<std::pair<i32, u32>> named_streams_;
  std::unordered_map<const DeviceWork*, Described> works_;
};

}  // namespace

extern constexpr ExportFormat chrome_export = {
    .name = "chrome",
    .suffix = ".pt.trace.json",
    .readers = "what reads PyTorch's profiler: HTA, TensorBoard's plugin, chrome://tracing",
    .make = [](const ExportTarget& target) -> std::unique_ptr<EventSink> {
      return std::make_unique<ChromeSink>(target.write);
    },
    .finish = [](EventSink& sink) { return static_cast<ChromeSink&>(sink).finish(), std::string(); },
};

}  // namespace gputrace
