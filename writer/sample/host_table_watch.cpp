#include "writer/sample/host_table_watch.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "trace/record.h"
#include "writer/sample/own_text.h"

namespace gputrace {
namespace {

constexpr Nanos kWriteEvery = 5'000'000'000;
constexpr u64 kLongestPath = 1024;
constexpr u64 kHostTexts = 0x686f737463616c6cull;

template <typename Value>
Value read(const std::atomic<Value>& word) {
  return word.load(std::memory_order_relaxed);
}

template <typename Record>
void begin_record(Record& record, Ticks now) {
  record.header = {static_cast<u16>(Record::kType), sizeof record, 0, 0, now, now};
}

}  // namespace

HostTableWatch::HostTableWatch(const SegmentView& segment, TraceSink& sink)
    : table_(segment.host_table()),
      layout_(host_table_layout(segment.header().host_table_size)),
      process_(segment.header().pid),
      clock_(segment.header().clock),
      sink_(sink),
      files_(layout_.files),
      waits_(layout_.waits) {
  next_ = monotonic_nanos() + kWriteEvery;
}

void HostTableWatch::look() {
  const Ticks now = ticks_of(clock_);
  for (u32 i = 0; i < layout_.files; ++i) {
    const FileSum& sum = sums<FileSum>(layout_.files_at)[i];
    const u64 count = sum.count.load(std::memory_order_acquire);
    if (count == files_[i]) continue;
    files_[i] = count;
    write_file(sum, now);
  }
  for (u32 i = 0; i < layout_.waits; ++i) {
    const WaitSum& sum = sums<WaitSum>(layout_.waits_at)[i];
    const u64 count = sum.count.load(std::memory_order_acquire);
    if (count == waits_[i]) continue;
    waits_[i] = count;
    write_wait(sum, now);
  }
  next_ = monotonic_nanos() + kWriteEvery;
}

void HostTableWatch::write_file(const FileSum& sum, Ticks now) {
  const FileKey key = parts_of_file_key(read(sum.key));
  FileUse record{};
  begin_record(record, now);
  record.path = path_of(key.path, now);
  record.count = read(sum.count), record.bytes = read(sum.bytes);
  record.total = read(sum.total), record.longest = read(sum.longest);
  record.process = other(key.process);
  record.what = key.call;
  record.frame = key.frame;
  sink_.add_record(record.header);
}

void HostTableWatch::write_wait(const WaitSum& sum, Ticks now) {
  const u64 key = read(sum.key);
  WaitUse record{};
  begin_record(record, now);
  record.count = read(sum.count), record.total = read(sum.total), record.longest = read(sum.longest);
  record.tid = static_cast<i32>(key >> 40);
  record.process = other(read(sum.process));
  record.frame = static_cast<u32>(key >> 8);
  record.what = static_cast<u32>(key & 0xff);
  sink_.add_record(record.header);
}

// The id of a path's text; 0: none is known. `number`: its place + 1.
u64 HostTableWatch::path_of(u32 number, Ticks now) {
  if (number == 0 || number > layout_.paths) return 0;
  const HostPath& path = sums<HostPath>(layout_.paths_at)[number - 1];
  const u64 length = path.length.load(std::memory_order_acquire), at = read(path.offset);
  if (length == 0 || length > kLongestPath || at > layout_.text_size || length > layout_.text_size - at) return 0;
  char text[kLongestPath];
  std::memcpy(text, table_ + layout_.text_at + at, length);
  return own_text({text, length}, kHostTexts, paths_, sink_, now);
}

InfoLines HostTableWatch::result() const {
  const auto& head = *sums<HostTableHead>(0);
  InfoLines lines;
  if (const u64 lost = read(head.lost_files)) lines.emplace_back("io_left_out", std::to_string(lost));
  if (const u64 lost = read(head.lost_waits)) lines.emplace_back("waits_left_out", std::to_string(lost));
  return lines;
}

}  // namespace gputrace
