// What a program hands to NVTX once and refers to later: registered strings, domains, names of things. It lives as long
// as the process, whether there is a session or not, so that what came before the first CUDA call is not lost.
// Mapped when the first of the program's objects asks for a tool; bounded; entries are never freed, and found by
// content, so that the objects of a program share them. No lock: entries are appended. A child of fork keeps its copy.
#pragma once

#include <atomic>

#include "interpose/hot/traced.h"
#include "trace/record.h"
#include "trace/string_id.h"

namespace gputrace {

// Its address is the handle of a registered string.
struct NvtxString {
  u64 id;                        // of its Text record: the content's
  std::atomic<u64> recorded_in;  // the newest session that has that record
  const char* text;              // terminated
  u32 length;
  u32 reserved;
};
// Its address is the handle of a domain.
struct NvtxDomain {
  std::atomic<NvtxString*> name;
};

// Maps the store. False: no memory, or not wanted; then no tool.
bool nvtx_open_store();
bool nvtx_store_open();

// The kept copy of a text; nullptr: no room. `text` need not be terminated. `passing`: one that nobody refers to later;
// it leaves half of the room to others.
NvtxString* nvtx_keep(const char* text, u64 length, bool passing = false);
// What a handle given out stands for; nullptr: it is none of ours.
NvtxString* nvtx_string_of(const void* handle);
NvtxDomain* nvtx_domain_of(const void* handle);
// Handles for those that found no room: events with them are recorded, and say that a text is missing.
void* nvtx_lost_string();

NvtxDomain* nvtx_domain(const char* name, u64 length);
// `domain`: nullptr is the default domain. Kept, and recorded if there is a session.
void nvtx_name(NvtxNamed what, const void* domain, u64 object, const char* name, u64 length);
// Every name kept so far, once a session.
void nvtx_record_names(const FinishedCall& call);

// Id of the text, which is defined in this session when this returns; 0: it could not be.
u64 nvtx_text_id(const FinishedCall& call, NvtxString& string);
// 0: the default domain.
u64 nvtx_domain_id(const FinishedCall& call, const void* domain);
// The same for a text that is not kept. 0 and kNvtxMessageNotKept: there are too many different ones, or it could not
// be.
u64 nvtx_message_id(const FinishedCall& call, const char* text, u64 length, u32& flags);
// A new session: messages are unknown again. Before the gate opens.
void nvtx_forget_messages();

// UTF-8 of a wide text, cut at `capacity` - 1 bytes, terminated. Returns its length.
u64 utf8_of_wide(const wchar_t* text, char* out, u64 capacity);
inline constexpr u64 kWideCapacity = 4096;

// No call: the moment `now` in a session, for records that stand for themselves.
inline FinishedCall nvtx_moment(u64 generation, Ticks now) {
  FinishedCall call;
  call.head = 0;
  call.generation = generation;
  call.begin = call.end = now;
  call.per_thread = false;
  return call;
}

}  // namespace gputrace
