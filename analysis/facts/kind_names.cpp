#include "analysis/facts/kind_names.h"

#include "trace/schema.h"

namespace gputrace {

bool on_device(AllocKind kind) {
  return kind == AllocKind::Device || kind == AllocKind::Managed || kind == AllocKind::Pool ||
         kind == AllocKind::VmmCreate || kind == AllocKind::Array;
}

const char* pool_name(AllocKind kind) {
  if (kind == AllocKind::VmmCreate) return "vmm";
  if (kind == AllocKind::VmmReserve || kind == AllocKind::VmmMap) return "other";  // addresses, no memory
  const char* word = word_of(kind);
  return *word ? word : "other";
}

const char* host_memory_name(HostMemory memory) {
  switch (memory) {
    case HostMemory::Pinned:
      return "pinned";
    case HostMemory::Pageable:
      return "pageable";
    case HostMemory::Managed:
      return "managed";
    case HostMemory::Device:
      return "device";
    case HostMemory::Unknown:
      break;
  }
  return "";
}

const char* idle_cause_name(IdleCause cause) {
  switch (cause) {
    case IdleCause::Unknown:
      return "unknown";
    case IdleCause::Launch:
      return "launch";
    case IdleCause::Host:
      return "host";
    case IdleCause::Synchronization:
      return "synchronization";
    case IdleCause::Polling:
      return "polling";
    case IdleCause::Copy:
      return "copy";
    case IdleCause::Allocation:
      return "allocation";
    case IdleCause::ModuleLoad:
      return "module load";
    case IdleCause::Library:
      return "library";
    case IdleCause::QueueFull:
      return "queue full";
    case IdleCause::OtherStream:
      return "other stream";
    case IdleCause::Peer:
      return "peer";
    case IdleCause::HostFunction:
      return "host function";
    case IdleCause::MemoryValue:
      return "memory value";
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
