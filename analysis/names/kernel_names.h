// What a kernel's name says, read by the grammar of who named it: operation, tile, types, beside a short form for
// people. Names only: whether the code does what its name says is the machine code's matter.
//   · What a grammar does not tell is empty, never guessed.
//   · Names are untrusted: every function answers every text, in time linear in its length but for demangle's caps.
#pragma once

#include <string>

#include "analysis/names/cpp_name.h"

namespace gputrace {

// "f64 tf32 f32 bf16 f16 e4m3 e5m2 f8 f4 i32 i8 u8 i4 b1 cf32 cf64 …" each.
struct NamedTypes {
  std::string input;        // of the first operand, as it lies in memory
  std::string arithmetic;   // as it is multiplied, where that is another one or the only one known
  std::string accumulator;  // as sums are kept
  std::string output;
};

struct KernelName {
  std::string full;    // demangled; the symbol where it is no mangled name
  std::string brief;   // the short form; two names that differ in more than this differ in `full`
  std::string family;  // who made it: "cutlass", "nvjet", "xmma", "cublas", "cudnn", "triton", "pytorch", "nccl", …
  std::string operation;  // "gemm", "conv fprop", "attention forward", "pointwise add relu", "AllReduce Sum"
  std::string tile;       // "128x256x32": M, N and, where known, K of one block's work
  std::string layout;     // "nn", "nhwc"
  std::string detail;     // what else tells kernels of one operation apart: "split-k", "ring LL", "dim 128"
  NamedTypes types;
  CppName parts;  // of `full`; for a C symbol the leaf is the symbol
};

KernelName parse_kernel_name(const std::string& symbol);

// "f16→f32", "tf32", "": the types as one word.
std::string types_text(const NamedTypes& types);

}  // namespace gputrace
