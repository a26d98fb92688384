// Samples: which line the idle time of a device belongs to.
#include <gtest/gtest.h>

#include "analysis/findings/findings.h"
#include "analysis/lines/sites.h"
#include "analysis/run/compiling.h"
#include "analysis/run/host_use.h"
#include "analysis/run/input_ops.h"
#include "tests/unit/finding_lookup.h"
#include "tests/unit/timeline/sampled.h"

namespace gputrace::test {
namespace {

u64 idle_of(const std::vector<SiteSum>& sites, const std::string& site) {
  for (const SiteSum& sum : sites) {
    if (sum.site == site) return sum.times.idle_ns;
  }
  return 0;
}

// Three of four looks within the gaps find the data set, one the loop; what is found within a call counts for nothing.
TEST(Samples, ShareOutTheIdleTimeThatTheHostMakes) {
  Sampled trace;
  for (u32 i = 0; i < 8; ++i) {
    trace.sample(i % 4 == 3 ? kFirst : kFirst + 1, 25'000'000 + Nanos{i} * 10'000'000);
    trace.sample(kFirst + 2, 29'985'000 + Nanos{i} * 10'000'000);  // in the launch
  }
  LoadedRun run;
  run.processes.push_back(trace.of(9));
  const ProcessTrace& process = run.processes.front();
  ASSERT_EQ(process.device.devices.size(), 1u);
  const DeviceTimes& device = process.device.devices.front();
  ASSERT_EQ(device.gaps, 8u);
  EXPECT_EQ(process.samples.taken, 16u);
  ASSERT_EQ(process.samples.idle.size(), 2u);

  u64 host = 0;
  for (const IdleGap& gap : device.longest) {
    host += static_cast<u64>(gap.parts[static_cast<unsigned>(IdleCause::Host)]);
    EXPECT_NE(gap.sampled, 0u);
  }
  const auto sites = sites_of(run);
  EXPECT_EQ(idle_of(sites, "data.py:30 Data.__getitem__"), host * 3 / 4);
  EXPECT_EQ(idle_of(sites, "train.py:8 main"), host / 4);
  u64 all = 0;
  for (const SiteSum& sum : sites) all += sum.times.idle_ns;
  EXPECT_EQ(all, device.idle_ns);
}

// Of four nobody can say how long.
TEST(Samples, AFewSayNothing) {
  Sampled trace;
  for (u32 i = 0; i < 4; ++i) trace.sample(kFirst + 1, 25'000'000 + Nanos{i} * 10'000'000);
  LoadedRun run;
  run.processes.push_back(trace.of(9));
  const auto sites = sites_of(run);
  EXPECT_EQ(idle_of(sites, "data.py:30 Data.__getitem__"), 0u);
  EXPECT_EQ(idle_of(sites, "train.py:9 main"), run.processes.front().device.devices.front().idle_ns);
}

// PyTorch's threads for the backward pass have the line of the forward one; what they are found in is none of the program's.
TEST(Samples, WithinPackagesAloneAreOfTheLineThatTheThreadWorksFor) {
  Sampled trace;
  trace.frame(kFirst + 3, 0, "compile_bw", "/x/site-packages/torch/_functorch/aot_autograd.py", 50);
  for (u32 i = 0; i < 8; ++i) trace.sample(i % 2 ? kFirst + 3 : kFirst, 25'000'000 + Nanos{i} * 10'000'000);
  const ProcessTrace process = trace.of(9);
  const auto shares = sampled_shares(process, 1, FileNames(process));
  ASSERT_EQ(shares.size(), 2u);
  EXPECT_EQ(shares[0].site, "train.py:8 main");
  EXPECT_EQ(shares[1].site, "train.py:9 main") << "that of the launch";
}

// XLA's own threads launch what the program's lines asked for, and have none.
TEST(Samples, OfAThreadWithoutLinesAreThoseOfTheOneThatRan) {
  const auto site_of = [](bool has_lines, bool other_runs, bool in_call) {
    Sampled trace;
    trace.launching = trace.thread(200), trace.launching_tid = 200;
    const auto other = trace.thread(300);
    if (has_lines) trace.add<Stack>(trace.launching, "", 10, 10, [&](auto& r) { r.frame = 1, r.frames = 1; });
    for (u32 i = 0; i < 8; ++i) {
      const Nanos at = 25'000'000 + Nanos{i} * 10'000'000;
      trace.sample(kFirst + 1, at, 0, other_runs ? WaitFor::Mutex : WaitFor{});
      trace.sample_of(other, kFirst, at + 1'000, other_runs ? WaitFor{} : WaitFor::Mutex);
      if (in_call) trace.launch(trace.main, 0xf1, at - 10'000, at + 10'000);
    }
    const ProcessTrace process = trace.of(9);
    std::string site;
    for (const SampledShare& share : sampled_shares(process, has_lines ? 1 : 0, FileNames(process))) site += share.site;
    return site;
  };
  EXPECT_EQ(site_of(false, false, false), "data.py:30 Data.__getitem__");
  EXPECT_EQ(site_of(false, true, false), "train.py:8 main");
  EXPECT_EQ(site_of(true, false, false), "") << "its own line is known";
  EXPECT_EQ(site_of(false, false, true), "") << "it was in a call of its own";
}

// What a worker shares with its parent above the fork is not what it does.
TEST(Samples, OfWorkersOnlyWhatTheyDoThemselves) {
  Sampled trace;
  trace.frame(kFirst + 3, kFirst, "Popen._launch", "/usr/lib/python3.11/multiprocessing/popen_fork.py", 70);
  trace.frame(kFirst + 4, kFirst + 3, "_worker_loop", "/x/site-packages/torch/utils/data/_utils/worker.py", 320);
  trace.frame(kFirst + 5, kFirst + 4, "get", "/usr/lib/python3.11/multiprocessing/queues.py", 90);
  trace.frame(kFirst + 6, kFirst + 4, "decode", "data.py", 41);
  trace.frame(kFirst + 7, kFirst + 3, "serve", "store.py", 5);
  for (u32 i = 0; i < 8; ++i) {
    trace.sample(kFirst + 5, 24'000'000 + Nanos{i} * 10'000'000, 4711);  // waits to be asked
    trace.sample(kFirst + 6, 25'000'000 + Nanos{i} * 10'000'000, 4712);
    trace.sample(kFirst + 7, 26'000'000 + Nanos{i} * 10'000'000, 4713);  // forked, and no worker of the loader's
  }
  const ProcessTrace process = trace.of(9);
  EXPECT_EQ(process.samples.of_workers, 24u);
  const auto making = batch_making(process);
  ASSERT_TRUE(making.has_value());
  EXPECT_EQ(making->by, LineOf::Worker);
  EXPECT_EQ(making->site, "data.py:41 decode");
  EXPECT_EQ(making->samples, 8u);
  EXPECT_EQ(making->site_share, 1.0);
  EXPECT_EQ(making->asleep_share, 0.0);
  EXPECT_TRUE(sampled_shares(process, 1, FileNames(process)).empty());
}

// The newest record of a thread holds; a number that was given again is another thread.
TEST(Samples, WhatThreadsUsed) {
  Sampled trace;
  const u64 worker = trace.text("pt_data_worker"), main = trace.text("python");
  const auto use = [&](i32 process, i32 tid, u64 name, Nanos at, u64 cpu, u64 age, u64 since = 0) {
    trace.add<ThreadUse>(TraceBuilder::definitions(), "", at, at, [&](auto& r) {
      r.process = process, r.tid = tid, r.parent = process ? 100 : 0, r.name = name;
      r.cpu = cpu, r.ready = process ? ~u64{0} : 7, r.age = age, r.since = since;
    });
  };
  use(0, 100, main, 20'000'000, 5'000'000, 15'000'000);
  use(4711, 4711, worker, 20'000'000, 1'000'000, 2'000'000);
  use(0, 100, main, 60'000'000, 9'000'000, 54'000'000, 1'000'000);
  use(4711, 4711, worker, 80'000'000, 3'000'000, 10'000'000);
  const ProcessTrace process = trace.of(3);
  const auto& threads = process.samples.host_threads;
  ASSERT_EQ(threads.size(), 3u);
  EXPECT_EQ(threads[0].tid, 100);
  EXPECT_EQ(threads[0].name, "python");
  EXPECT_EQ(threads[0].cpu_ns, 9'000'000u);
  EXPECT_EQ(threads[0].seen, 59'000'000);
  EXPECT_EQ(threads[0].began, 5'000'000);
  EXPECT_TRUE(threads[0].ready_told);
  EXPECT_EQ(threads[1].cpu_ns, 1'000'000u);
  EXPECT_FALSE(threads[1].ready_told);
  EXPECT_EQ(threads[2].parent, 100);
  EXPECT_EQ(threads[2].cpu_ns, 3'000'000u);
}

// In the loop's own thread, and in a worker; one that waits to be asked makes nothing.
TEST(Samples, WhatMakesTheInput) {
  Sampled trace;
  const char* const loader = "/x/site-packages/torch/utils/data/dataloader.py";
  trace.frame(kFirst + 3, kFirst, "_SingleProcessDataLoaderIter._next_data", loader, 700);
  trace.frame(kFirst + 4, kFirst + 3, "Data.__getitem__", "data.py", 41);
  trace.frame(kFirst + 5, kFirst + 4, "decode", "data.py", 51);
  trace.frame(kFirst + 6, 0, "_worker_loop", "/x/site-packages/torch/utils/data/_utils/worker.py", 300);
  trace.frame(kFirst + 7, kFirst + 6, "Queue.get", "/usr/lib/python3.11/multiprocessing/queues.py", 113);
  trace.frame(kFirst + 8, kFirst + 6, "Data.__getitem__", "data.py", 42);
  const u32 looks[] = {kFirst + 4, kFirst + 5, kFirst + 5, kFirst};
  for (u32 i = 0; i < 8; ++i) trace.sample(looks[i % 4], 25'000'000 + Nanos{i} * 10'000'000);
  for (u32 i = 0; i < 4; ++i) trace.sample(i % 2 ? kFirst + 7 : kFirst + 8, 26'000'000 + Nanos{i} * 10'000'000, 4711);
  trace.frame(2, 1, "_SingleProcessDataLoaderIter._next_data", loader, 700);
  trace.frame(3, 2, "Data.__getitem__", "data.py", 41);
  trace.frame(4, 3, "decode", "data.py", 51);
  const auto read = [&](FileCall call, u32 frame, u64 bytes, u64 total, i32 process = 0, const char* of = "/data/set") {
    const u64 path = trace.text(of);
    trace.add<FileUse>(TraceBuilder::definitions(), "", 900, 900, [&](auto& r) {
      r.path = path, r.what = static_cast<u32>(call), r.frame = frame, r.process = process;
      r.count = 1, r.bytes = bytes, r.total = total, r.longest = total;
    });
  };
  read(FileCall::Read, 3, 1'000, 10), read(FileCall::Pread, 4, 20'000, 200), read(FileCall::Write, 4, 500'000, 9'000);
  read(FileCall::Read, 1, 300'000, 9'000), read(FileCall::Read, 0, 300'000, 9'000);
  read(FileCall::Read, 0, 70'000, 5'000, 4711), read(FileCall::Read, 0, 80'000, 5'000, 4712);
  read(FileCall::Read, 4, 600'000, 9'000, 0, "(pipe)"),
      read(FileCall::Read, 4, 700'000, 9'000, 0, "/lib/decoder.py");  // no data
  LoadedRun run;
  run.processes.push_back(trace.of(9));
  EXPECT_FALSE(input_ops_of(run).ops.front().bytes.has_value());  // nobody asked for file calls
  run.processes.front().options["collect"] = "api,python,samples,io";
  const InputOps found = input_ops_of(run);
  EXPECT_EQ(found.ops[0].bytes, std::optional<u64>(21'000));
  EXPECT_EQ(found.ops[1].bytes, std::optional<u64>(20'000));
  EXPECT_FALSE(found.ops[2].bytes.has_value());  // a worker's
  const FilesUsed by_loop = read_by_loop(run.processes.front()), ahead = read_by_workers(run.processes.front());
  EXPECT_EQ(by_loop.bytes, 21'000u);
  EXPECT_EQ(by_loop.total_ns, 210u);
  EXPECT_EQ(by_loop.path, "/data/set");
  EXPECT_EQ(ahead.bytes, 70'000u);  // 4712 is no loader's
  EXPECT_EQ(ahead.total_ns, 5'000u);
  EXPECT_EQ(found.samples, 8u);
  EXPECT_EQ(found.waiting, 2u);
  ASSERT_EQ(found.ops.size(), 3u);
  EXPECT_EQ(found.ops[0].op, "data.py Data.__getitem__");
  EXPECT_FALSE(found.ops[0].ahead);
  EXPECT_EQ(found.ops[0].samples, 6u);
  EXPECT_EQ(found.ops[0].self_samples, 2u);
  EXPECT_EQ(found.ops[0].total_ns, 50'000'000u);  // the first look has none before it
  EXPECT_EQ(found.ops[1].op, "data.py decode");
  EXPECT_EQ(found.ops[1].self_ns, 40'000'000u);
  EXPECT_TRUE(found.ops[2].ahead);
  EXPECT_EQ(found.ops[2].samples, 2u);
  EXPECT_EQ(loader_processes(run.processes.front()), (std::map<i32, u64>{{4711, 4}}));
}

constexpr u32 kInData = 2, kInGzip = 3, kInOther = 4;  // frames of calls: those lines, with the names of kFirst + 1

// Nine turns in whose gaps samples find the data set, told as a step's own work.
class Using : public Sampled {
 public:
  Using() {
    frame(kInData, 1, "Data.__getitem__", "data.py", 30);
    frame(kInGzip, kInData, "read", "/usr/lib/python3.11/gzip.py", 301);
    frame(kInOther, 1, "load", "weights.py", 7);
    for (u32 i = 0; i < 8; ++i) sample(kFirst + 1, 25'000'000 + Nanos{i} * 10'000'000);
  }
  void file(const char* path, FileCall call, u32 frame, u64 total, u64 bytes, i32 process = 0) {
    const u64 name = text(path);
    add<FileUse>(definitions(), "", 900, 900, [&](auto& r) {
      r.path = name, r.what = static_cast<u32>(call), r.frame = frame, r.process = process;
      r.count = 5, r.bytes = bytes, r.total = total, r.longest = total;
    });
  }
  void wait(i32 tid, WaitFor what, u32 frame, u64 total) {
    add<WaitUse>(definitions(), "", 900, 900, [&](auto& r) {
      r.tid = tid, r.what = static_cast<u32>(what), r.frame = frame, r.process = 0;
      r.count = 8, r.total = total, r.longest = total;
    });
  }
};

// Of some 80 ms in which the host works at one line: its file calls, those of what it called with them, and none of other lines.
TEST(Samples, AGapInWhichFilesAreReadSaysWhichAndHowLong) {
  Using trace;
  trace.file("/data/train.bin", FileCall::Read, kInGzip, 40'000'000, 3'000'000);
  trace.file("/data/train.bin", FileCall::Open, kInData, 2'000'000, 0);
  trace.file("/data/labels", FileCall::Read, kInData, 1'000'000, 4'000);
  trace.file("/data/weights", FileCall::Read, kInOther, 500'000'000, 9'000'000);
  trace.file("/data/unknown", FileCall::Read, 0, 500'000'000, 9'000'000);
  trace.file("/data/worker", FileCall::Read, kInData, 500'000'000, 9'000'000, 4711);
  const Finding finding = trace.gaps();
  EXPECT_EQ(finding.site, "data.py:30 Data.__getitem__");
  EXPECT_EQ(evidence(finding, "io_ns"), number(u64{43'000'000}));
  EXPECT_EQ(evidence(finding, "io_bytes"), number(u64{3'004'000}));
  EXPECT_EQ(evidence(finding, "io_calls"), number(u64{15}));
  EXPECT_EQ(evidence(finding, "io_path"), Value(std::string("/data/train.bin")));
  EXPECT_EQ(evidence(finding, "io_call"), Value(std::string("read")));
  EXPECT_NE(finding.text.find("file calls at data.py:30 Data.__getitem__ took 43.00 ms"), std::string::npos)
      << finding.text;
  EXPECT_FALSE(has(finding, "wait_ns"));
}

TEST(Samples, AGapInWhichItsThreadWaitsSaysForWhat) {
  Using trace;
  trace.wait(100, WaitFor::Semaphore, kInData, 30'000'000);
  trace.wait(100, WaitFor::Semaphore, kInGzip, 5'000'000);
  trace.wait(100, WaitFor::Condition, kInOther, 900'000'000);
  trace.wait(101, WaitFor::Sleep, kInData, 900'000'000);
  trace.wait(100, WaitFor::InterpreterLock, kInOther, 34'000'000);
  const Finding finding = trace.gaps();
  EXPECT_EQ(evidence(finding, "wait_ns"), number(u64{35'000'000}));
  EXPECT_EQ(evidence(finding, "wait_count"), number(u64{16}));
  EXPECT_EQ(evidence(finding, "wait_for"), Value(std::string("semaphore")));
  EXPECT_NE(finding.text.find("waited 35.00 ms of the run at data.py:30 Data.__getitem__ (semaphore, 16 times)"),
            std::string::npos)
      << finding.text;
  EXPECT_FALSE(has(finding, "io_ns"));
}

// Python's lock is kept from a thread wherever it is; what to do about it is another thing.
TEST(Samples, AGapInWhichPythonsLockIsHeldByOthers) {
  Using trace;
  trace.wait(100, WaitFor::InterpreterLock, kInOther, 20'000'000);
  trace.wait(100, WaitFor::InterpreterLock, 0, 10'000'000);
  trace.wait(100, WaitFor::Sleep, kInData, 29'000'000);
  const Finding finding = trace.gaps();
  EXPECT_EQ(evidence(finding, "wait_ns"), number(u64{30'000'000}));
  EXPECT_EQ(evidence(finding, "wait_for"), Value(std::string("GIL")));
  EXPECT_EQ(finding.fix.rfind("let Python's other threads do less", 0), 0u) << finding.fix;
}

// Less than a fifth of the host's part of the gaps: nothing is said of it.
TEST(Samples, AGapIsNotLaidToAFewReadsAndWaits) {
  Using trace;
  trace.file("/data/train.bin", FileCall::Read, kInData, 15'000'000, 3'000'000);
  trace.wait(100, WaitFor::Semaphore, kInData, 15'000'000);
  const Finding finding = trace.gaps();
  EXPECT_EQ(finding.id, "idle-gaps");
  EXPECT_FALSE(has(finding, "io_ns") || has(finding, "wait_ns"));
}

// A step a turn; samples at `at` ms of a turn in turns of 10 ms find the frame.
LoadedRun compiled(Sampled& trace, const std::vector<std::pair<u32, Nanos>>& looks) {
  for (const auto& [frame, at] : looks) trace.sample(frame, 20'000'000 + at * 1'000'000);
  LoadedRun run;
  run.processes.push_back(trace.of(9));
  std::vector<Step>& steps = run.processes.front().steps.steps;
  steps.clear();
  for (u32 i = 0; i < 9; ++i) {
    Step step;
    step.begin = 20'000'000 + Nanos{i} * 10'000'000, step.end = step.begin + 10'000'000;
    steps.push_back(step);
  }
  return run;
}

// In six of nine steps, from 1 to 9 ms of each; whatever lies beneath the compiler's file counts as the outermost one.
TEST(Samples, ALoopThatCompilesAgainAndAgain) {
  Sampled trace;
  trace.frame(kFirst + 3, kFirst, "_compile", "/x/site-packages/torch/_dynamo/convert_frame.py", 900);
  trace.frame(kFirst + 4, kFirst + 3, "compile", "/x/site-packages/triton/compiler/compiler.py", 250);
  std::vector<std::pair<u32, Nanos>> looks;
  for (Nanos i = 0; i < 9; ++i) {
    for (Nanos at = 1; at < 9; ++at)
      if (i % 3) looks.emplace_back(at % 2 ? kFirst + 3 : kFirst + 4, i * 10 + at);
    looks.emplace_back(kFirst, i * 10 + 9);
  }
  const LoadedRun run = compiled(trace, looks);
  const Compiling compiling = compiling_of(run.processes.front());
  EXPECT_EQ(compiling.samples, 48u);
  EXPECT_EQ(compiling.ns, 48'000'000u);
  EXPECT_EQ(compiling.steps, 6u);
  EXPECT_EQ(compiling.of, 9u);
  EXPECT_EQ(compiling.compiler, "torch.compile");
  EXPECT_EQ(compiling.site, "train.py:8 main");
  const auto findings = find_findings(run);
  const Finding* const finding = find(findings, "recompilation");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->gain_ns, 48'000'000u);
  EXPECT_EQ(finding->site, "train.py:8 main");
  EXPECT_EQ(finding->severity, Severity::Problem);
  ASSERT_NE(find(findings, "idle-gaps"), nullptr);
  EXPECT_EQ(find(findings, "idle-gaps")->severity, Severity::Hint);
}

// The first two steps compile, whatever it costs; all later ones run what was compiled, through a file of the same compiler.
TEST(Samples, WhatCompilesOnceOrRunsCompiledCodeIsLeftAlone) {
  Sampled trace;
  trace.frame(kFirst + 3, kFirst, "_compile", "/x/site-packages/torch/_dynamo/convert_frame.py", 900);
  trace.frame(kFirst + 4, kFirst, "compile_wrapper", "/x/site-packages/torch/_dynamo/eval_frame.py", 800);
  trace.frame(kFirst + 5, kFirst + 4, "CachingAutotuner.run",
              "/x/site-packages/torch/_inductor/runtime/triton_heuristics.py", 1300);
  std::vector<std::pair<u32, Nanos>> looks;
  for (Nanos i = 0; i < 9; ++i)
    for (Nanos at = 1; at < 9; ++at)
      looks.emplace_back(i < 2 ? kFirst + 3 : at % 2 ? kFirst + 4 : kFirst + 5, i * 10 + at);
  const LoadedRun run = compiled(trace, looks);
  const Compiling compiling = compiling_of(run.processes.front());
  EXPECT_EQ(compiling.steps, 2u);
  EXPECT_EQ(compiling.samples, 16u);
  const auto findings = find_findings(run);
  EXPECT_EQ(find(findings, "recompilation"), nullptr);
}

// Three of four samples find the host in what main() calls: the finding's line is there, and has that share of the time.
TEST(Samples, AGapSaysHowMuchOfTheHostsTimeItsLineHas) {
  Sampled trace;
  trace.frame(kFirst + 3, kFirst, "load", "data.py", 30);
  std::vector<std::pair<u32, Nanos>> looks;
  for (Nanos i = 0; i < 9; ++i)
    for (Nanos at = 1; at < 9; ++at) looks.emplace_back(at % 4 ? kFirst + 3 : kFirst, i * 10 + at);
  const auto findings = find_findings(compiled(trace, looks));
  const Finding* const finding = find(findings, "idle-gaps");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->site, "data.py:30 load");
  EXPECT_NE(finding->text.find(", 75 % of it at data.py:30 load"), std::string::npos) << finding->text;
}

// What launches Triton's kernels is compiled by a C compiler; CuPy's own cache is read in the same file as it compiles in.
TEST(Samples, CompilersBesideTheFrameworks) {
  const auto compiler = [](const char* function, const char* file) {
    Sampled trace;
    trace.frame(kFirst + 3, kFirst, function, file, 83);
    trace.frame(kFirst + 4, kFirst + 3, "check_call", "/usr/lib/python3.11/subprocess.py", 413);
    const Compiling compiling = compiling_of(compiled(trace, {{kFirst + 4, 1}, {kFirst + 4, 2}}).processes.front());
    return compiling.samples == 2 ? compiling.compiler : "";
  };
  EXPECT_EQ(compiler("_build", "/x/site-packages/triton/runtime/build.py"), "Triton");
  EXPECT_EQ(compiler("compile_using_nvrtc", "/x/site-packages/cupy/cuda/compiler.py"), "CuPy");
  EXPECT_EQ(compiler("_compile_with_cache_cuda", "/x/site-packages/cupy/cuda/compiler.py"), "");
  EXPECT_EQ(compiler("_run_ninja_build", "/x/site-packages/torch/utils/cpp_extension.py"), "torch.utils.cpp_extension");
}

// No line has most of it: the next two are said, where they have a tenth or more.
TEST(Samples, TheNextLinesWhereNoneHasMost) {
  Sampled trace;
  const char* const names[] = {"forward", "update", "load", "log"};
  const int parts[] = {40, 32, 24, 4};
  for (u32 i = 0; i < 4; ++i) trace.frame(kFirst + 20 + i, kFirst, names[i], "net.py", 20 + i);
  int at = 0;
  for (u32 i = 0; i < 4; ++i)
    for (int k = 0; k < parts[i]; ++k, ++at) trace.sample(kFirst + 20 + i, 20'500'000 + Nanos{at} * 790'000);
  const Finding finding = trace.gaps();
  EXPECT_NE(finding.text.find("% of it at net.py:20 forward, 3"), std::string::npos) << finding.text;
  EXPECT_NE(finding.text.find("% at net.py:21 update, 2"), std::string::npos) << finding.text;
  EXPECT_NE(finding.text.find("% at net.py:22 load"), std::string::npos) << finding.text;
  EXPECT_EQ(finding.text.find("net.py:23"), std::string::npos) << finding.text;
  EXPECT_EQ(evidence(finding, "site_2"), Value("net.py:21 update"));
  EXPECT_FALSE(has(finding, "site_4"));
}

// A compiler's files that are imported compile nothing: DeepSpeed's start took 4 s to import torch._dynamo.
TEST(Samples, WhatImportsACompilerDoesNotCompile) {
  Sampled trace;
  trace.frame(kFirst + 3, kFirst, "<module>", "/x/site-packages/torch/_dynamo/convert_frame.py", 40);
  trace.frame(kFirst + 4, kFirst + 3, "_find_and_load", "<frozen importlib._bootstrap>", 1176);
  trace.frame(kFirst + 5, kFirst + 4, "<module>", "/x/site-packages/triton/compiler/compiler.py", 12);
  std::vector<std::pair<u32, Nanos>> looks;
  for (Nanos i = 0; i < 9; ++i)
    for (Nanos at = 1; at < 9; ++at) looks.emplace_back(kFirst + 3 + static_cast<u32>(at % 3), i * 10 + at);
  const LoadedRun run = compiled(trace, looks);
  EXPECT_EQ(compiling_of(run.processes.front()).samples, 0u);
  EXPECT_EQ(find(find_findings(run), "recompilation"), nullptr);
}

// Numbers that no frame has, threads that are not there.
TEST(Samples, WhatIsNotThereIsLeftAlone) {
  Sampled trace;
  for (u32 i = 0; i < 8; ++i) trace.sample(kFirst + 4000, 25'000'000 + Nanos{i} * 10'000'000);
  trace.add<Sample>(TraceBuilder::definitions(), "", 5, 5, [](auto& r) { r.frame = kFirst, r.slot = 77; });
  trace.frame(~0u, kFirst, "far", "away.py", 1);
  const ProcessTrace process = trace.of(3);
  EXPECT_EQ(process.samples.taken, 0u);
  EXPECT_TRUE(process.samples.idle.empty());
  EXPECT_LT(process.samples.frames.size(), 10u);
}

}  // namespace
}  // namespace gputrace::test
