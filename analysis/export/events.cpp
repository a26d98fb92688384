#include "analysis/export/events.h"

#include <array>
#include <cstring>
#include <memory>

#include "analysis/export/host_events.h"
#include "analysis/names/demangle.h"
#include "analysis/read/identity.h"

namespace gputrace {
namespace {

constexpr u64 kTellEvery = 1u << 18;  // events between two words on progress

const char* transfer_name(TransferKind kind) {
  switch (kind) {
    case TransferKind::HtoD:
      return "Memcpy HtoD";
    case TransferKind::DtoH:
      return "Memcpy DtoH";
    case TransferKind::DtoD:
      return "Memcpy DtoD";
    case TransferKind::PtoP:
      return "Memcpy PtoP";
    case TransferKind::HtoH:
      return "Memcpy HtoH";
    case TransferKind::Memset:
      return "Memset";
    case TransferKind::Unknown:
      break;
  }
  return "Memcpy";
}

DeviceWork work_like(const DeviceShape& shape) {
  DeviceWork work;
  work.kind = shape.kind;
  if (shape.kind == OperationKind::Kernel) {
    work.symbol = shape.symbol;
    work.name = work.symbol.empty() ? "kernel without a name" : demangle(work.symbol);
  } else if (shape.kind == OperationKind::Graph) {
    work.name = "graph";
  } else {
    work.name = shape.kind == OperationKind::Memset ? "Memset" : transfer_name(shape.transfer);
  }
  std::copy(shape.grid, shape.grid + 3, work.grid);
  std::copy(shape.block, shape.block + 3, work.block);
  std::copy(shape.cluster, shape.cluster + 3, work.cluster);
  work.dynamic_shared = shape.dynamic_shared, work.static_shared = shape.static_shared;
  work.local_bytes = shape.local_bytes, work.registers = shape.registers;
  work.transfer = shape.transfer, work.memory = shape.memory, work.asynchronous = shape.asynchronous;
  return work;
}

// The timeline's operations as slices. On the timeline's thread, which nobody else's events come from meanwhile.
class DeviceEvents : public Witness {
 public:
  DeviceEvents(const TraceReader& reader, Nanos shift, EventSink& sink, std::function<void()> told)
      : reader_(reader), shift_(shift), sink_(sink), told_(std::move(told)) {}

  void ran(const DeviceOperation& operation, const DeviceShape& shape, const HostOperation* call,
           const DeviceActivity& activity) override {
    const StreamTimes& stream = activity.streams[operation.stream];
    DeviceSlice slice;
    slice.begin = operation.start + shift_, slice.end = operation.end + shift_;
    slice.work = work_of(operation.shape, shape);
    slice.device = activity.devices[operation.device].device;
    slice.context = stream.context, slice.stream = stream.id;
    if (operation.kind == OperationKind::Copy || operation.kind == OperationKind::Memset)
      slice.bytes = operation.detail;
    else
      slice.graph_node = operation.detail;
    slice.graph = operation.graph;
    slice.correlation = operation.correlation;
    if (call) slice.flow = flow_of(call->thread, call->begin), slice.origin = call->stack;
    slice.collective = operation.collective;
    if (operation.queued) slice.queued = operation.queued + shift_, slice.submitted = operation.submitted + shift_;
    ++slices_;
    sink_.ran(slice);
    if (slices_ % kTellEvery == 0) told_();
  }

  void idled(const IdleGap& gap) override {
    IdleGap shifted = gap;
    shifted.begin += shift_, shifted.end += shift_;
    sink_.idled(shifted);
  }

  bool wants_sums() const override { return sink_.wants_sums(); }
  void read(const RecordStream& stream) override { without_host_ = stream.without(HostEvents::types_of(reader_)); }
  // Threads that hold nothing of the host's side, as those that collect from devices.
  const std::vector<bool>& without_host() const { return without_host_; }
  u64 slices() const { return slices_; }

 private:
  const DeviceWork* work_of(u32 number, const DeviceShape& shape) {
    if (number >= works_.size()) works_.resize(number + 1u);
    if (!works_[number]) works_[number] = std::make_unique<DeviceWork>(work_like(shape));
    return works_[number].get();
  }

  const TraceReader& reader_;
  const Nanos shift_;
  EventSink& sink_;
  const std::function<void()> told_;
  std::vector<bool> without_host_;
  std::vector<std::unique_ptr<DeviceWork>> works_;  // by the number of their shape
  u64 slices_ = 0;
};

class Exporter {
 public:
  Exporter(const LoadRequest& request, TimeWindow window, EventSink& sink, ExportProgress* progress)
      : request_(request), window_(window), sink_(sink), progress_(progress), shared_(one_boot()) {}

  Result<Exported, InputError> run() {
    for (file_ = 0; file_ < request_.files.size() && !sink_.failed(); ++file_) one(request_.files[file_]);
    if (done_.processes > 0) return done_;
    if (!done_.unread.empty()) return Failure{InputError{done_.unread.front()}};
    return Failure{InputError{"no process of rank " + request_.rank.value_or("?") + " in these traces"}};
  }

 private:
  // Whether all processes read one clock.
  bool one_boot() const {
    std::optional<std::array<u8, 16>> boot;
    for (const std::string& file : request_.files) {
      const auto opened = TraceReader::open(file);
      if (!opened) continue;
      std::array<u8, 16> own;
      std::memcpy(own.data(), opened.value().header().boot_id, own.size());
      if (boot && *boot != own) return false;
      boot = own;
    }
    return true;
  }

  static Nanos first_record(const TraceReader& reader) {
    Nanos first = 0;
    for (const RecordChunk& chunk : reader.record_chunks()) {
      if (reader.threads()[chunk.thread].tid == 0 || chunk.begin == 0) continue;
      const Nanos at = reader.clock().nanos(chunk.begin);
      if (first == 0 || at < first) first = at;
    }
    return first;
  }

  void one(const std::string& path) {
    auto opened = TraceReader::open(path);
    if (!opened) return done_.unread.push_back(describe(path, opened.error()));
    const TraceReader& reader = opened.value();
    ProcessTrace identity;
    read_identity(reader, identity);
    identity.who.file = path;
    if (request_.rank && identity.who.rank != *request_.rank) return;
    ExportProcess process;
    process.number = static_cast<u32>(done_.processes++);
    process.who = &identity.who;
    for (const ThreadInfo& thread : reader.threads()) process.threads.push_back({thread.tid, thread.name});
    const Nanos first = first_record(reader);
    if (first) process.realtime = reader.clock().realtime(first);
    process.shift = shared_ || first == 0 ? 0 : process.realtime - first;
    process.anchor = first ? first + process.shift : 0;
    sink_.begin(process);
    DeviceEvents devices(reader, process.shift, sink_, [&] { tell(devices_before_ + devices.slices()); });
    const ProcessTrace facts = load_process(reader, window_, {}, &devices);
    sink_.facts(facts);
    HostEvents host(reader, window_, facts, process.shift, sink_);
    RecordStream stream(reader, devices.without_host());
    u64 told = 0;
    stream.for_each_span([&](const RecordStream::Span& span) {
      host.add(span);
      if (host.slices() - told >= kTellEvery) tell(devices_before_ + devices.slices() + (told = host.slices()));
      return !sink_.failed();
    });
    host.finish();
    sink_.end();
    devices_before_ += devices.slices() + host.slices();
    done_.device_slices += devices.slices();
    done_.host_slices += host.slices();
    done_.bytes_read += reader.file_size();
    done_.dropped += facts.dropped;
    const std::string prefix = path + ": ";
    for (const std::string& damage : facts.damage) done_.damage.push_back(prefix + damage);
  }

  void tell(u64 events) {
    if (progress_) progress_->reached(file_, static_cast<u32>(request_.files.size()), events);
  }

  const LoadRequest& request_;
  const TimeWindow window_;
  EventSink& sink_;
  ExportProgress* const progress_;
  const bool shared_;
  u32 file_ = 0;
  u64 devices_before_ = 0;
  Exported done_;
};

}  // namespace

Result<Exported, InputError> export_events(const LoadRequest& request, EventSink& sink, ExportProgress* progress) {
  LoadRequest whole = request;
  whole.steps.reset();
  const auto window = [&]() -> Result<TimeWindow, InputError> {
    if (!request.steps) return window_of(request);
    const auto run = load_run(whole);
    if (!run) return Failure{run.error()};
    return window_of_steps(steps_of(run.value()), *request.steps);
  }();
  if (!window) return Failure{window.error()};
  return Exporter(request, window.value(), sink, progress).run();
}

}  // namespace gputrace
