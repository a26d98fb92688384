#include "analysis/read/record_text.h"

#include <fmt/format.h>

#include <iterator>

#include "analysis/words/safe_text.h"

namespace gputrace {
namespace {

u64 read_bits(const u8* at, u32 size) {
  u64 bits = 0;
  std::memcpy(&bits, at, size);
  return bits;
}

// A JSON string; `value` is valid UTF-8.
void append_json(std::string_view value, std::string& out) {
  out += '"';
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      out += '\\', out += c;
    else if (c == '\n')
      out += "\\n";
    else if (c == '\t')
      out += "\\t";
    else if (byte < 0x20 || byte == 0x7f)
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", byte);
    else
      out += c;
  }
  out += '"';
}

}  // namespace

RecordText::RecordText(const TraceReader& trace, bool json)
    : trace_(trace), clock_(trace.clock()), json_(json), text_bytes_((64u << 20) + 64 * trace.file_size()) {}

std::string_view RecordText::text_of(u64 id) {
  constexpr std::size_t kShort = 200;
  const std::string_view value = trace_.texts().find(id);
  if (value.size() <= kShort) return value;
  if (value.size() > text_bytes_) return value.substr(0, kShort);
  text_bytes_ -= value.size();
  return value;
}

void RecordText::key(const std::string& name, std::string& out) {
  if (json_) {
    out += first_ ? "\"" : ",\"";
    out += name;
    out += "\":";
  } else {
    out += ' ';
    out += name;
    out += '=';
  }
  first_ = false;
}

void RecordText::text(std::string_view value, std::string& out) {
  bool ascii = !value.empty(), plain = ascii;
  for (const char c : value) {
    ascii = ascii && c >= 0x20 && c < 0x7f;
    plain = plain && c > 0x20 && c < 0x7f && c != '=' && c != '"';
  }
  if (json_) return ascii ? append_json(value, out) : append_json(valid_utf8(value), out);
  if (plain) {
    out += value;
    return;
  }
  out += '"';
  out += safe_text(value);
  out += '"';
}

void RecordText::integer(u64 bits, bool is_signed, u32 size, std::string& out) {
  if (is_signed) {
    const unsigned shift = 64 - size * 8;
    fmt::format_to(std::back_inserter(out), "{}", static_cast<i64>(bits << shift) >> shift);
  } else {
    fmt::format_to(std::back_inserter(out), "{}", bits);
  }
}

const std::vector<const TraceEnum*>& RecordText::words_of(const TraceRecordType& type) {
  const auto [it, fresh] = words_.try_emplace(type.type);
  if (!fresh) return it->second;
  for (const TraceField& field : type.fields) it->second.push_back(trace_.schema().words(type, field));
  return it->second;
}

void RecordText::names(const TraceField& field, const TraceEnum& words, u64 value, std::string& out) {
  bool any = false;
  for (const TraceValue& row : words.values) {
    if (words.flags ? (value & row.number) == 0 : value != row.number) continue;
    if (!any) {
      key(field.name + "_name", out);
      if (json_) out += '"';
    } else {
      out += '|';
    }
    out += row.word;
    any = true;
  }
  if (any && json_) out += '"';
}

void RecordText::field(const TraceField& field, const TraceEnum* words, const RecordHeader& record, std::string& out) {
  if (field.size == 0 || field.size > 8 || field.offset + field.size > record.size) return;
  if (field.name.compare(0, 8, "reserved") == 0) return;
  const u64 bits = read_bits(reinterpret_cast<const u8*>(&record) + field.offset, field.size);
  key(field.name, out);
  if (field.unit == "text") {
    const std::string_view value = text_of(bits);
    if (value.data() == nullptr && json_)
      out += "null";
    else
      text(value, out);
    return;
  }
  const bool address = field.unit == "handle" || field.unit == "address";
  if (address && !json_)
    fmt::format_to(std::back_inserter(out), "0x{:x}", bits);
  else
    integer(bits, field.type[0] == 'i', field.size, out);
  if (words) names(field, *words, bits, out);
}

void RecordText::call(u16 id, std::string& out) {
  const auto [it, fresh] = calls_.try_emplace(id);
  if (fresh) {  // a call always stands behind another key
    const TraceCall* call = id ? trace_.schema().call(id) : nullptr;
    std::string& line = it->second;
    key("call", line);
    if (call)
      text(call->name, line);
    else if (json_ && id == 0)
      line += "null";
    else
      text(id ? "call " + std::to_string(id) : "-", line);
    if (call) {
      key("variant", line);
      text(call->variant, line);
      key("level", line);
      text(call->level, line);
    }
  }
  out += it->second;
}

void RecordText::append(const RecordHeader& record, u32 thread, std::string& out) {
  const TraceRecordType* type = trace_.schema().record(record.type);
  const i32 tid = trace_.threads()[thread].tid;
  const Nanos begin = record.begin ? clock_.nanos(record.begin) : 0;
  const Nanos end = record.end ? clock_.nanos(record.end) : 0;
  const std::string unknown = type ? "" : "record " + std::to_string(record.type);
  first_ = true;
  if (json_) {
    out += '{';
    key("record", out);
    text(type ? type->name : unknown, out);
  } else {
    out += type ? type->name : unknown;
  }
  key("tid", out);
  fmt::format_to(std::back_inserter(out), "{}", tid);
  call(record.call, out);
  key("result", out);
  fmt::format_to(std::back_inserter(out), "{}", record.result);
  key("begin_ns", out);
  fmt::format_to(std::back_inserter(out), "{}", begin);
  key("end_ns", out);
  fmt::format_to(std::back_inserter(out), "{}", end);
  if (type) {
    const std::vector<const TraceEnum*>& words = words_of(*type);
    for (std::size_t i = 0; i < type->fields.size(); ++i) field(type->fields[i], words[i], record, out);
    if (record.type == static_cast<u16>(RecordType::Text) && record.size > sizeof(Text)) {
      const auto value = decode<Text>(record);
      const u64 room = record.size - sizeof(Text), left = value.total > value.offset ? value.total - value.offset : 0;
      key("piece", out);
      text({reinterpret_cast<const char*>(&record) + sizeof(Text), static_cast<std::size_t>(std::min(room, left))},
           out);
    }
  }
  out += json_ ? "}\n" : "\n";
}

void RecordText::append(const InFlightCallInfo& open, std::string& out) {
  first_ = true;
  if (json_) {
    out += '{';
    key("record", out);
    text("InFlight", out);
  } else {
    out += "InFlight";
  }
  key("tid", out);
  fmt::format_to(std::back_inserter(out), "{}", open.tid);
  call(static_cast<u16>(open.call), out);
  key("result", out);
  out += json_ ? "null" : "-";
  key("begin_ns", out);
  fmt::format_to(std::back_inserter(out), "{}", trace_.clock().nanos(open.begin));
  key("end_ns", out);
  out += json_ ? "null" : "-";
  key("argument", out);
  fmt::format_to(std::back_inserter(out), "{}", open.argument);
  key("depth", out);
  fmt::format_to(std::back_inserter(out), "{}", open.depth);
  out += json_ ? "}\n" : "\n";
}

}  // namespace gputrace
