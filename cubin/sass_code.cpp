#include "cubin/sass_code.h"

#include <array>

#include "cubin/bytes.h"
#include "cubin/sass_descriptor.h"

namespace gputrace {
namespace {

constexpr std::uint64_t kZeroRegister = 0xff;

// What an opcode is worth looking at for. Everything else is only counted.
enum class Kind : std::uint8_t {
  kOther,
  kNop,
  kHmma,
  kImma,
  kBmma,
  kDmma,
  kQmma,
  kOmma,
  kHgmma,
  kIgmma,
  kBgmma,
  kQgmma,
  kTcgen05,
  kFp64,
  kFp32,
  kHalf,      // type in bit 85
  kHalfAdd,   // likewise; with the zero register it converts or moves
  kHalfFma,   // likewise
  kHalfTest,  // type in bit 65
  kTma,
  kAsyncCopy,
  kCallAbsolute,
};
using KindTable = std::array<Kind, 4096>;

// An opcode as it is in bits 0-11, for capabilities first…last.
struct Opcode {
  std::uint16_t opcode;
  Kind kind;
  std::uint32_t first = 70, last = 9999;
};
constexpr Opcode kExact[] = {
    {0x918, Kind::kNop},
    {0x236, Kind::kHmma, 70, 75},       // HMMA.884; another instruction since sm_80
    {0x23c, Kind::kHmma, 75},           // HMMA.1684 .1688 .16816 .SP
    {0x237, Kind::kImma, 72},           //
    {0x23d, Kind::kBmma, 75, 90},       //
    {0x23f, Kind::kDmma, 80},           //
    {0x27a, Kind::kQmma, 89, 89},       //
    {0x27a, Kind::kQmma, 120},          //
    {0x47a, Kind::kQmma, 120},          // with block scales
    {0x47f, Kind::kOmma, 120},          //
    {0x9f0, Kind::kHgmma, 90, 90},      // A from shared memory
    {0xdf0, Kind::kHgmma, 90, 90},      // A from registers
    {0x9f1, Kind::kIgmma, 90, 90},      //
    {0xdf1, Kind::kIgmma, 90, 90},      //
    {0x9f2, Kind::kBgmma, 90, 90},      //
    {0xdf2, Kind::kBgmma, 90, 90},      //
    {0x9f3, Kind::kQgmma, 90, 90},      //
    {0xdf3, Kind::kQgmma, 90, 90},      //
    {0x5ea, Kind::kTcgen05, 100, 119},  // A from shared memory
    {0x9ea, Kind::kTcgen05, 100, 119},  // A from tensor memory
    {0xdea, Kind::kTcgen05, 100, 119},  // with block scales
    {0xfea, Kind::kTcgen05, 100, 119},
    {0x5b4, Kind::kTma, 90},  // UTMALDG
    {0x3b5, Kind::kTma, 90},  // UTMASTG
    {0x3b6, Kind::kTma, 90},  // UTMAREDG
    {0x5b8, Kind::kTma, 90},  // UTMAPF
    {0x3ba, Kind::kTma, 90},  // UBLKCP
    {0x3bb, Kind::kTma, 90},  // UBLKRED
    {0x3bc, Kind::kTma, 90},  // UBLKPF
};
// An operation (bits 0-8) in every operand form.
constexpr Opcode kAnyForm[] = {
    {0x028, Kind::kFp64},             // DMUL
    {0x029, Kind::kFp64},             // DADD
    {0x02a, Kind::kFp64},             // DSETP
    {0x02b, Kind::kFp64},             // DFMA
    {0x009, Kind::kFp32},             // FMNMX
    {0x00a, Kind::kFp32},             // FSET
    {0x00b, Kind::kFp32},             // FSETP
    {0x020, Kind::kFp32},             // FMUL
    {0x021, Kind::kFp32},             // FADD
    {0x022, Kind::kFp32},             // FSWZADD
    {0x023, Kind::kFp32},             // FFMA
    {0x049, Kind::kFp32, 100, 119},   // FFMA2
    {0x04a, Kind::kFp32, 100, 119},   // FMUL2
    {0x04b, Kind::kFp32, 100, 119},   // FADD2
    {0x030, Kind::kHalfAdd},          // HADD2
    {0x031, Kind::kHalfFma},          // HFMA2
    {0x032, Kind::kHalf},             // HMUL2
    {0x035, Kind::kHalfFma, 75, 99},  // HFMA2.MMA: no matrix instruction, in spite of its name
    {0x033, Kind::kHalfTest},         // HSET2
    {0x034, Kind::kHalfTest},         // HSETP2
    {0x040, Kind::kHalf, 80},         // HMNMX2
    {0x1ae, Kind::kAsyncCopy, 80},    // LDGSTS
    {0x143, Kind::kCallAbsolute},     // CALL.ABS
};

KindTable make_table(std::uint32_t sm) {
  KindTable table{};
  for (const Opcode& row : kAnyForm) {
    if (sm < row.first || sm > row.last) continue;
    for (std::uint32_t form = 1; form < 8; ++form) table[form << 9 | row.opcode] = row.kind;
  }
  for (const Opcode& row : kExact) {
    if (sm >= row.first && sm <= row.last) table[row.opcode] = row.kind;
  }
  return table;
}

std::uint64_t bits(std::uint64_t word, unsigned first, unsigned count) {
  return word >> first & ((std::uint64_t{1} << count) - 1);
}

// QMMA's types A (bits 78, 82, 83) and B (79, 84, 85): E4M3 0, E5M2 1, E3M2 3, E2M3 4, E2M1 5.
std::uint64_t narrow_type(std::uint64_t code) {
  if (code <= 1) return kFp8;
  if (code == 3 || code == 4) return kFp6;
  return code == 5 ? std::uint64_t{kFp4} : 0;
}
std::uint64_t qmma_types(std::uint64_t high) {
  const std::uint64_t a = narrow_type(bits(high, 18, 2) << 1 | bits(high, 14, 1));
  const std::uint64_t b = narrow_type(bits(high, 20, 2) << 1 | bits(high, 15, 1));
  return a == 0 || b == 0 ? 0 : a | b;
}

// Two bits of HMMA (82) and HGMMA (76): f16 0, bf16 1, tf32 2.
std::uint64_t half_type(std::uint64_t code) {
  constexpr std::uint64_t kTypes[] = {kFp16, kBf16, kTf32, 0};
  return kTypes[code];
}

// The kinds of tcgen05.mma: block-scaled fp4 by the top bit of the low word, else two bits of the high one.
struct Tcgen05 {
  std::uint64_t mma;
  std::uint64_t precision;  // 0: in the instruction descriptor
};
Tcgen05 tcgen05_kind(std::uint64_t low, std::uint64_t high) {
  if (bits(low, 63, 1) != 0) return {kUtcomma, kFp4};
  switch (bits(high, 8, 2)) {
    case 0:
      return {kUtchmma, 0};
    case 1:
      return {kUtcimma, kInt8};
    case 3:
      return {kUtcqmma, 0};
    default:
      return {kUtcmma, 0};
  }
}

// Types A (bits 7-9) and B (10-12) of the PTX manual's instruction descriptor for a kind.
std::uint64_t descriptor_types(std::uint64_t mma, std::uint32_t descriptor) {
  const std::uint64_t codes[] = {bits(descriptor, 7, 3), bits(descriptor, 10, 3)};
  std::uint64_t found = 0;
  for (const std::uint64_t code : codes) {
    std::uint64_t type = 0;
    if (mma == kUtchmma) type = code <= 2 ? half_type(code) : 0;
    if (mma == kUtcqmma) {
      constexpr std::uint64_t kTypes[] = {kFp8, kFp8, 0, kFp6, kFp6, kFp4, 0, 0};
      type = kTypes[code];
    }
    if (type == 0) return 0;
    found |= type;
  }
  return found;
}

class CodeScanner {
 public:
  CodeScanner(ByteSpan code, const KindTable& table) : code_(code), table_(table) {}

  CodeFacts scan() {
    const std::size_t count = code_.size() / kInstructionBytes;
    std::uint32_t nops = 0;
    for (std::size_t i = 0; i < count; ++i) {
      std::uint64_t low;
      std::memcpy(&low, code_.data() + i * kInstructionBytes, sizeof low);
      const Kind kind = table_[low & 0xfff];
      if (kind == Kind::kOther) continue;
      if (kind == Kind::kNop) {
        ++nops;
      } else {
        std::uint64_t high;
        std::memcpy(&high, code_.data() + i * kInstructionBytes + 8, sizeof high);
        look(kind, low, high, i);
      }
    }
    facts_.instructions = static_cast<std::uint32_t>(count) - nops;
    return facts_;
  }

 private:
  void matrix(std::uint64_t mma, std::uint64_t precision) {
    facts_.mma |= mma;
    facts_.precision |= precision;
    ++facts_.mma_instructions;
    if (precision == 0) facts_.flags |= kCodePrecisionPart;
  }

  void look(Kind kind, std::uint64_t low, std::uint64_t high, std::size_t at) {
    switch (kind) {
      case Kind::kHmma:
        return matrix(kHmma, (low & 0xfff) == 0x236 ? kFp16 : half_type(bits(high, 18, 2)));
      case Kind::kImma:  // bits 83 and 84: A and B of 4 bits
        return matrix(kImma, bits(high, 19, 2) != 0 ? kInt4 : kInt8);
      case Kind::kBmma:
        return matrix(kBmma, kB1);
      case Kind::kDmma:
        return matrix(kDmma, kFp64);
      case Kind::kQmma:
        return matrix(kQmma, qmma_types(high));
      case Kind::kOmma:
        return matrix(kOmma, kFp4);
      case Kind::kHgmma:
        // wgmma.commit_group is this opcode too, with no destination and no descriptor.
        if (bits(low, 16, 8) == kZeroRegister && bits(low, 24, 8) == 0x3f) return;
        return matrix(kHgmma, half_type(bits(high, 12, 2)));
      case Kind::kIgmma:
        return matrix(kIgmma, kInt8);
      case Kind::kBgmma:
        return matrix(kBgmma, kB1);
      case Kind::kQgmma:
        return matrix(kQgmma, kFp8);
      case Kind::kTcgen05:
        return tcgen05(low, high, at);
      case Kind::kFp64:
        ++facts_.fp64;
        return;
      case Kind::kFp32:
        ++facts_.fp32;
        return;
      case Kind::kHalf:
        return half(bits(high, 21, 1));
      case Kind::kHalfTest:
        return half(bits(high, 1, 1));
      case Kind::kHalfFma:
        if (bits(low, 24, 8) != kZeroRegister) half(bits(high, 21, 1));
        return;
      case Kind::kHalfAdd:
        if (bits(low, 24, 8) != kZeroRegister && !second_is_zero(low)) half(bits(high, 21, 1));
        return;
      case Kind::kTma:
        facts_.flags |= kCodeTma;
        return;
      case Kind::kAsyncCopy:
        facts_.flags |= kCodeAsyncCopy;
        return;
      case Kind::kCallAbsolute:
        facts_.calls_absolute |= (low >> 9 & 7) != 4;  // 0x943 names its target by a relocation
        return;
      case Kind::kOther:
      case Kind::kNop:
        return;
    }
  }

  void half(std::uint64_t brain) { ++(brain != 0 ? facts_.bf16 : facts_.fp16); }

  static bool second_is_zero(std::uint64_t low) {  // in the form with two registers
    return bits(low, 9, 3) == 1 && bits(low, 32, 8) == kZeroRegister;
  }

  void tcgen05(std::uint64_t low, std::uint64_t high, std::size_t at) {
    Tcgen05 kind = tcgen05_kind(low, high);
    if (kind.precision == 0) {
      if (!descriptors_) descriptors_.emplace(code_);
      if (const auto descriptor = descriptors_->find(at)) {
        kind.precision = descriptor_types(kind.mma, *descriptor);
      }
    }
    matrix(kind.mma, kind.precision);
  }

  ByteSpan code_;
  const KindTable& table_;
  CodeFacts facts_;
  std::optional<DescriptorFinder> descriptors_;  // made when first needed
};

// One table per generation in which an opcode begins or ends to mean something.
const KindTable& table_for(std::uint32_t sm) {
  static const KindTable k70 = make_table(70), k72 = make_table(72), k75 = make_table(75), k80 = make_table(80),
                         k89 = make_table(89), k90 = make_table(90), k100 = make_table(100), k120 = make_table(120);
  if (sm >= 120) return k120;
  if (sm >= 100) return k100;
  if (sm >= 90) return k90;
  if (sm >= 89) return k89;
  if (sm >= 80) return k80;
  if (sm >= 75) return k75;
  return sm >= 72 ? k72 : k70;
}

}  // namespace

void CodeFacts::add(const CodeFacts& other) {
  mma |= other.mma;
  precision |= other.precision;
  flags |= other.flags;
  instructions += other.instructions;
  mma_instructions += other.mma_instructions;
  fp64 += other.fp64;
  fp32 += other.fp32;
  fp16 += other.fp16;
  bf16 += other.bf16;
  calls_absolute |= other.calls_absolute;
}

CodeFacts scan_code(ByteSpan code, std::uint32_t sm) {
  if (sm < kFirstScannedArchitecture) return {};
  return CodeScanner(code, table_for(sm)).scan();
}

}  // namespace gputrace
