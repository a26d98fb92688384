#pragma once
// One pass over machine code of sm_70 and later: 16-byte little-endian instructions, opcode in bits 0-11 of which
// bits 0-8 name the operation and 9-11 the operand form. How each position here was found: docs/decisions/0045.
#include "cubin/code_image.h"
#include "cubin/sass.h"

namespace gputrace {

struct CodeFacts {
  std::uint64_t mma = 0;
  std::uint64_t precision = 0;
  std::uint32_t flags = 0;  // of CodeKernelFlags: TMA, asynchronous copy, precision in part
  std::uint32_t instructions = 0, mma_instructions = 0;
  std::uint32_t fp64 = 0, fp32 = 0, fp16 = 0, bf16 = 0;
  bool calls_absolute = false;  // a call through a register or constant to anywhere

  void add(const CodeFacts& other);
};

inline constexpr std::uint32_t kFirstScannedArchitecture = 70;  // before: another encoding, and no tensor cores

// `sm` below 70: nothing is scanned. A tail shorter than an instruction is ignored.
CodeFacts scan_code(ByteSpan code, std::uint32_t sm);

// What a PTX text says of each of its kernels, by name in text order; class and types as written; of counts only those of
// floating-point arithmetic.
struct PtxMmaFacts {
  std::string_view kernel;
  CodeFacts facts;
  bool incomplete = false;  // calls through pointers, or of functions that are not in the text
};
std::vector<PtxMmaFacts> scan_ptx(std::string_view text);

}  // namespace gputrace
