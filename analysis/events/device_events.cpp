#include "analysis/events/device_events.h"

#include <algorithm>

#include "analysis/events/host_events.h"
#include "analysis/names/demangle.h"

namespace gputrace {
namespace {

constexpr u64 kTellDevicesEvery = 1u << 18;  // slices

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

}  // namespace

void DeviceEvents::ran(const DeviceOperation& operation, const DeviceShape& shape, const HostOperation* call,
                       const DeviceActivity& activity) {
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
  if (told_ && slices_ % kTellDevicesEvery == 0) told_();
}

void DeviceEvents::idled(const IdleGap& gap) {
  IdleGap shifted = gap;
  shifted.begin += shift_, shifted.end += shift_;
  sink_.idled(shifted);
}

void DeviceEvents::read(const RecordStream& stream) { without_host_ = stream.without(HostEvents::types_of(reader_)); }

const DeviceWork* DeviceEvents::work_of(u32 number, const DeviceShape& shape) {
  if (number >= works_.size()) works_.resize(number + 1u);
  if (!works_[number]) {
    works_[number] = std::make_unique<DeviceWork>(work_like(shape));
    works_[number]->number = number;
  }
  return works_[number].get();
}

}  // namespace gputrace
