// What the host waits for while a device has nothing to do, as samples found it.
#include <gtest/gtest.h>

#include "analysis/findings/findings.h"
#include "analysis/run/host_use.h"
#include "analysis/run/processor_use.h"
#include "tests/unit/finding_lookup.h"
#include "tests/unit/timeline/sampled.h"

namespace gputrace::test {
namespace {

constexpr const char* kQueue = "/usr/lib/python3.11/queue.py";
constexpr const char* kThreading = "/usr/lib/python3.11/threading.py";

// Eight turns of 10 ms with 8 samples each: of them `waiting` within Queue.get of serve(), the others in its own work.
class Server : public Sampled {
 public:
  explicit Server(Nanos waiting) {
    frame(kFirst + 10, kFirst, "serve", "serve.py", 20);
    frame(kFirst + 11, kFirst + 10, "Queue.get", kQueue, 171);
    frame(kFirst + 12, kFirst + 11, "Condition.wait", kThreading, 327);
    for (Nanos turn = 0; turn < 8; ++turn) {
      for (Nanos i = 0; i < 8; ++i)
        sample(i < waiting ? kFirst + 12 : kFirst + 10, 21'000'000 + turn * 10'000'000 + i * 1'000'000);
    }
  }
};

TEST(SampledWaits, AreThoseWithinFunctionsThatWait) {
  Server trace(6);
  // Not PyTorch's loader, no package that has such a file, no function of the program's own with such a name.
  trace.frame(kFirst + 20, kFirst, "_next_data", "/x/site-packages/torch/utils/data/dataloader.py", 700);
  trace.frame(kFirst + 21, kFirst + 20, "Queue.get", kQueue, 171);
  trace.frame(kFirst + 22, kFirst, "HTTPConnection.recv", "/usr/lib/python3.11/site-packages/urllib3/connection.py", 5);
  trace.frame(kFirst + 23, kFirst, "Queue.get", "/home/me/queue.py", 5);
  for (u32 frame = kFirst + 21; frame <= kFirst + 23; ++frame) trace.sample(frame, 25'500'000);
  const ProcessTrace process = trace.of(9);
  const SampledWait waits = sampled_waits(process).of(HostWait::Others);
  u64 host = 0;
  for (const StackDeviceTimes& times : process.lines.times) host += times.host_ns;
  EXPECT_NEAR(static_cast<double>(waits.total_ns), static_cast<double>(host) * 48 / (64 + 3), 2.0);
  EXPECT_EQ(waits.function, "queue.py Queue.get") << "what the program's line called";
  EXPECT_EQ(waits.site, "serve.py:20 serve");
}

// Nothing else of the program worked: no change of the host's own work brings that time back.
TEST(SampledWaits, ForWhatComesFromOutside) {
  Server trace(6), works(0);
  trace.use(0, 100, "python", 20'000'000, 1'000'000), trace.use(0, 101, "client", 20'000'000, 1'000'000);
  trace.use(0, 101, "client", 100'000'000, 9'000'000);
  const Finding own = works.gaps(), finding = trace.gaps();
  EXPECT_FALSE(has(own, "waits_ns"));
  EXPECT_NE(finding.text.find("it waits for what comes from outside (most of it in queue.py Queue.get, at serve.py:20"),
            std::string::npos)
      << finding.text;
  EXPECT_EQ(finding.fix.rfind("nothing of the program's own work", 0), 0u) << finding.fix;
  ASSERT_GT(own.gain_ns, 0u);
  EXPECT_NEAR(static_cast<double>(finding.gain_ns), static_cast<double>(own.gain_ns) / 4,
              0.02 * static_cast<double>(own.gain_ns));
}

// XLA compiles, in threads or processes of which little is seen; a framework waits for threads of its own.
TEST(SampledWaits, ForACompilerOrAFrameworkAreNotFromOutside) {
  const auto said = [](const char* file) {
    Sampled trace;
    trace.frame(kFirst + 10, kFirst, "backend_compile_and_load", file, 400);
    for (Nanos at = 21'000'000; at < 100'000'000; at += 1'000'000) trace.sample(kFirst + 10, at, 0, WaitFor::Lock);
    for (const i32 tid : {100, 101}) trace.use(0, tid, "python", 20'000'000, 1'000'000);
    trace.use(0, 101, "python", 100'000'000, 1'500'000);
    return trace.gaps();
  };
  const Finding other = said("/home/me/compiler.py"), compiles = said("/x/site-packages/jax/_src/compiler.py");
  EXPECT_NE(other.text.find("waits for what comes from outside"), std::string::npos) << other.text;
  EXPECT_EQ(compiles.text.find("comes from outside"), std::string::npos) << compiles.text;
  EXPECT_NE(compiles.text.find("waits for other threads or processes"), std::string::npos) << compiles.text;
  const Finding framework = said("/x/site-packages/tensorflow/python/eager/execute.py");
  EXPECT_NE(framework.text.find("waits for other threads or processes"), std::string::npos) << framework.text;
  EXPECT_FALSE(has(framework, "compiling_ns"));
}

// Most of what a short program does is compiling: that is not to be done beside the device's work, but may be kept from run to run.
TEST(SampledWaits, WhatIsCompiledOnceIsNoWorkToBeDoneAhead) {
  const auto gaps = [](int compiles) {
    Sampled trace;
    trace.frame(kFirst + 10, kFirst, "_compile", "/x/site-packages/torch/_dynamo/convert_frame.py", 900);
    for (Nanos i = 0; i < 64; ++i) trace.sample(i < compiles ? kFirst + 10 : kFirst, 21'000'000 + i * 1'250'000);
    return trace.gaps();
  };
  const Finding works = gaps(0), compiles = gaps(48);
  EXPECT_FALSE(has(works, "compiling_ns"));
  ASSERT_TRUE(has(compiles, "compiling_ns")) << compiles.text;
  EXPECT_NEAR(static_cast<double>(std::get<i64>(evidence(compiles, "compiling_ns"))), 60e6, 2e6);
  EXPECT_NE(compiles.text.find(" of the time torch.compile compiles"), std::string::npos) << compiles.text;
  EXPECT_EQ(compiles.fix.rfind("keep what is compiled from run to run", 0), 0u) << compiles.fix;
  EXPECT_EQ(compiles.severity, Severity::Hint);
  ASSERT_GT(works.gain_ns, 0u);
  EXPECT_NEAR(static_cast<double>(compiles.gain_ns), 60e6, 2e6) << "what the fix is about";
}

// What is compiled anew is recompilation's to promise; the rest of the compiler's time is what keeping it from run to run brings.
TEST(SampledWaits, WhatIsCompiledAgainIsPromisedOnce) {
  Sampled trace;
  trace.info("option.collect", "api,device,nvtx");
  const u64 domain = trace.text("TSL"), first = trace.text("XlaCompile:#module=jit_a#"),
            again = trace.text("XlaCompile:#module=jit_b#");
  const auto range = [&](Nanos at, NvtxAct what, u64 message) {
    trace.add<Nvtx>(trace.main, "", at, at,
                    [&](auto& r) { r.what = static_cast<u32>(what), r.domain = domain, r.message = message; });
  };
  for (Nanos i = 0; i < 6; ++i) {  // 3 x 8 ms of one module, 2 of them anew; 3 others once
    const Nanos at = 21'000'000 + i * 10'000'000;
    const u64 other = trace.text("XlaCompile:#module=jit_c" + std::to_string(i) + "#");
    range(at, NvtxAct::Push, i < 3 ? again : i == 3 ? first : other), range(at + 8'000'000, NvtxAct::Pop, 0);
  }
  LoadedRun run;
  run.processes.push_back(trace.of(9));
  const auto findings = find_findings(run);
  const Finding *const gaps = find(findings, "idle-gaps"), *const anew = find(findings, "recompilation");
  ASSERT_TRUE(gaps && anew);
  EXPECT_EQ(anew->gain_ns, 16'000'000u);
  EXPECT_NE(gaps->text.find(" of the time XLA compiles"), std::string::npos) << gaps->text;
  EXPECT_EQ(gaps->gain_ns, 32'000'000u) << "48 ms, without what is promised already";
}

// A thread that makes what the loop waits for.
TEST(SampledWaits, ForAnotherThread) {
  Server trace(6), works(0);
  trace.use(0, 100, "python", 20'000'000, 1'000'000), trace.use(0, 101, "loader", 20'000'000, 1'000'000);
  trace.use(0, 101, "loader", 100'000'000, 61'000'000);
  const Finding finding = trace.gaps();
  EXPECT_NE(finding.text.find("it waits for other threads or processes"), std::string::npos) << finding.text;
  EXPECT_EQ(finding.fix.rfind("make what it waits for ahead", 0), 0u) << finding.fix;
  EXPECT_EQ(finding.gain_ns, works.gaps().gain_ns);
}

// A pool: each thread answers requests of its own. What the other one of it works is no work for this one, unless it works while this one
// waits.
TEST(SampledWaits, OfAPoolNoneWorksForTheOthers) {
  const auto said = [](bool peer_works, u64 other_cpu) {
    Sampled trace;
    const auto peer = trace.thread(101);
    trace.launch(peer, 0xf1, 11'000, 12'000);
    trace.frame(kFirst + 10, kFirst, "serve", "serve.py", 20);
    trace.frame(kFirst + 11, kFirst + 10, "Queue.get", kQueue, 171);
    for (Nanos at = 21'000'000; at < 100'000'000; at += 1'000'000) {
      trace.sample(kFirst + 11, at, 0, WaitFor::Lock);
      trace.sample_of(peer, kFirst + 11, at, peer_works && at % 3'000'000 != 0 ? WaitFor{} : WaitFor::Lock);
    }
    for (const i32 tid : {100, 101, 102}) trace.use(0, tid, "python", 20'000'000, 1'000'000);
    trace.use(0, 101, "python", 100'000'000, 61'000'000);
    trace.use(0, 102, "python", 100'000'000, 1'000'000 + other_cpu);
    return trace.gaps();
  };
  EXPECT_NE(said(false, 0).text.find("waits for what comes from outside"), std::string::npos) << said(false, 0).text;
  EXPECT_LT(std::get<i64>(evidence(said(false, 0), "others_cpu_ns")), 1000);
  const Finding works = said(true, 0);
  EXPECT_NE(works.text.find("waits for other threads or processes"), std::string::npos) << works.text;
  EXPECT_NEAR(static_cast<double>(std::get<i64>(evidence(works, "others_cpu_ns"))), 53e6, 3e6)
      << "two thirds of the time";
  EXPECT_NE(said(false, 50'000'000).text.find("waits for other threads or processes"), std::string::npos)
      << "a thread that calls no CUDA";
}

// A thread that called CUDA once holds Python's lock now: where it runs is said, once.
TEST(SampledWaits, WhatAThreadThatCallsCudaAsWellRunsMeanwhile) {
  const auto said = [](bool peer_runs, WaitFor waits) {
    Sampled trace;
    const auto peer = trace.thread(101);
    trace.launch(peer, 0xf1, 11'000, 12'000);
    trace.frame(kFirst + 10, kFirst, "infer", "serve.py", 20);
    trace.frame(kFirst + 11, 0, "tokenize", "serve.py", 7);
    for (Nanos at = 21'000'000; at < 100'000'000; at += 1'000'000) {
      trace.sample(kFirst + 10, at, 0, waits);
      trace.sample_of(peer, kFirst + 11, at, peer_runs ? WaitFor{} : WaitFor::Sleep);
    }
    return trace.gaps();
  };
  const Finding finding = said(true, WaitFor::InterpreterLock);
  EXPECT_NE(finding.text.find("; 100 % of what those run meanwhile is serve.py:7 tokenize"), std::string::npos)
      << finding.text;
  EXPECT_EQ(evidence(finding, "others_at"), Value("serve.py:7 tokenize"));
  EXPECT_FALSE(has(said(false, WaitFor::InterpreterLock), "others_at"));
  EXPECT_FALSE(has(said(true, WaitFor{}), "others_at")) << "the caller works itself";
}

// PyTorch computes gradients in a thread of its own, while the one that asked sleeps: that is the program's own work, nothing to be had ahead.
TEST(SampledWaits, ForTheBackwardPassAreTheHostsOwnWork) {
  const auto said = [](const char* file, const char* function) {
    Sampled trace;
    trace.frame(kFirst + 10, kFirst, function, file, 1113);
    for (Nanos at = 21'000'000; at < 100'000'000; at += 1'000'000) trace.sample(kFirst + 10, at, 0, WaitFor::Lock);
    trace.use(0, 100, "python", 20'000'000, 1'000'000), trace.use(0, 101, "pt_autograd_0", 20'000'000, 1'000'000);
    trace.use(0, 101, "pt_autograd_0", 100'000'000, 71'000'000);
    return trace.gaps();
  };
  for (const auto& [file, function] : {std::pair{"torch/autograd/graph.py", "_engine_run_backward"},
                                       std::pair{"torch/autograd/__init__.py", "backward"}}) {
    const Finding finding = said((std::string("/x/site-packages/") + file).c_str(), function);
    EXPECT_FALSE(has(finding, "waits_ns")) << finding.text;
    EXPECT_EQ(finding.fix.rfind("make what it waits for", 0), std::string::npos) << finding.fix;
    EXPECT_GT(finding.gain_ns, 0u);
  }
  EXPECT_TRUE(has(said("/x/site-packages/torch/distributed/rendezvous.py", "rendezvous"), "waits_ns"));
  EXPECT_TRUE(has(said("/home/me/torch/autograd/graph.py", "wait"), "waits_ns")) << "a folder of that name";
}

// Processes that it forked make it: where they work is said, not where they sleep.
TEST(SampledWaits, ForProcessesThatItForkedWithTheirLine) {
  Server trace(6), outside(6);
  for (Server* const each : {&trace, &outside}) {
    each->frame(kFirst + 30, kFirst, "Process._bootstrap", "/usr/lib/python3.11/multiprocessing/process.py", 314);
    each->frame(kFirst + 31, kFirst + 30, "Env.step", "env.py", 7);
    each->frame(kFirst + 32, kFirst + 30, "Env.wait", "env.py", 9);
    for (Nanos i = 0; i < 40; ++i) {
      each->sample(kFirst + 31, 21'000'000 + i * 1'800'000, 4711);
      each->sample(kFirst + 32, 21'000'000 + i * 1'800'000, 4712, WaitFor::Pipe);
    }
    each->use(0, 100, "python", 20'000'000, 1'000'000);
  }
  trace.use(4711, 4711, "python", 20'000'000, 1'000'000), trace.use(4711, 4711, "python", 100'000'000, 61'000'000);
  const Finding finding = trace.gaps();
  EXPECT_NE(finding.text.find("it waits for other threads or processes"), std::string::npos) << finding.text;
  EXPECT_NE(finding.text.find("; 100 % of what processes that it forked work meanwhile is env.py:7 Env.step"),
            std::string::npos)
      << finding.text;
  EXPECT_FALSE(has(outside.gaps(), "others_at"));
}

// Where the kernel does not say whether they sleep nobody knows where they work.
TEST(SampledWaits, OfOthersThatMaySleepNoLineIsSaid) {
  Server trace(6);
  trace.frame(kFirst + 30, kFirst, "Process._bootstrap", "/usr/lib/python3.11/multiprocessing/process.py", 314);
  trace.frame(kFirst + 31, kFirst + 30, "Env.step", "env.py", 7);
  for (Nanos at = 21'000'000; at < 90'000'000; at += 1'800'000)
    trace.add<Sample>(TraceBuilder::definitions(), "", at, at, [&](auto& r) {
      r.frame = kFirst + 31, r.frames = 1, r.slot = static_cast<u32>(trace.main.index), r.incarnation = 1;
      r.process = 4711;
    });
  const ProcessTrace process = trace.of(9);
  EXPECT_GT(process.samples.of_workers, 0u);
  EXPECT_FALSE(work_of_others(process, LineOf::Worker).has_value());
}

// A thread that calls no CUDA is looked at while those that do only wait.
TEST(SampledWaits, WhereTheProgramsOtherThreadsWork) {
  Server trace(6), asleep(6);
  for (Server* each : {&trace, &asleep}) {
    each->frame(kFirst + 30, 0, "Thread._bootstrap", kThreading, 1000);
    each->frame(kFirst + 31, kFirst + 30, "Loader.load", "load.py", 12);
    each->frame(kFirst + 32, kFirst + 31, "sort", "/x/site-packages/numpy/core.py", 3);
    for (Nanos at = 21'000'000; at < 90'000'000; at += 1'800'000) {
      each->add<Sample>(TraceBuilder::definitions(), "", at, at, [&](auto& r) {
        r.frame = kFirst + 32, r.frames = 3, r.tid = 101, r.flags = each == &trace ? static_cast<u32>(kSampleRan) : 0;
        r.waits = static_cast<u32>(each == &trace ? WaitFor{} : WaitFor::Socket);
      });
    }
    each->use(0, 100, "python", 20'000'000, 1'000'000), each->use(0, 101, "python", 20'000'000, 1'000'000);
    each->use(0, 101, "python", 100'000'000, 61'000'000);
  }
  const Finding finding = trace.gaps();
  EXPECT_NE(finding.text.find("; 100 % of what its other threads work meanwhile is load.py:12 Loader.load"),
            std::string::npos)
      << finding.text;
  EXPECT_EQ(evidence(finding, "others"), Value("threads"));
  EXPECT_FALSE(has(asleep.gaps(), "others_at")) << "it waits as well";
  EXPECT_EQ(finding.site, Server(6).gaps().site) << "the line that has the device wait is the caller's";
}

// A loop that trains is asked by nobody: what it waits for is data, and where the thread sleeps that brings it is said.
TEST(SampledWaits, OfALoopThatTrainsAreForData) {
  const auto said = [](RunPhase phase, WaitFor sleeps) {
    Server trace(6);
    trace.frame(kFirst + 30, 0, "fetch", "load.py", 12);
    for (Nanos at = 21'000'000; at < 90'000'000; at += 1'800'000) {
      trace.add<Sample>(TraceBuilder::definitions(), "", at, at, [&](auto& r) {
        r.frame = kFirst + 30, r.frames = 1, r.tid = 101, r.waits = static_cast<u32>(sleeps);
      });
    }
    trace.use(0, 100, "python", 20'000'000, 1'000'000), trace.use(0, 101, "python", 20'000'000, 1'000'000);
    trace.use(0, 101, "python", 100'000'000, 2'000'000);
    LoadedRun run;
    run.processes.push_back(trace.of(9));
    StepFacts& steps = run.processes.front().steps;
    steps.steps.clear();
    for (u32 i = 0; i < 8; ++i) {
      Step& step = steps.steps.emplace_back();
      step.begin = 20'000'000 + Nanos{i} * 10'000'000, step.end = step.begin + 10'000'000, step.phase = phase;
    }
    const auto findings = find_findings(run);
    const Finding* const found = find(findings, "idle-gaps");
    return found ? *found : Finding{};
  };
  const Finding trains = said(RunPhase::Training, WaitFor::Sleep);
  EXPECT_NE(trains.text.find("it waits for other threads or processes"), std::string::npos) << trains.text;
  EXPECT_NE(trains.text.find("; 100 % of what its other threads do meanwhile is load.py:12 fetch"), std::string::npos)
      << trains.text;
  EXPECT_EQ(trains.fix.rfind("make what it waits for ahead", 0), 0u) << trains.fix;
  const Finding lock = said(RunPhase::Training, WaitFor::Lock);
  EXPECT_FALSE(has(lock, "others_at")) << "it waits as well";
  const Finding serves = said(RunPhase::Other, WaitFor::Sleep);
  EXPECT_NE(serves.text.find("comes from outside"), std::string::npos) << serves.text;
  EXPECT_LT(serves.gain_ns, trains.gain_ns);
}

// A thread for each request: no look meets one.
TEST(SampledWaits, ForThreadsThatNoLookSaw) {
  const auto said = [](const char* unseen) {
    Server trace(6);
    trace.info("thread_unseen_cpu_ns", unseen);
    trace.use(0, 100, "python", 20'000'000, 1'000'000), trace.use(0, 100, "python", 100'000'000, 2'000'000);
    return trace.gaps();
  };
  EXPECT_NE(said("0").text.find("waits for what comes from outside"), std::string::npos) << said("0").text;
  EXPECT_NE(said("30000000").text.find("waits for other threads or processes"), std::string::npos);
  EXPECT_EQ(evidence(said("30000000"), "others_cpu_ns"), Value(i64{24'003'000}))
      << "as much as of the time, 80.01 of 100 ms";
}

// What lies between two lines is known of all devices together: of one no more is told than it waited.
TEST(Pauses, OfOneDeviceAreItsOwnPart) {
  Sampled trace;
  trace.frame(2, 0, "main", "train.py", 12);
  for (u32 i = 0; i < 9; ++i) {
    trace.add<Stack>(trace.main, "", 15'000'000 + Nanos{i} * 10'000'000, 15'000'000 + Nanos{i} * 10'000'000,
                     [&](auto& r) { r.frame = 1 + i % 2, r.frames = 1; });
    trace.turn(i);
  }
  trace.reading(900'000'000);
  LoadedRun run;
  run.processes.push_back(trace.load());
  const auto pause = [&] {
    const auto findings = find_findings(run);
    const Finding* const found = find(findings, "idle-gaps");
    return found ? std::get<i64>(evidence(*found, "pause_ns")) : 0;
  };
  const i64 alone = pause();
  EXPECT_NEAR(static_cast<double>(alone), 40e6, 1e6) << "every second of eight turns";
  auto& devices = run.processes.front().device.devices;
  const auto findings =
      find_findings(run);  // no sample found the host there: the line is that of the calls that ended the gaps
  ASSERT_NE(find(findings, "idle-gaps"), nullptr);
  EXPECT_NE(find(findings, "idle-gaps")->text.find(", 50 % of it before calls of train.py:"), std::string::npos)
      << find(findings, "idle-gaps")->text;
  devices.push_back(devices.front());
  devices.back().device = 1;
  EXPECT_NEAR(static_cast<double>(pause()), static_cast<double>(alone) / 2, 1);
}

TEST(SampledWaits, OfWhatOthersDidNothingIsKnown) {
  const Finding finding = Server(6).gaps();
  EXPECT_NE(finding.text.find("it waits for others"), std::string::npos) << finding.text;
  EXPECT_EQ(finding.gain_ns, Server(0).gaps().gain_ns);
}

// Of what C code does at once under a line of the program's: the frame is the line itself.
class Asleep : public Sampled {
 public:
  explicit Asleep(WaitFor waits, u32 at = kFirst + 10) {
    frame(kFirst + 10, kFirst, "serve", "serve.py", 20);
    frame(kFirst + 11, kFirst + 10, "Socket.recv", "/x/site-packages/zmq/sugar/socket.py", 60);
    for (Nanos turn = 0; turn < 8; ++turn) {
      for (Nanos i = 0; i < 8; ++i)
        sample(at, 21'000'000 + turn * 10'000'000 + i * 1'000'000, 0, i < 6 ? waits : WaitFor{});
    }
    use(0, 100, "python", 20'000'000, 1'000'000), use(0, 101, "other", 20'000'000, 1'000'000);
  }
};

TEST(SampledWaits, ThatOnlyTheKernelTells) {
  const u64 own = Server(0).gaps().gain_ns;
  for (const WaitFor what : {WaitFor::Lock, WaitFor::Socket, WaitFor::Pipe, WaitFor::Descriptors, WaitFor::Process}) {
    const Finding finding = Asleep(what).gaps();
    EXPECT_NE(finding.text.find("it waits for what comes from outside (most of it at serve.py:20 serve)"),
              std::string::npos)
        << finding.text;
    EXPECT_NEAR(static_cast<double>(finding.gain_ns), static_cast<double>(own) / 4, 0.02 * static_cast<double>(own));
  }
  const Finding finding = Asleep(WaitFor::Socket, kFirst + 11).gaps();
  EXPECT_NE(finding.text.find("(most of it in socket.py Socket.recv, at serve.py:20 serve)"), std::string::npos)
      << finding.text;
}

TEST(SampledWaits, OwnSleepPythonsLockAndFilesAreTheHostsOwn) {
  const u64 own = Server(0).gaps().gain_ns;
  const struct {
    WaitFor what;
    const char *words, *fix;
  } kinds[] = {{WaitFor::Sleep, "it sleeps (most of it at serve.py:20 serve)", "let it wait for what it needs"},
               {WaitFor::InterpreterLock, "it waits for Python's lock, which other threads hold", "let Python's other"},
               {WaitFor::File, "it waits for files (most of it at serve.py:20 serve)", "read and write beside"},
               {WaitFor::Page, "it waits for files", "read and write beside"}};
  for (const auto& kind : kinds) {
    const Finding finding = Asleep(kind.what).gaps();
    EXPECT_NE(finding.text.find(kind.words), std::string::npos) << finding.text;
    EXPECT_EQ(finding.fix.rfind(kind.fix, 0), 0u) << finding.fix;
    EXPECT_FALSE(has(finding, "waits_ns"));
    EXPECT_EQ(finding.gain_ns, own);
  }
  // A call of the kernel that says nothing of what is waited for, and what only a newer version knows.
  for (const WaitFor what : {WaitFor::Kernel, static_cast<WaitFor>(77)})
    EXPECT_EQ(Asleep(what).gaps().text, Asleep(WaitFor{}).gaps().text);
}

// Within Queue.get, but what it lacks is Python's lock.
TEST(SampledWaits, PythonsLockComesBeforeTheFunctionThatAsksForIt) {
  Sampled trace;
  trace.frame(kFirst + 10, kFirst, "serve", "serve.py", 20);
  trace.frame(kFirst + 11, kFirst + 10, "Queue.get", kQueue, 171);
  for (Nanos i = 0; i < 8; ++i) trace.sample(kFirst + 11, 21'000'000 + i * 1'000'000, 0, WaitFor::InterpreterLock);
  const SampledWaits waits = sampled_waits(trace.of(9));
  EXPECT_EQ(waits.of(HostWait::Others).total_ns, 0u);
  EXPECT_GT(waits.of(HostWait::InterpreterLock).total_ns, 0u);
}

// Workers that are started anew for each epoch.
TEST(SampledWaits, ALoaderThatStartsItsWorkers) {
  const auto gaps_of = [](int starts, const char* file) {
    Sampled trace;
    trace.frame(kFirst + 20, kFirst, "_MultiProcessingDataLoaderIter.__init__", file, 1102);
    trace.frame(kFirst + 21, kFirst + 20, "Popen._launch", "/usr/lib/python3.11/multiprocessing/popen_fork.py", 66);
    trace.frame(kFirst + 22, kFirst, "_MultiProcessingDataLoaderIter._shutdown_workers", file, 1600);
    for (int i = 0; i < 8; ++i) trace.sample(kFirst + (i >= starts ? 0 : i % 2 ? 21 : 22), 21'000'000 + i * 1'000'000);
    return trace.gaps();
  };
  const char* const loader = "/x/site-packages/torch/utils/data/dataloader.py";
  const Finding most = gaps_of(6, loader), part = gaps_of(3, loader), none = gaps_of(6, "/home/me/dataloader.py");
  EXPECT_NE(most.text.find("DataLoader starts its worker processes and ends them"), std::string::npos) << most.text;
  EXPECT_NE(most.fix.find("persistent_workers=True"), std::string::npos) << most.fix;
  EXPECT_TRUE(has(part, "loader_starts_ns"));
  EXPECT_EQ(part.fix, none.fix);
  EXPECT_FALSE(has(none, "loader_starts_ns"));
  EXPECT_FALSE(has(gaps_of(0, loader), "loader_starts_ns"));
}

TEST(SampledWaits, WhatTheLoaderDoesMeanwhile) {
  Sampled trace;
  trace.frame(kFirst + 20, kFirst, "_SingleProcessDataLoaderIter._next_data",
              "/x/site-packages/torch/utils/data/dataloader.py", 700);
  trace.frame(kFirst + 21, kFirst + 20, "Data.__getitem__", "data.py", 30);
  trace.frame(kFirst + 30, kFirst, "Popen._launch", "/usr/lib/python3.11/multiprocessing/popen_fork.py", 70);
  trace.frame(kFirst + 31, kFirst + 30, "serve", "store.py", 5);
  for (Nanos i = 0; i < 8; ++i) {
    const Nanos at = 21'000'000 + i * 1'000'000;
    trace.sample(i < 6 ? kFirst + 21 : kFirst, at, 0, i < 2 ? WaitFor::Socket : i < 3 ? WaitFor::File : WaitFor{});
    trace.sample(kFirst + 31, at, 4711, WaitFor::Descriptors);  // forked, and no worker of the loader's
  }
  const auto making = batch_making(trace.of(9));
  ASSERT_TRUE(making.has_value());
  EXPECT_EQ(making->by, LineOf::Caller);
  EXPECT_EQ(making->samples, 6u);
  EXPECT_EQ(making->site, "data.py:30 Data.__getitem__");
  EXPECT_DOUBLE_EQ(making->asleep_share, 0.5);
  EXPECT_EQ(making->asleep_for, WaitFor::Socket);
}

TEST(SampledWaits, AFewAreNotSaid) {
  EXPECT_FALSE(has(Server(1).gaps(), "waits_ns"));
  EXPECT_TRUE(has(Server(2).gaps(), "waits_ns"));
}

// A thread stands still until the last round of looks before the one that found it changed; what traces counts for nothing.
TEST(ProcessorUse, OfOthersIsWhatTheyUsedMeanwhile) {
  Sampled trace;
  trace.use(0, 100, "python", 20'000'000, 1'000'000);
  trace.use(0, 101, "main", 20'000'000, 50'000'000);
  for (const Nanos at : {300'000'000, 600'000'000, 900'000'000})
    trace.use(0, 100, "python", at, 1'000'000 + static_cast<u64>(at) / 10);
  trace.use(0, 101, "main", 910'000'000, 350'000'000);  // all after 600 ms: the devices' time was over at 110 ms
  trace.use(0, 102, "gputrace-cupti", 20'000'000, 0), trace.use(0, 102, "gputrace-cupti", 300'000'000, 90'000'000);
  trace.use(4711, 4711, "worker", 300'000'000, 7'000'000);
  const ProcessTrace process = trace.of(9);
  const OthersUse use = cpu_of_others(process, 100).value_or(OthersUse{});
  EXPECT_NEAR(static_cast<double>(use.others_ns), 7e6, 2e4);
  EXPECT_EQ(use.callers_ns, 0u);
  const OthersUse of_launching = cpu_of_others(process, 101).value_or(OthersUse{});
  EXPECT_EQ(of_launching.others_ns, 7'000'000u);
  EXPECT_GT(of_launching.callers_ns, 0u) << "the thread that launches, for another one";
  EXPECT_FALSE(cpu_of_others(process, 103).has_value()) << "nobody looked at it";
}

}  // namespace
}  // namespace gputrace::test
