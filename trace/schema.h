// The schema as text: what makes a trace self-describing. One line each:
//
//   enum NAME "doc"                              numbers of which a field holds one
//   flags NAME "doc"                             bits of which a field holds any
//   value ENUM NUMBER WORD "doc"                 of either; the doc may be missing
//   record ID NAME SIZE CLASS "doc"
//   field RECORD NAME TYPE OFFSET UNIT "doc"     a unit may be the NAME of an enum or of flags
//   call ID NAME LEVEL VARIANT                   (written by the interposer, from its api.def)
//
// CLASS is a word of RecordClass. NAME of a call is the documented name without suffixes, VARIANT the exported one, LEVEL
// driver, runtime or library. Names and words are letters, digits and any of _-.+; docs hold no quotes and no line ends.
// What may be added: lines of a new kind, which readers skip, and words before the doc, or at the end of a line that
// has none.
// The text travels in the segment and in the file; the sidecar copies it blindly.
#pragma once

#include <cstddef>

#include "trace/record.h"

namespace gputrace {

struct ValueSchema {
  u64 number;  // of flags: the bit
  const char* word;
  const char* doc;
};

struct EnumSchema {
  const char* name;
  const char* doc;
  bool flags;
  const ValueSchema* values;  // in the order in which they are shown
  u32 value_count;
};

struct FieldSchema {
  const char* name;
  const char* type;
  const char* unit;
  const char* doc;
  u32 offset;
  u32 size;
};

struct RecordSchema {
  const char* name;
  const char* doc;
  u16 type;
  u16 size;
  RecordClass record_class;
  const FieldSchema* fields;  // those after the header
  u32 field_count;
};

// The records, and the enumerations and flags, of this build, in the order of records.def. Static storage; any thread.
extern const RecordSchema kRecordSchemas[];
extern const u32 kRecordSchemaCount;
extern const EnumSchema kEnumSchemas[];
extern const u32 kEnumSchemaCount;

namespace enum_index {
enum : u32 {
#define GT_ENUM(Name, type, doc) Name,
#define GT_FLAGS(Name, type, doc) Name,
#include "trace/records.def"
};
}  // namespace enum_index

// schema_of(MmaClass{}): the row of an enumeration, whatever the value.
#define GT_ENUM(Name, type, doc) \
  inline const EnumSchema& schema_of(Name) { return kEnumSchemas[enum_index::Name]; }
#define GT_FLAGS(Name, type, doc) GT_ENUM(Name, type, doc)
#include "trace/records.def"

// Its word; "": it has none.
template <typename Enum>
const char* word_of(Enum value) {
  const EnumSchema& schema = schema_of(value);
  for (u32 i = 0; i < schema.value_count; ++i)
    if (schema.values[i].number == static_cast<u64>(value)) return schema.values[i].word;
  return "";
}

// Writes all lines but those of calls into `out` (at most `capacity` bytes, no terminating NUL) and returns their full
// length, which may be more than `capacity`. No allocation: also called in the traced process.
std::size_t write_schema_text(char* out, std::size_t capacity);

}  // namespace gputrace
