// Which activity is collected, and the records it becomes.
#pragma once

#include <cstdint>

#include "simgpu/cupti/headers.h"
#include "simgpu/driver/observe/observer.h"

namespace simgpu::cupti {

const Observer& activity_observer();

// Kinds. Contexts: 0 means all.
CUptiResult enable_kind(CUpti_ActivityKind kind, uint32_t context, bool on);
bool kind_on(CUpti_ActivityKind kind);
bool kind_on(CUpti_ActivityKind kind, uint32_t context);
// Single calls; they count as long as nobody switches the kind.
void enable_call(bool runtime, CUpti_CallbackId call, bool on);
bool call_on(bool runtime, CUpti_CallbackId call);

// All devices: at once, or when work is done and the last sample is 10 ms old.
void sample_environment(bool at_once);

void set_latency_stamps(bool on);
// Judges anew all that could be seen, and tells the driver.
void looks_changed();
void forget_kinds();

// The thread's external correlation ids.
void push_external(CUpti_ExternalCorrelationKind kind, uint64_t id);
bool pop_external(CUpti_ExternalCorrelationKind kind, uint64_t* id);

void set_thread_ids(CUpti_ActivityThreadIdType type);
CUpti_ActivityThreadIdType thread_ids();
void set_device_buffer(uint64_t bytes);
uint64_t device_buffer();

}  // namespace simgpu::cupti
