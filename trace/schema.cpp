#include "trace/schema.h"

#include <cstddef>

#include "base/bounded_text.h"
#include "trace/record.h"

namespace gputrace {
namespace {

// One array of fields per record: kFields_NAME.
#define GT_RECORD(Name, id, doc) \
  template <typename T>          \
  struct Fields_##Name {         \
    static constexpr FieldSchema kFields[] = {
#define GT_FIELD(type, name, unit, doc) {#name, #type, #unit, doc, offsetof(T, name), sizeof(T::name)},
#define GT_END(Name) \
  }                  \
  ;                  \
  }                  \
  ;
#include "trace/records.def"

void write_field(BoundedText& text, const char* record, const FieldSchema& field) {
  text << "field " << record << " " << field.name << " " << field.type << " " << field.offset << " " << field.unit;
  text << " \"" << field.doc << "\"\n";
}

}  // namespace

const RecordSchema kRecordSchemas[] = {
#define GT_RECORD(Name, id, doc) \
  {#Name,                        \
   doc,                          \
   id,                           \
   sizeof(Name),                 \
   Fields_##Name<Name>::kFields, \
   sizeof(Fields_##Name<Name>::kFields) / sizeof(FieldSchema)},
#define GT_FIELD(type, name, unit, doc)
#define GT_END(Name)
#include "trace/records.def"
};
const u32 kRecordSchemaCount = sizeof(kRecordSchemas) / sizeof(kRecordSchemas[0]);

std::size_t write_schema_text(char* out, std::size_t capacity) {
  BoundedText text(out, capacity);
  for (u32 i = 0; i < kRecordSchemaCount; ++i) {
    const RecordSchema& record = kRecordSchemas[i];
    text << "record " << record.type << " " << record.name << " " << record.size << " \"" << record.doc << "\"\n";
    for (u32 f = 0; f < record.field_count; ++f) write_field(text, record.name, record.fields[f]);
  }
  return text.size();
}

}  // namespace gputrace
