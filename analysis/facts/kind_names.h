// What reports call kinds of facts.
#pragma once

#include "analysis/facts/facts.h"
#include "trace/record.h"

namespace gputrace {

// "device", "pool", "vmm" …
const char* pool_name(AllocKind kind);

// Whether such an allocation takes memory of a device.
bool on_device(AllocKind kind);

// "pinned", "pageable", "managed", "device"; empty: not known.
const char* host_memory_name(HostMemory memory);

// "launch", "host", … "unknown".
const char* idle_cause_name(IdleCause cause);

}  // namespace gputrace
