#include "trace/schema_reader.h"

#include <charconv>

#include "trace/schema.h"

namespace gputrace {
namespace {

constexpr std::size_t kMaxRecordTypes = 4096;
constexpr std::size_t kMaxFields = 4096;  // of one record
constexpr std::size_t kMaxCalls = 65536;

// Takes the next word (up to a blank), or a "quoted text" to the end of the line.
std::string_view next_word(std::string_view& line) {
  while (!line.empty() && line.front() == ' ') line.remove_prefix(1);
  if (!line.empty() && line.front() == '"') {
    std::string_view text = line.substr(1);
    if (!text.empty() && text.back() == '"') text.remove_suffix(1);
    line = {};
    return text;
  }
  const std::size_t end = line.find(' ');
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(word.size());
  return word;
}

bool number(std::string_view word, u32 limit, u32& value) {
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  return error == std::errc{} && end == word.data() + word.size() && value <= limit;
}

u32 size_of_type(std::string_view type) {
  if (type == "u8" || type == "i8") return 1;
  if (type == "u16" || type == "i16") return 2;
  if (type == "u32" || type == "i32") return 4;
  if (type == "u64" || type == "i64") return 8;
  return 0;
}

}  // namespace

void TraceSchema::add_text(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (!line.empty() && !add_line(line)) ++bad_lines_;
  }
}

bool TraceSchema::add_line(std::string_view line) {
  const std::string_view what = next_word(line);
  u32 a = 0, b = 0;
  if (what == "record") {
    TraceRecordType record;
    if (!number(next_word(line), 65535, a)) return false;
    record.name = next_word(line);
    if (!number(next_word(line), 65535, b) || records_.size() >= kMaxRecordTypes) return false;
    record.type = static_cast<u16>(a);
    record.size = static_cast<u16>(b);
    record.doc = next_word(line);
    if (!record_index_.emplace(record.type, static_cast<u32>(records_.size())).second) return false;
    record_names_.emplace(record.name, static_cast<u32>(records_.size()));
    records_.push_back(std::move(record));
    return true;
  }
  if (what == "field") {
    const auto found = record_names_.find(std::string(next_word(line)));
    TraceField field;
    field.name = next_word(line);
    field.type = next_word(line);
    if (found == record_names_.end() || !number(next_word(line), 65535, field.offset)) return false;
    field.unit = next_word(line);
    field.doc = next_word(line);
    field.size = size_of_type(field.type);
    TraceRecordType& record = records_[found->second];
    if (record.fields.size() >= kMaxFields || field.offset + field.size > record.size) return false;
    record.fields.push_back(std::move(field));
    return true;
  }
  if (what == "call") {
    TraceCall call;
    if (!number(next_word(line), 65535, a) || calls_.size() >= kMaxCalls) return false;
    call.id = static_cast<u16>(a);
    call.name = next_word(line);
    call.level = next_word(line);
    call.variant = next_word(line);
    if (call.name.empty() || !call_index_.emplace(call.id, static_cast<u32>(calls_.size())).second) return false;
    calls_.push_back(std::move(call));
    return true;
  }
  return false;
}

const TraceRecordType* TraceSchema::record(u16 type) const {
  const auto found = record_index_.find(type);
  return found == record_index_.end() ? nullptr : &records_[found->second];
}

const TraceCall* TraceSchema::call(u16 id) const {
  const auto found = call_index_.find(id);
  return found == call_index_.end() ? nullptr : &calls_[found->second];
}

bool known_record_type(u16 type) {
  static const std::vector<bool> known = [] {
    std::vector<bool> types(65536);
    for (u32 i = 0; i < kRecordSchemaCount; ++i) types[kRecordSchemas[i].type] = true;
    return types;
  }();
  return known[type];
}

}  // namespace gputrace
