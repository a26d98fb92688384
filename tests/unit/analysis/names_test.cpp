// Kernel names: a table of real ones with what must be read of them, and names that nobody should trust.
#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <sstream>

#include "analysis/names/categories.h"
#include "analysis/names/demangle.h"
#include "analysis/names/kernel_names.h"

namespace gputrace::test {
namespace {

std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields;
  std::istringstream stream(line);
  for (std::string field; std::getline(stream, field, '\t');) fields.push_back(field);
  return fields;
}
std::string or_dash(const std::string& text) { return text.empty() ? "-" : text; }

TEST(KernelNames, RealOnesAreReadAsTheTableSays) {
  const char* folder = std::getenv("GT_DATA");
  ASSERT_NE(folder, nullptr);
  std::ifstream file(std::string(folder) + "/kernel_names.tsv");
  std::size_t cases = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    const auto fields = fields_of(line);
    ASSERT_EQ(fields.size(), 7u) << line;
    const KernelName name = parse_kernel_name(fields[6]);
    EXPECT_EQ(category_name(categorize(name).category), fields[0]) << fields[6];
    EXPECT_EQ(or_dash(name.family), fields[1]) << fields[6];
    EXPECT_EQ(or_dash(name.operation), fields[2]) << fields[6];
    EXPECT_EQ(or_dash(name.tile), fields[3]) << fields[6];
    EXPECT_EQ(or_dash(name.types.input) + " " + or_dash(name.types.arithmetic) + " " + or_dash(name.types.accumulator) +
                  " " + or_dash(name.types.output),
              fields[4])
        << fields[6];
    EXPECT_EQ(name.brief, fields[5]) << fields[6];
    ++cases;
  }
  EXPECT_GE(cases, 100u);
}

TEST(KernelNames, PartsOfADemangledName) {
  const CppName name =
      split_cpp_name("void a::b<1, c<2, (d)3> >::(anonymous namespace)::f<g<4>, {lambda(int)#1}>(int, x<5>)");
  EXPECT_EQ(name.scope, "a::b::");
  EXPECT_EQ(name.leaf, "f");
  EXPECT_EQ(name.arguments, (std::vector<std::string>{"g<4>", "{lambda(int)#1}"}));
  EXPECT_EQ(split_cpp_name("saxpy").leaf, "saxpy");
  EXPECT_EQ(words_of("cunn_SoftMaxForward<GEMMKernel>"), " cunn soft max forward gemm kernel ");
  EXPECT_EQ(arguments_of("Mma<A<1>, B>", "Mma"), (std::vector<std::string>{"A<1>", "B"}));
  EXPECT_TRUE(arguments_of("MyMma<A>", "Mma").empty());
}

// _Z1fI1XIS0_…: one template in another, `depth` deep.
std::string nested_symbol(std::size_t depth) {
  std::string symbol = "_Z1fI";
  for (std::size_t i = 0; i < depth; ++i) symbol += "4WrapI";
  symbol += "i";
  symbol.append(depth, 'E');
  return symbol + "Evv";
}

// libiberty prints 1024 levels, whatever it is asked: names of that depth or with as many arguments no compiler makes.
TEST(KernelNames, DemangledAtAnyLength) {
  const std::string deep = demangle(nested_symbol(300));
  EXPECT_EQ(deep.substr(0, 20), "void f<Wrap<Wrap<Wra");
  std::string wide = "_Z1fIJ";  // 60 KiB of arguments side by side
  for (int i = 0; i < 300; ++i) wide += "196" + std::string(196, 'x');
  wide += "EEvv";
  const KernelName name = parse_kernel_name(wide);
  EXPECT_EQ(name.brief, "f<…>");
  EXPECT_EQ(name.full.size(), std::string("void f<>()").size() + 300 * 196 + 299 * 2);
  EXPECT_EQ(name.parts.arguments.size(), 300u);
}

TEST(KernelNames, HostileOnesAreShownAsTheyAre) {
  for (const std::string& symbol :
       {nested_symbol(5000), "_Z" + std::string(60000, 'P'), "_Z1f" + std::string(300, 'I')}) {
    EXPECT_TRUE(demangle(symbol) == symbol) << symbol.size();
    EXPECT_FALSE(parse_kernel_name(symbol).brief.empty());
  }
  std::string chain = "_Z1fP1A";  // every argument a pointer to the one before: deep without nesting in the text
  while (chain.size() < 60000) chain += "PS_";
  parse_kernel_name(chain);
  std::mt19937 random(7);
  const std::string letters =
      "_ZN1aIEcPKvS0x,<>(){}: :cutlass_nvjet_sm90_xmma_triton_poi_fused_gemm128x64 ampere_sgemm";
  for (int i = 0; i < 20000; ++i) {
    std::string name(random() % 60, ' ');
    for (char& c : name) c = letters[random() % letters.size()];
    categorize(parse_kernel_name(name));
  }
}

TEST(Categories, WhatOnlyConvertsLayouts) {
  for (const char* name :
       {"void cudnn::ops::nchwToNhwcKernel<__half, __half, float, false, true, (cudnnKernelDataType_t)0>(int)",
        "void cudnn::engines_precompiled::nhwcToNchwKernel<float, float, float, true, false>(int)"})
    EXPECT_TRUE(only_converts_layout(parse_kernel_name(name))) << name;
  for (const char* name :
       {"void cudnn::ops::nchwAddPaddingKernel<float, float, float, true>(int)",
        "void cudnn::engines_precompiled::nhwcToFoldedNhwcKernel<__half>(int)",
        "sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nchw_tilesize128x128x16_stage4_warpsize2x2x1_g1",
        "void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, 512, true, 1, true>(int)"})
    EXPECT_FALSE(only_converts_layout(parse_kernel_name(name))) << name;
}

TEST(Categories, EvidenceCountsWhereTheNameSaysNothing) {
  const KernelName nothing = parse_kernel_name("kernel0");
  EXPECT_EQ(categorize(nothing).category, Category::Other);
  EXPECT_EQ(categorize(nothing).rule, "no rule holds");
  EXPECT_EQ(categorize(nothing, {"cuBLASLt", false}).category, Category::Gemm);
  EXPECT_EQ(categorize(nothing, {"cuBLAS", false}).rule, "launched by cuBLAS");
  EXPECT_EQ(categorize(nothing, {"", true}).rule, "its code has matrix-multiply instructions");
  const KernelName relu = parse_kernel_name("relu_kernel");
  EXPECT_EQ(categorize(relu, {"cuDNN convolution", true}).category, Category::Elementwise);
}

}  // namespace
}  // namespace gputrace::test
