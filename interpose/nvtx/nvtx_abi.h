// The binary interface between NVTX v3 in a program's own objects and a tool that it loads: the few tables and structs
// that we touch, written down here so that no toolkit's headers are needed. nvtx_inject.cpp compares them with the
// headers where those are installed. Stable since NVTX 3.0; extension module 2 (payload) since 3.1.
#pragma once

#include <cstddef>

#include "base/types.h"

namespace gputrace::nvtx_abi {

enum Module : u32 { kCore = 1, kCuda = 2, kCudart = 4, kCore2 = 5 };
constexpr u32 kCallbacksTable = 1;

using Function = void (*)();
struct Callbacks {
  std::size_t struct_size;
  // *table: an array of `size` pointers, each to the slot of one function; entry 0 is unused.
  int (*GetModuleFunctionTable)(u32 module, Function*** table, unsigned* size);
};
using GetExportTable = const void* (*)(u32 table);

struct EventAttributes {
  u16 version;
  u16 size;
  u32 category;
  i32 color_type;
  u32 color;
  i32 payload_type;
  i32 payload_count;  // only with kPayloadExtended
  u64 payload;
  i32 message_type;
  i32 padding;
  const void* message;
};
static_assert(sizeof(EventAttributes) == 48);
enum ColorType : i32 { kArgb = 1 };
enum MessageType : i32 { kNoMessage = 0, kAscii = 1, kUnicode = 2, kRegistered = 3 };
constexpr i32 kPayloadExtended = static_cast<i32>(0xDFBD0009u);

struct ResourceAttributes {
  u16 version;
  u16 size;
  i32 identifier_type;
  u64 identifier;
  i32 message_type;
  i32 padding;
  const void* message;
};

// ------------------------------------------------------------------ extended payloads
constexpr u16 kPayloadModule = 2;
constexpr u64 kFirstDynamicId = u64{1} << 32;  // of schemas, scopes and time domains that the tool numbers
enum PayloadSlot : u32 {
  kSchemaRegister = 0,
  kEnumRegister = 1,
  kMarkPayload = 2,
  kRangePushPayload = 3,
  kRangePopPayload = 4,
  kRangeStartPayload = 5,
  kRangeEndPayload = 6,
  kTimeDomainRegister = 9,
  kScopeRegister = 12,
};
struct PayloadData {
  u64 schema;
  std::size_t size;
  const void* data;
};
struct SchemaAttributes {
  u64 fields;
  const char* name;
  u64 type;
  u64 flags;
  const void* entries;
  std::size_t entry_count;
  std::size_t static_size;
  std::size_t alignment;
  u64 schema;
};
struct EnumAttributes {
  u64 fields;
  const char* name;
  const void* entries;
  std::size_t entry_count;
  std::size_t size;
  u64 schema;
};
constexpr u64 kFieldName = 1 << 1, kSchemaFieldId = 1 << 8, kEnumFieldId = 1 << 5;
struct ScopeAttributes {
  std::size_t struct_size;
  const char* path;
  u64 parent;
  u64 scope;
};
struct TimeDomainAttributes {
  u64 scope;
  u64 timestamp_type;
  u64 time_domain;
};
struct ExtensionSegment {
  std::size_t id;
  std::size_t count;
  std::intptr_t* slots;
};
struct ExtensionModule {
  u16 nvtx_version;
  u16 struct_size;
  u16 module;
  u16 compatibility;
  std::size_t segment_count;
  ExtensionSegment* segments;
  const void* get_export;
  const void* info;
};

}  // namespace gputrace::nvtx_abi
