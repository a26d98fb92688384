#include "writer/code/watch.h"

#include <algorithm>
#include <cstring>

#include "trace/record.h"

namespace gputrace {
namespace {

constexpr u64 kMostTexts = 8192, kMostTextBytes = 4u << 20, kMaxPath = 4096;
constexpr u64 kMaxImages = 65536, kMaxModules = 65536, kMaxImagesOfModule = 64;

template <typename T>
T take(const RecordHeader& record) {
  T value{};
  std::memcpy(static_cast<void*>(&value), &record, std::min<std::size_t>(record.size, sizeof value));
  return value;
}

// Paths and build ids are the only texts that are looked for.
bool may_be_wanted(const char* text, std::size_t length) {
  if (length && text[0] == '/') return true;
  return length >= 16 && length <= 64 &&
         std::all_of(text, text + length, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

}  // namespace

void CodeWatch::records(const RingThread& thread, u64 first_record, u32 count, const u8* data, u32 size) {
  next_.records(thread, first_record, count, data, size);
  if (thread.slot != 0 || stopped_) return;
  for (u32 at = 0; size - at >= sizeof(RecordHeader);) {
    RecordHeader header;
    std::memcpy(&header, data + at, sizeof header);
    if (header.size < sizeof header || header.size % 8 || header.size > size - at) return;
    look(*reinterpret_cast<const RecordHeader*>(data + at));
    at += header.size;
  }
}

void CodeWatch::look(const RecordHeader& record) {
  switch (static_cast<RecordType>(record.type)) {
    case RecordType::Text:
      return on_text(record);
    case RecordType::DeviceFacts: {
      const auto facts = take<DeviceFacts>(record);
      if (facts.capability_major && facts.capability_major < 100 && facts.capability_minor < 10)
        requests_.device(facts.capability_major * 10 + facts.capability_minor);
      return;
    }
    case RecordType::ModuleLoad: {  // whatever had this handle is gone
      const auto load = take<ModuleLoad>(record);
      if (load.header.result == 0 && load.what != static_cast<u32>(ModuleAct::Link)) modules_.erase(load.module);
      return;
    }
    case RecordType::CodeBytes:
      return on_bytes(record);
    case RecordType::CodeImage:
      return on_image(record);
    case RecordType::FunctionGet:
      return on_function(record);
    default:
      return;
  }
}

void CodeWatch::on_text(const RecordHeader& record) {
  if (record.size < sizeof(Text)) return;
  const auto piece = take<Text>(record);
  const char* bytes = reinterpret_cast<const char*>(&record) + sizeof piece;
  if (!piece.id || piece.total > kMaxPath || piece.offset > piece.total) return;
  const std::size_t length = std::min<std::size_t>(record.size - sizeof piece, piece.total - piece.offset);
  const auto known = texts_.find(piece.id);
  if (known == texts_.end()) {
    if (piece.offset != 0 || !may_be_wanted(bytes, length)) return;
    if (texts_.size() >= kMostTexts || text_bytes_ + piece.total > kMostTextBytes) return;
    text_bytes_ += piece.total;
    texts_.emplace(piece.id, std::string(bytes, length));
  } else if (piece.offset == known->second.size()) {
    known->second.append(bytes, length);
  }
}

void CodeWatch::on_bytes(const RecordHeader& record) {
  if (record.size < sizeof(CodeBytes)) return;
  const auto piece = take<CodeBytes>(record);
  if (!piece.total || piece.total > kMaxCodeCopy || piece.offset >= piece.total) return;
  if (!copies_.count(piece.image)) {
    if (piece.offset != 0 || copies_.size() >= kMaxImages || copied_ + piece.total > kMaxCopiedImages) return;
    copied_ += piece.total;
    copies_[piece.image].total = piece.total;
  }
  Copy& copy = copies_[piece.image];
  copy.whole = copy.whole && copy.total == piece.total && piece.offset == copy.bytes.size();
  if (!copy.whole) return;
  const u8* bytes = reinterpret_cast<const u8*>(&record) + sizeof piece;
  const u64 length = std::min<u64>(record.size - sizeof piece, piece.total - piece.offset);
  copy.bytes.insert(copy.bytes.end(), bytes, bytes + length);
}

void CodeWatch::on_image(const RecordHeader& record) {
  const auto image = take<CodeImage>(record);
  const auto state = static_cast<CodeState>(image.state);
  if (state != CodeState::InFile && state != CodeState::Copied) {
    if (const auto given_up = copies_.find(image.image); given_up != copies_.end()) {
      copied_ -= given_up->second.total;
      copies_.erase(given_up);
    }
    return;
  }
  if (!image.image || !image.module) return;
  if (modules_.size() < kMaxModules || modules_.count(image.module)) {
    auto& images = modules_[image.module];
    if (images.size() < kMaxImagesOfModule && std::find(images.begin(), images.end(), image.image) == images.end())
      images.push_back(image.image);
  }
  if (images_.size() >= kMaxImages || !images_.emplace(image.image, true).second) return;
  CodeImageRequest request;
  request.id = image.image;
  request.kind = image.kind;
  request.offset = image.offset;
  request.bytes = image.bytes;
  request.check = image.check;
  if (state == CodeState::InFile) {
    const auto path = texts_.find(image.path);
    request.path = path == texts_.end() ? "/" : path->second;  // a directory: Missing
    if (const auto build_id = texts_.find(image.build_id); build_id != texts_.end())
      request.build_id = build_id->second;
  } else if (const auto copy = copies_.find(image.image); copy != copies_.end()) {
    if (copy->second.whole && copy->second.bytes.size() == copy->second.total)
      request.content = std::move(copy->second.bytes);
    copies_.erase(copy);
  }
  requests_.image(std::move(request));
}

void CodeWatch::on_function(const RecordHeader& record) {
  const auto function = take<FunctionGet>(record);
  if (!function.name) return;
  const auto module = modules_.find(function.module);
  if (module == modules_.end()) return;
  for (const u64 image : module->second) requests_.kernel(image, function.name);
}

}  // namespace gputrace
