#include "analysis/read/record_text.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstring>
#include <iterator>

#include "analysis/words/safe_text.h"

namespace gputrace {
namespace {

u64 read_bits(const u8* at, u32 size) {
  u64 bits = 0;
  std::memcpy(&bits, at, size);
  return bits;
}

// What a byte of a text is not: printable ASCII, a word of a line by itself.
constexpr u8 kNotAscii = 1, kNotPlain = 2;
constexpr std::array<u8, 256> kBytes = [] {
  std::array<u8, 256> bytes{};
  for (unsigned c = 0; c < 256; ++c) {
    bytes[c] = c < 0x20 || c >= 0x7f ? kNotAscii | kNotPlain : c == ' ' || c == '=' || c == '"' ? kNotPlain : 0;
  }
  return bytes;
}();

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

template <typename Number>
void append_number(Number number, std::string& out, int base = 10) {
  char digits[24];
  out.append(digits, std::to_chars(digits, digits + sizeof digits, number, base).ptr);
}

}  // namespace

RecordText::RecordText(const TraceReader& trace, bool json)
    : trace_(trace),
      clock_(trace.clock()),
      json_(json),
      text_bytes_((64u << 20) + 64 * trace.data_bytes()),
      record_key_(key_of("record", true)),
      tid_key_(key_of("tid")),
      result_key_(key_of("result")),
      begin_key_(key_of("begin_ns")),
      end_key_(key_of("end_ns")),
      piece_key_(key_of("piece")),
      argument_key_(key_of("argument")),
      depth_key_(key_of("depth")) {}

std::string_view RecordText::text_of(u64 id) {
  constexpr std::size_t kShort = 32;
  const std::string_view value = trace_.texts().find(id);
  if (value.size() <= kShort) return value;
  if (value.size() > text_bytes_) return cut_.assign(value.substr(0, kShort)).append("...");
  text_bytes_ -= value.size();
  return value;
}

std::string RecordText::key_of(std::string_view name, bool first) const {
  if (!json_) return " " + std::string(name) + "=";
  return (first ? "\"" : ",\"") + std::string(name) + "\":";
}

void RecordText::text(std::string_view value, std::string& out) {
  u8 found = value.empty() ? kNotAscii | kNotPlain : 0;
  for (const char c : value) found |= kBytes[static_cast<unsigned char>(c)];
  const bool ascii = (found & kNotAscii) == 0;
  if (json_) return ascii ? append_json(value, out) : append_json(valid_utf8(value), out);
  if (found == 0) {
    out += value;
    return;
  }
  out += '"';
  if (ascii)
    out += value;
  else
    out += safe_text(value);
  out += '"';
}

const std::vector<RecordText::FieldLine>& RecordText::fields_of(const TraceRecordType& type) {
  const auto [it, fresh] = fields_.try_emplace(type.type);
  if (!fresh) return it->second;
  for (const TraceField& field : type.fields) {
    if (field.size == 0 || field.size > 8 || field.name.compare(0, 8, "reserved") == 0) continue;
    const bool address = !json_ && (field.unit == "handle" || field.unit == "address");
    const Form form = field.unit == "text"   ? Form::Text
                      : address              ? Form::Address
                      : field.type[0] == 'i' ? Form::Signed
                                             : Form::Unsigned;
    it->second.push_back({field.offset,
                          field.size,
                          form,
                          trace_.schema().words(type, field),
                          key_of(field.name),
                          key_of(field.name + "_name"),
                          {}});
    FieldLine& line = it->second.back();
    if (line.key.size() <= kShortKey) std::memcpy(line.short_key, line.key.data(), line.key.size());
  }
  return it->second;
}

void RecordText::names(const FieldLine& field, u64 value, std::string& out) {
  bool any = false;
  for (const TraceValue& row : field.words->values) {
    if (field.words->flags ? (value & row.number) == 0 : value != row.number) continue;
    if (!any) {
      out += field.words_key;
      if (json_) out += '"';
    } else {
      out += '|';
    }
    out += row.word;
    any = true;
  }
  if (any && json_) out += '"';
}

// Key and number, put together before they are appended: most of a line is of these.
void RecordText::append_short(const FieldLine& field, u64 bits, std::string& out) {
  char piece[kShortKey + 32];
  std::memcpy(piece, field.short_key, kShortKey);
  char* at = piece + field.key.size();
  char* const end = piece + sizeof piece;
  if (field.form == Form::Address) {
    *at++ = '0', *at++ = 'x';
    at = std::to_chars(at, end, bits, 16).ptr;
  } else if (field.form == Form::Signed) {
    const unsigned shift = 64 - field.size * 8;
    at = std::to_chars(at, end, static_cast<i64>(bits << shift) >> shift).ptr;
  } else {
    at = std::to_chars(at, end, bits).ptr;
  }
  out.append(piece, static_cast<std::size_t>(at - piece));
}

void RecordText::field(const FieldLine& field, const RecordHeader& record, std::string& out) {
  if (field.offset + field.size > record.size) return;
  const u64 bits = read_bits(reinterpret_cast<const u8*>(&record) + field.offset, field.size);
  if (field.form != Form::Text && field.key.size() <= kShortKey) {
    append_short(field, bits, out);
    if (field.words) names(field, bits, out);
    return;
  }
  out += field.key;
  switch (field.form) {
    case Form::Text: {
      const std::string_view value = text_of(bits);
      if (value.data() == nullptr && json_)
        out += "null";
      else
        text(value, out);
      return;
    }
    case Form::Address:
      out += "0x";
      append_number(bits, out, 16);
      break;
    case Form::Signed: {
      const unsigned shift = 64 - field.size * 8;
      append_number(static_cast<i64>(bits << shift) >> shift, out);
      break;
    }
    case Form::Unsigned:
      append_number(bits, out);
  }
  if (field.words) names(field, bits, out);
}

void RecordText::call(u16 id, std::string& out) {
  const auto [it, fresh] = calls_.try_emplace(id);
  if (fresh) {  // a call always stands behind another key
    const TraceCall* call = id ? trace_.schema().call(id) : nullptr;
    std::string& line = it->second;
    line = key_of("call");
    if (call)
      text(call->name, line);
    else if (json_ && id == 0)
      line += "null";
    else
      text(id ? "call " + std::to_string(id) : "-", line);
    if (call) {
      line += key_of("variant");
      text(call->variant, line);
      line += key_of("level");
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
  if (json_) {
    out += '{';
    out += record_key_;
    text(type ? type->name : unknown, out);
  } else {
    out += type ? type->name : unknown;
  }
  out += tid_key_;
  append_number(tid, out);
  call(record.call, out);
  out += result_key_;
  append_number(record.result, out);
  out += begin_key_;
  append_number(begin, out);
  out += end_key_;
  append_number(end, out);
  if (type) {
    for (const FieldLine& one : fields_of(*type)) field(one, record, out);
    if (record.type == static_cast<u16>(RecordType::Text) && record.size > sizeof(Text)) {
      const auto value = decode<Text>(record);
      const u64 room = record.size - sizeof(Text), left = value.total > value.offset ? value.total - value.offset : 0;
      out += piece_key_;
      text({reinterpret_cast<const char*>(&record) + sizeof(Text), static_cast<std::size_t>(std::min(room, left))},
           out);
    }
  }
  out += json_ ? "}\n" : "\n";
}

void RecordText::append(const InFlightCallInfo& open, std::string& out) {
  if (json_) {
    out += '{';
    out += record_key_;
    text("InFlight", out);
  } else {
    out += "InFlight";
  }
  out += tid_key_;
  append_number(open.tid, out);
  call(static_cast<u16>(open.call), out);
  out += result_key_;
  out += json_ ? "null" : "-";
  out += begin_key_;
  append_number(trace_.clock().nanos(open.begin), out);
  out += end_key_;
  out += json_ ? "null" : "-";
  out += argument_key_;
  append_number(open.argument, out);
  out += depth_key_;
  append_number(open.depth, out);
  out += json_ ? "}\n" : "\n";
}

}  // namespace gputrace
