// The scan's own rules, on instructions made by hand: what the compiler's tests cannot provoke.
#include "cubin/sass.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "cubin/sass_code.h"
#include "cubin/sass_descriptor.h"

namespace gputrace {
namespace {

struct Word {
  std::uint64_t low, high;
};

std::vector<std::byte> code_of(const std::vector<Word>& words) {
  std::vector<std::byte> code(words.size() * 16);
  std::memcpy(code.data(), words.data(), code.size());
  return code;
}

constexpr Word kHmmaWord{0x000000080404723c, 0x000fde000004180c};  // bf16
constexpr Word kNop{0x0000000000007918, 0x000fc00000000000};
constexpr Word kHmma884{0x0000000402087236, 0x004f640000005408};
constexpr Word kQmmaWord{0x000000080404727a, 0x004ff60000002c0c};
constexpr Word kMoveZero{0x00000000ff097431, 0x000fcc00000001ff};  // HFMA2 R9, -RZ, RZ, 0, 0
constexpr Word kTensorMemory{0x00ff0a06040075ea, 0x0001d80008000008};
constexpr Word kDescriptor{0x08110490000b7882, 0x000fe20000000000};  // UMOV UR11, bf16 x bf16
constexpr Word kOtherHalf{0x00000000000a7882, 0x000fe20000000000};   // UMOV UR10, 0
constexpr Word kCall{0x0000000000047944, 0x000fea0003c00000};

Word branch(std::int64_t from, std::int64_t to) {
  const auto quarter = static_cast<std::uint64_t>((to - from - 1) * 4);
  return {0x7947 | (quarter & 0xff) << 16 | (quarter >> 8) << 34, (quarter >> 38 & 0x3ffff) | 0x0003800000000000};
}

TEST(SassTest, CountsNopsOut) {
  const CodeFacts facts = scan_code(code_of({kHmmaWord, kNop, kHmmaWord, kMoveZero}), 90);
  EXPECT_EQ(facts.instructions, 3u);
  EXPECT_EQ(facts.mma_instructions, 2u);
  EXPECT_EQ(facts.mma, kHmma);
  EXPECT_EQ(facts.precision, kBf16);
  EXPECT_EQ(facts.fp16, 0u);  // a constant moved by an HFMA2 is no arithmetic
}

TEST(SassTest, OpcodesMeanWhatTheirArchitectureSays) {
  EXPECT_EQ(scan_code(code_of({kHmma884}), 70).mma, kHmma);
  EXPECT_EQ(scan_code(code_of({kHmma884}), 75).mma, kHmma);
  EXPECT_EQ(scan_code(code_of({kHmma884}), 80).mma, 0u);
  EXPECT_EQ(scan_code(code_of({kQmmaWord}), 89).mma, kQmma);
  EXPECT_EQ(scan_code(code_of({kQmmaWord}), 90).mma, 0u);
  EXPECT_EQ(scan_code(code_of({kQmmaWord}), 120).mma, kQmma);
  EXPECT_EQ(scan_code(code_of({kTensorMemory}), 100).mma, kUtchmma);
  EXPECT_EQ(scan_code(code_of({kTensorMemory}), 90).mma, 0u);
  EXPECT_EQ(scan_code(code_of({kHmmaWord}), 61).instructions, 0u);  // another encoding: nothing is read
}

TEST(SassTest, DescriptorIsTakenWhereOnlyOnePathLeadsThere) {
  const auto precision = [](const std::vector<Word>& words) { return scan_code(code_of(words), 100).precision; };
  EXPECT_EQ(precision({kOtherHalf, kDescriptor, kTensorMemory}), kBf16);
  EXPECT_EQ(precision({kDescriptor, kOtherHalf, kTensorMemory}), kBf16);
  EXPECT_EQ(precision({kTensorMemory}), 0u);
  EXPECT_EQ(precision({kDescriptor, kCall, kTensorMemory}), 0u);
  // A loop around it begins behind the write.
  EXPECT_EQ(precision({kDescriptor, kNop, kTensorMemory, branch(3, 1)}), kBf16);
  // A path around the write leads to it.
  EXPECT_EQ(precision({branch(0, 2), kDescriptor, kNop, kTensorMemory}), 0u);
  EXPECT_EQ(precision({kDescriptor, kNop, kTensorMemory, kNop, branch(4, 0)}), kBf16);
  // The loop writes it again, behind.
  Word other = kDescriptor;
  other.low ^= std::uint64_t{0x480} << 32;
  EXPECT_EQ(precision({kDescriptor, kNop, kTensorMemory, other, branch(4, 1)}), 0u);
}

TEST(SassTest, TailShorterThanAnInstructionIsIgnored) {
  std::vector<std::byte> code = code_of({kHmmaWord, kHmmaWord});
  code.resize(code.size() - 1);
  EXPECT_EQ(scan_code(code, 90).mma_instructions, 1u);
  EXPECT_EQ(scan_code({}, 90).instructions, 0u);
}

TEST(SassTest, PtxTextIsReadByKernelAndCalls) {
  constexpr std::string_view text = R"(.version 9.0
.target sm_90
.address_size 64
.extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);
.extern .func elsewhere;
.func helper () { mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f0}, {%r0}, {%r1}, {%f0}; ret; }
.visible .entry with(.param .u64 p) { .reg .f32 %f; call.uni helper, (); ret; }
.visible .entry mix(.param .u64 p) { fma.rn.f64 %d1, %d1, %d2, %d3; add.f32 %f1, %f2, 0f3F800000; mul.rn.f32 %f1, %f2, %f1; ld.global.f32 %f1, [%rd1];
  add.f32 %f1, %f1, %f1; fma.rn.f16x2 %r1, %r1, %r1, %r1; atom.global.add.f32 %f1, [%rd1], %f2; add.s32 %r1, %r1, 1; ret; }
.visible .entry without(.param .u64 p) { // mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 in a comment
  call (r), vprintf, (a, b); ret; }
.visible .entry pointer(.param .u64 p) { call (r), %rd1, (a), proto; ret; }
.visible .entry outside(.param .u64 p) { call elsewhere; wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 {%f0}, {%r0}, {%r1}, {%f0}; ret; }
)";
  const auto facts = scan_ptx(text);
  ASSERT_EQ(facts.size(), 5u);
  EXPECT_EQ(facts[0].kernel, "with");
  EXPECT_EQ(facts[0].facts.mma, kHmma);
  EXPECT_EQ(facts[0].facts.precision, kBf16);
  EXPECT_FALSE(facts[0].incomplete);
  const CodeFacts& mix = facts[1].facts;
  EXPECT_EQ(std::tuple(mix.fp64, mix.fp32, mix.fp16, mix.bf16), std::tuple(1u, 3u, 1u, 0u));
  EXPECT_EQ(facts[2].facts.mma, 0u);
  EXPECT_FALSE(facts[2].incomplete);
  EXPECT_TRUE(facts[3].incomplete);
  EXPECT_TRUE(facts[4].incomplete);
  EXPECT_EQ(facts[4].facts.precision, kFp16);
}

TEST(SassTest, WhatIsNoImageIsSaid) {
  const std::vector<std::byte> bytes(64);
  ScanTotals totals;
  EXPECT_FALSE(for_each_kernel_code(
      bytes, {}, [](const KernelScan&) { FAIL(); }, &totals));
  EXPECT_EQ(totals.failures, 1u);
  EXPECT_FALSE(totals.first_failure.empty());
}

struct OldKernel {
  std::uint32_t sm;
  const char* name;
  std::uint64_t mma, precision;
  std::uint32_t matrix, fp64, fp32, fp16, bf16;
};
// As CUDA 11.8's disassembler shows them.
constexpr OldKernel kOldKernels[] = {
    {70, "plain_f16x2", 0, 0, 0, 0, 0, 3, 0},
    {70, "plain_f32", 0, 0, 0, 0, 4, 0, 0},
    {70, "plain_f64", 0, 0, 0, 4, 0, 0, 0},
    {70, "mma_f16_m8n8k4_f32", kHmma, kFp16, 4, 0, 0, 0, 0},
    {70, "wmma_f16", kHmma, kFp16, 16, 0, 0, 0, 0},
    {70, "calls", 0, 0, 0, 0, 1, 0, 0},
    {72, "wmma_s8", kImma, kInt8, 4, 0, 0, 0, 0},
    {72, "wmma_f16", kHmma, kFp16, 16, 0, 0, 0, 0},
    {75, "mma_s4_s4_m8n8k32", kImma, kInt4, 1, 0, 0, 0, 0},
    {75, "mma_b1_m8n8k128_xor", kBmma, kB1, 1, 0, 0, 0, 0},
    {80, "mma_bf16_m16n8k16", kHmma, kBf16, 1, 0, 0, 0, 0},
    {80, "mma_tf32_m16n8k8", kHmma, kTf32, 1, 0, 0, 0, 0},
    {80, "mma_f64_m8n8k4", kDmma, kFp64, 1, 0, 0, 0, 0},
    {80, "mma_f16_m8n8k4_f32", 0, 0, 0, 0, 12, 0, 0},
    {80, "plain_bf16", 0, 0, 0, 0, 0, 0, 2},
    {90, "mma_s4_s4_m8n8k32", kImma, kInt8, 2, 0, 0, 0, 0},
    {90, "mma_f64_m16n8k8", kDmma, kFp64, 1, 0, 0, 0, 0},
};

TEST(SassTest, OldCompilersAndChipsAreRead) {
  std::ifstream in(std::string(CUBIN_CORPUS) + "/cuda-11.8.fatbin", std::ios::binary);
  const std::vector<char> bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  ASSERT_FALSE(bytes.empty());
  const auto image = std::as_bytes(std::span(bytes.data(), bytes.size()));
  std::map<std::pair<std::uint32_t, std::string>, KernelScan> found;
  ScanTotals totals;
  for_each_kernel_code(
      image, {},
      [&](const KernelScan& scan) {
        if (scan.flags & kCodeScanned) found[{scan.architecture, std::string(scan.symbol)}] = scan;
      },
      &totals);
  EXPECT_EQ(totals.failures, 0u);
  EXPECT_EQ(totals.images, 6u);
  EXPECT_EQ(totals.kernels, 57u);
  for (const OldKernel& kernel : kOldKernels) {
    SCOPED_TRACE(std::to_string(kernel.sm) + " " + kernel.name);
    const auto scan = found.find({kernel.sm, kernel.name});
    ASSERT_NE(scan, found.end());
    EXPECT_EQ(scan->second.mma, kernel.mma);
    EXPECT_EQ(scan->second.precision, kernel.precision);
    EXPECT_EQ(scan->second.mma_instructions, kernel.matrix);
    EXPECT_EQ(scan->second.fp64, kernel.fp64);
    EXPECT_EQ(scan->second.fp32, kernel.fp32);
    EXPECT_EQ(scan->second.fp16, kernel.fp16);
    EXPECT_EQ(scan->second.bf16, kernel.bf16);
    EXPECT_TRUE(scan->second.registers.has_value());
  }
}

TEST(SassTest, DevicesChooseAmongTheEntries) {
  std::ifstream in(std::string(CUBIN_CORPUS) + "/cuda-11.8.fatbin", std::ios::binary);
  const std::vector<char> bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const auto image = std::as_bytes(std::span(bytes.data(), bytes.size()));
  const auto chips = [&](std::vector<std::uint32_t> devices) {
    std::set<std::pair<std::uint32_t, bool>> found;
    for_each_kernel_code(image, devices, [&](const KernelScan& scan) {
      found.emplace(scan.architecture, (scan.flags & kCodePtxOnly) != 0);
    });
    return found;
  };
  using Chips = std::set<std::pair<std::uint32_t, bool>>;
  EXPECT_EQ(chips({86}), (Chips{{80, false}}));
  EXPECT_EQ(chips({90, 75}), (Chips{{90, false}, {75, false}}));
  EXPECT_EQ(chips({120}), (Chips{{70, true}}));  // nothing but PTX runs there
}

}  // namespace
}  // namespace gputrace
