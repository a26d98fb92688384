// Each finding: a trace that must trigger it, and one that must not.
#include "analysis/findings/findings.h"

#include <algorithm>

#include "tests/unit/finding_lookup.h"
#include "tests/unit/trace_builder.h"

namespace gputrace::test {
namespace {

using Thread = TraceBuilder::Thread;

void launch(TraceBuilder& trace, Thread thread, Nanos at) {
  trace.add<KernelLaunch>(thread, "cuLaunchKernel", at, at + 5, [](auto& r) { r.function = 0xf1, r.context = 0xc0; });
}
void copy(TraceBuilder& trace, Thread thread, Nanos at, bool async, u64 bytes) {
  trace.add<Copy>(thread, async ? "cuMemcpyHtoDAsync_v2" : "cuMemcpyHtoD_v2", at, at + 5, [&](auto& r) {
    r.kind = static_cast<u8>(CopyKind::HtoD), r.destination = 0x10000, r.source = 0x90000, r.bytes = bytes,
    r.asynchronous = async;
  });
}
void allocate(TraceBuilder& trace, Thread thread, Nanos at, u64 address, AllocKind kind, u16 result = 0) {
  trace.add<Alloc>(
      thread, "cuMemAlloc_v2", at, at + 5,
      [&](auto& r) { r.kind = static_cast<u32>(kind), r.address = address, r.bytes = 64, r.device = 0; }, result);
}

TEST(Findings, NothingIsSaidOfAQuietTrace) {
  TraceBuilder trace;
  const Thread main = trace.thread(100);
  for (int i = 0; i < 50; ++i) launch(trace, main, 1000 + i * 10);
  EXPECT_TRUE(find_findings(trace.load_all()).empty());
}

TEST(Findings, DroppedRecordsComeWithABufferThatFits) {
  TraceBuilder trace;
  const Thread main = trace.thread(100);
  launch(trace, main, 1000);
  trace.info("option.buffer_bytes", "16777216");
  trace.drop(main, DropReason::RingFull, 30);
  const auto findings = find_findings(trace.load_all());
  const Finding* finding = find(findings, "dropped-records");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(evidence(*finding, "dropped"), whole(30));
  EXPECT_EQ(evidence(*finding, "seen"), whole(31));
  EXPECT_EQ(finding->fix.compare(0, 20, "GPUTRACE_BUFFER=64M,"), 0) << finding->fix;
}

TEST(Findings, DroppedForTheDiskAsksForRoomNotForABuffer) {
  TraceBuilder trace;
  const Thread main = trace.thread(100);
  launch(trace, main, 1000);
  trace.drop(main, DropReason::Disk, 30);
  const auto findings = find_findings(trace.load_all());
  ASSERT_NE(find(findings, "dropped-records"), nullptr);
  EXPECT_EQ(find(findings, "dropped-records")->fix.find("GPUTRACE_BUFFER"), std::string::npos);
}

TEST(Findings, AllSeenIsNothingDropped) {
  TraceBuilder trace;
  const Thread main = trace.thread(100);
  launch(trace, main, 1000);
  trace.info("option.buffer_bytes", "16777216");
  trace.drop(main, DropReason::RingFull, 0);
  const auto findings = find_findings(trace.load_all());
  EXPECT_EQ(find(findings, "dropped-records"), nullptr);
  EXPECT_EQ(find(findings, "unfinished-file"), nullptr);
}

TEST(Findings, NoCudaCall) {
  TraceBuilder trace;
  trace.thread(100);
  EXPECT_NE(find(find_findings(trace.load_all()), "no-cuda-call"), nullptr);
}

// A model that was left on the processor.
TEST(Findings, CallsThatGiveNoDeviceAnything) {
  const auto said = [](bool operation, bool copies, bool drops, i32 code = 0) -> std::optional<Finding> {
    TraceBuilder trace;
    trace.end(EndReason::Exited, code);
    const Thread main = trace.thread(100);
    trace.add_call(main, "cuInit", 1000, 2000);
    if (copies) trace.add<Copy>(main, "cuMemcpyHtoD_v2", 3000, 4000, [](auto& r) { r.bytes = 8; });
    if (operation) {
      const u64 name = trace.text("aten::addmm");
      trace.add<StackFrame>(TraceBuilder::definitions(), "", 2, 2, [&](auto& r) {
        r.function = name, r.id = 1, r.language = static_cast<u32>(SourceLanguage::Operation);
      });
    }
    if (drops) trace.drop(main, DropReason::RingFull, 3);
    const auto findings = find_findings(trace.load_all());
    const Finding* found = find(findings, "nothing-launched");
    return found ? std::optional(*found) : std::nullopt;
  };
  const auto silent = said(false, false, false), works = said(true, false, false);
  ASSERT_TRUE(silent && works);
  EXPECT_EQ(silent->text, "the program gave no device anything to do: no launch and no copy among its one CUDA call");
  EXPECT_EQ(works->text, silent->text + "; PyTorch's operations ran on the processor");
  EXPECT_EQ(works->fix.rfind("move the model", 0), 0u) << works->fix;
  EXPECT_FALSE(said(false, true, false));
  EXPECT_FALSE(said(false, false, true)) << "launches may be among what was dropped";
  const auto failed = said(false, false, false, 1);
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->text, silent->text + "; the program exited 1");
  EXPECT_EQ(failed->fix, "") << "it ended before it came to that";
}

TEST(Findings, ATraceWithoutAnEndIsSaidAndIsNotCalledDamaged) {
  TraceBuilder trace;
  launch(trace, trace.thread(100), 1000);
  trace.no_end();
  const auto findings = find_findings(trace.load_all());
  EXPECT_NE(find(findings, "unfinished-file"), nullptr);
  EXPECT_EQ(find(findings, "damaged-file"), nullptr);
}

TEST(Findings, ADamagedFileIsAProblem) {
  TraceBuilder trace;
  const Thread main = trace.thread(100);
  for (int i = 0; i < 100; ++i) launch(trace, main, 1000 + i * 10);
  TemporaryDirectory directory;
  trace.write(directory.file("t.gtrace"));
  Bytes8 bytes = read_file(directory.file("t.gtrace"));
  bytes.resize(bytes.size() - 40);
  write_file(directory.file("t.gtrace"), bytes);
  LoadRequest request;
  request.files = {directory.file("t.gtrace")};
  auto loaded = load_run(request);
  ASSERT_TRUE(loaded.ok());
  const auto findings = find_findings(loaded.value());
  ASSERT_NE(find(findings, "damaged-file"), nullptr);
  EXPECT_EQ(findings.front().severity, Severity::Problem);
  EXPECT_EQ(find(findings, "no-cuda-call"), nullptr);
}

// Of three ranks: how each ended, and when.
struct Ended {
  EndReason reason;
  i32 detail;
  Nanos realtime;
  int parent = 0;   // pid
  int restart = 0;  // two ranks at a time
};
std::vector<Finding> findings_of_ranks(const std::vector<Ended>& ranks) {
  LoadedRun run;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    TraceBuilder trace;
    const Thread main = trace.thread(100);
    launch(trace, main, 1000);
    trace.info("rank", std::to_string(ranks[i].restart ? i % 2 : i));
    trace.info("restart", std::to_string(ranks[i].restart));
    if (ranks[i].reason == EndReason::Signalled) trace.in_flight(main, "cuStreamSynchronize", 2000, 0);
    if (ranks[i].parent) trace.info("parent_pid", std::to_string(ranks[i].parent));
    trace.end(ranks[i].reason, ranks[i].detail, ranks[i].realtime);
    run.processes.push_back(std::move(trace.load_all().processes.at(0)));
  }
  return find_findings(run);
}

TEST(Findings, TheOneThatFailedFirst) {
  constexpr Nanos kNow = 1'700'000'000'000'000'000, kSecond = 1'000'000'000;
  const Ended terminated{EndReason::Signalled, 15, kNow + 2 * kSecond},
      aborted{EndReason::Signalled, 6, kNow + kSecond};
  const Ended failed{EndReason::Exited, 1, kNow}, fine{EndReason::Exited, 0, kNow - kSecond};
  const auto findings = findings_of_ranks({terminated, aborted, failed, fine});
  const Finding* finding = find(findings, "first-failure");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding, &findings.front());
  EXPECT_EQ(finding->text, "rank 2 failed first (exited 1); rank 1 1.000 s later (signal 6), and 1 more");
  EXPECT_EQ(evidence(*finding, "failed"), whole(3));
  EXPECT_EQ(evidence(*finding, "next_later_ns"), whole(kSecond));

  EXPECT_EQ(find(findings_of_ranks({failed, fine}), "first-failure"), nullptr) << "the others went on";
  EXPECT_EQ(find(findings_of_ranks({terminated, terminated}), "first-failure"), nullptr) << "all were told to end";
  EXPECT_EQ(find(findings_of_ranks({failed, failed, fine}), "first-failure"), nullptr) << "a pool that is over";
  // How one ended before is not known: it may have been that one.
  const Ended unknown{EndReason::Exited, kUnknownCode, kNow - kSecond},
      later{EndReason::Exited, kUnknownCode, kNow + kSecond};
  EXPECT_EQ(find(findings_of_ranks({unknown, failed, aborted}), "first-failure"), nullptr);
  EXPECT_NE(find(findings_of_ranks({later, failed, aborted}), "first-failure"), nullptr);
  EXPECT_EQ(find(findings_of_ranks({{EndReason::Vanished, 0, kNow - kSecond}, failed, aborted}), "first-failure"),
            nullptr);
}

// An engine that kills its helpers when it is done, and ends well.
TEST(Findings, WhomAParentEndedThatEndedWellDidNotFail) {
  constexpr Nanos kNow = 1'700'000'000'000'000'000, kSecond = 1'000'000'000;
  TraceBuilder any;
  any.thread(100);
  const i32 pid = any.load_all().processes.at(0).who.pid;
  const Ended killed{EndReason::Signalled, 9, kNow, pid}, other{EndReason::Signalled, 9, kNow + 1, pid + 1};
  const Ended well{EndReason::Exited, 0, kNow + kSecond}, badly{EndReason::Exited, 1, kNow + kSecond};
  EXPECT_EQ(find(findings_of_ranks({killed, killed, well}), "first-failure"), nullptr);
  EXPECT_NE(find(findings_of_ranks({killed, killed, badly}), "first-failure"), nullptr);
  EXPECT_NE(find(findings_of_ranks({other, other, well}), "first-failure"), nullptr) << "a parent that is not here";
  EXPECT_NE(find(findings_of_ranks({killed, killed, {EndReason::Exited, 0, kNow - kSecond}}), "first-failure"), nullptr)
      << "it had ended before";
}

// torchrun --max-restarts: one fails, the other is ended for that, and both are started anew by a launcher that ends well.
TEST(Findings, RanksThatAreStartedAnewHadFailed) {
  constexpr Nanos kNow = 1'700'000'000'000'000'000, kSecond = 1'000'000'000;
  TraceBuilder any;
  any.thread(100);
  const i32 launcher = any.load_all().processes.at(0).who.pid;
  const Ended ended{EndReason::Signalled, 15, kNow + kSecond, launcher}, failed{EndReason::Exited, 1, kNow, launcher};
  const auto again = [&](EndReason reason, i32 detail, Nanos after) {
    return Ended{reason, detail, kNow + 8 * kSecond + after, launcher, 1};
  };
  const Ended well{EndReason::Exited, 0, kNow + 9 * kSecond};
  const auto findings =
      findings_of_ranks({ended, failed, again(EndReason::Exited, 0, 0), again(EndReason::Exited, 0, 0), well});
  const Finding *const first = find(findings, "first-failure"), *const died = find(findings, "call-in-flight");
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(
      first->text,
      "rank 1 failed first (exited 1); rank 0 1.000 s later (signal 15); its launcher started the ranks anew, and they "
      "went on");
  EXPECT_FALSE(first->ended_it);
  ASSERT_NE(died, nullptr);
  EXPECT_EQ(died->severity, Severity::Hint) << "it was ended because the other one had failed";

  const Ended badly{EndReason::Exited, 1, kNow + 9 * kSecond};
  const auto in_vain =
      findings_of_ranks({ended, failed, again(EndReason::Signalled, 15, 1), again(EndReason::Exited, 1, 0), badly});
  const Finding* const of_all = find(in_vain, "first-failure");
  ASSERT_NE(of_all, nullptr);
  EXPECT_EQ(of_all->text, "rank 1 failed first (exited 1); rank 0 1.000 s later (signal 15), and 3 more");
  EXPECT_TRUE(of_all->ended_it);
  EXPECT_NE(find(findings_of_ranks({ended}), "call-in-flight"), nullptr);
  EXPECT_EQ(find(findings_of_ranks({ended}), "call-in-flight")->severity, Severity::Problem)
      << "somebody gave up waiting";
}

TEST(Findings, VariablesThatSlowItDown) {
  const auto finding_of =
      [](const std::vector<std::pair<const char*, const char*>>& variables) -> std::optional<Finding> {
    TraceBuilder trace;
    launch(trace, trace.thread(100), 1000);
    for (const auto& [name, value] : variables) trace.info(std::string("env.") + name, value);
    const auto findings = find_findings(trace.load_all());
    const Finding* const found = find(findings, "environment-variables");
    return found ? std::optional(*found) : std::nullopt;
  };
  const auto both = finding_of({{"CUDA_LAUNCH_BLOCKING", "1"}, {"NVIDIA_TF32_OVERRIDE", "0"}, {"NCCL_DEBUG", "INFO"}});
  ASSERT_TRUE(both);
  EXPECT_EQ(both->text,
            "slowed down by the environment: CUDA_LAUNCH_BLOCKING=1 (each launch waits until its kernel has ended), "
            "NVIDIA_TF32_OVERRIDE=0 (no product in fp32 is rounded to TF32)");
  EXPECT_EQ(both->severity, Severity::Problem);
  EXPECT_EQ(evidence(*both, "CUDA_LAUNCH_BLOCKING"), Value(std::string("1")));
  EXPECT_EQ(finding_of({{"TORCH_DISTRIBUTED_DEBUG", "DETAIL"}})->severity, Severity::Warning);
  EXPECT_FALSE(finding_of({{"CUDA_LAUNCH_BLOCKING", "0"},
                           {"NVIDIA_TF32_OVERRIDE", "1"},
                           {"JAX_DISABLE_JIT", "False"},
                           {"TORCH_DISTRIBUTED_DEBUG", "INFO"}}));
}

TEST(Findings, TheCallThatItDiedInIsNamedTheInnermostOne) {
  TraceBuilder trace;
  const Thread main = trace.thread(100);
  launch(trace, main, 1000);
  trace.in_flight(main, "cudaLaunchKernel", 2000, 0);
  trace.in_flight(main, "cuLaunchKernel", 2001, 1);
  trace.end(EndReason::Vanished);
  const auto findings = find_findings(trace.load_all());
  const Finding* finding = find(findings, "call-in-flight");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->text, "test (pid 4242) died inside cuLaunchKernel (thread 100)");
  EXPECT_EQ(finding->severity, Severity::Problem);
}

TEST(Findings, ACallOfAProcessThatStillRunsIsNoDeathInIt) {
  TraceBuilder trace;
  const Thread main = trace.thread(100);
  launch(trace, main, 1000);
  trace.in_flight(main, "cuStreamSynchronize", 2000, 0);
  trace.no_end();
  EXPECT_EQ(find(find_findings(trace.load_all()), "call-in-flight"), nullptr);
}

// "Not ready" is what a query is asked for, in progress is how NCCL begins; what the runtime unloads when the program ends finds the driver gone.
TEST(Findings, AnAnswerIsNoError) {
  TraceBuilder trace;
  const Thread main = trace.thread(100);
  launch(trace, main, 1000);
  for (int i = 0; i < 20; ++i) trace.add_call(main, "cuStreamQuery", 1100 + i * 20, 1110 + i * 20, 600);
  trace.add_call(main, "cuLibraryUnload", 2000, 2010, 4);
  trace.add_call(main, "cuDevicePrimaryCtxRelease", 2020, 2030, 4);
  const LoadedRun run = trace.load_all();
  EXPECT_EQ(find(find_findings(run), "call-errors"), nullptr);
  for (const CallFacts& call : run.processes[0].calls) EXPECT_EQ(call.errors, 0u) << call.name;
  // A library's numbers are its own: ncclInProgress, ncclInvalidArgument.
  trace.add<Collective>(
      main, "ncclAllReduce", 2900, 2910, [](auto&) {}, 7);
  EXPECT_EQ(find(find_findings(trace.load_all()), "call-errors"), nullptr);
  trace.add<Collective>(
      main, "ncclAllReduce", 3000, 3010, [](auto&) {}, 4);
  const auto findings = find_findings(trace.load_all());
  const Finding* const finding = find(findings, "call-errors");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->text.rfind("ncclAllReduce returned", 0), 0u) << finding->text;
}

TEST(Findings, ErrorsAreSaidOnceAtDriverLevel) {
  TraceBuilder trace;
  const Thread main = trace.thread(100);
  allocate(trace, main, 1001, 0, AllocKind::Device, 2);
  trace.add_call(main, "cudaMalloc", 1000, 1010, 2);
  trace.add_call(main, "cuStreamQuery", 1100, 1110, 600);
  const auto findings = find_findings(trace.load_all());
  const Finding* finding = find(findings, "call-errors");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(
      std::count_if(findings.begin(), findings.end(), [](const Finding& each) { return each.id == "call-errors"; }), 1);
  EXPECT_EQ(finding->text, "cuMemAlloc returned CUDA_ERROR_OUT_OF_MEMORY 1 time");
  EXPECT_EQ(finding->severity, Severity::Problem);
}

// What a kernel did that it must not is said once, by whatever calls it was returned; of a program that ended by it before all else.
TEST(Findings, AnErrorThatEndsAContextComesFirst) {
  const auto findings_of = [](EndReason reason, i32 detail) {
    TraceBuilder trace;
    const Thread main = trace.thread(100);
    for (int i = 0; i < 40; ++i) {
      launch(trace, main, 1000 + i * 100);
      allocate(trace, main, 1030 + i * 100, static_cast<u64>(i), AllocKind::Device);
    }
    trace.add_call(main, "cuStreamSynchronize", 90000, 90500, 700);
    trace.add_call(main, "cuMemFree_v2", 91000, 91010, 700);
    trace.add_call(main, "cudaStreamSynchronize", 89000, 91000, 700);
    trace.end(reason, detail);
    return find_findings(trace.load_all());
  };
  const auto findings = findings_of(EndReason::Exited, 1);
  EXPECT_EQ(findings.front().id, "call-errors");
  EXPECT_EQ(findings.front().severity, Severity::Problem);
  EXPECT_TRUE(findings.front().ended_it);
  EXPECT_EQ(findings.front().text,
            "cuMemFree and 1 other call returned CUDA_ERROR_ILLEGAL_ADDRESS, 2 times in all: a kernel did that before, "
            "and nothing works in its context afterwards; the program exited 1");
  EXPECT_EQ(
      std::count_if(findings.begin(), findings.end(), [](const Finding& each) { return each.id == "call-errors"; }), 1);
  EXPECT_TRUE(findings_of(EndReason::Signalled, 6).front().text.ends_with("; the program was ended by signal 6"));
  const auto outlived = findings_of(EndReason::Exited, 0);
  ASSERT_NE(find(outlived, "call-errors"), nullptr);
  EXPECT_FALSE(find(outlived, "call-errors")->ended_it);
}

// A library asks whether a kernel takes more shared memory, and takes no for an answer.
TEST(Findings, ARefusalThatTheProgramOutlivedIsAHint) {
  const auto severity = [](u16 result, EndReason end) {
    TraceBuilder trace;
    const Thread main = trace.thread(100);
    trace.add_call(main, "cuFuncSetAttribute", 1000, 1010, result);
    launch(trace, main, 2000);
    trace.end(end);
    const auto findings = find_findings(trace.load_all());
    const Finding* finding = find(findings, "call-errors");
    return finding ? finding->severity : Severity::Problem;
  };
  EXPECT_EQ(severity(1, EndReason::Exited), Severity::Hint);
  EXPECT_EQ(severity(1, EndReason::Signalled), Severity::Warning);
  EXPECT_EQ(severity(719, EndReason::Exited), Severity::Problem);
  EXPECT_EQ(severity(400, EndReason::Exited), Severity::Warning);
}

TEST(Findings, SynchronousCopiesBetweenLaunches) {
  TraceBuilder loop, start_up;
  const Thread a = loop.thread(100), b = start_up.thread(100);
  for (int i = 0; i < 20; ++i) {
    launch(loop, a, 1000 + i * 100);
    copy(loop, a, 1050 + i * 100, false, 8);
    copy(start_up, b, 1000 + i * 100, false, 8);  // all before the first launch
  }
  launch(start_up, b, 9000);
  const auto findings = find_findings(loop.load_all());
  const Finding* finding = find(findings, "synchronous-copies");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(evidence(*finding, "count"), whole(20));
  EXPECT_EQ(evidence(*finding, "between_launches"), whole(20));
  EXPECT_EQ(evidence(*finding, "bytes"), whole(160));
  EXPECT_EQ(find(find_findings(start_up.load_all()), "synchronous-copies"), nullptr);
}

TEST(Findings, AllocationInTheLoopButNotFromAPool) {
  TraceBuilder loop, pool;
  const Thread a = loop.thread(100), b = pool.thread(100);
  for (u64 i = 0; i < 20; ++i) {
    const Nanos at = 1000 + static_cast<Nanos>(i) * 100;
    launch(loop, a, at);
    allocate(loop, a, at + 50, 0x1000 + i * 0x100, AllocKind::Device);
    launch(pool, b, at);
    allocate(pool, b, at + 50, 0x1000 + i * 0x100, AllocKind::Pool);
  }
  const auto findings = find_findings(loop.load_all());
  ASSERT_NE(find(findings, "allocation-in-loop"), nullptr);
  EXPECT_EQ(evidence(*find(findings, "allocation-in-loop"), "between_launches"), whole(20));
  EXPECT_EQ(find(find_findings(pool.load_all()), "allocation-in-loop"), nullptr);
}

TEST(Findings, PageableAsynchronousCopiesOnlyWhereThatIsCertain) {
  TraceBuilder sure, unsure;
  unsure.info("option.delay_ns", "1000000");  // a pinned allocation may have come before the window
  const Thread a = sure.thread(100), b = unsure.thread(100);
  for (int i = 0; i < 20; ++i) {
    copy(sure, a, 1000 + i * 100, true, 1 << 20);
    copy(unsure, b, 1000 + i * 100, true, 1 << 20);
  }
  const auto findings = find_findings(sure.load_all());
  ASSERT_NE(find(findings, "pageable-async-copies"), nullptr);
  EXPECT_EQ(evidence(*find(findings, "pageable-async-copies"), "bytes"), whole(20 << 20));
  EXPECT_EQ(find(find_findings(unsure.load_all()), "pageable-async-copies"), nullptr);
}

TEST(Findings, AnOptionThatWasNotUnderstood) {
  for (const char* key : {"option_warning", "option.collect"}) {
    TraceBuilder trace;
    launch(trace, trace.thread(100), 1000);
    trace.info(key, "api");
    EXPECT_EQ(find(find_findings(trace.load_all()), "option") == nullptr, std::string(key) == "option.collect");
  }
}

TEST(Findings, SlowCollectionStart) {
  for (const i64 spent : {200'000'000, 1'200'000'000}) {
    TraceBuilder trace;
    const Thread main = trace.thread(100);
    trace.add_call(main, "cuInit", 1000, 1010);
    trace.add<DeviceOverhead>(trace.definitions(), "", 2'000'000'000, 2'000'000'000, [&](auto& r) {
      r.kind = static_cast<u32>(OverheadKind::OwnSetup), r.start = 5'000'000'000 - spent, r.finish = 5'000'000'000;
    });
    const auto findings = find_findings(trace.load_all());
    const Finding* finding = find(findings, "slow-collection-start");
    ASSERT_EQ(finding != nullptr, spent > 300'000'000) << spent;
    if (finding) {
      EXPECT_EQ(evidence(*finding, "total_ns"), whole(spent));
    }
  }
}

}  // namespace
}  // namespace gputrace::test
