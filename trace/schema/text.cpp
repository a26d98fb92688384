// The schema's text, put together by the compiler: the preloaded library carries letters where tables of pointers would
// have to be relocated in every process that it is loaded into, most of which never trace.
#include <cstddef>
#include <cstring>

#include "base/bounded_text.h"
#include "trace/record.h"
#include "trace/schema.h"

namespace gputrace {
namespace {

constexpr bool same(const char* a, const char* b) {
  while (*a && *a == *b) ++a, ++b;
  return *a == *b;
}

constexpr bool is_number(u64 number, RecordClass of) { return number == static_cast<u64>(of); }

constexpr const char* word_of_class(RecordClass record_class) {
  bool is_class = false;
#define GT_ENUM(Name, type, doc) is_class = same(#Name, "RecordClass");
#define GT_FLAGS(Name, type, doc) is_class = false;
#define GT_VALUE(Name, number, word, ...) \
  if (is_class && is_number(static_cast<u64>(number), record_class)) return word;
#include "trace/records.def"
  return "";
}

// The doc of a line in quotes, and its end.
constexpr void end_line(BoundedText& text, const char* doc) { text << " \"" << doc << "\"\n"; }

constexpr void write_enum(BoundedText& text, const char* kind, const char* name, const char* doc) {
  text << kind << " " << name;
  end_line(text, doc);
}

constexpr void write_value(BoundedText& text, const char* of, u64 number, const char* word, const char* doc) {
  if (!*word) return;
  text << "value " << of << " " << number << " " << word;
  if (*doc) {
    end_line(text, doc);
  } else {
    text << "\n";
  }
}

constexpr void write_record(BoundedText& text, u64 id, const char* name, u64 size, RecordClass record_class,
                            const char* doc) {
  text << "record " << id << " " << name << " " << size << " " << word_of_class(record_class);
  end_line(text, doc);
}

constexpr void write_field(BoundedText& text, const char* of, const char* name, const char* type, u64 offset,
                           const char* unit, const char* doc) {
  text << "field " << of << " " << name << " " << type << " " << offset << " " << unit;
  end_line(text, doc);
}

// Enumerations and flags, then records.
constexpr void write_lines(BoundedText& text) {
  const char* of = "";
#define GT_ENUM(Name, type, doc) write_enum(text, "enum", of = #Name, doc);
#define GT_FLAGS(Name, type, doc) write_enum(text, "flags", of = #Name, doc);
#define GT_VALUE(Name, number, word, ...) write_value(text, of, static_cast<u64>(number), word, "" __VA_ARGS__);
#include "trace/records.def"
#define GT_RECORD(Name, id, record_class, doc) \
  {                                            \
    using Record = Name;                       \
    of = #Name;                                \
    write_record(text, id, of, sizeof(Record), RecordClass::record_class, doc);
#define GT_FIELD(type, name, unit, doc) write_field(text, of, #name, #type, offsetof(Record, name), #unit, doc);
#define GT_END(Name) }
#include "trace/records.def"
}

constexpr std::size_t length_of_lines() {
  BoundedText text(nullptr, 0);
  write_lines(text);
  return text.size();
}
constexpr std::size_t kLength = length_of_lines();

struct Lines {
  char text[kLength]{};
  constexpr Lines() {
    BoundedText out(text, kLength);
    write_lines(out);
  }
};
constexpr Lines kLines;

}  // namespace

std::size_t write_schema_text(char* out, std::size_t capacity) {
  if (capacity) std::memcpy(out, kLines.text, kLength < capacity ? kLength : capacity);
  return kLength;
}

}  // namespace gputrace
