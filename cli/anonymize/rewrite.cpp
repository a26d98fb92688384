#include "cli/anonymize/rewrite.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "trace/info_text.h"
#include "trace/schema.h"
#include "trace/string_id.h"
#include "trace/writer.h"

namespace gputrace {
namespace {

constexpr std::size_t kLongestText = 32u << 10;  // a record with it still has a size that fits its field

// A field that holds the id of a text.
struct TextField {
  u32 offset = 0;
  NameKind kind = NameKind::Text;
};

// What a type of record is to who copies it.
struct TypePlan {
  std::vector<TextField> texts;
  u32 known_size = 0;  // what is behind it nobody here knows
};

NameKind text_kind(std::string_view record, std::string_view field) {
  struct Row {
    std::string_view record, field;  // no record: of any
    NameKind kind;
  };
  static constexpr Row kRows[] = {{"Note", "text", NameKind::Sentence},
                                  {"DeviceState", "reason", NameKind::Sentence},
                                  {"DeviceFacts", "name", NameKind::Device},
                                  {"ThreadUse", "name", NameKind::Thread},
                                  {"NvtxName", "name", NameKind::Range},
                                  {"FunctionGet", "name", NameKind::Kernel},
                                  {"FunctionFacts", "name", NameKind::Kernel},
                                  {"DeviceKernel", "name", NameKind::Kernel},
                                  {"CodeKernel", "name", NameKind::Kernel},
                                  {"", "message", NameKind::Range},
                                  {"", "domain", NameKind::Domain},
                                  {"", "function", NameKind::Function},
                                  {"", "file", NameKind::Path},
                                  {"", "object", NameKind::Path},
                                  {"", "path", NameKind::Path},
                                  {"", "driver_path", NameKind::Path},
                                  {"", "runtime_path", NameKind::Path},
                                  {"", "build_id", NameKind::Build}};
  for (const Row& row : kRows)
    if ((row.record.empty() || row.record == record) && row.field == field) return row.kind;
  return NameKind::Text;
}

// Text fields by this build and by the file: one that either knows is one.
std::map<u16, TypePlan> plan_types(const TraceSchema& schema) {
  std::map<u16, TypePlan> plans;
  const auto add = [&](u16 type, std::string_view record, std::string_view field, std::string_view field_type,
                       std::string_view unit, u32 offset, u32 size) {
    TypePlan& plan = plans[type];
    plan.known_size = std::max(plan.known_size, offset + size);
    if (unit != "text" || field_type != "u64" || offset < sizeof(RecordHeader)) return;
    for (const TextField& text : plan.texts)
      if (text.offset == offset) return;
    plan.texts.push_back({offset, text_kind(record, field)});
  };
  for (u32 i = 0; i < kRecordSchemaCount; ++i) {
    const RecordSchema& record = kRecordSchemas[i];
    for (u32 f = 0; f < record.field_count; ++f) {
      const FieldSchema& field = record.fields[f];
      add(record.type, record.name, field.name, field.type, field.unit, field.offset, field.size);
    }
  }
  for (const TraceRecordType& record : schema.records())
    for (const TraceField& field : record.fields)
      add(record.type, record.name, field.name, field.type, field.unit, field.offset, field.size);
  return plans;
}

u64 word_at(const u8* at) {
  u64 value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

class Rewriter {
 public:
  Rewriter(const TraceReader& trace, Pseudonyms& names)
      : trace_(trace), names_(names), plans_(plan_types(trace.schema())) {}

  void read_names();
  Result<Rewritten, std::string> write(int directory, const std::string& name);

 private:
  struct NewText {
    u64 id = 0;
    std::string text;
  };
  void rewrite_info_lines();
  void note_texts(const RecordHeader& record);
  NameKind kind_in(const RecordHeader& record, const TextField& field) const;
  void name_texts();
  const NewText& text(u64 id);
  void copy(const RecordHeader& record, std::vector<u8>& out);
  void copy_text(const RecordHeader& record, std::vector<u8>& out);
  bool copy_records(const RecordChunk& chunk, TraceWriter& writer, Rewritten& done);
  bool copy_other(const OtherChunk& chunk, TraceWriter& writer, Rewritten& done);

  const TraceReader& trace_;
  Pseudonyms& names_;
  std::map<u16, TypePlan> plans_;
  std::vector<u64> order_;  // ids as they are met first: what gets which number is the same each time
  std::unordered_map<u64, NameKind> kinds_;
  std::unordered_map<u64, NewText> texts_;
  std::string info_;
  u64 unknown_info_ = 0;
  bool info_written_ = false;
  ChunkBuffer buffer_;
};

// An operation of a framework is told as a frame.
NameKind Rewriter::kind_in(const RecordHeader& record, const TextField& field) const {
  if (record.type != static_cast<u16>(RecordType::StackFrame) || field.kind != NameKind::Function) return field.kind;
  const auto language = static_cast<SourceLanguage>(decode<StackFrame>(record).language);
  return language == SourceLanguage::Operation ? NameKind::Operation : NameKind::Function;
}

void Rewriter::note_texts(const RecordHeader& record) {
  const auto note = [&](u64 id, NameKind kind) {
    if (!id) return;
    const auto [found, is_new] = kinds_.try_emplace(id, kind);
    if (is_new) order_.push_back(id);
    found->second = std::min(found->second, kind);
  };
  if (record.type == static_cast<u16>(RecordType::Text)) {
    if (record.size >= sizeof(Text)) note(decode<Text>(record).id, NameKind::Text);
    return;
  }
  const auto plan = plans_.find(record.type);
  if (plan == plans_.end()) return;
  const u8* const bytes = reinterpret_cast<const u8*>(&record);
  for (const TextField& field : plan->second.texts)
    if (field.offset + sizeof(u64) <= record.size) note(word_at(bytes + field.offset), kind_in(record, field));
}

void Rewriter::rewrite_info_lines() {
  const auto put = [&](std::string_view key, std::string_view value) { append_info_line(info_, key, value); };
  put("anonymized", "1");
  for (const auto& [key, value] : trace_.info_lines()) {
    bool known = true;
    const std::string now = rewrite_info(key, value, names_, known);
    if (known)
      put(key, now);
    else
      ++unknown_info_;
  }
  if (!trace_.damage().empty())
    put("option_warning", std::to_string(trace_.damage().size()) +
                              " places of the trace from which this anonymized one was made could not be read");
}

void Rewriter::name_texts() {
  // Sentences quote other names, so they come last.
  for (const bool sentences : {false, true}) {
    for (const u64 id : order_) {
      const NameKind kind = kinds_[id];
      if ((kind == NameKind::Sentence) != sentences) continue;
      const std::string_view original = trace_.texts().find(id);
      NewText now;
      if (original.data()) {
        now.text = names_.of(kind, original).substr(0, kLongestText);
        now.id = text_id(now.text.data(), now.text.size());
      } else {  // its text is not in the file: the id, made from it, must go all the same
        const std::string lost = "lost " + std::to_string(texts_.size());
        now.id = text_id(lost.data(), lost.size());
      }
      texts_[id] = std::move(now);
    }
    if (!sentences) rewrite_info_lines();
  }
}

void Rewriter::read_names() {
  for (const RecordChunk& chunk : trace_.record_chunks()) {
    const auto records = trace_.decode(chunk, buffer_);
    if (!records) continue;
    for (const RecordHeader& record : records.value()) note_texts(record);
  }
  name_texts();
}

const Rewriter::NewText& Rewriter::text(u64 id) { return texts_[id]; }

// A piece: the first one has all of the new text, the others nothing, so that there are as many records.
void Rewriter::copy_text(const RecordHeader& record, std::vector<u8>& out) {
  Text piece = decode<Text>(record);
  const NewText& now = text(piece.id);
  const std::string_view bytes = piece.offset == 0 ? std::string_view(now.text) : std::string_view();
  const std::size_t size = align_up(sizeof piece + bytes.size(), 8);
  piece.id = now.id;
  piece.total = static_cast<u32>(now.text.size());
  if (piece.offset) piece.offset = piece.total;
  piece.header.size = static_cast<u16>(size);
  const std::size_t at = out.size();
  out.resize(at + size);
  std::memcpy(out.data() + at, &piece, sizeof piece);
  std::memcpy(out.data() + at + sizeof piece, bytes.data(), bytes.size());
}

void Rewriter::copy(const RecordHeader& record, std::vector<u8>& out) {
  if (record.type == static_cast<u16>(RecordType::Text) && record.size >= sizeof(Text)) return copy_text(record, out);
  const std::size_t at = out.size();
  const u8* const bytes = reinterpret_cast<const u8*>(&record);
  out.insert(out.end(), bytes, bytes + record.size);
  u8* const now = out.data() + at;
  const auto plan = plans_.find(record.type);
  const u32 known = plan == plans_.end() ? sizeof(RecordHeader) : std::max<u32>(plan->second.known_size, sizeof record);
  if (record.size > known) std::memset(now + known, 0, record.size - known);
  if (plan == plans_.end()) return;
  for (const TextField& field : plan->second.texts) {
    if (field.offset + sizeof(u64) > record.size) continue;
    const u64 id = word_at(bytes + field.offset);
    const u64 new_id = id ? text(id).id : 0;
    std::memcpy(now + field.offset, &new_id, sizeof new_id);
  }
  if (record.type == static_cast<u16>(RecordType::DeviceFacts) && record.size >= sizeof(DeviceFacts)) {
    DeviceFacts facts = decode<DeviceFacts>(record);
    char uuid[40];
    std::snprintf(uuid, sizeof uuid, "%llx:%llx", static_cast<unsigned long long>(facts.uuid_low),
                  static_cast<unsigned long long>(facts.uuid_high));
    if (facts.uuid_low || facts.uuid_high) facts.uuid_low = names_.number(NameKind::Uuid, uuid), facts.uuid_high = 0;
    std::memcpy(now, &facts, sizeof facts);
  }
}

bool Rewriter::copy_records(const RecordChunk& chunk, TraceWriter& writer, Rewritten& done) {
  const auto records = trace_.decode(chunk, buffer_);
  if (!records) return ++done.left_out, true;
  const ThreadInfo& thread = trace_.threads()[chunk.thread];
  std::vector<u8> out;
  out.reserve(chunk.raw_size + 4096);
  RecordsOf of{thread.slot, thread.incarnation, chunk.first_record, 0};
  const auto put = [&] {
    if (!of.record_count) return true;
    std::vector<u64> aligned(out.size() / 8);
    std::memcpy(aligned.data(), out.data(), out.size());
    const bool written = writer.append_records(of, aligned.data(), out.size());
    done.records += of.record_count;
    of.first_record += of.record_count;
    of.record_count = 0;
    out.clear();
    return written;
  };
  for (const RecordHeader& record : records.value()) {
    // New texts may be longer than the old ones: what was one chunk may be two.
    if (out.size() + record.size + 2 * kLongestText > kMaxChunkRaw && !put()) return false;
    copy(record, out);
    ++of.record_count;
  }
  return put();
}

bool Rewriter::copy_other(const OtherChunk& chunk, TraceWriter& writer, Rewritten& done) {
  if (chunk.kind == ChunkKind::Info) {
    if (info_written_) return true;
    info_written_ = true;
    return writer.append(ChunkKind::Info, info_.data(), info_.size(), chunk.at);
  }
  std::vector<u8> payload;
  if (!trace_.read(chunk, payload)) return ++done.left_out, true;
  if (chunk.kind == ChunkKind::Thread) {
    for (std::size_t at = 0; at + sizeof(ThreadEntry) <= payload.size(); at += sizeof(ThreadEntry)) {
      ThreadEntry entry;
      std::memcpy(&entry, payload.data() + at, sizeof entry);
      const std::string name = names_.of(NameKind::Thread, {entry.name, strnlen(entry.name, sizeof entry.name)});
      std::memset(entry.name, 0, sizeof entry.name);
      std::memcpy(entry.name, name.data(), std::min(name.size(), sizeof entry.name));
      std::memcpy(payload.data() + at, &entry, sizeof entry);
    }
  }
  return writer.append(chunk.kind, payload.data(), payload.size(), chunk.at);
}

Result<Rewritten, std::string> Rewriter::write(int directory, const std::string& name) {
  FileHeader header = trace_.header();
  const u64 boot = names_.number(NameKind::Boot, trace_.info("boot_id") ? *trace_.info("boot_id") : "");
  std::memset(header.boot_id, 0, sizeof header.boot_id);
  std::memcpy(header.boot_id, &boot, sizeof boot);
  auto created = TraceWriter::create(directory, name, header, 0);
  if (!created) return Failure{std::string(std::strerror(created.error()))};
  TraceWriter& writer = created.value();

  Rewritten done;
  done.left_out = trace_.damage().size() + trace_.unknown_chunks() + unknown_info_;
  const auto& records = trace_.record_chunks();
  const auto& others = trace_.other_chunks();
  bool written = true;
  for (std::size_t r = 0, o = 0; written && (r < records.size() || o < others.size());) {
    if (o == others.size() || (r < records.size() && records[r].sequence < others[o].sequence))
      written = copy_records(records[r++], writer, done);
    else
      written = copy_other(others[o++], writer, done);
    // The new file is sound, but it is not whole: what reads it must know.
    if (r + o == 1 && !trace_.damage().empty()) writer.leave_gap();
  }
  // The original's info is among what could not be read: that it is damaged must be said all the same.
  if (written && !info_written_) written = writer.append(ChunkKind::Info, info_.data(), info_.size());
  if (written) return done;
  const int error = writer.stop_errno();
  ::unlinkat(directory, name.c_str(), 0);  // half a trace would be taken for one
  return Failure{error ? std::string(std::strerror(error)) : std::string("a limit on the size of files was reached")};
}

}  // namespace

Result<Rewritten, std::string> rewrite_trace(const TraceReader& trace, Pseudonyms& names, int directory,
                                             const std::string& name) {
  Rewriter rewriter(trace, names);
  rewriter.read_names();
  return rewriter.write(directory, name);
}

}  // namespace gputrace
