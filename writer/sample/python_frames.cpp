#include "writer/sample/python_frames.h"

#include <algorithm>
#include <cstring>

#include "frames/python_code.h"

namespace gputrace {
namespace {

constexpr int kTries = 3;
constexpr std::size_t kMostKnown = 1u << 14;  // code objects of a process; then all are learned anew
constexpr u64 kTableHead = 16;                // bytes of a line table that tell it from another one
constexpr u32 kLinesHead = kBytesTextOffset - kSizeOffset + kTableHead;

template <typename Word>
Word word_at(const u8* bytes) {
  Word word;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

}  // namespace

u32 PythonFrames::frame_size() const {
  const u32 ends[] = {layout_.caller + 8u, layout_.code + 8u, layout_.instruction + 8u,
                      layout_.owner == kNoOwner ? 0u : layout_.owner + 1u};
  return *std::max_element(std::begin(ends), std::end(ends));
}

u32 PythonFrames::code_size() const {
  const u32 ends[] = {layout_.code_first_line + 4u, layout_.code_file + 8u, layout_.code_name + 8u,
                      layout_.code_lines + 8u};
  return *std::max_element(std::begin(ends), std::end(ends));
}

PythonFrames::Link PythonFrames::parse(u64 address, const u8* bytes) const {
  const bool is_object = layout_.owner == kNoOwner;
  Link link;
  link.address = address;
  link.caller = word_at<u64>(bytes + layout_.caller);
  link.owner = is_object ? u8{0} : bytes[layout_.owner];
  if (!is_object && link.owner == kOwnedByC) return link;  // no function of the program's
  link.code = word_at<u64>(bytes + layout_.code);
  link.instruction =
      is_object ? u64{word_at<u32>(bytes + layout_.instruction)} : word_at<u64>(bytes + layout_.instruction);
  return link;
}

// `lines`: the line table's object from its size on.
PythonFrames::Sign PythonFrames::parse_sign(const u8* code, const u8* lines) const {
  Sign sign;
  sign.name = word_at<u64>(code + layout_.code_name);
  sign.file = word_at<u64>(code + layout_.code_file);
  sign.lines = word_at<u64>(code + layout_.code_lines);
  sign.first_line = word_at<u32>(code + layout_.code_first_line);
  sign.size = word_at<u64>(lines);
  const u8* table = lines + kBytesTextOffset - kSizeOffset;
  if (sign.size >= kTableHead) sign.table[0] = word_at<u64>(table), sign.table[1] = word_at<u64>(table + 8);
  return sign;
}

bool PythonFrames::read_head(u64 state, Head& head) {
  if (!read(state + layout_.thread_id, &head.id, 8) || !read(state + layout_.thread_frame, &head.frame, 8))
    return false;
  return layout_.block_frame == kNoPointer || read(head.frame + layout_.block_frame, &head.frame, 8);
}

// The chain from `frame` on. False: it breaks off.
bool PythonFrames::walk(u64 frame) {
  links_.clear();
  const u32 size = frame_size();
  while (frame && links_.size() < kMostFrames) {
    u8 bytes[kLongest];
    if (!read(frame, bytes, size)) return false;
    links_.push_back(parse(frame, bytes));
    if (links_.back().caller == frame) return false;
    frame = links_.back().caller;
  }
  expect_new_code();
  return std::all_of(links_.begin(), links_.end(),
                     [this](const Link& link) { return !link.code || ensure_known(link.code); });
}

// What learn() will read, for all that are not known: by two calls of the kernel, not by some for each.
void PythonFrames::expect_new_code() {
  std::vector<u64> codes, parts;
  for (const Link& link : links_) {
    if (link.code && !known_.count(link.code)) codes.push_back(link.code);
  }
  if (codes.size() < 2) return;
  for (const u64 code : codes) parts.push_back(code), parts.push_back(code + code_size() - 1);
  memory_.expect(parts);
  parts.clear();
  for (const u64 code : codes) {
    for (const u32 part : {layout_.code_name, layout_.code_file, layout_.code_lines}) {
      u64 object = 0;
      if (memory_.read_once(code + part, &object, sizeof object)) parts.push_back(object);
    }
  }
  memory_.expect(parts);
}

bool PythonFrames::ensure_known(u64 code) { return known_.count(code) || learn(code); }

// Copies what the object says. nullptr: it is none.
PythonFrames::Known* PythonFrames::learn(u64 code) {
  const auto read = [this](u64 address, void* out, u64 size) { return memory_.read_once(address, out, size); };
  ++learned_;
  known_.erase(code);
  if (!python_code_is_sound(layout_, code, read)) return nullptr;
  u8 bytes[kLongest], head[kLinesHead];
  if (!read(code, bytes, code_size())) return nullptr;
  Known made;
  if (!read(word_at<u64>(bytes + layout_.code_lines) + kSizeOffset, head, sizeof head)) return nullptr;
  made.sign = parse_sign(bytes, head);
  if (made.sign.size > kMaxPythonLines) return nullptr;
  made.code.first_line = made.sign.first_line;
  made.code.lines.resize(made.sign.size);
  if (!read(made.sign.lines + kBytesTextOffset, made.code.lines.data(), made.sign.size)) return nullptr;
  if (layout_.instruction_is_address && !read(code + layout_.code_traceable, &made.code.traceable, sizeof(i32)))
    return nullptr;
  u8 text[kMaxPythonUtf8];
  made.code.function.assign(reinterpret_cast<const char*>(text), read_str(layout_, made.sign.name, text, read));
  made.code.file.assign(reinterpret_cast<const char*>(text), read_str(layout_, made.sign.file, text, read));
  return &known_.emplace(code, std::move(made)).first->second;
}

// A piece costs the kernel as much as a page: frames that lie together are one, and a function that calls itself has one code object.
void PythonFrames::lay_out() {
  const u64 frame_bytes = frame_size();
  addresses_.clear(), spans_.clear(), codes_.clear();
  for (const Link& link : links_) {
    addresses_.push_back(link.address);
    if (link.code) codes_.push_back(link.code);
  }
  std::sort(addresses_.begin(), addresses_.end());
  std::size_t bytes = 0;
  for (const u64 address : addresses_) {
    if (spans_.empty() || address - spans_.back().address > spans_.back().size + kNear)
      spans_.push_back({address, 0, bytes});
    Span& span = spans_.back();
    span.size = address - span.address + frame_bytes;
    bytes = span.offset + span.size;
  }
  std::sort(codes_.begin(), codes_.end());
  codes_.erase(std::unique(codes_.begin(), codes_.end()), codes_.end());
  first_.resize(bytes), again_.resize(bytes), objects_.resize(codes_.size() * (code_size() + kLinesHead));
}

// In first_ and again_, of a link's frame.
std::size_t PythonFrames::offset_of_frame(u64 address) const {
  const auto after = std::upper_bound(spans_.begin(), spans_.end(), address,
                                      [](u64 frame, const Span& span) { return frame < span.address; });
  const Span& span = *(after - 1);
  return span.offset + (address - span.address);
}

// Of a link's code object, as it was read again.
PythonFrames::Sign PythonFrames::sign_of(u64 code) const {
  const auto place = static_cast<std::size_t>(std::lower_bound(codes_.begin(), codes_.end(), code) - codes_.begin());
  const u8* const object = objects_.data() + place * (code_size() + kLinesHead);
  return parse_sign(object, object + code_size());
}

// Reads all of it once more: the frames, which one is the innermost, and the frames again with their code objects and line tables.
bool PythonFrames::read_again(u64 state, u64& frame) {
  const u32 code_bytes = code_size();
  u64 block = 0;
  if (layout_.block_frame != kNoPointer && !read(state + layout_.thread_frame, &block, 8)) return false;
  lay_out();
  for (const Span& span : spans_) memory_.add_piece(span.address, first_.data() + span.offset, span.size);
  memory_.add_piece(block ? block + layout_.block_frame : state + layout_.thread_frame, &frame, 8);
  for (const Span& span : spans_) memory_.add_piece(span.address, again_.data() + span.offset, span.size);
  for (std::size_t i = 0; i < codes_.size(); ++i) {
    const u64 code = codes_[i];
    u8* const to = objects_.data() + i * (code_bytes + kLinesHead);
    memory_.add_piece(code, to, code_bytes);
    memory_.add_piece(known_.at(code).sign.lines + kSizeOffset, to + code_bytes, kLinesHead);
  }
  return memory_.read_pieces();
}

// How many of the outermost frames are as they were, their code objects too. The innermost of them may have gone on: then what it
// had called is over.
u32 PythonFrames::unchanged(u64 state) {
  u64 frame = 0;
  if (!read_again(state, frame)) return 0;
  u32 same = 0;
  for (std::size_t i = links_.size(); i-- > 0;) {
    Link& link = links_[i];
    const std::size_t offset = offset_of_frame(link.address);
    const Link before = parse(link.address, first_.data() + offset), now = parse(link.address, again_.data() + offset);
    if (!now.is_same_frame(link) || !now.is_same_frame(before) || (i == 0 && frame != link.address)) break;
    if (now.code && sign_of(now.code) != known_.at(now.code).sign) {
      known_.erase(now.code);
      break;
    }
    ++same;
    if (now == link && now == before) continue;
    link.instruction = now.instruction;
    break;
  }
  return same;
}

// How many of the outermost frames, `before` of the walk before this one, this one came upon again. The innermost of them may have
// gone on: what it called was another thing each time.
u32 PythonFrames::agreed(u32 before) const {
  const u32 most = std::min(before, static_cast<u32>(links_.size()));
  for (u32 same = 0; same < most; ++same) {
    const Link &earlier = before_[before_.size() - 1 - same], &now = links_[links_.size() - 1 - same];
    if (earlier == now) continue;
    return earlier.is_same_frame(now) ? same + 1 : same;
  }
  return most;
}

// The outermost `count` of the links.
void PythonFrames::tell(u32 count, std::vector<Frame>& frames) {
  const std::size_t skipped = links_.size() - count;
  for (std::size_t i = links_.size(); i-- > skipped;) {
    const Link& link = links_[i];
    if (!link.code) continue;
    const auto there = known_.find(link.code);
    if (there == known_.end()) continue;
    Known& known = there->second;
    u64 offset = 0;
    if (!offset_of(layout_, link.code, link.instruction, link.owner == kOwnedByGenerator, known.code.traceable, offset))
      continue;
    const auto [line, is_new] = known.line_by_offset.try_emplace(offset, 0);
    if (is_new) {
      const std::vector<u8>& table = known.code.lines;
      line->second = line_of(layout_.lines, table.data(), table.size(), known.code.first_line, offset);
    }
    frames.push_back({&known.code, line->second});
  }
}

PythonFrames::Outcome PythonFrames::look(u64 state, u64 id, std::vector<Frame>& frames) {
  frames.clear();
  if (known_.size() > kMostKnown) known_.clear();
  u32 before = 0, outer = 0;  // of the walk before this one what was as it had been; of that what this one came upon
  bool whole = false;
  for (int attempt = 0; attempt < kTries && !whole; ++attempt) {
    memory_.look_anew(state);
    Head head;
    if (!read_head(state, head) || head.id != id) return Outcome::Unreadable;
    if (!head.frame) return Outcome::Nothing;
    u32 same = walk(head.frame) ? unchanged(state) : 0;
    // Frames of 3.10 and before lie unchanged after their return: a loop that goes round once while they are read, which takes long
    // on a slow machine, shows the same ones again. It is not there a second time.
    if (same == links_.size() && layout_.owner == kNoOwner) same = unchanged(state);
    whole = same && same == links_.size();
    outer = std::min(same, agreed(before));
    before_ = links_;
    before = same;
  }
  if (!whole && outer == 0) return Outcome::Torn;
  tell(whole ? static_cast<u32>(links_.size()) : outer, frames);
  if (frames.empty()) return Outcome::Nothing;
  return whole ? Outcome::Whole : Outcome::OuterPart;
}

}  // namespace gputrace
