// tcgen05.mma takes its input types from a descriptor in a pair of uniform registers. Compilers know it as a constant
// and move it there shortly before. Looked for backwards, inside of the basic block: what another path may have put
// there is not guessed.
#include <algorithm>

#include "cubin/bytes.h"
#include "cubin/sass_code.h"

namespace gputrace {
namespace {

constexpr std::size_t kInstructionBytes = 16;
constexpr std::size_t kMaxDistance = 256;

struct Instruction {
  std::uint64_t low = 0, high = 0;
  std::uint32_t opcode() const { return low & 0xfff; }
  std::uint32_t destination() const { return low >> 16 & 0xff; }
};

Instruction instruction_at(ByteSpan code, std::size_t index) {
  return {read_at<std::uint64_t>(code, index * kInstructionBytes).value_or(0),
          read_at<std::uint64_t>(code, index * kInstructionBytes + 8).value_or(0)};
}

bool is_indirect_branch(std::uint32_t opcode) {  // BRX, JMX and their kin: they may land anywhere
  const std::uint32_t operation = opcode & 0x1ff;
  return operation == 0x149 || operation == 0x14a || operation == 0x14c;
}

bool is_relative_branch(std::uint32_t opcode) {
  return opcode == 0x947 || opcode == 0x945 || opcode == 0x944 || opcode == 0x942 || opcode == 0x348;
}

// sm_100 and later: a quarter of the distance from the next instruction, 56 bits in three pieces.
std::int64_t branch_target(const Instruction& branch, std::size_t index) {
  const std::uint64_t quarter = (branch.low >> 16 & 0xff) | (branch.low >> 34) << 8 | (branch.high & 0x3ffff) << 38;
  const auto distance = static_cast<std::int64_t>(quarter << 8) >> 8;  // sign of bit 55
  return static_cast<std::int64_t>(index) + 1 + distance / 4;
}

// Vector arithmetic and loads: their destination is a vector register, so it is not the one looked for.
bool writes_vector_register(std::uint32_t opcode) {
  const std::uint32_t operation = opcode & 0x1ff;
  return (operation < 0x080 && operation != 0x02f) || (operation >= 0x180 && operation < 0x190);
}

}  // namespace

std::vector<bool> branch_targets(ByteSpan code) {
  const std::size_t count = code.size() / kInstructionBytes;
  std::vector<bool> targets(count);
  for (std::size_t i = 0; i < count; ++i) {
    const Instruction at = instruction_at(code, i);
    if (is_indirect_branch(at.opcode())) return {};
    if (!is_relative_branch(at.opcode())) continue;
    const std::int64_t target = branch_target(at, i);
    if (target >= 0 && target < static_cast<std::int64_t>(count)) targets[static_cast<std::size_t>(target)] = true;
  }
  return targets;
}

std::optional<std::uint32_t> instruction_descriptor(ByteSpan code, std::size_t at, const std::vector<bool>& targets) {
  constexpr std::uint32_t kMoveImmediate = 0x882;  // UMOV URx, imm
  constexpr std::uint32_t kAlways = 7;
  const auto pair = static_cast<std::uint32_t>(instruction_at(code, at).low >> 40 & 0xff);
  const std::size_t stop = at - std::min(at, kMaxDistance);
  if (at >= targets.size()) return std::nullopt;
  for (std::size_t i = at; i-- > stop;) {
    if (targets[i + 1]) return std::nullopt;
    const Instruction before = instruction_at(code, i);
    if (before.opcode() == 0x944 || before.opcode() == 0x943 || before.opcode() == 0x343) return std::nullopt;
    if (writes_vector_register(before.opcode())) continue;
    if (before.destination() != pair && before.destination() != pair + 1) continue;
    if (before.opcode() == kMoveImmediate && before.destination() == pair) continue;  // the other half
    if (before.opcode() != kMoveImmediate || (before.low >> 12 & 0xf) != kAlways) return std::nullopt;
    return static_cast<std::uint32_t>(before.low >> 32);
  }
  return std::nullopt;
}

}  // namespace gputrace
