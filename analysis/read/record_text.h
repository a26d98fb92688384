// One record as one line: `key=value` text or a JSON object. Fields and the words of their numbers come from the trace's
// own schema, so newer records and values read too. Not thread-safe; fast: no allocation per record once warmed up.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analysis/read/tick_clock.h"
#include "trace/reader.h"

namespace gputrace {

class RecordText {
 public:
  RecordText(const TraceReader& trace, bool json);

  void append(const RecordHeader& record, u32 thread, std::string& out);
  // A call that had not returned when the trace ended.
  void append(const InFlightCallInfo& open, std::string& out);

 private:
  enum class Form : u8 { Unsigned, Signed, Address, Text };
  // A field as it is written: what does not change from record to record. A short key is kept where a copy of always the same size
  // finds it.
  static constexpr std::size_t kShortKey = 40;
  struct FieldLine {
    u32 offset, size;
    Form form;
    const TraceEnum* words;  // nullptr: its number has none
    std::string key, words_key;
    char short_key[kShortKey];
  };

  // `first`: the line begins with it.
  std::string key_of(std::string_view name, bool first = false) const;
  void text(std::string_view value, std::string& out);
  std::string_view text_of(u64 id);
  static void append_short(const FieldLine& field, u64 bits, std::string& out);
  void field(const FieldLine& field, const RecordHeader& record, std::string& out);
  const std::vector<FieldLine>& fields_of(const TraceRecordType& type);
  void names(const FieldLine& field, u64 value, std::string& out);
  void call(u16 id, std::string& out);

  const TraceReader& trace_;
  TickClock clock_;
  bool json_;
  // What may still be written of texts that records name: many may name one long one. What is beyond is cut short.
  u64 text_bytes_;
  std::string cut_;
  std::unordered_map<u16, std::vector<FieldLine>> fields_;  // by record type
  std::unordered_map<u16, std::string> calls_;              // what is written of a call, by id
  const std::string record_key_, tid_key_, result_key_, begin_key_, end_key_, piece_key_, argument_key_, depth_key_;
};

}  // namespace gputrace
