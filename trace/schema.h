// The schema as text: what makes a trace self-describing. One line per record, field and call:
//
//   record ID NAME SIZE "doc"
//   field RECORD NAME TYPE OFFSET UNIT "doc"
//   call ID NAME LEVEL VARIANT                  (written by the interposer, from its api.def)
//
// NAME of a call is the documented name without suffixes, VARIANT the exported one, LEVEL driver, runtime or library.
// The text travels in the segment and in the file; the sidecar copies it blindly.
#pragma once

#include <cstddef>

#include "base/types.h"

namespace gputrace {

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
  const FieldSchema* fields;  // those after the header
  u32 field_count;
};

// The records of this build, in the order of records.def. Static storage; any thread.
extern const RecordSchema kRecordSchemas[];
extern const u32 kRecordSchemaCount;

// Writes the record and field lines into `out` (at most `capacity` bytes, no terminating NUL) and returns their full
// length, which may be more than `capacity`. No allocation: also called in the traced process.
std::size_t write_schema_text(char* out, std::size_t capacity);

}  // namespace gputrace
