// Parquet: a folder, in it a folder a table, in that a file a process. Readers take a table as TABLE/*.parquet.
//   · Numbers are signed, times ns on the clock of the events; process_id joins the tables, (process_id, flow_id) a call and its work.
#include <fmt/format.h>

#include <array>
#include <bit>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <unordered_map>

#include "analysis/export/formats.h"
#include "analysis/export/parquet_file.h"
#include "analysis/facts/kind_names.h"
#include "analysis/words/safe_text.h"

namespace gputrace {
namespace {

using Columns = std::vector<ParquetColumn>;
constexpr ParquetType kInt32 = ParquetType::Int32, kText = ParquetType::Text, kBool = ParquetType::Bool;
constexpr ParquetType kInt64 = ParquetType::Int64;

// Told by the row's key.
ParquetColumn keyed(const char* name, ParquetType type) { return {name, type, false, ParquetTold::ByKey}; }
// By that of its stream.
ParquetColumn of_stream(const char* name, ParquetType type) { return {name, type, false, ParquetTold::ByOtherKey}; }

enum TableId : unsigned {
  kProcesses,
  kKernels,
  kCopies,
  kMemsets,
  kGraphs,
  kIdle,
  kCalls,
  kOperations,
  kRanges,
  kTableCount
};

struct TableShape {
  const char* name;
  Columns columns;
};

// What every table of events begins with; of devices, also where.
Columns spanning(const Columns& more) {
  Columns columns = {{"process_id", kInt32, false, ParquetTold::Once},
                     {"begin_ns"},
                     {"end_ns"},
                     {"duration_ns", kInt64, false, ParquetTold::Length}};
  columns.insert(columns.end(), more.begin(), more.end());
  return columns;
}
Columns on_stream(const Columns& more) {
  Columns columns = {of_stream("device_id", kInt32),
                     of_stream("context_id", kInt64),
                     of_stream("stream_id", kInt64),
                     {"flow_id", kInt64, true},
                     {"correlation_id"}};
  columns.insert(columns.end(), more.begin(), more.end());
  return spanning(columns);
}

const std::array<TableShape, kTableCount>& tables() {
  static const std::array<TableShape, kTableCount> kAll = {{
      {"processes",
       {{"process_id", kInt32},
        {"rank", kText, true},
        {"host", kText},
        {"pid", kInt32},
        {"executable", kText},
        {"command", kText},
        {"trace", kText},
        {"wall_clock_offset_ns", kInt64, true}}},
      {"kernels", on_stream({keyed("name", kText),
                             keyed("symbol", kText),
                             keyed("grid_x", kInt32),
                             keyed("grid_y", kInt32),
                             keyed("grid_z", kInt32),
                             keyed("block_x", kInt32),
                             keyed("block_y", kInt32),
                             keyed("block_z", kInt32),
                             keyed("registers", kInt32),
                             keyed("static_shared_bytes", kInt32),
                             keyed("dynamic_shared_bytes", kInt32),
                             keyed("local_bytes", kInt32),
                             {"graph_node_id", kInt64, true},
                             {"collective", kBool}})},
      {"copies", on_stream({{"kind", kText}, {"memory", kText, true}, {"asynchronous", kBool}, {"bytes"}})},
      {"memsets", on_stream({{"bytes"}})},
      {"graphs", on_stream({{"graph_id"}})},
      {"idle", spanning({{"device_id", kInt32}, {"cause", kText}})},
      {"calls", spanning({{"thread_id", kInt32, true},
                          keyed("name", kText),
                          keyed("level", kText),
                          {"result", kInt32},
                          {"line", kText, true},
                          {"flow_id", kInt64, true}})},
      {"operations", spanning({{"thread_id", kInt32, true}, {"name", kText}})},
      {"ranges", spanning({{"thread_id", kInt32, true},
                           {"name", kText},
                           {"domain", kText, true},
                           {"mark", kBool},
                           {"nested", kBool},
                           {"open", kBool}})},
  }};
  return kAll;
}

class ParquetSink : public EventSink {
 public:
  explicit ParquetSink(std::string folder) : folder_(std::move(folder)) {
    std::error_code error;
    for (const TableShape& table : tables()) std::filesystem::create_directories(folder_ + "/" + table.name, error);
    if (error) error_ = error.message();
  }

  void begin(const ExportProcess& process) override {
    works_.clear(), call_keys_.clear(), places_.clear();
    streams_ = {}, stream_keys_.clear();
    newest_place_ = {};
    threads_ = &process.threads;
    thread_bits_ = static_cast<unsigned>(std::bit_width(process.threads.size()));
    number_ = process.number;
    const std::string name = file_name(*process.who);
    for (unsigned i = 0; i < kTableCount; ++i)
      files_[i] = std::make_unique<ParquetFile>(fmt::format("{}/{}/{}.parquet", folder_, tables()[i].name, name),
                                                tables()[i].columns, texts_, number_);
    ParquetFile& row = *files_[kProcesses];
    row.number(number_);
    optional_text(row, process.who->rank);
    row.text(text(process.who->host)).number(process.who->pid).text(text(process.who->executable));
    row.text(text(process.who->command)).text(text(process.who->file));
    if (process.anchor)
      row.number(process.realtime - process.anchor);
    else
      row.null();
    row.done();
  }

  void ran(const DeviceSlice& slice) override {
    const DeviceWork& work = *slice.work;
    const unsigned table = work.kind == OperationKind::Kernel   ? kKernels
                           : work.kind == OperationKind::Copy   ? kCopies
                           : work.kind == OperationKind::Memset ? kMemsets
                                                                : kGraphs;
    ParquetFile& row = span(table, slice.begin, slice.end);
    row.other_key(stream_key(table, slice));
    optional_number(row, flow_id(slice.flow));
    row.number(slice.correlation);
    if (table == kKernels) {
      optional_number(row, slice.graph_node);
      row.number(slice.collective).key(known(work));
    } else if (table == kCopies) {
      row.text(known(work));
      optional_text(row, host_memory_name(work.memory));
      row.number(work.asynchronous).number(static_cast<i64>(slice.bytes));
    } else if (table == kMemsets) {
      row.number(static_cast<i64>(slice.bytes));
    } else {
      row.number(slice.graph);
    }
    row.done();
  }

  void idled(const IdleGap& gap) override {
    span(kIdle, gap.begin, gap.end).number(gap.device).text(text(idle_cause_name(gap.largest()))).done();
  }

  void host(const HostSlice& slice) override {
    const i32 tid = (*threads_)[slice.thread].tid;
    const unsigned table = slice.kind == HostKind::Call        ? kCalls
                           : slice.kind == HostKind::Operation ? kOperations
                                                               : kRanges;
    ParquetFile& row = span(table, slice.begin, slice.end);
    if (tid)
      row.number(tid);
    else
      row.null();
    if (table == kCalls) {
      row.number(slice.result).key(known_call(slice));
      if (slice.site.empty())
        row.null();
      else
        row.text(lasting_text(slice.site));
      optional_number(row, flow_id(slice.flow));
    } else {
      row.text(lasting_text(slice.name));
    }
    if (table == kRanges) {
      optional_text(row, slice.level);
      row.number(slice.kind == HostKind::Mark).number(!slice.across_threads).number(slice.open);
    }
    row.done();
  }

  void end() override {
    for (unsigned i = 0; i < kTableCount; ++i) {
      files_[i]->close();
      if (error_.empty() && !files_[i]->error().empty()) error_ = tables()[i].name + (": " + files_[i]->error());
      files_[i].reset();
    }
  }

  bool failed() const override { return !error_.empty(); }
  const std::string& error() const { return error_; }

 private:
  // That of the trace, without what it ends with; each once.
  std::string file_name(const ProcessIdentity& who) {
    std::string name = who.file.substr(who.file.find_last_of('/') + 1);
    const std::size_t dot = name.rfind(".gtrace");
    if (dot != std::string::npos) name.resize(dot);
    return names_.insert(name).second ? name : fmt::format("{}-{}", name, number_);
  }

  // With the thread below the time: numbers that follow each other are near each other then, and are told by what one has over the other.
  u64 flow_id(u64 flow) const {
    constexpr unsigned kMost = 63 - kFlowTimeBits;  // signed numbers
    return flow == 0 || thread_bits_ > kMost ? flow : flow_time(flow) << thread_bits_ | flow_thread(flow);
  }
  ParquetFile& span(unsigned table, Nanos begin, Nanos end) { return files_[table]->number(begin).number(end); }
  u32 text(std::string_view value) { return texts_.number_of(valid_utf8(value)); }
  // Of a text that lives until end(): known by its place.
  u32 lasting_text(std::string_view value) {
    const std::pair place(value.data(), value.size());
    if (newest_place_ == place) return newest_number_;
    newest_place_ = place;
    // Looked for first: emplace would make a node each time.
    const auto known = places_.find(place);
    return newest_number_ = known != places_.end() ? known->second : places_.emplace(place, text(value)).first->second;
  }
  void optional_text(ParquetFile& row, std::string_view value) {
    if (value.empty())
      row.null();
    else
      row.text(text(value));
  }
  static void optional_number(ParquetFile& row, u64 value) {
    if (value == 0)
      row.null();
    else
      row.number(static_cast<i64>(value));
  }
  // A kernel's key; of other work the number of its name.
  u32 known(const DeviceWork& work) {
    if (work.number >= works_.size()) works_.resize(work.number + 1u, kNone);
    u32& key = works_[work.number];
    if (key == kNone) key = added(work);
    return key;
  }
  u32 added(const DeviceWork& work) {
    if (work.kind == OperationKind::Kernel) {
      std::vector<i64> values = {text(work.name), text(work.symbol)};
      values.insert(values.end(), work.grid, work.grid + 3);
      values.insert(values.end(), work.block, work.block + 3);
      for (const u32 value : {work.registers, work.static_shared, work.dynamic_shared, work.local_bytes})
        values.push_back(value);
      return files_[kKernels]->add_key(std::move(values));
    }
    const bool copy = work.kind == OperationKind::Copy && work.name.compare(0, 7, "Memcpy ") == 0;
    return text(copy ? work.name.substr(7) : work.name);
  }
  // The key of a slice's stream in that table.
  u32 stream_key(unsigned table, const DeviceSlice& slice) {
    const StreamName name{table, slice.device, slice.context, slice.stream};
    Stream& newest = streams_[(slice.stream + table) % streams_.size()];
    if (newest.key != kNone && newest.name == name) return newest.key;
    const auto [known, made] = stream_keys_.try_emplace(name);
    if (made) known->second = files_[table]->add_other_key({slice.device, slice.context, slice.stream});
    newest = {name, known->second};
    return known->second;
  }
  // The key of a call's name and level.
  u32 known_call(const HostSlice& slice) {
    if (slice.call >= call_keys_.size()) call_keys_.resize(slice.call + 1u, kNone);
    u32& key = call_keys_[slice.call];
    if (key == kNone) key = files_[kCalls]->add_key({text(slice.name), text(slice.level)});
    return key;
  }

  const std::string folder_;
  std::string error_;
  TextPool texts_;
  std::array<std::unique_ptr<ParquetFile>, kTableCount> files_;
  std::set<std::string> names_;
  const std::vector<ExportThread>* threads_ = nullptr;
  u32 number_ = 0;
  unsigned thread_bits_ = 0;    // of a number of threads_
  std::vector<u32> works_;      // by number: a kernel's key, of other work the number of its name
  std::vector<u32> call_keys_;  // by call
  using StreamName = std::tuple<unsigned, i32, u32, u32>;  // table, device, context, id
  struct Stream {
    StreamName name;
    u32 key = kNone;
  };
  std::map<StreamName, u32> stream_keys_;
  std::array<Stream, 64> streams_;  // those told last
  struct HashOfPlace {
    std::size_t operator()(const std::pair<const char*, std::size_t>& place) const {
      return reinterpret_cast<std::uintptr_t>(place.first) * 31 + place.second;
    }
  };
  std::unordered_map<std::pair<const char*, std::size_t>, u32, HashOfPlace> places_;
  std::pair<const char*, std::size_t> newest_place_;
  u32 newest_number_ = 0;
};

}  // namespace

extern constexpr ExportFormat parquet_export = {
    .name = "parquet",
    .kind = ExportFormat::Kind::Folder,
    .suffix = ".parquet",
    .readers = "DuckDB, Polars, Spark: a folder a table",
    .make = [](const ExportTarget& target) -> std::unique_ptr<EventSink> {
      return std::make_unique<ParquetSink>(target.path);
    },
    .finish = [](EventSink& sink) { return static_cast<ParquetSink&>(sink).error(); },
};

}  // namespace gputrace
