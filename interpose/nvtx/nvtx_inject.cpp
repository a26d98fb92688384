// The functions that NVTX calls, and the two entries by which it gets them.
#include <cstring>

#include "interpose/nvtx/nvtx.h"
#include "interpose/nvtx/nvtx_events.h"

#if __has_include(<nvtx3/nvToolsExtPayload.h>)
#define NVTX_NO_IMPL
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>
static_assert(sizeof(nvtxEventAttributes_t) == sizeof(gputrace::nvtx_abi::EventAttributes) &&
              offsetof(nvtxEventAttributes_t, payload) == offsetof(gputrace::nvtx_abi::EventAttributes, payload) &&
              offsetof(nvtxEventAttributes_t, message) == offsetof(gputrace::nvtx_abi::EventAttributes, message));
static_assert(offsetof(nvtxResourceAttributes_t, message) == offsetof(gputrace::nvtx_abi::ResourceAttributes, message));
static_assert(offsetof(nvtxPayloadSchemaAttr_t, schemaId) == offsetof(gputrace::nvtx_abi::SchemaAttributes, schema) &&
              offsetof(nvtxPayloadEnumAttr_t, schemaId) == offsetof(gputrace::nvtx_abi::EnumAttributes, schema) &&
              offsetof(nvtxScopeAttr_t, scopeId) == offsetof(gputrace::nvtx_abi::ScopeAttributes, scope) &&
              offsetof(nvtxTimeDomainAttr_t, timeDomainId) ==
                  offsetof(gputrace::nvtx_abi::TimeDomainAttributes, time_domain));
static_assert(sizeof(nvtxPayloadData_t) == sizeof(gputrace::nvtx_abi::PayloadData));
#endif

namespace gputrace {
namespace {

using namespace nvtx_abi;

// ------------------------------------------------------------------ what NVTX calls

template <typename Char>
constexpr i32 kMessageOf = sizeof(Char) == 1 ? kAscii : kUnicode;

// A text given in any form, as UTF-8.
struct Utf8 {
  char wide[kWideCapacity];
  NvtxText view;

  explicit Utf8(const NvtxMessage& message) : view(nvtx_text(message, wide)) {}
  template <typename Char>
  explicit Utf8(const Char* text) : Utf8(NvtxMessage{kMessageOf<Char>, text}) {}
};

template <typename Char>
NvtxEvent plain_event(const Char* message) {
  NvtxEvent event;
  event.message = {kMessageOf<Char>, message};
  return event;
}

void mark_ex(const EventAttributes* attributes) { nvtx_mark(nvtx_event(nullptr, attributes)); }
u64 start_ex(const EventAttributes* attributes) { return nvtx_start(nvtx_event(nullptr, attributes)); }
void end(u64 range) { nvtx_end(range, nullptr, {}); }

// What a push returns without a tool too: its level is not known.
constexpr int kNoLevel = -2;
int push_ex(const EventAttributes* attributes) {
  nvtx_push(nvtx_event(nullptr, attributes));
  return kNoLevel;
}
int pop() {
  nvtx_pop(nullptr, {});
  return kNoLevel;
}
template <typename Char>
void mark(const Char* message) {
  nvtx_mark(plain_event(message));
}
template <typename Char>
u64 start(const Char* message) {
  return nvtx_start(plain_event(message));
}
template <typename Char>
int push(const Char* message) {
  nvtx_push(plain_event(message));
  return kNoLevel;
}
template <typename Char>
void name_category(u32 category, const Char* name) {
  const Utf8 text(name);
  nvtx_name(NvtxNamed::Category, nullptr, category, text.view.text, text.view.length);
}
template <typename Char>
void name_thread(u32 thread, const Char* name) {
  const Utf8 text(name);
  nvtx_name(NvtxNamed::Thread, nullptr, thread, text.view.text, text.view.length);
}
template <typename Char, NvtxNamed kWhat, typename Handle>
void name_object(Handle handle, const Char* name) {
  const Utf8 text(name);
  nvtx_name(kWhat, nullptr, (u64)handle, text.view.text, text.view.length);  // a pointer or an ordinal
}

void domain_mark(void* domain, const EventAttributes* attributes) { nvtx_mark(nvtx_event(domain, attributes)); }
u64 domain_start(void* domain, const EventAttributes* attributes) { return nvtx_start(nvtx_event(domain, attributes)); }
void domain_end(void* domain, u64 range) { nvtx_end(range, domain, {}); }
int domain_push(void* domain, const EventAttributes* attributes) {
  nvtx_push(nvtx_event(domain, attributes));
  return kNoLevel;
}
int domain_pop(void* domain) {
  nvtx_pop(domain, {});
  return kNoLevel;
}
template <typename Char>
void domain_name_category(void* domain, u32 category, const Char* name) {
  const Utf8 text(name);
  nvtx_name(NvtxNamed::Category, domain, category, text.view.text, text.view.length);
}
template <typename Char>
void* domain_register_string(void*, const Char* string) {
  const Utf8 text(string);
  NvtxString* kept = nvtx_keep(text.view.text, text.view.length);
  return kept ? kept : nvtx_lost_string();
}
template <typename Char>
void* domain_create(const Char* name) {
  const Utf8 text(name);
  return nvtx_domain(text.view.text, text.view.length);
}
void domain_destroy(void*) {}
void initialize(const void*) {}

// What identifier types of resources mean to us: class in the upper half, index in the lower.
NvtxNamed resource_kind(i32 type) {
  switch (type) {
    case 0x10003:  // native thread id
      return NvtxNamed::Thread;
    case 0x40001:
    case 0x50000:
      return NvtxNamed::Device;
    case 0x40002:
      return NvtxNamed::Context;
    case 0x40003:
    case 0x50001:
      return NvtxNamed::Stream;
    case 0x40004:
    case 0x50002:
      return NvtxNamed::Event;
    default:
      return NvtxNamed::Resource;
  }
}

void* resource_create(void* domain, const ResourceAttributes* attributes) {
  if (!attributes || attributes->size < sizeof *attributes) return nullptr;
  const Utf8 text(NvtxMessage{attributes->message_type, attributes->message});
  nvtx_name(resource_kind(attributes->identifier_type), domain, attributes->identifier, text.view.text,
            text.view.length);
  return nvtx_lost_string();  // any address of ours: it is only ever given back
}
void resource_destroy(void*) {}

// ------------------------------------------------------------------ extended payloads

constinit std::atomic<u64> next_schema{kFirstDynamicId}, next_scope{kFirstDynamicId}, next_time_domain{kFirstDynamicId};

u64 schema_id(u64 own, bool given) { return given && own ? own : next_schema.fetch_add(1, std::memory_order_relaxed); }

u64 schema_register(void* domain, const SchemaAttributes* attributes) {
  if (!attributes) return 0;
  const u64 id = schema_id(attributes->schema, attributes->fields & kSchemaFieldId);
  if ((attributes->fields & kFieldName) && attributes->name)
    nvtx_name(NvtxNamed::Schema, domain, id, attributes->name, std::strlen(attributes->name));
  return id;
}
u64 enum_register(void*, const EnumAttributes* attributes) {
  return attributes ? schema_id(attributes->schema, attributes->fields & kEnumFieldId) : 0;
}
u64 scope_register(void*, const ScopeAttributes* attributes) {
  if (!attributes) return 0;
  return attributes->scope ? attributes->scope : next_scope.fetch_add(1, std::memory_order_relaxed);
}
u64 time_domain_register(void*, const TimeDomainAttributes* attributes) {
  if (!attributes) return 0;
  return attributes->time_domain ? attributes->time_domain : next_time_domain.fetch_add(1, std::memory_order_relaxed);
}

NvtxEvent payload_event(const void* domain, const PayloadData* data, std::size_t count) {
  NvtxEvent event;
  event.domain = domain;
  event.payload = nvtx_payload(data, count);
  return event;
}
void mark_payload(void* domain, const PayloadData* data, std::size_t count) {
  nvtx_mark(payload_event(domain, data, count));
}
int push_payload(void* domain, const PayloadData* data, std::size_t count) {
  nvtx_push(payload_event(domain, data, count));
  return kNoLevel;
}
int pop_payload(void* domain, const PayloadData* data, std::size_t count) {
  nvtx_pop(domain, nvtx_payload(data, count));
  return kNoLevel;
}
u64 start_payload(void* domain, const PayloadData* data, std::size_t count) {
  return nvtx_start(payload_event(domain, data, count));
}
void end_payload(void* domain, u64 range, const PayloadData* data, std::size_t count) {
  nvtx_end(range, domain, nvtx_payload(data, count));
}

// ------------------------------------------------------------------ the tables

template <typename F>
Function function(F* callback) {
  return reinterpret_cast<Function>(callback);
}

template <u32 kCount>
bool fill(const Callbacks& callbacks, u32 module, const Function (&functions)[kCount]) {
  Function** slots = nullptr;
  unsigned size = 0;
  if (!callbacks.GetModuleFunctionTable(module, &slots, &size) || !slots) return false;
  for (u32 i = 1; i < kCount && i < size; ++i) {
    if (slots[i]) *slots[i] = functions[i];
  }
  return true;
}

// The index is NVTX's callback id of the module; 0 and what is absent stay no-ops. Arrays of the stack: the library may
// have no constructor for such things.
bool fill_core(const Callbacks& callbacks) {
  const Function functions[] = {
      nullptr,
      function(&mark_ex),
      function(&mark<char>),
      function(&mark<wchar_t>),
      function(&start_ex),
      function(&start<char>),
      function(&start<wchar_t>),
      function(&end),
      function(&push_ex),
      function(&push<char>),
      function(&push<wchar_t>),
      function(&pop),
      function(&name_category<char>),
      function(&name_category<wchar_t>),
      function(&name_thread<char>),
      function(&name_thread<wchar_t>),
  };
  return fill(callbacks, kCore, functions);
}

bool fill_core2(const Callbacks& callbacks) {
  const Function functions[] = {
      nullptr,
      function(&domain_mark),
      function(&domain_start),
      function(&domain_end),
      function(&domain_push),
      function(&domain_pop),
      function(&resource_create),
      function(&resource_destroy),
      function(&domain_name_category<char>),
      function(&domain_name_category<wchar_t>),
      function(&domain_register_string<char>),
      function(&domain_register_string<wchar_t>),
      function(&domain_create<char>),
      function(&domain_create<wchar_t>),
      function(&domain_destroy),
      function(&initialize),
  };
  return fill(callbacks, kCore2, functions);
}

bool fill_cuda(const Callbacks& callbacks) {
  const Function functions[] = {
      nullptr,
      function(&name_object<char, NvtxNamed::Device, int>),
      function(&name_object<wchar_t, NvtxNamed::Device, int>),
      function(&name_object<char, NvtxNamed::Context, void*>),
      function(&name_object<wchar_t, NvtxNamed::Context, void*>),
      function(&name_object<char, NvtxNamed::Stream, void*>),
      function(&name_object<wchar_t, NvtxNamed::Stream, void*>),
      function(&name_object<char, NvtxNamed::Event, void*>),
      function(&name_object<wchar_t, NvtxNamed::Event, void*>),
  };
  return fill(callbacks, kCuda, functions);
}

bool fill_cudart(const Callbacks& callbacks) {
  const Function functions[] = {
      nullptr,
      function(&name_object<char, NvtxNamed::Device, int>),
      function(&name_object<wchar_t, NvtxNamed::Device, int>),
      function(&name_object<char, NvtxNamed::Stream, void*>),
      function(&name_object<wchar_t, NvtxNamed::Stream, void*>),
      function(&name_object<char, NvtxNamed::Event, void*>),
      function(&name_object<wchar_t, NvtxNamed::Event, void*>),
  };
  return fill(callbacks, kCudart, functions);
}

}  // namespace
}  // namespace gputrace

using namespace gputrace;

// For every object of the program that includes the NVTX headers, at its first call. 0: no tool.
extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(GetExportTable export_table) {
  if (!nvtx_is_ours() || !export_table) return 0;
  const auto* callbacks = static_cast<const Callbacks*>(export_table(kCallbacksTable));
  if (!callbacks || callbacks->struct_size < sizeof(Callbacks) || !nvtx_open_store()) return 0;
  const bool core = fill_core(*callbacks);
  fill_core2(*callbacks);
  fill_cuda(*callbacks);
  fill_cudart(*callbacks);
  return core ? 1 : 0;
}

// For every extension that such an object uses; of them the payloads are known here.
extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtxExtension(ExtensionModule* module) {
  if (!nvtx_is_ours() || !module || !nvtx_open_store()) return 0;
  if (module->module != kPayloadModule || module->segment_count < 1 || !module->segments) return 0;
  const auto set = [&](u32 slot, auto* callback) {
    if (slot < module->segments->count) module->segments->slots[slot] = reinterpret_cast<std::intptr_t>(callback);
  };
  set(kSchemaRegister, &schema_register);
  set(kEnumRegister, &enum_register);
  set(kMarkPayload, &mark_payload);
  set(kRangePushPayload, &push_payload);
  set(kRangePopPayload, &pop_payload);
  set(kRangeStartPayload, &start_payload);
  set(kRangeEndPayload, &end_payload);
  set(kTimeDomainRegister, &time_domain_register);
  set(kScopeRegister, &scope_register);
  return 1;
}
