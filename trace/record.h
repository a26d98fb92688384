// The records of records.def as structs, and its enumerations and flags.
// A struct here is bit for bit what the producer writes and what the file holds: little endian, naturally aligned, no
// padding.
#pragma once

#include <type_traits>

#include "base/types.h"

namespace gputrace {

// The first 24 bytes of every record.
struct RecordHeader {
  u16 type;    // RecordType
  u16 size;    // whole record in bytes, a multiple of 8
  u16 call;    // id of the intercepted call (the trace's schema names it); 0: none
  u16 result;  // what the call returned (CUresult, cudaError_t); 0 is success
  Ticks begin;
  Ticks end;  // 0: the call was in flight when the trace ended
};
static_assert(sizeof(RecordHeader) == 24);

enum class RecordType : u16 {
#define GT_RECORD(Name, id, record_class, doc) Name = id,
#include "trace/records.def"
};

#define GT_ENUM(Name, type, doc) enum class Name : type {
#define GT_FLAGS(Name, type, doc) enum Name : type {
#define GT_VALUE(Name, number, word, ...) Name = number,
#define GT_ENUM_END(Name) \
  }                       \
  ;
#include "trace/records.def"

#define GT_RECORD(Name, id, record_class, doc)            \
  struct Name {                                           \
    static constexpr RecordType kType = RecordType::Name; \
    RecordHeader header;
#define GT_FIELD(type, name, unit, doc) type name;
#define GT_END(Name) \
  }                  \
  ;
#include "trace/records.def"

#define GT_RECORD(Name, id, record_class, doc) static_assert(std::is_trivially_copyable_v<Name> && sizeof(Name) % 8 == 0 && sizeof(Name) ==  sizeof(RecordHeader)
#define GT_FIELD(type, name, unit, doc) +sizeof(type)
#define GT_END(Name) , #Name " has padding");
#include "trace/records.def"

// Of records of that type; Unknown: this build has none such.
constexpr RecordClass class_of(u16 type) {
  switch (static_cast<RecordType>(type)) {
#define GT_RECORD(Name, id, record_class, doc) \
  case RecordType::Name:                       \
    return RecordClass::record_class;
#include "trace/records.def"
  }
  return RecordClass::Unknown;
}

inline constexpr u32 kDropReasons = 8;  // words reserved in the segment and in the file

}  // namespace gputrace
