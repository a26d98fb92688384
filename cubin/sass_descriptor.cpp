#include "cubin/sass_descriptor.h"

#include <algorithm>

#include "cubin/bytes.h"

namespace gputrace {
namespace {

constexpr std::size_t kMaxDistance = 4096;
constexpr std::uint32_t kMoveImmediate = 0x882;  // UMOV URx, imm
constexpr std::uint32_t kAlways = 7;             // the predicate that is always true

struct Instruction {
  std::uint64_t low = 0, high = 0;
  std::uint32_t opcode() const { return low & 0xfff; }
  std::uint32_t operation() const { return low & 0x1ff; }
  std::uint32_t destination() const { return low >> 16 & 0xff; }
};

Instruction instruction_at(ByteSpan code, std::size_t index) {
  return {read_at<std::uint64_t>(code, index * kInstructionBytes).value_or(0),
          read_at<std::uint64_t>(code, index * kInstructionBytes + 8).value_or(0)};
}

// BRX, JMX, and calls relative to a register: they may land anywhere.
bool is_indirect_branch(const Instruction& at) {
  return at.operation() == 0x149 || at.operation() == 0x14a || at.operation() == 0x14c || at.opcode() == 0x344;
}

bool is_relative_branch(const Instruction& at) {  // BRA, BSSY, CALL.REL, BREAK, WARPSYNC
  return at.opcode() == 0x947 || at.opcode() == 0x945 || at.opcode() == 0x944 || at.opcode() == 0x942 ||
         at.opcode() == 0x348;
}

bool is_call(const Instruction& at) { return at.operation() == 0x143 || at.operation() == 0x144; }

// Vector arithmetic, loads and stores: no uniform register is their destination. 0x02f (ELECT) has one.
bool leaves_uniform_registers(const Instruction& at) {
  return (at.operation() < 0x080 && at.operation() != 0x02f) || (at.operation() >= 0x180 && at.operation() < 0x190);
}

bool may_write(const Instruction& at, std::uint32_t pair) {
  return !leaves_uniform_registers(at) && (at.destination() == pair || at.destination() == pair + 1);
}

bool sets_other_half(const Instruction& at, std::uint32_t pair) {  // of 32 bits only: UMOV, R2UR
  return (at.opcode() == kMoveImmediate || at.opcode() == 0x2ca) && at.destination() == pair;
}

// A quarter of the distance from the next instruction, 56 bits in three pieces.
std::int64_t branch_target(const Instruction& branch, std::size_t index) {
  const std::uint64_t quarter = (branch.low >> 16 & 0xff) | (branch.low >> 34) << 8 | (branch.high & 0x3ffff) << 38;
  const auto distance = static_cast<std::int64_t>(quarter << 8) >> 8;  // bit 55 is the sign
  return static_cast<std::int64_t>(index) + 1 + distance / 4;
}

}  // namespace

DescriptorFinder::DescriptorFinder(ByteSpan code) : code_(code) {
  const std::size_t count = code.size() / kInstructionBytes;
  for (std::size_t i = 0; i < count; ++i) {
    const Instruction at = instruction_at(code, i);
    usable_ = usable_ && !is_indirect_branch(at);
    if (is_relative_branch(at)) edges_.push_back({branch_target(at, i), static_cast<std::int64_t>(i)});
  }
  std::sort(edges_.begin(), edges_.end(), [](const Edge& a, const Edge& b) { return a.target < b.target; });
}

// Grows the stretch behind `write` until every branch into it begins in it.
bool DescriptorFinder::only_through(std::size_t write, std::size_t at, std::uint32_t pair) {
  const auto begin = static_cast<std::int64_t>(write);
  auto end = static_cast<std::int64_t>(at);
  std::int64_t checked = begin;  // no other write and no call up to here
  auto edge = std::upper_bound(edges_.begin(), edges_.end(), begin,
                               [](std::int64_t value, const Edge& e) { return value < e.target; });
  while (checked < end || (edge != edges_.end() && edge->target <= end)) {
    if (budget_ == 0) return false;
    --budget_;
    if (checked < end) {
      const Instruction next = instruction_at(code_, static_cast<std::size_t>(++checked));
      if (is_call(next) || (may_write(next, pair) && !sets_other_half(next, pair))) return false;
    } else {
      if (edge->source < begin || edge->source - begin > static_cast<std::int64_t>(kMaxDistance)) return false;
      end = std::max(end, edge->source);
      ++edge;
    }
  }
  return true;
}

std::optional<std::uint32_t> DescriptorFinder::find(std::size_t at) {
  if (!usable_) return std::nullopt;
  const auto pair = static_cast<std::uint32_t>(instruction_at(code_, at).low >> 40 & 0xff);
  const std::size_t stop = at - std::min(at, kMaxDistance);
  for (std::size_t i = at; i-- > stop && budget_ != 0;) {
    --budget_;
    const Instruction before = instruction_at(code_, i);
    if (is_call(before)) return std::nullopt;
    if (!may_write(before, pair) || sets_other_half(before, pair)) continue;
    const bool always = (before.low >> 12 & 0xf) == kAlways;
    if (before.opcode() != kMoveImmediate || !always || !only_through(i, at, pair)) return std::nullopt;
    return static_cast<std::uint32_t>(before.low >> 32);
  }
  return std::nullopt;
}

}  // namespace gputrace
