#include "analysis/memory/tensor_memory.h"

#include <algorithm>
#include <map>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "analysis/memory/memory_samples.h"

namespace gputrace {
namespace {

bool begins_with(const std::string& text, const char* words) { return text.rfind(words, 0) == 0; }

// Of PyTorch's optimizers and of those that are made like them.
bool is_optimizer_step(const std::string& name) { return begins_with(name, "Optimizer.step#"); }

// An operation of C++, not a mark that somebody set around a part of his program.
bool is_operation(const std::string& name) { return name.find("::") != std::string::npos; }

bool is_product(const std::string& name) {
  for (const char* product : {"aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::mv", "aten::addmv",
                              "aten::dot", "aten::_scaled_mm", "aten::addmm_", "aten::_addmm_activation"}) {
    if (name == product) return true;
  }
  return false;
}

}  // namespace

TensorLedger::Device& TensorLedger::device(i32 ordinal) {
  const auto [entry, is_new] = devices_.try_emplace(ordinal);
  if (is_new) {
    entry->second.facts = static_cast<u32>(facts_.tensors.size());
    facts_.tensors.emplace_back().device = ordinal;
  }
  return entry->second;
}

bool TensorLedger::is_outermost(u32 frame) const {
  const std::vector<SourceFrame>& frames = facts_.lines.frames;
  if (frame >= frames.size() || !is_operation(frames[frame].function)) return false;
  for (u32 at = frames[frame].parent; at != 0; at = frames[at].parent) {
    if (is_operation(frames[at].function)) return false;
  }
  return true;
}

void TensorLedger::operation_ended(u32 frame, u32 thread, Nanos begin, Nanos end) {
  if (frame >= facts_.lines.frames.size()) return;
  if (is_outermost(frame)) ++thread_of(thread).ended;
  thread_of(thread).pieces = 0;
  if (is_optimizer_step(facts_.lines.frames[frame].function)) steps_.push_back({begin, end});
}

void TensorLedger::changed(const TensorMemory& value, u32 thread, u32 origin, Nanos at) {
  Device& on = device(value.device);
  FrameworkMemory& memory = facts_.tensors[on.facts];
  if (value.flags & kTensorOutOfMemory) {
    ++memory.refused;
    if (static_cast<u64>(value.bytes) >= memory.refused_bytes) {
      memory.refused_bytes = static_cast<u64>(value.bytes);
      memory.refused_origin = origin;
    }
    return;
  }
  memory.allocated = value.allocated;
  memory.reserved = value.reserved;
  if (value.bytes >= 0) {
    ++memory.allocations;
    Thread& by = thread_of(thread);
    const u32 operation = operation_of(origin);
    if (by.operation != operation) by.operation = operation, by.pieces = 0;
    on.pieces.allocated(value.address, {.address = value.address,
                                        .bytes = static_cast<u64>(value.bytes),
                                        .begin = at,
                                        .origin = origin,
                                        .thread = thread,
                                        .ended = by.ended,
                                        .before = by.pieces++});
  } else {
    ++memory.frees;
    if (Piece* const piece = on.pieces.freed(value.address)) {
      piece->end = at;
      piece->is_brief = thread_of(piece->thread).ended == piece->ended;
    }
  }
  if (memory.allocated > memory.peak_bytes) {
    memory.peak_bytes = memory.allocated;
    memory.peak_reserved_bytes = memory.reserved;
    memory.peak_at = at;
    for (const DeviceMemory& driver : facts_.device_memory) {
      if (driver.device == value.device) memory.driver_bytes_at_peak = driver.live_bytes;
    }
    on.pieces.reached();
  }
  add_memory_sample(memory.samples, memory.thinned, {at, memory.allocated, memory.reserved}, &TensorSample::allocated);
}

u32 TensorLedger::operation_of(u32 origin) const {
  const u32 operation = origin < facts_.lines.origins.size() ? facts_.lines.origins[origin].operation : 0;
  return operation < kMostStackFrames ? operation : 0;  // XLA's have no place among the frames yet
}

const TensorLedger::Place& TensorLedger::place_of(u32 origin) {
  const std::vector<SourceFrame>& frames = facts_.lines.frames;
  const u32 operation = operation_of(origin);
  Place& place = entry_at(places_, operation);
  if (place.known) return place;
  place.known = true;
  for (u32 at = operation; at != 0 && at < frames.size(); at = frames[at].parent) {
    const std::string& name = frames[at].function;
    place.in_optimizer = place.in_optimizer || is_optimizer_step(name);
    place.in_backward = place.in_backward || begins_with(name, "autograd::engine::evaluate_function");
    place.is_product = place.is_product || (at == operation && is_product(name));
    place.in_conversion = place.in_conversion || name == "aten::to";
  }
  return place;
}

TensorKind TensorLedger::kind_of(const Piece& piece) {
  if (facts_.lines.operations.empty()) return TensorKind::Unknown;  // operations are not followed
  if (piece.is_brief) return TensorKind::Workspace;
  const Place& place = place_of(piece.origin);
  if (place.is_product && piece.before > 0) return TensorKind::Workspace;
  const auto after = std::upper_bound(steps_.begin(), steps_.end(), piece.begin,
                                      [](Nanos at, const Step& step) { return at < step.end; });
  if (place.in_optimizer) {
    const bool outlives = after != steps_.end() ? piece.end > after->end : piece.end == kAlive;
    return outlives ? TensorKind::OptimizerState : TensorKind::Workspace;
  }
  if (place.in_backward) return TensorKind::Gradients;
  if (steps_.empty()) return piece.end == kAlive ? TensorKind::Persistent : TensorKind::Activations;
  const auto last =
      std::lower_bound(after, steps_.end(), piece.end, [](const Step& step, Nanos at) { return step.end < at; });
  const auto outlived = last - after;
  if (outlived == 0 && (piece.end != kAlive || after != steps_.begin())) return TensorKind::Activations;
  if (outlived == 1 && (piece.end != kAlive || after != steps_.begin()))
    return place.in_conversion ? TensorKind::Inputs : TensorKind::Activations;
  return after == steps_.begin() ? TensorKind::Parameters : TensorKind::Persistent;
}

void TensorLedger::finish() {
  // Two threads may step two optimizers.
  std::sort(steps_.begin(), steps_.end(), [](const Step& a, const Step& b) { return a.end < b.end; });
  for (auto& [ordinal, on] : devices_) {
    FrameworkMemory& memory = facts_.tensors[on.facts];
    std::map<std::pair<TensorKind, u32>, TensorPart> parts;
    std::vector<MemorySpan> spans;
    u64 known = 0;
    // Operations of which later steps keep something too: what the first step keeps of them is no parameter either.
    std::unordered_set<u32> kept;
    std::vector<std::pair<Piece, TensorKind>> pieces;
    for (const Piece& piece : on.pieces.at_peak()) {
      const TensorKind kind = kind_of(piece);
      pieces.push_back({piece, kind});
      if (kind == TensorKind::Persistent && !place_of(piece.origin).in_conversion) kept.insert(piece.origin);
    }
    for (auto& [piece, kind] : pieces) {
      if (kind == TensorKind::Parameters && kept.count(piece.origin)) kind = TensorKind::Persistent;
      TensorPart& part = parts[{kind, piece.origin}];
      part.kind = kind;
      part.origin = piece.origin;
      part.bytes += piece.bytes;
      part.oldest = part.count ? std::min(part.oldest, piece.begin) : piece.begin;
      part.newest = part.count ? std::max(part.newest, piece.begin) : piece.begin;
      ++part.count;
      known += piece.bytes;
      spans.push_back({kTensorKinds[static_cast<std::size_t>(kind)], piece.address, piece.bytes, piece.origin,
                       piece.begin, piece.end});
    }
    memory.spans = largest_spans(std::move(spans));
    for (const auto& [key, part] : parts) memory.at_peak.push_back(part);
    // Allocated before the session began, or told by a record that was lost.
    if (known < memory.peak_bytes) memory.at_peak.push_back({TensorKind::Unknown, 0, memory.peak_bytes - known, 0});
  }
}

}  // namespace gputrace
