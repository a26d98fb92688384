#include "writer/sample/own_text.h"

#include <cstring>
#include <vector>

#include "trace/record.h"
#include "trace/string_id.h"

namespace gputrace {

u64 own_text(std::string_view text, u64 space, std::unordered_set<u64>& known, TraceSink& sink, Ticks now) {
  if (text.empty()) return 0;
  u64 id = ~text_id(text.data(), text.size()) ^ space;
  if (id == 0) id = 1;
  if (!known.insert(id).second) return id;
  std::vector<u64> bytes((sizeof(Text) + text.size() + 7) / 8);
  Text record{};
  record.header = {static_cast<u16>(RecordType::Text), static_cast<u16>(bytes.size() * 8), 0, 0, now, now};
  record.id = id;
  record.total = static_cast<u32>(text.size());
  std::memcpy(bytes.data(), &record, sizeof record);
  std::memcpy(reinterpret_cast<char*>(bytes.data()) + sizeof record, text.data(), text.size());
  sink.add_record(*reinterpret_cast<const RecordHeader*>(bytes.data()));
  return id;
}

}  // namespace gputrace
