// What the machine code of kernels makes of reports and findings: which code a function has (records, through a file),
// what follows from it, eligibility by library call, and each rule with its trouble and without.
#include "analysis/kernels/tensor_cores.h"

#include <algorithm>

#include "analysis/findings/findings.h"
#include "analysis/report.h"
#include "analysis/reports/list.h"
#include "tests/unit/device_builder.h"
#include "tests/unit/finding_lookup.h"

namespace gputrace::test {
namespace {

constexpr u64 kMicro = 1000, kMilli = 1'000'000;

// ------------------------------------------------------------------ records → Function::code

void add_image(TraceBuilder& trace, u64 module, u64 image) {
  trace.add<ModuleLoad>(TraceBuilder::definitions(), "", 1, 1, [&](auto& r) {
    r.module = module, r.bytes = 100 + image, r.what = static_cast<u32>(ModuleAct::Module);
  });
  trace.add<CodeImage>(TraceBuilder::definitions(), "", 1, 1, [&](auto& r) {
    r.module = module, r.image = image, r.bytes = 100 + image, r.state = static_cast<u32>(CodeState::Copied);
  });
}

void add_code(TraceBuilder& trace, u64 image, u64 name, u32 architecture, u64 mma, u64 precision,
              u32 flags = kCodeScanned, u32 fp32 = 0) {
  trace.add<CodeKernel>(TraceBuilder::definitions(), "", 3, 3, [&](auto& r) {
    r.image = image, r.name = name, r.architecture = architecture, r.mma = mma, r.precision = precision,
    r.flags = flags;
    r.mma_instructions = mma ? 4 : 0, r.fp32 = fp32, r.instructions = 100;
    r.registers = 40, r.static_shared_bytes = 1024, r.local_bytes = 0, r.max_threads = -1;
  });
}

const Function& function_of(const ProcessTrace& process, u64 handle) {
  const auto it = std::find_if(process.functions.begin(), process.functions.end(),
                               [&](const Function& f) { return f.handle == handle; });
  EXPECT_NE(it, process.functions.end());
  return *it;
}

TEST(CodeFactsTest, CodeIsFoundByModuleAndSymbol) {
  DeviceBuilder trace;
  add_image(trace, 0xa0, 1);
  add_image(trace, 0xb0, 2);
  trace.name_function(0xf1, "fusion", 0xa0);
  trace.name_function(0xf2, "fusion", 0xb0);
  trace.name_function(0xf3, "fusion", 0);
  const u64 name = trace.text("fusion");
  add_code(trace, 1, name, 90, kHgmma, kBf16);
  add_code(trace, 2, name, 90, 0, 0, kCodeScanned, 12);
  add_code(trace, 9, name, 90, kDmma, kFp64);  // an image that no module is said to have
  const auto main = trace.thread(100);
  for (const u64 function : {0xf1, 0xf2, 0xf3}) trace.launch(main, function, 100, 200);
  const ProcessTrace process = trace.load();
  const KernelCode* first = code_on(function_of(process, 0xf1), nullptr);
  const KernelCode* second = code_on(function_of(process, 0xf2), nullptr);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(uses_tensor_cores(first), true);
  EXPECT_EQ(tensor_core_kind(first), "HGMMA");
  EXPECT_EQ(code_precision(first), "bf16");
  EXPECT_EQ(uses_tensor_cores(second), false);
  EXPECT_EQ(tensor_core_kind(second), "");
  EXPECT_EQ(code_precision(second), "fp32");
  EXPECT_EQ(code_on(function_of(process, 0xf3), nullptr), nullptr);
  EXPECT_EQ(function_of(process, 0xf1).registers, 40);  // the driver did not tell
  EXPECT_EQ(function_of(process, 0xf1).static_shared, 1024);
}

TEST(CodeFactsTest, TheDeviceChoosesAmongChips) {
  Function function;
  const auto add = [&](u32 architecture, u32 flags) {
    KernelCode code;
    code.architecture = architecture, code.flags = flags;
    function.code.push_back(code);
  };
  add(80, kCodeScanned);
  add(86, kCodeScanned);
  add(90, kCodeScanned | kCodeArchitectureVariant);
  add(75, kCodePtxOnly);
  const auto on = [&](u32 major, u32 minor) {
    Device device;
    device.capability_major = major, device.capability_minor = minor;
    const KernelCode* code = code_on(function, &device);
    return code ? code->architecture : 0;
  };
  EXPECT_EQ(on(8, 0), 80u);
  EXPECT_EQ(on(8, 9), 86u);
  EXPECT_EQ(on(9, 0), 90u);
  EXPECT_EQ(on(12, 0), 75u);  // the driver compiles the PTX
  EXPECT_EQ(on(7, 0), 0u);
  EXPECT_EQ(code_on(function, nullptr), nullptr);  // several chips, and which runs is not known
}

TEST(CodeFactsTest, WhatCannotBeToldIsNothing) {
  KernelCode code;
  code.architecture = 90;
  EXPECT_EQ(uses_tensor_cores(nullptr), std::nullopt);
  EXPECT_EQ(uses_tensor_cores(&code), std::nullopt);  // not read
  code.flags = kCodeScanned | kCodeIncomplete;
  code.fp32 = 5;
  EXPECT_EQ(uses_tensor_cores(&code), std::nullopt);
  EXPECT_EQ(code_precision(&code), "");
  code.mma = kHmma, code.precision = kFp16;
  EXPECT_EQ(uses_tensor_cores(&code), true);
  EXPECT_EQ(code_precision(&code), "fp16");
  code.flags = kCodeScanned | kCodePrecisionPart;
  EXPECT_EQ(code_precision(&code), "");
  code.flags = kCodeScanned, code.precision = kFp8 | kFp4;
  EXPECT_EQ(code_precision(&code), "fp8");  // the wider
  code = {};
  code.architecture = 61;
  EXPECT_EQ(uses_tensor_cores(&code), false);  // no chip of that time has any
  code.architecture = 90, code.flags = kCodeScanned, code.fp32 = 3, code.bf16 = 4;
  EXPECT_EQ(code_precision(&code), "bf16");
}

// ------------------------------------------------------------------ eligibility

LibraryShape product(i32 type, u64 m, u64 n, u64 k, i32 compute = 68, i32 math = 0) {
  LibraryShape shape;
  shape.kind = LibraryKind::Matmul;
  shape.m = m, shape.n = n, shape.k = k, shape.batch = 1;
  shape.type_a = shape.type_b = shape.type_c = type;
  shape.compute = compute, shape.math_mode = math;
  shape.lda = m, shape.ldb = k, shape.ldc = m;
  return shape;
}

TEST(AdviceTest, TypesAndChips) {
  constexpr i32 kFloat = 0, kDouble = 1, kHalf = 2, kInt = 3, kBfloat = 14;
  EXPECT_EQ(advise(product(kHalf, 64, 64, 64), 7, 0).eligible, true);
  EXPECT_EQ(advise(product(kHalf, 64, 64, 64), 6, 1).eligible, false);
  EXPECT_EQ(advise(product(kBfloat, 64, 64, 64), 7, 5).eligible, false);
  EXPECT_EQ(advise(product(kBfloat, 64, 64, 64), 8, 6).eligible, true);
  EXPECT_EQ(advise(product(kDouble, 64, 64, 64, 70), 8, 6).eligible, false);
  EXPECT_EQ(advise(product(kDouble, 64, 64, 64, 70), 9, 0).eligible, true);
  EXPECT_EQ(advise(product(kFloat, 64, 64, 64), 9, 0).eligible, true);
  EXPECT_EQ(advise(product(kFloat, 64, 64, 64), 9, 0).reason, "math mode");
  EXPECT_EQ(advise(product(kFloat, 64, 64, 64), 9, 0).target, "tf32");
  EXPECT_EQ(advise(product(kFloat, 64, 64, 64), 7, 5).eligible, false);
  EXPECT_EQ(advise(product(kHalf, 64, 1, 64), 9, 0).eligible, false);  // matrix times vector
  EXPECT_EQ(advise(product(kHalf, 63, 64, 64), 9, 0).reason, "dimension");
  EXPECT_EQ(advise(product(kInt, 64, 64, 24, 72), 9, 0).reason, "dimension");
  EXPECT_EQ(advise(product(kInt, 64, 64, 32, 72), 9, 0).reason, "layout");
  LibraryShape strided = product(kHalf, 64, 64, 64);
  strided.lda = 65;
  EXPECT_EQ(advise(strided, 9, 0).reason, "alignment");
  EXPECT_EQ(advise(product(kHalf, 64, 64, 64, 68, 2), 9, 0).reason, "math mode");  // pedantic
  EXPECT_EQ(advise(product(99, 64, 64, 64), 9, 0).eligible, std::nullopt);
}

// ------------------------------------------------------------------ a process by hand

// One device (9.0, 132 multiprocessors); kernels with times, code and the library call that launched them.
class Process {
 public:
  Process() {
    ProcessTrace& process = run_.processes.emplace_back();
    process.options["collect"] = "api,device,code,libs";
    process.device.collected = true;
    process.library.collected = true;
    Device device;
    device.ordinal = 0, device.sms = 132, device.capability_major = 9, device.clock_khz = 1'980'000;
    device.limits = {9, 2048, 32, 65536, 233472, 1024, 32};
    process.devices.push_back(device);
    process.contexts.push_back({0xc0, 0});
    process.begin = 0, process.end = static_cast<Nanos>(100 * kMilli);
    run_.wall_begin = 0, run_.wall_end = process.end;
    CallFacts call;
    call.id = 1, call.name = "cublasGemmEx", call.level = "library";
    process.calls.push_back(call);
  }
  struct Code {
    u64 mma = 0, precision = 0;
    u32 fp32 = 0, flags = kCodeScanned;
  };
  void kernel(const std::string& symbol, u64 nanos, std::optional<Code> code, const LibraryShape* shape = nullptr,
              u32 grid = 132) {
    ProcessTrace& process = run_.processes[0];
    Function function;
    function.handle = process.functions.size() + 1;
    function.symbol = symbol;
    function.registers = 128, function.static_shared = 0, function.local_bytes = 0;
    if (code) {
      KernelCode facts;
      facts.architecture = 90, facts.flags = code->flags, facts.mma = code->mma, facts.precision = code->precision;
      facts.fp32 = code->fp32, facts.instructions = 100;
      function.code.push_back(facts);
    }
    process.functions.push_back(function);
    KernelLaunches launches;
    launches.shape.function = static_cast<u32>(process.functions.size() - 1);
    launches.shape.context = 0;
    launches.shape.grid[0] = grid, launches.shape.grid[1] = launches.shape.grid[2] = 1;
    launches.shape.block[0] = 512, launches.shape.block[1] = launches.shape.block[2] = 1;
    launches.plain = launches.answered = launches.started = 1;
    launches.times.durations.add(nanos);
    const auto index = static_cast<u32>(process.kernels.size());
    process.kernels.push_back(launches);
    if (!shape) return;
    LibraryRow row;
    row.call = 1, row.shape = *shape, row.calls = row.kernels = row.timed_kernels = 1, row.device_ns = nanos;
    process.library.rows.push_back(row);
    process.library.uses.push_back({index, static_cast<u32>(process.library.rows.size() - 1), 1, nanos});
  }
  const LoadedRun& run() const { return run_; }
  std::string cell(const SectionReport& report, std::size_t row, const char* column) const {
    const Table table = report(run_);
    EXPECT_LT(row, table.rows.size());
    if (row >= table.rows.size()) return "";
    const Value& value = table.rows[row][static_cast<std::size_t>(table.column(column))];
    if (const auto* text = std::get_if<std::string>(&value)) return *text;
    if (const auto* whole = std::get_if<i64>(&value)) return std::to_string(*whole);
    if (const auto* truth = std::get_if<bool>(&value)) return *truth ? "true" : "false";
    return is_null(value) ? "null" : std::to_string(std::get<double>(value));
  }
  std::string metric(const char* name) const {
    const Table table = overview_report(run_);
    for (std::size_t i = 0; i < table.rows.size(); ++i) {
      if (std::get<std::string>(table.rows[i][0]) == name) return cell(overview_report, i, "value");
    }
    return "absent";
  }
  const Finding* finding(const std::string& id) {
    findings_ = find_findings(run_);
    for (const Finding& found : findings_) {
      if (found.id == id) return &found;
    }
    return nullptr;
  }

 private:
  LoadedRun run_;
  std::vector<Finding> findings_;
};

// What stands beside a product in its category but multiplies no matrices is not accused.
TEST(TensorCoreReportTest, OnlyProductsOfMatricesAreEligible) {
  const LibraryShape shape = product(0, 130, 70, 8192, -1, 3);
  for (const char* symbol :
       {"cublas_splitKreduce_kernel",
        "sm90_xmma_wgrad_indexed_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize64x64x64_warpgroupsize1x1x1_"
        "g1_"
        "execute_split_k_kernel__5x_cudnn",
        "gemv2N_kernel_val", "gemvNSP_kernel", "csrmv_v3_kernel", "im2col_kernel", "cublasLt_epilogue_kernel",
        "_ZN13pytorch_flash27flash_bwd_convert_dq_kernelEv", "_ZN13pytorch_flash25flash_bwd_dot_do_o_kernelEv",
        "_ZN13pytorch_flash32flash_fwd_splitkv_combine_kernelEv"}) {
    Process process;
    process.kernel(symbol, 300 * kMicro, Process::Code{0, 0, 9});
    process.kernel(symbol, 300 * kMicro, Process::Code{0, 0, 9}, &shape);
    EXPECT_TRUE(tensor_core_misses_report(process.run()).rows.empty()) << symbol;
    EXPECT_EQ(process.cell(kernels_report, 0, "tensor_core_eligible"), "false") << symbol;
    process.kernel("sgemm_128x64_nn", 300 * kMicro, Process::Code{0, 0, 9}, &shape);
    EXPECT_EQ(process.cell(tensor_core_misses_report, 0, "reason"), "dimension") << symbol;
  }
}

TEST(TensorCoreReportTest, ColumnsSectionsAndRatios) {
  Process process;
  process.kernel("sm90_gemm_bf16", 600 * kMicro, Process::Code{kHgmma, kBf16});
  process.kernel("elementwise_kernel", 300 * kMicro, Process::Code{0, 0, 9});
  process.kernel("copy_kernel", 50 * kMicro, Process::Code{});
  process.kernel("mystery", 50 * kMicro, std::nullopt);
  EXPECT_EQ(process.cell(kernels_report, 0, "tensor_core"), "true");
  EXPECT_EQ(process.cell(kernels_report, 0, "tensor_core_kind"), "HGMMA");
  EXPECT_EQ(process.cell(kernels_report, 0, "tensor_core_eligible"), "true");
  EXPECT_EQ(process.cell(kernels_report, 0, "precision"), "bf16");
  EXPECT_EQ(process.cell(kernels_report, 1, "tensor_core"), "false");
  EXPECT_EQ(process.cell(kernels_report, 1, "tensor_core_kind"), "null");
  EXPECT_EQ(process.cell(kernels_report, 1, "tensor_core_eligible"), "false");
  EXPECT_EQ(process.cell(kernels_report, 1, "precision"), "fp32");
  EXPECT_EQ(process.cell(tensor_cores_report, 0, "kind"), "HGMMA");
  EXPECT_EQ(process.cell(tensor_cores_report, 0, "precision"), "bf16");
  EXPECT_EQ(process.cell(tensor_cores_report, 0, "total_ns"), "600000");
  EXPECT_EQ(process.cell(tensor_cores_report, 0, "share"), "0.600000");
  EXPECT_EQ(process.cell(tensor_cores_report, 1, "kind"), "none");
  EXPECT_EQ(tensor_cores_report(process.run()).rows.size(), 4u);  // HGMMA, none fp32, none, not known
  EXPECT_EQ(process.metric("tensor_core_time_ratio"), "0.600000");
  EXPECT_EQ(process.metric("time_16bit_ratio"), "0.600000");
  EXPECT_EQ(process.metric("time_32bit_ratio"), "0.300000");
  EXPECT_EQ(process.metric("time_bf16_ratio"), "0.600000");
  EXPECT_EQ(process.metric("time_no_float_ratio"), "0.050000");
  EXPECT_TRUE(tensor_core_misses_report(process.run()).rows.empty());
}

TEST(TensorCoreReportTest, WithoutTimesOrCodeRatiosAreNotKnown) {
  Process bare;
  bare.kernel("kernel", 100 * kMicro, std::nullopt);
  EXPECT_EQ(bare.metric("tensor_core_time_ratio"), "null");
  EXPECT_EQ(bare.metric("time_16bit_ratio"), "null");
  EXPECT_EQ(bare.cell(kernels_report, 0, "tensor_core"), "null");
  Process untimed;
  untimed.kernel("kernel", 0, Process::Code{kHmma, kFp16});
  EXPECT_EQ(untimed.metric("tensor_core_time_ratio"), "null");
  EXPECT_EQ(untimed.cell(kernels_report, 0, "tensor_core"), "true");
}

TEST(TensorCoreReportTest, MissesHaveReasonAndGain) {
  Process process;
  const LibraryShape fp32 = product(0, 4096, 4096, 4096), half = product(2, 4096, 4095, 4096);
  process.kernel("ampere_sgemm_128x64_nn", 800 * kMicro, Process::Code{0, 0, 50}, &fp32);
  process.kernel("hgemm_128x64_nn", 200 * kMicro, Process::Code{0, 0, 50}, &half);
  EXPECT_EQ(process.cell(tensor_core_misses_report, 0, "call"), "cublasGemmEx");
  EXPECT_EQ(process.cell(tensor_core_misses_report, 0, "reason"), "math mode");
  EXPECT_EQ(process.cell(tensor_core_misses_report, 0, "total_ns"), "800000");
  EXPECT_EQ(process.cell(tensor_core_misses_report, 0, "gain_ns"), "700000");  // 256 of 2048 operations a cycle
  EXPECT_EQ(process.cell(tensor_core_misses_report, 1, "reason"), "dimension");
  EXPECT_EQ(process.cell(tensor_core_misses_report, 1, "gain_ns"), "187500");  // 256 of 4096
}

// ------------------------------------------------------------------ rules

TEST(TensorCoreFindingTest, Fp32ProductsWhereTf32IsOff) {
  Process slow;
  const LibraryShape shape = product(0, 4096, 4096, 4096);
  slow.kernel("ampere_sgemm_128x64_nn", 800 * kMicro, Process::Code{0, 0, 50}, &shape);
  const Finding* finding = slow.finding("fp32-matmul");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(evidence(*finding, "saved_kernel_ns"), Value(i64{700 * kMicro}));
  EXPECT_EQ(finding->gain_ns, 0u) << "nothing was replayed";
  EXPECT_EQ(slow.finding("no-tensor-cores"), nullptr);
  Process fast;
  const LibraryShape tf32 = product(0, 4096, 4096, 4096, 77);
  fast.kernel("ampere_sgemm_128x64_nn", 800 * kMicro, Process::Code{kHmma, kTf32}, &tf32);
  EXPECT_EQ(fast.finding("fp32-matmul"), nullptr);
  EXPECT_EQ(fast.finding("no-tensor-cores"), nullptr);
}

// A name alone makes no product: one whose code adds and scales is none, and nobody's switch is advised for it.
TEST(TensorCoreFindingTest, ANameThatTheCodeContradictsGetsNoAdvice) {
  for (const char* name : {"paged_attention", "fwd_gemm"}) {
    Process elementwise, product;
    elementwise.kernel(name, 800 * kMicro, Process::Code{0, 0, 6});
    EXPECT_EQ(elementwise.finding("fp32-matmul"), nullptr) << name;
    EXPECT_EQ(elementwise.cell(kernels_report, 0, "tensor_core_eligible"), "null") << name;
    product.kernel(name, 800 * kMicro, Process::Code{0, 0, 50});
    const Finding* finding = product.finding("fp32-matmul");
    ASSERT_NE(finding, nullptr) << name;
    EXPECT_EQ(finding->fix, "let it round to tf32, or use bf16");
  }
  Process called;
  const LibraryShape shape = ::gputrace::test::product(0, 4096, 4096, 4096);
  called.kernel("ampere_sgemm_128x64_nn", 800 * kMicro, Process::Code{0, 0, 50}, &shape);
  ASSERT_NE(called.finding("fp32-matmul"), nullptr);
  EXPECT_NE(called.finding("fp32-matmul")->fix.find("CUBLAS"), std::string::npos);
}

TEST(TensorCoreFindingTest, HalfPrecisionWithoutMatrixInstructions) {
  Process slow;
  const LibraryShape shape = product(2, 4096, 4095, 4096);
  slow.kernel("hgemm_128x64_nn", 800 * kMicro, Process::Code{0, 0, 50}, &shape);
  ASSERT_NE(slow.finding("no-tensor-cores"), nullptr);
  EXPECT_EQ(slow.finding("fp32-matmul"), nullptr);
  Process fast;
  fast.kernel("hgemm_128x64_nn", 800 * kMicro, Process::Code{kHmma, kFp16}, &shape);
  EXPECT_EQ(fast.finding("no-tensor-cores"), nullptr);
}

TEST(TensorCoreFindingTest, DimensionsThatAreNoMultiples) {
  Process odd;
  const LibraryShape shape = product(2, 4096, 4095, 4096), even = product(2, 4096, 4096, 4096);
  odd.kernel("gemm", 800 * kMicro, Process::Code{kHmma, kFp16}, &shape);
  const Finding* finding = odd.finding("matmul-dimensions");
  ASSERT_NE(finding, nullptr);
  EXPECT_NE(finding->fix.find("4096×4096×4096"), std::string::npos);
  Process good;
  good.kernel("gemm", 800 * kMicro, Process::Code{kHmma, kFp16}, &even);
  EXPECT_EQ(good.finding("matmul-dimensions"), nullptr);
}

TEST(TensorCoreFindingTest, LastWaveThatIsNotFull) {
  // 128 registers, 512 threads: one block on each of 132 multiprocessors.
  Process bad;
  bad.kernel("gemm", 800 * kMicro, Process::Code{kHmma, kFp16}, nullptr, 133);
  const Finding* finding = bad.finding("wave-quantization");
  ASSERT_NE(finding, nullptr);
  EXPECT_NEAR(static_cast<double>(std::get<i64>(evidence(*finding, "wasted_ns"))), 800e3 * 131 / 264, 2);
  Process good;
  good.kernel("gemm", 800 * kMicro, Process::Code{kHmma, kFp16}, nullptr, 264);
  EXPECT_EQ(good.finding("wave-quantization"), nullptr);
}

TEST(TensorCoreFindingTest, TilesOverTheEdge) {
  const LibraryShape over = product(2, 4096, 136, 4096), whole = product(2, 4096, 256, 4096);
  Process bad;
  bad.kernel("ampere_h16816gemm_128x128_ldg8_stages_32x5_nn", 800 * kMicro, Process::Code{kHmma, kFp16}, &over);
  const Finding* finding = bad.finding("tile-quantization");
  ASSERT_NE(finding, nullptr);
  EXPECT_NEAR(static_cast<double>(std::get<i64>(evidence(*finding, "wasted_ns"))), 800e3 * (1 - 136.0 / 256), 2);
  Process good;
  good.kernel("ampere_h16816gemm_128x128_ldg8_stages_32x5_nn", 800 * kMicro, Process::Code{kHmma, kFp16}, &whole);
  EXPECT_EQ(good.finding("tile-quantization"), nullptr);
}

TEST(MatrixGain, IsWhatTheMatrixUnitsAreFasterBy) {
  Device device;
  device.capability_major = 9;
  EXPECT_NEAR(matrix_gain(device, "fp16", "fp16"), 1 - 512.0 / 4096, 1e-9);
  EXPECT_NEAR(matrix_gain(device, "fp64", "fp64"), 0.5, 1e-9);
  device.capability_major = 10;
  EXPECT_EQ(matrix_gain(device, "fp64", "fp64"), 0) << "both do 64 multiply-adds a cycle";
  device.capability_major = 6;
  EXPECT_EQ(matrix_gain(device, "fp16", "fp16"), 0) << "it has none";
}

}  // namespace
}  // namespace gputrace::test
