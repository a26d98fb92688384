// Operations of XLA by its NVTX ranges: the names in their messages, and from hand-made records how often they ran, how long, and what
// the device did for them.
#include <gtest/gtest.h>

#include "analysis/findings/findings.h"
#include "analysis/pass/xla_operations.h"
#include "analysis/run/compiling.h"
#include "tests/unit/device_builder.h"

namespace gputrace::test {
namespace {

using Thread = TraceBuilder::Thread;

TEST(XlaMessages, NameModulesAndOperations) {
  EXPECT_EQ(xla_operation("XlaModule:#hlo_module=jit_step,program_id=3#"), "jit_step");
  EXPECT_EQ(xla_operation("XlaModule:#prefix=a,b,hlo_module=jit_step#"), "jit_step");
  EXPECT_EQ(xla_operation("Thunk:#hlo_op=gemm_fusion_dot.10#"), "gemm_fusion_dot.10");
  EXPECT_EQ(xla_operation("Thunk:#name=jit(step)/mul,hlo_op=loop_multiply_fusion#"),
            "loop_multiply_fusion (jit(step)/mul)");
  EXPECT_EQ(xla_operation("Thunk:#hlo_op=copy.1,hlo_module=jit_step,program_id=3#"), "copy.1");
}

TEST(XlaMessages, NameWhatTensorFlowMadeAModuleOf) {
  EXPECT_EQ(
      xla_operation("XlaModule:#hlo_module=a_inference_step_77__XlaMustCompile_true_config_proto_220_executor_type_"
                    "111_.5,program_id=3#"),
      "step");
  EXPECT_EQ(xla_function("__inference_one_step_on_data_405[_XlaMustCompile=true,executor_type=111].5"),
            "one_step_on_data");
  for (const char* own : {"jit_step", "jit_inference_step_7", "step_7", "_inference_", "__inference_7"})
    EXPECT_EQ(xla_function(own), std::string(own) == "__inference_7" ? "7" : own);
}

TEST(XlaMessages, KeepCommasWithinAName) {
  EXPECT_EQ(xla_operation("Thunk:#name=jit(f)/dot[0,1],b/c,hlo_op=dot.2#"), "dot.2 (jit(f)/dot[0,1],b/c)");
}

TEST(XlaMessages, OfOtherThingsAreNoOperation) {
  for (const char* other : {"", "#", ":#", ":##", "Thunk", "Thunk:#", "Thunk:##", "Thunk:#hlo_op=a",
                            "Thunk:#name=jit(f)#", "Thunk:#xhlo_op=a#", "XlaModule:#module=jit_step#",
                            "XlaCompile:#module=jit_step#", "XlaPass:#name=fusion,hlo_op=a#", "#edge_name=copy#"})
    EXPECT_EQ(xla_operation(other), "") << other;
}

// One module that runs two operations, one of them within a loop's; a kernel in each, and one in the module alone.
class Xla : public DeviceBuilder {
 public:
  explicit Xla(const std::string& domain = "TSL") : domain_(text(domain)) {
    info("option.collect", "api,device,nvtx,ops");
    name_function(0xf1, "kernel", 0xa0);
    name_function(0xf2, "kernel", 0xa0);
    name_ = text("kernel");
    reading(50);
  }
  void push(Nanos at, const std::string& message, u32 flags = 0) {
    const u64 words = text(message);
    range(at, NvtxAct::Push, words, flags);
  }
  void pop(Nanos at) { range(at, NvtxAct::Pop, 0, 0); }
  // Runs `length` ns.
  void run(Nanos at, Nanos length, u64 function = 0xf1) {
    ++correlation_;
    launch(main_, function, at, at + 10);
    key(100, correlation_, at + 2, at + 8, at + 5000);
    kernel(correlation_, name_, at + 20, at + 20 + length, at + 5000);
  }
  void lost(Nanos at) {
    add<Gap>(main_, "", at, at, [](auto& r) { r.count = 1; });
  }
  void frame(u32 id, const std::string& function, const std::string& file) {
    const u64 name = text(function), path = file.empty() ? 0 : text(file);
    add<StackFrame>(definitions(), "", 5, 5,
                    [&](auto& r) { r.function = name, r.file = path, r.id = id, r.line = file.empty() ? 0 : 7; });
  }
  void at_stack(Nanos at, u32 line, u32 operation) {
    add<Stack>(main_, "", at, at, [&](auto& r) { r.frame = line, r.frames = 1, r.operation = operation; });
  }
  void program() {
    push(1000, "XlaModule:#hlo_module=jit_step,program_id=3#");
    run(1100, 30);
    push(1200, "Thunk:#hlo_op=while.1#");
    push(1300, "TfrtStream:#id=1#");
    push(1400, "Thunk:#name=jit(step)/mul,hlo_op=fusion.2#");
    run(1500, 40);
    pop(1600);
    pop(1650);
    run(1700, 100);
    pop(1900);
    push(1950, "Thunk:#name=jit(step)/mul,hlo_op=fusion.2#");
    run(1960, 20);
    pop(2000);
    pop(2100);
    run(2200, 1000);
  }

 private:
  void range(Nanos at, NvtxAct what, u64 message, u32 flags) {
    add<Nvtx>(main_, "", at, at, [&](auto& r) {
      r.what = static_cast<u32>(what), r.domain = domain_, r.message = message, r.flags = flags;
    });
  }

  const Thread main_ = thread(100);
  const u64 domain_;
  u64 name_ = 0;
  u32 correlation_ = 0;
};

struct Row {
  u64 count = 0, total = 0, self = 0, device = 0;
  bool operator==(const Row&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Row& row) {
  return out << row.count << " × " << row.total << " ns, self " << row.self << ", device " << row.device;
}

// By the names of an operation and those around it; the device's time is that of what the operation itself launched.
std::map<std::string, Row> rows_of(const ProcessTrace& process) {
  const SourceLines& lines = process.lines;
  std::map<std::string, Row> rows;
  const auto row = [&](u32 frame) -> Row& {
    std::string path;
    for (; frame != 0; frame = lines.frames[frame].parent)
      path.insert(0, lines.frames[frame].function + (path.empty() ? "" : " / "));
    return rows[path];
  };
  for (u32 i = 0; i < lines.operations.size(); ++i) {
    if (const OperationTotals& more = lines.operations[i]; more.count != 0)
      row(i).count += more.count, row(i).total += more.total_ns, row(i).self += more.self_ns;
  }
  for (u32 i = 0; i < lines.times.size(); ++i) {
    if (lines.times[i].device_ns && lines.origins[i].operation)
      row(lines.origins[i].operation).device += lines.times[i].device_ns;
  }
  return rows;
}
using Rows = std::map<std::string, Row>;

TEST(XlaOperations, HaveCountsAndTimesOfHostAndDevice) {
  Xla trace;
  trace.program();
  EXPECT_EQ(rows_of(trace.load()), (Rows{{"jit_step", {1, 1100, 350, 30}},
                                         {"jit_step / while.1", {1, 700, 500, 100}},
                                         {"jit_step / while.1 / fusion.2 (jit(step)/mul)", {1, 200, 200, 40}},
                                         {"jit_step / fusion.2 (jit(step)/mul)", {1, 50, 50, 20}}}));
}

TEST(XlaOperations, AreThoseOfItsOwnDomain) {
  Xla trace("mine");
  trace.program();
  EXPECT_EQ(rows_of(trace.load()), Rows{});
}

TEST(XlaOperations, AreLeftOutWithTheOthers) {
  Xla trace;
  trace.info("option.collect", "api,device,nvtx");
  trace.program();
  EXPECT_EQ(rows_of(trace.load()), Rows{});
}

TEST(XlaOperations, StandBehindTheFramesOfTheTrace) {
  Xla trace;
  trace.frame(1, "main", "train.py");
  trace.frame(2, "aten::mm", "");
  trace.at_stack(900, 1, 0);
  trace.push(1000, "XlaModule:#hlo_module=jit_step#");
  trace.run(1100, 30);
  trace.at_stack(1200, 1, 2);
  trace.run(1300, 50);  // PyTorch's own operation is the innermost one
  trace.at_stack(1400, 1, 0);
  trace.run(1500, 70);
  trace.pop(1600);
  const ProcessTrace process = trace.load();
  EXPECT_EQ(rows_of(process), (Rows{{"jit_step", {1, 600, 600, 100}}, {"aten::mm", {0, 0, 0, 50}}}));
  for (const CallOrigin& origin : process.lines.origins)
    EXPECT_EQ(origin.frame, &origin == &process.lines.origins[0] ? 0u : 1u) << "the line stays known";
}

TEST(XlaOperations, OpenWhenTheTraceBeganHaveWorkAndNoTime) {
  Xla trace;
  trace.push(1000, "XlaModule:#hlo_module=jit_step#", kNvtxOpenBefore);
  trace.run(1100, 30);
  trace.pop(1600);
  EXPECT_EQ(rows_of(trace.load()), (Rows{{"jit_step", {0, 0, 0, 30}}}));
}

TEST(XlaOperations, EndWhereRecordsWereLost) {
  Xla trace;
  trace.push(1000, "XlaModule:#hlo_module=jit_step#");
  trace.run(1100, 30);
  trace.lost(1200);
  trace.run(1300, 50);  // its end may be what was lost
  trace.pop(1600);
  EXPECT_EQ(rows_of(trace.load()), (Rows{{"jit_step", {0, 0, 0, 30}}}));
}

// What the autotuner tries while XLA compiles is no step of the program's.
TEST(XlaOperations, OfTheCompilerAreInNoLoop) {
  const auto source_of = [](const char* around, const char* collect) {
    Xla trace;
    trace.info("option.collect", collect);
    trace.push(1000, around);
    trace.push(1010, "XlaCompile:#module=inner#");
    trace.pop(1015);
    trace.push(1020, "XlaModule:#hlo_module=gemm_fusion_dot.10#");
    for (Nanos i = 0; i < 40; ++i) {
      const Nanos at = 2000 + 10'000 * i;
      trace.run(at, 100);
      trace.run(at + 1000, 200, 0xf2);
      trace.run(at + 2000, 200, 0xf2);
    }
    trace.pop(500'000);
    trace.pop(500'010);
    return trace.load().steps.source;
  };
  for (const char* collect : {"api,device,nvtx,ops", "api,device,nvtx"}) {
    EXPECT_EQ(source_of("XlaCompile:#module=jit_step#", collect), StepSource::None) << collect;
    EXPECT_EQ(source_of("XlaPass:#name=autotuner#", collect), StepSource::Inferred)
        << "those of no compiler are: " << collect;
  }
}

TEST(XlaOperations, AreTheReasonWhyNoneIsMissing) {
  for (const bool told : {false, true}) {
    Xla trace;
    trace.info("not_collected", "ops: no PyTorch in this process when its first CUDA call was made");
    if (told) trace.program();
    EXPECT_EQ(trace.load().not_collected.empty(), told);
  }
  Xla trace;
  trace.info("not_collected", "ops: PyTorch 9.9: its layout is not known");
  trace.program();
  EXPECT_EQ(trace.load().not_collected.size(), 1u) << "that of PyTorch are still missing";
}

// Ten of forty steps compile for 6 of their 10 us; what else a step is divided into is as without.
TEST(XlaOperations, WhatAStepCompiles) {
  Xla trace;
  for (Nanos i = 0; i < 40; ++i) {
    const Nanos at = 2000 + 10'000 * i;
    trace.run(at, 100);
    trace.run(at + 1000, 200, 0xf2);
    trace.run(at + 2000, 200, 0xf2);
    if (i % 4 != 2) continue;
    trace.push(at + 3000, "XlaCompile:#module=jit_step#");
    trace.push(at + 4000, "XlaCompile:#module=inner#");
    trace.pop(at + 5000);
    trace.pop(at + 9000);
  }
  LoadedRun run;
  run.processes.push_back(trace.load());
  const ProcessTrace& process = run.processes.front();
  const auto part = [&](StepCategory category) {
    u64 sum = 0;
    for (const Step& step : process.steps.steps) sum += step.parts[static_cast<unsigned>(category)];
    return sum;
  };
  ASSERT_EQ(process.steps.source, StepSource::Inferred);
  EXPECT_EQ(part(StepCategory::Compilation), 60'000u);
  for (const Step& step : process.steps.steps) {
    const u64 compiling = step.parts[static_cast<unsigned>(StepCategory::Compilation)];
    EXPECT_TRUE(compiling == 0 || compiling == 6000) << compiling;
  }
  EXPECT_GT(part(StepCategory::Host), 200'000u);
  const Compiling compiling = compiling_of(process);
  EXPECT_EQ(compiling.ns, 60'000u);
  EXPECT_EQ(compiling.xla_ns, 60'000u);
  EXPECT_EQ(compiling.samples, 0u);
  EXPECT_EQ(compiling.steps, 10u);
  EXPECT_EQ(compiling.compiler, "XLA");
  const auto findings = find_findings(run);
  const auto found = std::find_if(findings.begin(), findings.end(),
                                  [](const Finding& finding) { return finding.id == "recompilation"; });
  ASSERT_NE(found, findings.end());
  EXPECT_EQ(found->gain_ns, 60'000u);
}

// Four launches of which none is like another: no steps. One module is compiled three times, for 6 us each; another one once.
TEST(XlaOperations, AModuleThatIsCompiledAgainWithoutSteps) {
  Xla trace;
  const char* const modules[] = {"jit_step", "jit_step", "jit_other", "jit_step"};
  for (Nanos i = 0; i < 4; ++i) {
    const Nanos at = 2000 + 10'000 * i;
    trace.push(at, "XlaCompile:#module=" + std::string(modules[i]) + "#");
    trace.pop(at + 6000);
    for (Nanos k = 0; k <= i; ++k) trace.run(at + 7000 + 300 * k, 100, k % 2 ? 0xf1 : 0xf2);
  }
  LoadedRun run;
  run.processes.push_back(trace.load());
  const Compiling compiling = compiling_of(run.processes.front());
  EXPECT_EQ(compiling.of, 0u);
  EXPECT_EQ(compiling.module, "jit_step");
  EXPECT_EQ(compiling.module_times, 3u);
  EXPECT_EQ(compiling.ns, 24'000u);
  EXPECT_EQ(compiling.again_ns, 12'000u);
  const auto findings = find_findings(run);
  const auto found = std::find_if(findings.begin(), findings.end(),
                                  [](const Finding& finding) { return finding.id == "recompilation"; });
  ASSERT_NE(found, findings.end());
  EXPECT_EQ(found->gain_ns, 12'000u);
  EXPECT_EQ(found->section, "idle-causes");
}

// As ranges they are told without the number that XLA gives each program; ranges of others as they are.
TEST(XlaOperations, RangesOfAllProgramsOfAModuleAreOne) {
  const auto ranges_of = [](const std::string& domain) {
    Xla trace(domain);
    for (Nanos i = 0; i < 3; ++i) {
      trace.push(1000 + 100 * i, "XlaCompileBackend:#module=jit_step,program_id=" + std::to_string(40 + i) + "#");
      trace.pop(1050 + 100 * i);
    }
    trace.push(2000, "XlaPass:#name=fusion,program_id=7,module=a#");
    trace.pop(2010);
    std::map<std::string, std::pair<u64, u64>> found;
    for (const NvtxRangeTotals& range : trace.load().nvtx) found[range.range] = {range.count, range.total_ns};
    return found;
  };
  EXPECT_EQ(ranges_of("TSL"),
            (std::map<std::string, std::pair<u64, u64>>{{"XlaCompileBackend:#module=jit_step#", {3, 150}},
                                                        {"XlaPass:#name=fusion,module=a#", {1, 10}}}));
  EXPECT_EQ(ranges_of("mine").size(), 4u);
}

}  // namespace
}  // namespace gputrace::test
