#include "trace/schema_reader.h"

#include <algorithm>
#include <charconv>

#include "trace/schema.h"

namespace gputrace {
namespace {

constexpr std::size_t kMaxRecordTypes = 4096;
constexpr std::size_t kMaxFields = 4096;  // of one record
constexpr std::size_t kMaxEnums = 4096;
constexpr std::size_t kMaxValues = 1024;  // of one enumeration
constexpr std::size_t kMaxCalls = 65536;
constexpr u64 kMaxLines = 128 << 10;  // this version writes some 3,000

// Takes the next word (up to a blank); "" where a doc or the end of the line comes.
std::string_view next_word(std::string_view& line) {
  while (!line.empty() && line.front() == ' ') line.remove_prefix(1);
  if (line.empty() || line.front() == '"') return {};
  const std::string_view word = line.substr(0, line.find(' '));
  line.remove_prefix(word.size());
  return word;
}

// What stands in quotes at the end of the line, past words that only a newer version knows.
std::string_view doc_of(std::string_view line) {
  const std::size_t quote = line.find('"');
  if (quote == std::string_view::npos) return {};
  line.remove_prefix(quote + 1);
  if (!line.empty() && line.back() == '"') line.remove_suffix(1);
  return line;
}

bool is_name(std::string_view word) {
  const auto good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.' || c == '+';
  };
  return !word.empty() && std::all_of(word.begin(), word.end(), good);
}

bool name(std::string_view word, std::string& value) {
  value = word;
  return is_name(word);
}

template <typename Integer>
bool number(std::string_view word, u64 limit, Integer& value) {
  u64 wide = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), wide);
  value = static_cast<Integer>(wide);
  return error == std::errc{} && end == word.data() + word.size() && wide <= limit;
}

u32 size_of_type(std::string_view type) {
  if (type == "u8" || type == "i8") return 1;
  if (type == "u16" || type == "i16") return 2;
  if (type == "u32" || type == "i32") return 4;
  if (type == "u64" || type == "i64") return 8;
  return 0;
}

RecordClass class_of_word(std::string_view word) {
  const EnumSchema& classes = schema_of(RecordClass{});
  for (u32 i = 0; i < classes.value_count; ++i)
    if (word == classes.values[i].word) return static_cast<RecordClass>(classes.values[i].number);
  return RecordClass::Unknown;
}

// What this build itself would write.
const TraceSchema& own_schema() {
  static const TraceSchema own = [] {
    std::string text(write_schema_text(nullptr, 0), '\0');
    write_schema_text(text.data(), text.size());
    TraceSchema schema;
    schema.add_text(text);
    return schema;
  }();
  return own;
}

template <typename Entry, typename Index, typename Key>
const Entry* find(const std::vector<Entry>& entries, const Index& index, const Key& key) {
  const auto found = index.find(key);
  return found == index.end() ? nullptr : &entries[found->second];
}

}  // namespace

TraceSchema::TraceSchema() : classes_(65536) {
  for (u32 i = 0; i < kRecordSchemaCount; ++i) classes_[kRecordSchemas[i].type] = kRecordSchemas[i].record_class;
}

bool TraceSchema::add_text(std::string_view text) {
  while (!text.empty()) {
    if (++lines_ > kMaxLines) return false;
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (!line.empty() && !add_line(line)) ++bad_lines_;
  }
  return true;
}

bool TraceSchema::add_line(std::string_view line) {
  const std::string_view kind = next_word(line);
  if (kind == "value") return add_value(line);
  if (kind == "field") return add_field(line);
  if (kind == "record") return add_record(line);
  if (kind == "call") return add_call(line);
  if (kind == "enum" || kind == "flags") return add_enum(line, kind == "flags");
  return false;
}

bool TraceSchema::add_enum(std::string_view line, bool flags) {
  TraceEnum made;
  made.flags = flags;
  if (!name(next_word(line), made.name) || enums_.size() >= kMaxEnums) return false;
  made.doc = doc_of(line);
  if (!enum_names_.emplace(made.name, static_cast<u32>(enums_.size())).second) return false;
  enums_.push_back(std::move(made));
  return true;
}

bool TraceSchema::add_value(std::string_view line) {
  const auto found = enum_names_.find(std::string(next_word(line)));
  TraceValue value;
  if (found == enum_names_.end() || !number(next_word(line), ~u64{0}, value.number)) return false;
  std::vector<TraceValue>& values = enums_[found->second].values;
  if (!name(next_word(line), value.word) || values.size() >= kMaxValues) return false;
  value.doc = doc_of(line);
  const auto same = [&](const TraceValue& other) { return other.number == value.number; };
  if (std::any_of(values.begin(), values.end(), same)) return false;
  values.push_back(std::move(value));
  return true;
}

bool TraceSchema::add_record(std::string_view line) {
  TraceRecordType record;
  if (!number(next_word(line), 65535, record.type) || !name(next_word(line), record.name)) return false;
  if (!number(next_word(line), 65535, record.size) || records_.size() >= kMaxRecordTypes) return false;
  const RecordClass said = class_of_word(next_word(line));
  record.doc = doc_of(line);
  if (!record_index_.emplace(record.type, static_cast<u32>(records_.size())).second) return false;
  record_names_.emplace(record.name, static_cast<u32>(records_.size()));
  RecordClass& known = classes_[record.type];
  if (known == RecordClass::Unknown) known = said;
  records_.push_back(std::move(record));
  return true;
}

bool TraceSchema::add_field(std::string_view line) {
  const auto found = record_names_.find(std::string(next_word(line)));
  TraceField field;
  if (found == record_names_.end() || !name(next_word(line), field.name)) return false;
  field.type = next_word(line);
  if (!number(next_word(line), 65535, field.offset)) return false;
  field.unit = next_word(line);
  field.doc = doc_of(line);
  field.size = size_of_type(field.type);
  TraceRecordType& record = records_[found->second];
  if (record.fields.size() >= kMaxFields || field.offset + field.size > record.size) return false;
  record.fields.push_back(std::move(field));
  return true;
}

bool TraceSchema::add_call(std::string_view line) {
  TraceCall call;
  if (!number(next_word(line), 65535, call.id) || calls_.size() >= kMaxCalls) return false;
  call.name = next_word(line);
  call.level = next_word(line);
  call.variant = next_word(line);
  if (call.name.empty() || !call_index_.emplace(call.id, static_cast<u32>(calls_.size())).second) return false;
  calls_.push_back(std::move(call));
  return true;
}

const TraceRecordType* TraceSchema::record(u16 type) const { return find(records_, record_index_, type); }

const TraceCall* TraceSchema::call(u16 id) const { return find(calls_, call_index_, id); }

const TraceEnum* TraceSchema::words(const TraceRecordType& record, const TraceField& field) const {
  if (const TraceEnum* said = find(enums_, enum_names_, field.unit)) return said;
  const TraceSchema& own = own_schema();
  const TraceRecordType* known = find(own.records_, own.record_names_, record.name);
  if (known == nullptr) return nullptr;
  for (const TraceField& candidate : known->fields) {
    if (candidate.name == field.name) return find(own.enums_, own.enum_names_, candidate.unit);
  }
  return nullptr;
}

}  // namespace gputrace
