#include "writer/sample/frame_records.h"

#include <algorithm>
#include <cstring>

#include "trace/record.h"
#include "trace/string_id.h"

namespace gputrace {

// Ids are not those that the process gives the same texts: each is written once in a file.
u64 FrameRecords::text(const std::string& text, Ticks now) {
  if (text.empty()) return 0;
  const u64 size = std::min<u64>(text.size(), kMaxPythonUtf8);
  u64 id = ~text_id(text.data(), size);
  if (id == 0) id = 1;
  if (!texts_.insert(id).second) return id;
  alignas(8) u8 bytes[sizeof(Text) + kMaxPythonUtf8 + 8] = {};
  Text record{};
  record.header = {
      static_cast<u16>(RecordType::Text), static_cast<u16>((sizeof(Text) + size + 7) & ~u64{7}), 0, 0, now, now};
  record.id = id;
  record.total = static_cast<u32>(size);
  std::memcpy(bytes, &record, sizeof record);
  std::memcpy(bytes + sizeof record, text.data(), size);
  sink_.add_record(*reinterpret_cast<const RecordHeader*>(bytes));
  return id;
}

u32 FrameRecords::number(const std::vector<PythonFrames::Frame>& frames, Ticks now) {
  u32 parent = 0;
  for (const PythonFrames::Frame& frame : frames) {
    StackFrame record{};
    record.function = text(frame.code->function, now);
    record.file = text(frame.code->file, now);
    const auto key = std::tuple{parent, frame.line, record.function, record.file};
    if (const auto known = numbers_.find(key); known != numbers_.end()) {
      parent = known->second;
      continue;
    }
    if (numbers_.size() == kMost) return parent;
    record.header = {static_cast<u16>(RecordType::StackFrame), sizeof record, 0, 0, now, now};
    record.id = kFirstSampledFrame + static_cast<u32>(numbers_.size());
    record.parent = parent;
    record.line = frame.line;
    record.first_line = frame.code->first_line;
    record.language = static_cast<u32>(SourceLanguage::Python);
    sink_.add_record(record.header);
    numbers_.emplace(key, record.id);
    parent = record.id;
  }
  return parent;
}

}  // namespace gputrace
