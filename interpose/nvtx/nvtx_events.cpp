#include "interpose/nvtx/nvtx_events.h"

#include <cstring>

#include "interpose/definition/facts.h"
#include "interpose/hot/session.h"
#include "interpose/nvtx/nvtx.h"
#include "interpose/nvtx/nvtx_open.h"

namespace gputrace {
namespace {

using namespace nvtx_abi;

constinit std::atomic<u64> next_range{1};

// ------------------------------------------------------------------ the range that opens the window
// Constant while a session lives.
constinit const char* capture_name = nullptr;  // nullptr: NVTX has no say in the window
constinit u32 capture_name_length = 0;
constinit const char* capture_domain = nullptr;  // "": the default domain; "*": any
// How many such ranges are open, and how often that has turned to or from none.
constinit std::atomic<i32> open_windows{0};
constinit std::atomic<u32> window_turns{0};

bool domain_captures(const void* domain) {
  if (std::strcmp(capture_domain, "*") == 0) return true;
  const NvtxDomain* known = domain ? nvtx_domain_of(domain) : nullptr;
  const NvtxString* name = known ? known->name.load(std::memory_order_acquire) : nullptr;
  return std::strcmp(name ? name->text : "", capture_domain) == 0;
}

bool captures(const void* domain, const char* text, u64 length) {
  return capture_name && length == capture_name_length && std::memcmp(text, capture_name, length) == 0 &&
         domain_captures(domain);
}

// Two threads at once: whoever stored last looks whether it was still so.
void window_turned(Ticks now) {
  u32 turn;
  do {
    turn = window_turns.load(std::memory_order_acquire);
    set_capture_range(open_windows.load(std::memory_order_relaxed) > 0, now);
  } while (window_turns.load(std::memory_order_seq_cst) != turn);
}

void capture_begins(Ticks now) {
  if (open_windows.fetch_add(1, std::memory_order_acq_rel) != 0) return;
  window_turns.fetch_add(1, std::memory_order_seq_cst);
  window_turned(now);
}

void capture_ends(Ticks now) {
  if (open_windows.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  window_turns.fetch_add(1, std::memory_order_seq_cst);
  window_turned(now);
}

// ------------------------------------------------------------------ texts

__attribute__((noinline)) u64 wide_id(const FinishedCall& call, const NvtxMessage& message, u32& flags) {
  char wide[kWideCapacity];
  const NvtxText text = nvtx_text(message, wide);
  return nvtx_message_id(call, text.text, text.length, flags);
}

GT_HOT u64 message_id(const FinishedCall& call, const NvtxMessage& message, u32& flags) {
  if (!message.text) return 0;
  if (message.type == kRegistered) [[likely]] {
    NvtxString* string = nvtx_string_of(message.text);
    const u64 id = string ? nvtx_text_id(call, *string) : 0;
    if (!id) [[unlikely]]
      flags |= kNvtxMessageNotKept;
    return id;
  }
  if (message.type == kAscii) {
    const char* text = static_cast<const char*>(message.text);
    return nvtx_message_id(call, text, std::strlen(text), flags);
  }
  return message.type == kUnicode ? wide_id(call, message, flags) : 0;
}

// ------------------------------------------------------------------ one record

// Whether this thread records now; joins the session that there is, and starts none.
GT_HOT bool joined(u64& generation) {
  generation = gate_generation();
  if (thread_state.generation == generation) [[likely]]
    return true;
  if (generation < kFirstGeneration || !enter_session()) return false;
  generation = thread_state.generation;
  return true;
}

GT_HOT void write(const FinishedCall& call, NvtxAct act, const NvtxEvent& event, u64 range) {
  if (!call.in_window()) return;
  Nvtx record{};
  record.what = static_cast<u32>(act);
  record.message = message_id(call, event.message, record.flags);
  record.domain = event.domain ? nvtx_domain_id(call, event.domain) : 0;
  record.range = range;
  record.payload = event.payload.bits;
  record.payload_type = event.payload.type;
  record.category = event.category;
  record.color = event.color;
  emit(call, record);
}

// ------------------------------------------------------------------ ranges that are kept in mind

bool gate_is_idle() { return gate_generation() == kGateIdle; }

OpenRange open_range(const NvtxEvent& event, u64 id) {
  OpenRange range{};
  range.domain = event.domain;
  range.id = id;
  range.payload = event.payload.bits;
  range.payload_type = event.payload.type;
  range.category = event.category;
  range.color = event.color;
  return range;
}

// Cold: before the session, or where NVTX rules the window. `id` 0: a push.
__attribute__((noinline)) void keep_open(const NvtxEvent& event, u64 id, Ticks now) {
  const bool idle = gate_is_idle();
  char wide[kWideCapacity];
  const NvtxText text = nvtx_text(event.message, wide);
  OpenRange range = open_range(event, id);
  range.captures = !idle && captures(event.domain, text.text, text.length);
  if ((idle || range.captures) && text.length) range.message = nvtx_keep(text.text, text.length, true);
  if (event.message.text && !range.message) range.flags = kNvtxMessageNotKept;
  if (!id)
    nvtx_range_pushed(range);
  else if (range.captures || idle)
    nvtx_range_started(range);
  if (range.captures) capture_begins(now);
}

void write_open(OpenRange& range, void* data) {
  const auto& call = *static_cast<const FinishedCall*>(data);
  if (!call.in_window()) return;
  Nvtx record{};
  record.what = static_cast<u32>(range.id ? NvtxAct::Start : NvtxAct::Push);
  record.message = range.message ? nvtx_text_id(call, *const_cast<NvtxString*>(range.message)) : 0;
  record.domain = nvtx_domain_id(call, range.domain);
  record.range = range.id;
  record.payload = range.payload;
  record.payload_type = range.payload_type;
  record.category = range.category;
  record.color = range.color;
  record.flags = range.flags | kNvtxOpenBefore | (range.message && !record.message ? kNvtxMessageNotKept : 0u);
  emit(call, record);
}

void count_capture(OpenRange& range, void*) {
  range.captures = range.message && captures(range.domain, range.message->text, range.message->length);
  if (range.captures) open_windows.fetch_add(1, std::memory_order_relaxed);
}

// A range that this thread opened before the session, which another thread began.
void open_window_late(OpenRange& range, void* now) {
  if (range.captures || !range.message || !captures(range.domain, range.message->text, range.message->length)) return;
  range.captures = true;
  capture_begins(*static_cast<Ticks*>(now));
}

constinit std::atomic<u64> names_generation{0};

}  // namespace

NvtxText nvtx_text(const NvtxMessage& message, char (&wide)[kWideCapacity]) {
  if (!message.text) return {"", 0};
  if (message.type == kAscii) {
    const char* text = static_cast<const char*>(message.text);
    return {text, std::strlen(text)};
  }
  if (message.type == kUnicode) {
    const u64 length = utf8_of_wide(static_cast<const wchar_t*>(message.text), wide, sizeof wide);
    return {wide, length};
  }
  const NvtxString* string = message.type == kRegistered ? nvtx_string_of(message.text) : nullptr;
  return string ? NvtxText{string->text, string->length} : NvtxText{"", 0};
}

NvtxPayload nvtx_payload(const PayloadData* data, u64 count) {
  return {kNvtxPayloadSchema, data && count ? data->schema : 0};
}

NvtxEvent nvtx_event(const void* domain, const EventAttributes* attributes) {
  NvtxEvent event;
  event.domain = domain;
  if (!attributes || attributes->size < sizeof *attributes) return event;
  event.message = {attributes->message_type, attributes->message};
  event.category = attributes->category;
  if (attributes->color_type == kArgb) event.color = attributes->color;
  if (attributes->payload_type == kPayloadExtended) {
    event.payload = nvtx_payload(reinterpret_cast<const PayloadData*>(attributes->payload),
                                 attributes->payload_count > 0 ? static_cast<u64>(attributes->payload_count) : 0);
  } else if (attributes->payload_type > 0 && attributes->payload_type < 0x100) {
    // A 32-bit value fills the lower half of the union; the rest is whatever was there.
    const bool half = attributes->payload_type >= 4;
    event.payload = {static_cast<u32>(attributes->payload_type),
                     half ? attributes->payload & 0xffffffffu : attributes->payload};
  }
  return event;
}

void nvtx_mark(const NvtxEvent& event) {
  u64 generation;
  if (!joined(generation)) return;
  write(nvtx_moment(generation, record_ticks()), NvtxAct::Mark, event, 0);
}

void nvtx_push(const NvtxEvent& event) {
  u64 generation;
  if (!joined(generation)) {
    if (generation == kGateIdle) keep_open(event, 0, 0);
    return;
  }
  const FinishedCall call = nvtx_moment(generation, record_ticks());
  if (capture_name) [[unlikely]]
    keep_open(event, 0, call.begin);
  write(call, NvtxAct::Push, event, 0);
}

u64 nvtx_start(const NvtxEvent& event) {
  const u64 range = next_range.fetch_add(1, std::memory_order_relaxed);
  u64 generation;
  if (!joined(generation)) {
    if (generation == kGateIdle) keep_open(event, range, 0);
    return range;
  }
  const FinishedCall call = nvtx_moment(generation, record_ticks());
  if (capture_name) [[unlikely]]
    keep_open(event, range, call.begin);
  write(call, NvtxAct::Start, event, range);
  return range;
}

void nvtx_pop(const void* domain, const NvtxPayload& payload) {
  u64 generation;
  OpenRange range;
  if (!joined(generation)) {
    if (generation == kGateIdle) nvtx_range_popped(domain, range);
    return;
  }
  const FinishedCall call = nvtx_moment(generation, record_ticks());
  NvtxEvent event;
  event.domain = domain;
  event.payload = payload;
  write(call, NvtxAct::Pop, event, 0);
  if (capture_name && nvtx_range_popped(domain, range) && range.captures) [[unlikely]]
    capture_ends(call.end);
}

void nvtx_end(u64 id, const void* domain, const NvtxPayload& payload) {
  u64 generation;
  OpenRange range;
  if (!joined(generation)) {
    if (generation == kGateIdle) nvtx_range_ended(id, range);
    return;
  }
  const FinishedCall call = nvtx_moment(generation, record_ticks());
  NvtxEvent event;
  event.domain = domain;
  event.payload = payload;
  write(call, NvtxAct::End, event, id);
  if (capture_name && nvtx_range_ended(id, range) && range.captures) [[unlikely]]
    capture_ends(call.end);
}

// ------------------------------------------------------------------ the session

bool nvtx_session_begins(const Options& options, bool forked) {
  capture_name = options.capture == CaptureMode::Nvtx ? options.capture_range : nullptr;
  capture_name_length = options.capture_range_length;
  capture_domain = options.capture_domain;
  open_windows.store(0, std::memory_order_relaxed);
  if (!nvtx_store_open()) return false;
  nvtx_forget_messages();
  if (forked) nvtx_forget_other_threads();
  if (!capture_name) return false;
  nvtx_visit_pushed(count_capture, nullptr);
  nvtx_visit_started(count_capture, nullptr);
  return open_windows.load(std::memory_order_relaxed) > 0;
}

void nvtx_thread_joined(u64 generation) {
  if (!nvtx_store_open()) return;
  FinishedCall call = nvtx_moment(generation, record_ticks());
  const bool first = names_generation.exchange(generation, std::memory_order_relaxed) != generation;
  if (first) nvtx_record_names(call);
  if (capture_name) nvtx_visit_pushed(open_window_late, &call.begin);
  nvtx_visit_pushed(write_open, &call);
  if (first) nvtx_visit_started(write_open, &call);
  if (capture_name) return;  // still needed
  if (first) nvtx_forget_started();
  nvtx_forget_pushed();
}

void nvtx_thread_ended() {
  if (!capture_name || !nvtx_store_open()) return;
  Ticks now = record_ticks();
  nvtx_visit_pushed(
      [](OpenRange& range, void* data) {
        if (range.captures) capture_ends(*static_cast<Ticks*>(data));
      },
      &now);
  nvtx_forget_pushed();
}

}  // namespace gputrace
