// What the reader says of nvcc's output, against what ptxas said while it made it.
#include <cstring>

#include "tests/cubin/test_images.h"

namespace gputrace {
namespace {

class CubinOf : public testing::TestWithParam<unsigned> {};

TEST_P(CubinOf, KernelsAgreeWithPtxas) {
  NEED_IMAGES();
  const std::string name = "sm" + std::to_string(GetParam());
  const std::string cubin = slurp(name + ".cubin");
  std::string why;
  const auto module = read_cubin(bytes_of(cubin), &why);
  ASSERT_TRUE(module) << why;
  EXPECT_EQ(module->sm.number, GetParam());
  const auto facts = ptxas_facts(slurp(name + ".log"));
  ASSERT_EQ(facts.size(), 6u);
  ASSERT_EQ(module->kernels.size(), 6u);
  for (const auto& [symbol, fact] : facts) {
    const ImageKernel* kernel = find_kernel(*module, symbol);
    ASSERT_NE(kernel, nullptr) << symbol;
    EXPECT_EQ(kernel->registers, fact.registers) << symbol;
    EXPECT_EQ(kernel->local_bytes, fact.stack) << symbol;
    EXPECT_EQ(kernel->static_shared_bytes, fact.shared) << symbol;
    EXPECT_FALSE(kernel->code.empty()) << symbol;
  }
}

TEST_P(CubinOf, ParametersLimitsAndGlobals) {
  NEED_IMAGES();
  const std::string cubin = slurp("sm" + std::to_string(GetParam()) + ".cubin");
  const auto module = read_cubin(bytes_of(cubin));
  ASSERT_TRUE(module);
  const ImageKernel* shared = find_kernel(*module, "shared_k");
  ASSERT_NE(shared, nullptr);
  EXPECT_EQ(shared->max_threads, 256u);
  EXPECT_EQ(shared->parameter_bytes, 49u);
  ASSERT_EQ(shared->parameters.size(), 3u);
  EXPECT_EQ(shared->parameters[1].offset, 8u);
  EXPECT_EQ(shared->parameters[1].size, 40u);
  EXPECT_EQ(shared->parameters[2].offset, 48u);
  EXPECT_EQ(shared->parameters[2].size, 1u);
  EXPECT_EQ(find_kernel(*module, "plain")->max_threads, 0u);
  EXPECT_EQ(find_kernel(*module, "huge_k")->parameters.at(0).size, 3000u);
  EXPECT_EQ(find_kernel(*module, "noparam")->parameters.size(), 0u);

  EXPECT_EQ(module->const_bytes, 96u);
  const CodeGlobal* counter = find_global(*module, "g_counter");
  ASSERT_NE(counter, nullptr);
  int value = 0;
  ASSERT_EQ(counter->init.size(), sizeof value);
  std::memcpy(&value, counter->init.data(), sizeof value);
  EXPECT_EQ(value, 7);
  EXPECT_EQ(find_global(*module, "g_table")->bytes, 256u);
  EXPECT_TRUE(find_global(*module, "g_table")->init.empty());
  const CodeGlobal* coefficients = find_global(*module, "c_coef");
  ASSERT_NE(coefficients, nullptr);
  EXPECT_TRUE(coefficients->is_constant);
  float first[3];
  std::memcpy(first, coefficients->init.data(), sizeof first);
  EXPECT_EQ(first[1], 2.0f);
  EXPECT_TRUE(find_global(*module, "m_val")->is_managed);
  EXPECT_FALSE(counter->is_managed);
}

INSTANTIATE_TEST_SUITE_P(Chips, CubinOf, testing::Values(75u, 80u, 90u, 100u));

TEST(Ptx, SaysWhatTheCubinSays) {
  NEED_IMAGES();
  const auto module = read_ptx(slurp("sm90.ptx"));
  const std::string cubin_bytes = slurp("sm90.cubin");
  const auto cubin = read_cubin(bytes_of(cubin_bytes));
  ASSERT_TRUE(module && cubin);
  EXPECT_EQ(module->sm.number, 90u);
  ASSERT_EQ(module->kernels.size(), cubin->kernels.size());
  for (const ImageKernel& kernel : module->kernels) {
    const ImageKernel* other = find_kernel(*cubin, kernel.symbol);
    ASSERT_NE(other, nullptr) << kernel.symbol;
    EXPECT_FALSE(kernel.registers.has_value());
    EXPECT_EQ(kernel.static_shared_bytes, other->static_shared_bytes) << kernel.symbol;
    EXPECT_EQ(kernel.max_threads, other->max_threads) << kernel.symbol;
    EXPECT_EQ(kernel.parameter_bytes, other->parameter_bytes) << kernel.symbol;
    ASSERT_EQ(kernel.parameters.size(), other->parameters.size());
    for (std::size_t i = 0; i < kernel.parameters.size(); ++i) {
      EXPECT_EQ(kernel.parameters[i].offset, other->parameters[i].offset) << kernel.symbol << i;
      EXPECT_EQ(kernel.parameters[i].size, other->parameters[i].size) << kernel.symbol << i;
    }
  }
  EXPECT_EQ(module->const_bytes, cubin->const_bytes);
  for (const char* name : {"g_counter", "g_table", "c_coef", "c_zero", "m_val"}) {
    const CodeGlobal* ours = find_global(*module, name);
    const CodeGlobal* theirs = find_global(*cubin, name);
    ASSERT_TRUE(ours != nullptr && theirs != nullptr) << name;
    EXPECT_EQ(ours->bytes, theirs->bytes) << name;
    EXPECT_EQ(ours->is_managed, theirs->is_managed) << name;
    if (!ours->init.empty()) {
      EXPECT_EQ(ours->init, theirs->init) << name;
    }
  }
}

TEST(Ptx, HandWritten) {
  const auto module = read_ptx(R"(
    // a comment with .entry inside
    /* .version */ .version 8.0 .target sm_90a, debug .address_size 64
    .shared .align 16 .b8 pool[64];
    .extern .shared .b8 dynamic[];
    .const .align 8 .f64 pi[2] = {0d400921FB54442D18, 2.5};
    .global .v4 .f32 lanes[2]; .global .s16 list[] = {-1, 0x10, 010, 0b11};
    .global .u64 where[2] = {generic(list), 5};
    .func (.param .b32 r) helper(.param .b32 x) { .shared .b8 hidden[99]; ret; }
    .weak .entry k(.param .u64 .ptr .global .align 256 a, .param .v2 .f32 b, .param .b8 c)
      .reqntid 32, 2 .reqnctapercluster 2 .maxnreg 40
    { .shared .f32 tile[4][8]; { .reg .b32 %r<2>; ld.shared.b32 %r1, [pool]; st.shared.b32 [pool], %r1; } ret; }
    .entry bare { ret; })");
  ASSERT_TRUE(module);
  EXPECT_EQ(module->sm.number, 90u);
  EXPECT_EQ(module->sm.variant, SmVariant::kArchitecture);
  ASSERT_EQ(module->kernels.size(), 2u);
  const ImageKernel& k = module->kernels[0];
  EXPECT_EQ(k.parameters.at(1).offset, 8u);
  EXPECT_EQ(k.parameters.at(1).size, 8u);
  EXPECT_EQ(k.parameter_bytes, 17u);
  EXPECT_EQ(k.required_block[0], 32u);
  EXPECT_EQ(k.required_block[1], 2u);
  EXPECT_EQ(k.required_cluster[0], 2u);
  EXPECT_EQ(k.static_shared_bytes, 128u + 64u);
  EXPECT_EQ(module->kernels[1].symbol, "bare");
  EXPECT_EQ(module->kernels[1].static_shared_bytes, 0u);
  EXPECT_EQ(find_global(*module, "lanes")->bytes, 32u);
  EXPECT_EQ(find_global(*module, "list")->bytes, 8u);
  std::int16_t list[4];
  std::memcpy(list, find_global(*module, "list")->init.data(), sizeof list);
  EXPECT_EQ(list[0], -1);
  EXPECT_EQ(list[1], 16);
  EXPECT_EQ(list[2], 8);
  EXPECT_EQ(list[3], 3);
  double pi[2];
  std::memcpy(pi, find_global(*module, "pi")->init.data(), sizeof pi);
  EXPECT_DOUBLE_EQ(pi[0], 3.141592653589793);
  EXPECT_DOUBLE_EQ(pi[1], 2.5);
  std::uint64_t where[2];
  std::memcpy(where, find_global(*module, "where")->init.data(), sizeof where);
  EXPECT_EQ(where[1], 5u);
  EXPECT_EQ(module->const_bytes, 16u);
}

class FatbinOf : public testing::TestWithParam<const char*> {};

TEST_P(FatbinOf, EveryEntryUnpacksToItsFile) {
  NEED_IMAGES();
  const std::string fatbin = slurp(std::string(GetParam()) + ".fatbin");
  std::string why;
  const auto entries = read_fatbin(bytes_of(fatbin), &why);
  ASSERT_TRUE(entries);
  EXPECT_EQ(why, "");
  ASSERT_EQ(entries->size(), 4u);
  EXPECT_EQ(image_at(fatbin.data()).size(), fatbin.size());
  for (const FatbinEntry& entry : *entries) {
    const auto raw = unpack(entry, &why);
    ASSERT_TRUE(raw) << why;
    const bool ptx = entry.kind == ContainerKind::kPtx;
    std::string file = slurp("sm" + std::to_string(entry.sm.number) + (ptx ? ".ptx" : ".cubin"));
    std::string got(reinterpret_cast<const char*>(raw->data()), raw->size());
    if (ptx) {  // stored without comments and blanks
      EXPECT_EQ(read_ptx(got)->kernels.size(), read_ptx(file)->kernels.size());
    } else {
      EXPECT_EQ(got.size(), file.size());
      EXPECT_TRUE(got == file) << "sm_" << entry.sm.number;  // binary: not printed
    }
  }
}

TEST_P(FatbinOf, LoadsTheEntryForTheDevice) {
  NEED_IMAGES();
  const std::string fatbin = slurp(std::string(GetParam()) + ".fatbin");
  const auto loads = [&](unsigned device, ContainerKind kind, unsigned sm) {
    LoadFailure failure;
    const auto loaded = load_image(bytes_of(fatbin), device, &failure);
    ASSERT_TRUE(loaded) << device << failure.why;
    EXPECT_EQ(loaded->module.kind, kind) << device;
    EXPECT_EQ(loaded->module.sm.number, sm) << device;
    EXPECT_EQ(loaded->module.kernels.size(), 6u) << device;
  };
  loads(75, ContainerKind::kCubin, 75);
  loads(80, ContainerKind::kCubin, 80);
  loads(86, ContainerKind::kCubin, 80);  // same major, higher minor
  loads(90, ContainerKind::kCubin, 90);
  loads(100, ContainerKind::kPtx, 90);  // only PTX crosses majors
  LoadFailure failure;
  EXPECT_FALSE(load_image(bytes_of(fatbin), 70, &failure));
  EXPECT_TRUE(failure.no_match);
}

INSTANTIATE_TEST_SUITE_P(Modes, FatbinOf, testing::Values("none", "speed", "balance", "size"));

TEST(Pick, VariantsRunWhereTheySay) {
  const auto entry = [](ContainerKind kind, std::uint32_t sm, SmVariant variant) {
    FatbinEntry e;
    e.kind = kind;
    e.sm = {sm, variant};
    return e;
  };
  const std::vector<FatbinEntry> entries{
      entry(ContainerKind::kPtx, 90, SmVariant::kNone), entry(ContainerKind::kCubin, 90, SmVariant::kNone),
      entry(ContainerKind::kCubin, 90, SmVariant::kArchitecture), entry(ContainerKind::kCubin, 100, SmVariant::kFamily),
      entry(ContainerKind::kPtx, 100, SmVariant::kArchitecture)};
  EXPECT_EQ(pick_entry(entries, 90), &entries[2]);
  EXPECT_EQ(pick_entry(entries, 100), &entries[3]);
  EXPECT_EQ(pick_entry(entries, 103), &entries[3]);
  EXPECT_EQ(pick_entry(entries, 120), &entries[0]);
  EXPECT_EQ(pick_entry(entries, 89), nullptr);
}

TEST(Image, ExtentOfACubinInMemory) {
  NEED_IMAGES();
  const std::string cubin = slurp("sm90.cubin");
  EXPECT_EQ(image_at(cubin.data()).size(), cubin.size());
  const std::string ptx = slurp("sm90.ptx");
  EXPECT_EQ(image_at(ptx.c_str()).size(), ptx.size());
  EXPECT_TRUE(image_at("rubbish").empty());
  EXPECT_TRUE(image_at("").empty());
  EXPECT_TRUE(image_at(nullptr).empty());
  LoadFailure failure;
  EXPECT_FALSE(load_image(bytes_of(cubin), 80, &failure));
  EXPECT_TRUE(failure.no_match);
}

TEST(Image, WrapperLeadsToItsFatbins) {
  NEED_IMAGES();
  const std::string one = slurp("none.fatbin"), two = slurp("size.fatbin");
  const void* list[] = {two.data(), nullptr};
  struct {
    std::uint32_t magic = 0x466243B1, version = 2;
    const void* data;
    const void* more;
  } wrapper;
  wrapper.data = one.data();
  wrapper.more = list;
  EXPECT_EQ(image_at(&wrapper).data(), bytes_of(one).data());
  const auto fatbins = fatbins_of_wrapper(&wrapper);
  ASSERT_EQ(fatbins.size(), 2u);
  EXPECT_EQ(fatbins[1].size(), two.size());
}

}  // namespace
}  // namespace gputrace
