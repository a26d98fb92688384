#include "trace/schema.h"

#include <cstddef>

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

}  // namespace gputrace
