// The schema text of a trace (trace/schema.h), read back: what the file says its records, fields and calls are.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/types.h"

namespace gputrace {

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

// Bad lines are skipped and counted; of two definitions of one id the first holds.
class TraceSchema {
 public:
  void add_text(std::string_view text);

  const TraceRecordType* record(u16 type) const;  // nullptr: the file does not say
  const TraceCall* call(u16 id) const;            // nullptr: the file does not say
  const std::vector<TraceRecordType>& records() const { return records_; }
  const std::vector<TraceCall>& calls() const { return calls_; }
  u64 bad_lines() const { return bad_lines_; }

 private:
  bool add_line(std::string_view line);

  std::vector<TraceRecordType> records_;
  std::vector<TraceCall> calls_;
  std::unordered_map<u16, u32> record_index_, call_index_;
  std::unordered_map<std::string, u32> record_names_;
  u64 bad_lines_ = 0;
};

// Does this build have a struct for records of that type?
bool known_record_type(u16 type);

}  // namespace gputrace
