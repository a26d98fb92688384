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
  void key(const std::string& name, std::string& out);
  void text(std::string_view value, std::string& out);
  std::string_view text_of(u64 id);
  void integer(u64 bits, bool is_signed, u32 size, std::string& out);
  void field(const TraceField& field, const TraceEnum* words, const RecordHeader& record, std::string& out);
  const std::vector<const TraceEnum*>& words_of(const TraceRecordType& type);
  void names(const TraceField& field, const TraceEnum& words, u64 value, std::string& out);
  void call(u16 id, std::string& out);

  const TraceReader& trace_;
  TickClock clock_;
  bool json_;
  // What may still be written of texts that records name: many may name one long one. What is beyond is cut short.
  u64 text_bytes_;
  bool first_ = true;
  std::unordered_map<u16, std::vector<const TraceEnum*>> words_;  // by record type, in the order of its fields
  std::unordered_map<u16, std::string> calls_;                    // what is written of a call, by id
};

}  // namespace gputrace
