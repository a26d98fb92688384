// From a call of NVTX to its record: what the callbacks of nvtx_inject.cpp go through.
#pragma once

#include "interpose/nvtx/nvtx_abi.h"
#include "interpose/nvtx/nvtx_store.h"

namespace gputrace {

struct NvtxMessage {
  i32 type = nvtx_abi::kNoMessage;  // MessageType
  const void* text = nullptr;
};
inline constexpr u32 kNvtxPayloadSchema = 0x100;  // NvtxPayload::type: a schema says what it is
struct NvtxPayload {
  u32 type = 0;  // nvtxPayloadType_t, or kNvtxPayloadSchema; 0: none
  u64 bits = 0;
};
struct NvtxEvent {
  const void* domain = nullptr;
  NvtxMessage message;
  NvtxPayload payload;
  u32 category = 0;
  u32 color = 0;
};

struct NvtxText {
  const char* text;  // "" where there is none
  u64 length;
};
// `wide` holds a text that had to be converted.
NvtxText nvtx_text(const NvtxMessage& message, char (&wide)[kWideCapacity]);
// Of a payload that a schema describes its name is kept, the bytes are not.
NvtxPayload nvtx_payload(const nvtx_abi::PayloadData* data, u64 count);
// `attributes` may be nullptr. A caller with an older, shorter struct is not read past its size.
NvtxEvent nvtx_event(const void* domain, const nvtx_abi::EventAttributes* attributes);

void nvtx_mark(const NvtxEvent& event);
void nvtx_push(const NvtxEvent& event);
void nvtx_pop(const void* domain, const NvtxPayload& payload);
u64 nvtx_start(const NvtxEvent& event);
void nvtx_end(u64 range, const void* domain, const NvtxPayload& payload);

}  // namespace gputrace
