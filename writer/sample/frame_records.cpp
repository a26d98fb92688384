#include "writer/sample/frame_records.h"

#include <string_view>

#include "trace/record.h"
#include "writer/sample/own_text.h"

namespace gputrace {

u64 FrameRecords::text(const std::string& text, Ticks now) {
  return own_text(std::string_view(text).substr(0, kMaxPythonUtf8), 0, texts_, sink_, now);
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
