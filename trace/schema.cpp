#include "trace/schema.h"

#include <cstddef>

#include "base/bounded_text.h"
#include "trace/record.h"

namespace gputrace {
namespace {

// One array of fields per record, one of values per enumeration.
#define GT_RECORD(Name, id, record_class, doc) \
  template <typename T>                        \
  struct Fields_##Name {                       \
    static constexpr FieldSchema kFields[] = {
#define GT_FIELD(type, name, unit, doc) {#name, #type, #unit, doc, offsetof(T, name), sizeof(T::name)},
#define GT_END(Name) \
  }                  \
  ;                  \
  }                  \
  ;
#define GT_ENUM(Name, type, doc) constexpr ValueSchema kValues_##Name[] = {
#define GT_FLAGS(Name, type, doc) GT_ENUM(Name, type, doc)
#define GT_VALUE(Name, number, word, ...) {static_cast<u64>(number), word, "" __VA_ARGS__},
#define GT_ENUM_END(Name) \
  }                       \
  ;
#include "trace/records.def"

// The doc of a line in quotes, and its end.
void end_line(BoundedText& text, const char* doc) { text << " \"" << doc << "\"\n"; }

void write_enum(BoundedText& text, const EnumSchema& schema) {
  text << (schema.flags ? "flags " : "enum ") << schema.name;
  end_line(text, schema.doc);
  for (u32 i = 0; i < schema.value_count; ++i) {
    const ValueSchema& value = schema.values[i];
    if (!*value.word) continue;
    text << "value " << schema.name << " " << value.number << " " << value.word;
    if (*value.doc) {
      end_line(text, value.doc);
    } else {
      text << "\n";
    }
  }
}

void write_record(BoundedText& text, const RecordSchema& schema) {
  text << "record " << schema.type << " " << schema.name << " " << schema.size << " " << word_of(schema.record_class);
  end_line(text, schema.doc);
  for (u32 i = 0; i < schema.field_count; ++i) {
    const FieldSchema& field = schema.fields[i];
    text << "field " << schema.name << " " << field.name << " " << field.type << " " << field.offset << " "
         << field.unit;
    end_line(text, field.doc);
  }
}

}  // namespace

const EnumSchema kEnumSchemas[] = {
#define GT_ENUM(Name, type, doc) {#Name, doc, false, kValues_##Name, sizeof kValues_##Name / sizeof(ValueSchema)},
#define GT_FLAGS(Name, type, doc) {#Name, doc, true, kValues_##Name, sizeof kValues_##Name / sizeof(ValueSchema)},
#include "trace/records.def"
};
const u32 kEnumSchemaCount = sizeof(kEnumSchemas) / sizeof(kEnumSchemas[0]);

const RecordSchema kRecordSchemas[] = {
#define GT_RECORD(Name, id, record_class, doc) \
  {#Name,                                      \
   doc,                                        \
   id,                                         \
   sizeof(Name),                               \
   RecordClass::record_class,                  \
   Fields_##Name<Name>::kFields,               \
   sizeof(Fields_##Name<Name>::kFields) / sizeof(FieldSchema)},
#include "trace/records.def"
};
const u32 kRecordSchemaCount = sizeof(kRecordSchemas) / sizeof(kRecordSchemas[0]);

std::size_t write_schema_text(char* out, std::size_t capacity) {
  BoundedText text(out, capacity);
  for (u32 i = 0; i < kEnumSchemaCount; ++i) write_enum(text, kEnumSchemas[i]);
  for (u32 i = 0; i < kRecordSchemaCount; ++i) write_record(text, kRecordSchemas[i]);
  return text.size();
}

}  // namespace gputrace
