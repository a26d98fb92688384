// SQLite in the tables and columns of Nsight Systems' export, so that queries and programs written for those read ours; what it has no table
// for lies in tables of our own (GPUTRACE_…).
//   · globalTid = host << 48 | pid << 24 | tid, hosts from 1; globalPid the same without tid.
//   · correlationId joins a call and its work, within a process and (but for chance) across them. Texts are numbers of StringIds.
//   · Times are ns on the clock of the events; TARGET_INFO_SESSION_START_TIME has what to add for the wall clock.
#include <fmt/format.h>

#include <map>
#include <unordered_map>

#include "analysis/export/formats.h"
#include "analysis/export/sqlite_file.h"
#include "analysis/facts/kind_names.h"
#include "analysis/names/cpp_name.h"
#include "analysis/words/safe_text.h"

namespace gputrace {
namespace {

// Numbers as that export has them; its own tables of words (ENUM_…) say what they mean.
constexpr i64 kPushPop = 59, kStartEnd = 60, kMark = 34, kDomain = 75;
constexpr i64 kRuntimeCalls = 0, kDriverCalls = 1;

struct Word {
  i64 id;
  const char *name, *label;
};
constexpr Word kCopyWords[] = {
    {0, "CUDA_MEMCPY_KIND_UNKNOWN", "Unknown"},     {1, "CUDA_MEMCPY_KIND_HTOD", "Host-to-Device"},
    {2, "CUDA_MEMCPY_KIND_DTOH", "Device-to-Host"}, {8, "CUDA_MEMCPY_KIND_DTOD", "Device-to-Device"},
    {9, "CUDA_MEMCPY_KIND_HTOH", "Host-to-Host"},   {10, "CUDA_MEMCPY_KIND_PTOP", "Peer-to-Peer"}};
constexpr Word kMemoryWords[] = {{0, "CUDA_MEMOPR_MEMORY_KIND_PAGEABLE", "Pageable"},
                                 {1, "CUDA_MEMOPR_MEMORY_KIND_PINNED", "Pinned"},
                                 {2, "CUDA_MEMOPR_MEMORY_KIND_DEVICE", "Device"},
                                 {4, "CUDA_MEMOPR_MEMORY_KIND_MANAGED", "Managed"},
                                 {7, "CUDA_MEMOPR_MEMORY_KIND_UNKNOWN", "Unknown"}};
constexpr Word kEventWords[] = {{kMark, "NvtxMark", "NVTX mark"},
                                {kPushPop, "NvtxPushPopRange", "NVTX push/pop range"},
                                {kStartEnd, "NvtxStartEndRange", "NVTX start/end range"},
                                {kDomain, "NvtxDomainCreate", "NVTX domain"}};
constexpr i64 kDeviceMemory = 2;

i64 copy_kind(TransferKind kind) {
  switch (kind) {
    case TransferKind::HtoD:
      return 1;
    case TransferKind::DtoH:
      return 2;
    case TransferKind::DtoD:
      return 8;
    case TransferKind::HtoH:
      return 9;
    case TransferKind::PtoP:
      return 10;
    default:
      return 0;
  }
}

i64 memory_kind(HostMemory memory) {
  switch (memory) {
    case HostMemory::Pageable:
      return 0;
    case HostMemory::Pinned:
      return 1;
    case HostMemory::Device:
      return kDeviceMemory;
    case HostMemory::Managed:
      return 4;
    case HostMemory::Unknown:
      break;
  }
  return 7;
}

class SqliteSink : public EventSink {
 public:
  explicit SqliteSink(const std::string& path) : file_(path) {
    make_event_tables();
    make_other_tables();
    words("ENUM_CUDA_MEMCPY_OPER", kCopyWords);
    words("ENUM_CUDA_MEM_KIND", kMemoryWords);
    words("ENUM_NSYS_EVENT_TYPE", kEventWords);
  }

  void begin(const ExportProcess& process) override {
    who_ = process.who;
    threads_ = &process.threads;
    works_.clear();
    const auto host = hosts_.emplace(who_->host + '\n' + who_->boot_id, static_cast<i64>(hosts_.size()) + 1).first;
    vm_ = host->second;
    pid_ = vm_ << 48 | static_cast<i64>(who_->pid) << 24;
    process_ = process.number;
    const std::string& path = who_->executable;
    file_.insert(processes_)
        .number(pid_)
        .number(who_->pid)
        .text(valid_utf8(path.substr(path.find_last_of('/') + 1)))
        .done();
    file_.insert(ours_)
        .number(pid_)
        .text(valid_utf8(who_->rank))
        .text(valid_utf8(who_->host))
        .text(valid_utf8(who_->command))
        .done();
    for (const ExportThread& thread : process.threads) {
      if (thread.tid && !thread.name.empty())
        file_.insert(thread_names_).number(string_id(thread.name)).number(0).number(pid_ | thread.tid).done();
    }
    if (process.anchor == 0 || started_) return;
    started_ = true;
    file_.insert(session_).number(process.realtime - process.anchor).done();
  }

  void ran(const DeviceSlice& slice) override {
    span(slice.begin, slice.end);
    const DeviceWork& work = *slice.work;
    const i64 correlation = correlation_of(slice.flow);
    const auto row_of = [&](std::size_t table) {
      SqliteFile::Row row = file_.insert(table);
      row.number(slice.begin).number(slice.end).number(slice.device).number(slice.context).null();
      row.number(slice.stream).number(correlation).number(pid_);
      return row;
    };
    const std::optional<i64> node =
        slice.graph_node ? std::optional<i64>(static_cast<i64>(slice.graph_node)) : std::nullopt;
    switch (work.kind) {
      case OperationKind::Kernel: {
        const Named& name = named(work);
        SqliteFile::Row row = row_of(kernels_);
        row.number(name.demangled).number(name.brief).number(name.mangled).null().null().number(work.registers);
        for (const u32 size : work.grid) row.number(size);
        for (const u32 size : work.block) row.number(size);
        row.number(work.static_shared).number(work.dynamic_shared).number(work.local_bytes).null().null().null();
        row.number(node).null().done();
        break;
      }
      case OperationKind::Copy: {
        const bool from_host = work.transfer == TransferKind::HtoD || work.transfer == TransferKind::HtoH;
        const bool to_host = work.transfer == TransferKind::DtoH || work.transfer == TransferKind::HtoH;
        const i64 host = memory_kind(work.memory);
        SqliteFile::Row row = row_of(copies_);
        row.number(static_cast<i64>(slice.bytes)).number(copy_kind(work.transfer)).null();
        row.number(from_host ? host : kDeviceMemory).number(to_host ? host : kDeviceMemory);
        row.null().null().null().null().null().number(node).null().number(1).done();
        break;
      }
      case OperationKind::Memset:
        row_of(memsets_).null().number(static_cast<i64>(slice.bytes)).number(node).null().done();
        break;
      default:
        row_of(graphs_).number(slice.graph).done();
    }
  }

  void idled(const IdleGap& gap) override {
    SqliteFile::Row row = file_.insert(idle_);
    row.number(gap.begin).number(gap.end).number(gap.device).number(pid_);
    row.number(string_id(idle_cause_name(gap.largest()))).done();
  }

  void facts(const ProcessTrace& facts) override {
    for (const Device& device : facts.devices) {
      const std::string key =
          fmt::format("{} {}", vm_, device.uuid.empty() ? std::to_string(device.ordinal) : device.uuid);
      const auto [known, made] = gpus_.emplace(key, static_cast<i64>(gpus_.size()));
      if (made) add_gpu(known->second, device);
      file_.insert(cuda_devices_)
          .number(known->second)
          .number(device.ordinal)
          .number(who_->pid)
          .text(device.uuid)
          .number(device.sms)
          .done();
    }
  }

  void host(const HostSlice& slice) override {
    span(slice.begin, slice.end);
    const i64 thread = pid_ | (*threads_)[slice.thread].tid;
    switch (slice.kind) {
      case HostKind::Call:
        call(slice, thread);
        break;
      case HostKind::Operation:
        file_.insert(operations_)
            .number(slice.begin)
            .number(slice.end)
            .number(thread)
            .number(string_id(slice.name))
            .done();
        break;
      default:
        range(slice, thread);
    }
  }

  bool failed() const override { return !file_.error().empty(); }

  std::string finish() {
    for (const auto& [text, id] : strings_) file_.insert(texts_).number(id).text(text).done();
    file_.insert(details_).number(1).number(last_ - first_).number(first_).number(last_).done();
    file_.insert(about_).text("EXPORT_TOOL").text("gputrace").done();
    file_.close();
    return file_.error();
  }

 private:
  struct Named {
    i64 demangled = 0, brief = 0, mangled = 0;
  };

  void make_event_tables() {
    kernels_ = file_.table("CUPTI_ACTIVITY_KIND_KERNEL", {"start INTEGER NOT NULL",
                                                          "end INTEGER NOT NULL",
                                                          "deviceId INTEGER NOT NULL",
                                                          "contextId INTEGER NOT NULL",
                                                          "greenContextId INTEGER",
                                                          "streamId INTEGER NOT NULL",
                                                          "correlationId INTEGER",
                                                          "globalPid INTEGER",
                                                          "demangledName INTEGER NOT NULL",
                                                          "shortName INTEGER NOT NULL",
                                                          "mangledName INTEGER",
                                                          "launchType INTEGER",
                                                          "cacheConfig INTEGER",
                                                          "registersPerThread INTEGER NOT NULL",
                                                          "gridX INTEGER NOT NULL",
                                                          "gridY INTEGER NOT NULL",
                                                          "gridZ INTEGER NOT NULL",
                                                          "blockX INTEGER NOT NULL",
                                                          "blockY INTEGER NOT NULL",
                                                          "blockZ INTEGER NOT NULL",
                                                          "staticSharedMemory INTEGER NOT NULL",
                                                          "dynamicSharedMemory INTEGER NOT NULL",
                                                          "localMemoryPerThread INTEGER NOT NULL",
                                                          "localMemoryTotal INTEGER",
                                                          "gridId INTEGER",
                                                          "sharedMemoryExecuted INTEGER",
                                                          "graphNodeId INTEGER",
                                                          "sharedMemoryLimitConfig INTEGER"});
    copies_ = file_.table("CUPTI_ACTIVITY_KIND_MEMCPY", {"start INTEGER NOT NULL",    "end INTEGER NOT NULL",
                                                         "deviceId INTEGER NOT NULL", "contextId INTEGER NOT NULL",
                                                         "greenContextId INTEGER",    "streamId INTEGER NOT NULL",
                                                         "correlationId INTEGER",     "globalPid INTEGER",
                                                         "bytes INTEGER NOT NULL",    "copyKind INTEGER NOT NULL",
                                                         "deprecatedSrcId INTEGER",   "srcKind INTEGER",
                                                         "dstKind INTEGER",           "srcDeviceId INTEGER",
                                                         "srcContextId INTEGER",      "dstDeviceId INTEGER",
                                                         "dstContextId INTEGER",      "migrationCause INTEGER",
                                                         "graphNodeId INTEGER",       "virtualAddress INTEGER",
                                                         "copyCount INTEGER"});
    memsets_ = file_.table(
        "CUPTI_ACTIVITY_KIND_MEMSET",
        {"start INTEGER NOT NULL", "end INTEGER NOT NULL", "deviceId INTEGER NOT NULL", "contextId INTEGER NOT NULL",
         "greenContextId INTEGER", "streamId INTEGER NOT NULL", "correlationId INTEGER", "globalPid INTEGER",
         "value INTEGER", "bytes INTEGER NOT NULL", "graphNodeId INTEGER", "memKind INTEGER"});
    graphs_ = file_.table("CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
                          {"start INTEGER NOT NULL", "end INTEGER NOT NULL", "deviceId INTEGER NOT NULL",
                           "contextId INTEGER NOT NULL", "greenContextId INTEGER", "streamId INTEGER NOT NULL",
                           "correlationId INTEGER", "globalPid INTEGER", "graphExecId INTEGER"});
    calls_ = file_.table(
        "CUPTI_ACTIVITY_KIND_RUNTIME",
        {"start INTEGER NOT NULL", "end INTEGER NOT NULL", "eventClass INTEGER NOT NULL", "globalTid INTEGER",
         "correlationId INTEGER", "nameId INTEGER NOT NULL", "returnValue INTEGER NOT NULL", "callchainId INTEGER"});
    nvtx_ = file_.table("NVTX_EVENTS", {"start INTEGER NOT NULL",
                                        "end INTEGER",
                                        "eventType INTEGER NOT NULL",
                                        "rangeId INTEGER",
                                        "category INTEGER",
                                        "color INTEGER",
                                        "text TEXT",
                                        "globalTid INTEGER",
                                        "endGlobalTid INTEGER",
                                        "textId INTEGER",
                                        "domainId INTEGER",
                                        "uint64Value INTEGER",
                                        "int64Value INTEGER",
                                        "doubleValue REAL",
                                        "uint32Value INTEGER",
                                        "int32Value INTEGER",
                                        "floatValue REAL",
                                        "jsonTextId INTEGER",
                                        "jsonText TEXT",
                                        "binaryData TEXT"});
  }

  void make_other_tables() {
    texts_ = file_.table("StringIds", {"id INTEGER NOT NULL PRIMARY KEY", "value TEXT NOT NULL"});
    gpu_ = file_.table("TARGET_INFO_GPU",
                       {"vmId INTEGER", "id INTEGER NOT NULL", "name TEXT", "busLocation TEXT", "isDiscrete INTEGER",
                        "l2CacheSize INTEGER", "totalMemory INTEGER", "memoryBandwidth INTEGER", "clockRate INTEGER",
                        "smCount INTEGER", "pwGpuId INTEGER", "uuid TEXT", "luid INTEGER", "chipName TEXT",
                        "cuDevice INTEGER", "computeMajor INTEGER", "computeMinor INTEGER", "maxWarpsPerSm INTEGER"});
    cuda_devices_ =
        file_.table("TARGET_INFO_CUDA_DEVICE", {"gpuId INTEGER NOT NULL", "cudaId INTEGER NOT NULL",
                                                "pid INTEGER NOT NULL", "uuid TEXT", "numMultiprocessors INTEGER"});
    session_ = file_.table("TARGET_INFO_SESSION_START_TIME", {"utcEpochNs INTEGER", "utcTime TEXT", "localTime TEXT"});
    details_ = file_.table("ANALYSIS_DETAILS", {"globalVid INTEGER NOT NULL", "duration INTEGER NOT NULL",
                                                "startTime INTEGER NOT NULL", "stopTime INTEGER NOT NULL"});
    processes_ = file_.table("PROCESSES", {"globalPid INTEGER", "pid INTEGER", "name TEXT"});
    thread_names_ = file_.table("ThreadNames", {"nameId INTEGER NOT NULL", "priority INTEGER", "globalTid INTEGER"});
    about_ = file_.table("META_DATA_EXPORT", {"name TEXT", "value TEXT"});
    ours_ = file_.table("GPUTRACE_PROCESSES", {"globalPid INTEGER", "rank TEXT", "host TEXT", "command TEXT"});
    operations_ = file_.table("GPUTRACE_OPERATIONS", {"start INTEGER NOT NULL", "end INTEGER NOT NULL",
                                                      "globalTid INTEGER", "nameId INTEGER NOT NULL"});
    libraries_ =
        file_.table("GPUTRACE_LIBRARY_CALLS", {"start INTEGER NOT NULL", "end INTEGER NOT NULL", "globalTid INTEGER",
                                               "nameId INTEGER NOT NULL", "returnValue INTEGER NOT NULL"});
    idle_ = file_.table("GPUTRACE_IDLE", {"start INTEGER NOT NULL", "end INTEGER NOT NULL", "deviceId INTEGER NOT NULL",
                                          "globalPid INTEGER", "cause INTEGER NOT NULL"});
    lines_ = file_.table("GPUTRACE_CALL_LINES", {"start INTEGER NOT NULL", "globalTid INTEGER", "correlationId INTEGER",
                                                 "line INTEGER NOT NULL"});
  }

  template <std::size_t N>
  void words(const char* table, const Word (&all)[N]) {
    const std::size_t made = file_.table(table, {"id INTEGER NOT NULL PRIMARY KEY", "name TEXT", "label TEXT"});
    for (const Word& word : all) file_.insert(made).number(word.id).text(word.name).text(word.label).done();
  }

  void add_gpu(i64 id, const Device& device) {
    SqliteFile::Row row = file_.insert(gpu_);
    row.number(vm_).number(id).text(valid_utf8(device.name));
    row.text(fmt::format("{:04x}:{:02x}:{:02x}.0", device.pci_domain, device.pci_bus_device >> 8 & 0xff,
                         device.pci_bus_device & 0xff));
    row.null().null().number(static_cast<i64>(device.memory_bytes)).null().number(i64{device.clock_khz} * 1000);
    row.number(device.sms).null().text(device.uuid).null().null().number(device.ordinal);
    row.number(device.capability_major).number(device.capability_minor).null().done();
  }

  void call(const HostSlice& slice, i64 thread) {
    const i64 correlation = correlation_of(slice.flow);
    const i64 name = string_id(slice.name.empty() ? std::string_view("unnamed") : slice.name);
    if (slice.level == "library") {
      file_.insert(libraries_)
          .number(slice.begin)
          .number(slice.end)
          .number(thread)
          .number(name)
          .number(slice.result)
          .done();
    } else {
      SqliteFile::Row row = file_.insert(calls_);
      row.number(slice.begin).number(slice.end).number(slice.level == "runtime" ? kRuntimeCalls : kDriverCalls);
      row.number(thread).number(correlation).number(name).number(slice.result).done();
    }
    if (slice.site.empty()) return;
    file_.insert(lines_).number(slice.begin).number(thread).number(correlation).number(string_id(slice.site)).done();
  }

  void range(const HostSlice& slice, i64 thread) {
    const i64 domain = domain_id(slice.level, thread);  // before the row: it may be one of that table itself
    const bool mark = slice.kind == HostKind::Mark;
    SqliteFile::Row row = file_.insert(nvtx_);
    row.number(slice.begin).number(mark || slice.open ? std::nullopt : std::optional<i64>(slice.end));
    row.number(mark ? kMark : slice.across_threads ? kStartEnd : kPushPop).null().number(slice.category);
    row.number(slice.color).text(valid_utf8(slice.name)).number(thread).null().null().number(domain);
    row.done();
  }

  // Of a domain, in its process; what names it is an event of its own.
  i64 domain_id(std::string_view domain, i64 thread) {
    if (domain.empty()) return 0;
    const auto [known, made] =
        domains_.emplace(std::pair(pid_, std::string(domain)), static_cast<i64>(domains_.size()) + 1);
    if (made) {
      SqliteFile::Row row = file_.insert(nvtx_);
      row.number(first_).null().number(kDomain).null().null().null().text(valid_utf8(domain)).number(thread);
      row.null().null().number(known->second).done();
    }
    return known->second;
  }

  // Thread and begin of the call (of which it has 73 minutes), and the process; 0: no call.
  i64 correlation_of(u64 flow) const {
    if (flow == 0) return 0;
    return static_cast<i64>(u64{process_ & 0x3ff} << 53 | (flow_thread(flow) & 0x7ff) << 42 |
                            (flow_time(flow) & ((u64{1} << 42) - 1)));
  }

  const Named& named(const DeviceWork& work) {
    Named& known = works_[&work];
    if (known.demangled == 0) {
      known.demangled = string_id(work.name);
      const std::string leaf = split_cpp_name(work.name).leaf;
      known.brief = string_id(leaf.empty() ? work.name : leaf);
      known.mangled = string_id(work.symbol);
    }
    return known;
  }
  i64 string_id(std::string_view text) {
    const auto [known, made] = strings_.emplace(valid_utf8(text), static_cast<i64>(strings_.size()) + 1);
    return known->second;
  }

  void span(Nanos begin, Nanos end) {
    if (first_ == 0 || begin < first_) first_ = begin;
    if (end > last_) last_ = end;
  }

  SqliteFile file_;
  std::size_t kernels_, copies_, memsets_, graphs_, calls_, nvtx_;
  std::size_t texts_, gpu_, cuda_devices_, session_, details_, processes_, thread_names_, about_;
  std::size_t ours_, operations_, libraries_, idle_, lines_;
  const ProcessIdentity* who_ = nullptr;
  const std::vector<ExportThread>* threads_ = nullptr;
  i64 vm_ = 1, pid_ = 0;
  u32 process_ = 0;
  bool started_ = false;
  Nanos first_ = 0, last_ = 0;
  std::map<std::string, i64> hosts_, gpus_;
  std::map<std::pair<i64, std::string>, i64> domains_;
  std::unordered_map<std::string, i64> strings_;
  std::unordered_map<const DeviceWork*, Named> works_;
};

}  // namespace

extern constexpr ExportFormat sqlite_export = {
    .name = "sqlite",
    .kind = ExportFormat::Kind::File,
    .suffix = ".sqlite",
    .readers = "what reads Nsight Systems' export: nsys stats, nsys-tui, SQL",
    .make = [](const ExportTarget& target) -> std::unique_ptr<EventSink> {
      return std::make_unique<SqliteSink>(target.path);
    },
    .finish = [](EventSink& sink) { return static_cast<SqliteSink&>(sink).finish(); },
};

}  // namespace gputrace
