// What reports call kinds of facts.
#pragma once

#include "analysis/facts/device_facts.h"
#include "trace/record.h"

namespace gputrace {

// "device", "pool", "vmm" …
const char* pool_name(AllocKind kind);

// Whether such an allocation takes memory of a device.
bool on_device(AllocKind kind);

// "launch", "host", … "unknown".
const char* idle_cause_name(IdleCause cause);

}  // namespace gputrace
