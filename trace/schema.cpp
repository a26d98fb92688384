#include "trace/schema.h"

#include <cstddef>

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

// Appends to a bounded buffer, counting what did not fit.
class TextSink {
 public:
  TextSink(char* out, std::size_t capacity) : out_(out), capacity_(capacity) {}
  void put(const char* text) {
    for (; *text; ++text) put_char(*text);
  }
  void put_char(char c) {
    if (size_ < capacity_) out_[size_] = c;
    ++size_;
  }
  void put_number(u64 value) {
    char digits[20];
    int n = 0;
    do digits[n++] = static_cast<char>('0' + value % 10);
    while (value /= 10);
    while (n) put_char(digits[--n]);
  }
  std::size_t size() const { return size_; }

 private:
  char* out_;
  std::size_t capacity_;
  std::size_t size_ = 0;
};

void write_field(TextSink& sink, const char* record, const FieldSchema& field) {
  sink.put("field ");
  sink.put(record);
  sink.put(" ");
  sink.put(field.name);
  sink.put(" ");
  sink.put(field.type);
  sink.put(" ");
  sink.put_number(field.offset);
  sink.put(" ");
  sink.put(field.unit);
  sink.put(" \"");
  sink.put(field.doc);
  sink.put("\"\n");
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
  TextSink sink(out, capacity);
  for (u32 i = 0; i < kRecordSchemaCount; ++i) {
    const RecordSchema& record = kRecordSchemas[i];
    sink.put("record ");
    sink.put_number(record.type);
    sink.put(" ");
    sink.put(record.name);
    sink.put(" ");
    sink.put_number(record.size);
    sink.put(" \"");
    sink.put(record.doc);
    sink.put("\"\n");
    for (u32 f = 0; f < record.field_count; ++f) write_field(sink, record.name, record.fields[f]);
  }
  return sink.size();
}

}  // namespace gputrace
