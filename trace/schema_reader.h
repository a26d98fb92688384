// The schema text of a trace (trace/schema.h), read back: what the file says its records, fields, words and calls are.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/types.h"
#include "trace/record.h"

namespace gputrace {

struct TraceValue {
  u64 number = 0;  // of flags: the bit
  std::string word, doc;
};

struct TraceEnum {
  std::string name, doc;
  bool flags = false;
  std::vector<TraceValue> values;  // in the order in which they are shown
};

struct TraceField {
  std::string name, type, unit, doc;  // type: u8 u16 u32 u64 i8 i16 i32 i64
  u32 offset = 0;                     // within the record
  u32 size = 0;                       // bytes; 0: a type that this build does not know
};

struct TraceRecordType {
  u16 type = 0;
  u16 size = 0;
  std::string name, doc;
  std::vector<TraceField> fields;  // those after the header
};

struct TraceCall {
  u16 id = 0;
  std::string name;     // documented name: cuMemAlloc
  std::string level;    // driver, runtime, library
  std::string variant;  // exported name: cuMemAlloc_v2
};

// The text is hostile input: lines that are bad, or of a kind that this build does not know, are skipped and counted; of
// two definitions of one id or name the first holds. Names and words hold nothing that would have to be escaped anywhere.
// Does not change once all text is added: any thread may read.
class TraceSchema {
 public:
  TraceSchema();
  // False: there are more lines than a schema may have; the rest is not read.
  bool add_text(std::string_view text);

  const TraceRecordType* record(u16 type) const;  // nullptr: the file does not say
  const TraceCall* call(u16 id) const;            // nullptr: the file does not say
  // What this build says of a type that it knows, else what the file says.
  RecordClass class_of(u16 type) const { return classes_[type]; }
  // The words of a field's numbers: as the file says, or, where it has none (before 0.2), as this build does. nullptr:
  // they have none.
  const TraceEnum* words(const TraceRecordType& record, const TraceField& field) const;
  const std::vector<TraceRecordType>& records() const { return records_; }
  const std::vector<TraceEnum>& enums() const { return enums_; }
  const std::vector<TraceCall>& calls() const { return calls_; }
  u64 bad_lines() const { return bad_lines_; }

 private:
  bool add_line(std::string_view line);
  bool add_enum(std::string_view line, bool flags);
  bool add_value(std::string_view line);
  bool add_record(std::string_view line);
  bool add_field(std::string_view line);
  bool add_call(std::string_view line);

  std::vector<TraceRecordType> records_;
  std::vector<TraceEnum> enums_;
  std::vector<TraceCall> calls_;
  std::vector<RecordClass> classes_;  // by type
  std::unordered_map<u16, u32> record_index_, call_index_;
  std::unordered_map<std::string, u32> record_names_, enum_names_;
  u64 lines_ = 0, bad_lines_ = 0;
};

}  // namespace gputrace
