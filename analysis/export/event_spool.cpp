#include "analysis/export/event_spool.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace gputrace {
namespace {

constexpr std::size_t kReadAt = 16u << 10;

}  // namespace

EventSpool::EventSpool(const std::string& path)
    : file_(open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600)) {
  failed_ = !file_ || unlink(path.c_str()) != 0;
}

void EventSpool::add(u32 number, const SpooledEvent& event) {
  if (failed_) return;
  if (number >= lines_.size()) lines_.resize(number + 1u);
  Line& line = lines_[number];
  const Head head = {event.begin, event.end, event.kind, static_cast<u32>(event.bytes.size())};
  line.offsets.push_back(static_cast<u32>(line.held.size()));
  line.held.append(reinterpret_cast<const char*>(&head), sizeof head);
  line.held.append(event.bytes);
  held_ += sizeof head + event.bytes.size() + sizeof(u32);
  if (line.held.size() > kRun) write_run(line);
  if (held_ > kHeld) write_largest();
}

void EventSpool::write_largest() {
  write_run(*std::max_element(lines_.begin(), lines_.end(), [](const Line& left, const Line& right) {
    return left.held.size() < right.held.size();
  }));
}

void EventSpool::write_run(Line& line) {
  if (line.offsets.empty() || failed_) return;
  const auto head_at = [&](u32 offset) {
    Head head;
    std::memcpy(&head, line.held.data() + offset, sizeof head);
    return head;
  };
  std::stable_sort(line.offsets.begin(), line.offsets.end(), [&](u32 left, u32 right) {
    const Head a = head_at(left), b = head_at(right);
    return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
  });
  std::string sorted;
  sorted.reserve(line.held.size());
  for (const u32 offset : line.offsets) sorted.append(line.held, offset, sizeof(Head) + head_at(offset).bytes);
  for (std::size_t done = 0; done < sorted.size() && !failed_;) {
    const ssize_t size =
        pwrite(file_.get(), sorted.data() + done, sorted.size() - done, static_cast<off_t>(written_ + done));
    failed_ = size <= 0;
    if (!failed_) done += static_cast<std::size_t>(size);
  }
  line.runs.push_back({written_, sorted.size()});
  written_ += sorted.size();
  held_ -= line.held.size() + line.offsets.size() * sizeof(u32);
  line.held = std::string(), line.offsets = {};
}

EventSpool::Merge::Merge(EventSpool& spool, const Line& line) : spool_(spool), readers_(line.runs.size()) {
  for (std::size_t i = 0; i < readers_.size(); ++i) {
    readers_[i].at = line.runs[i].at, readers_[i].end = line.runs[i].at + line.runs[i].bytes;
    if (read_head(readers_[i])) heap_.push_back(&readers_[i]);
  }
  std::make_heap(heap_.begin(), heap_.end(), later);
}

// For a heap whose front is the earliest; of equals the run that was written first.
bool EventSpool::Merge::later(const Reader* left, const Reader* right) {
  const Head &a = left->head, &b = right->head;
  return a.begin != b.begin ? a.begin > b.begin : a.end != b.end ? a.end < b.end : left > right;
}

bool EventSpool::Merge::ensure(Reader& reader, std::size_t bytes) {
  while (reader.buffer.size() - reader.position < bytes) {
    reader.buffer.erase(0, reader.position);
    reader.position = 0;
    const std::size_t known = reader.buffer.size();
    const std::size_t more = std::min<u64>(reader.end - reader.at, std::max(kReadAt, bytes));
    if (more == 0) return false;
    reader.buffer.resize(known + more);
    const ssize_t size = pread(spool_.file_.get(), reader.buffer.data() + known, more, static_cast<off_t>(reader.at));
    if (size <= 0) return spool_.failed_ = true, false;
    reader.buffer.resize(known + static_cast<std::size_t>(size));
    reader.at += static_cast<u64>(size);
  }
  return true;
}

bool EventSpool::Merge::read_head(Reader& reader) {
  if (!ensure(reader, sizeof(Head))) return false;
  std::memcpy(&reader.head, reader.buffer.data() + reader.position, sizeof(Head));
  reader.position += sizeof(Head);
  return ensure(reader, reader.head.bytes);
}

const SpooledEvent* EventSpool::Merge::next() {
  if (told_) {
    told_->position += told_->head.bytes;
    if (read_head(*told_)) {
      heap_.push_back(told_);
      std::push_heap(heap_.begin(), heap_.end(), later);
    }
    told_ = nullptr;
  }
  if (heap_.empty() || spool_.failed_) return nullptr;
  std::pop_heap(heap_.begin(), heap_.end(), later);
  told_ = heap_.back();
  heap_.pop_back();
  event_ = {told_->head.begin, told_->head.end, told_->head.kind,
            std::string_view(told_->buffer).substr(told_->position, told_->head.bytes)};
  return &event_;
}

}  // namespace gputrace
