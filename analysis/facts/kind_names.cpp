#include "analysis/facts/kind_names.h"

namespace gputrace {

const char* pool_name(AllocKind kind) {
  switch (kind) {
    case AllocKind::Device:
      return "device";
    case AllocKind::Managed:
      return "managed";
    case AllocKind::Host:
      return "host";
    case AllocKind::HostRegistered:
      return "host-registered";
    case AllocKind::Pool:
      return "pool";
    case AllocKind::VmmCreate:
      return "vmm";
    case AllocKind::Array:
      return "array";
    case AllocKind::Ipc:
      return "ipc";
    default:
      return "other";
  }
}

const char* idle_cause_name(IdleCause cause) {
  switch (cause) {
    case IdleCause::Unknown:
      return "unknown";
    case IdleCause::Launch:
      return "launch-bound";
    case IdleCause::HostLate:
      return "host late";
    case IdleCause::Synchronization:
      return "synchronization";
    case IdleCause::Copy:
      return "copy";
    case IdleCause::Allocation:
      return "allocation";
    case IdleCause::ModuleLoad:
      return "module load";
    case IdleCause::QueueFull:
      return "queue full";
    case IdleCause::OtherStream:
      return "other stream";
    case IdleCause::GraphInternal:
      return "inside a graph";
    case IdleCause::Collection:
      return "profiler";
    case IdleCause::Dispatch:
      return "dispatch";
  }
  return "unknown";
}

}  // namespace gputrace
