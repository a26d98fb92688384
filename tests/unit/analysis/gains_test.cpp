// Programs with a planted cause, and the same programs without it: what the report promises is what the second one takes
// less; and programs that look alike and must be promised nothing.
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>

#include "analysis/gains/gains.h"
#include "analysis/report.h"
#include "analysis/reports/list.h"
#include "tests/unit/finding_lookup.h"
#include "tests/unit/planted.h"

namespace gputrace::test {
namespace {

constexpr Nanos kCall = 4 * kUs;
constexpr i64 kMegabyte = 1 << 20;

struct Pair {
  const char* name;
  const char* finding;
  std::function<void(Planted&, bool planted)> program;
};

const Pair kPairs[] = {
    {"work of the host between steps", "idle-gaps",
     [](Planted& p, bool planted) {
       for (int i = 0; i < 40; ++i) p.run(kCall, 200 * kUs), p.fetch(), p.sleep(planted ? 90 * kUs : 0);
     }},
    {"a loader in every fourth step", "idle-gaps",
     [](Planted& p, bool planted) {
       for (int i = 0; i < 40; ++i) p.run(kCall, 200 * kUs), p.fetch(), p.sleep(planted && i % 4 == 3 ? 700 * kUs : 0);
     }},
    {"499 short gaps", "idle-gaps",
     [](Planted& p, bool planted) {
       for (int i = 0; i < 500; ++i) p.run(kCall, 600 * kUs), p.fetch(), p.sleep(planted ? 430 * kUs : 0);
     }},
    {"work of the host that two threads do in turn", "idle-gaps",
     [](Planted& p, bool planted) {
       for (int i = 0; i < 40; ++i) {
         p.run(kCall, 100 * kUs), p.sleep(planted ? 150 * kUs : 0), p.hand_over();
         p.run(kCall, 100 * kUs), p.hand_over();
         p.fetch();
       }
     }},
    {"work of the host in threads that begin anew each time and call beside each other", "idle-gaps",
     [](Planted& p, bool planted) {
       for (int i = 0; i < 80; ++i) {
         p.run(kCall, 50 * kUs), p.sleep(10 * kUs);
         const Nanos begin = p.now();
         Nanos end = begin;
         for (const u64 stream : {Planted::kStream + 1, Planted::kStream + 2}) {
           p.at(begin), p.begin_thread();
           p.run(kCall, 40 * kUs, 0, stream), p.sleep(planted ? 150 * kUs : 0), p.run(kCall, 40 * kUs, 1, stream);
           end = std::max(end, p.now());
         }
         p.at(end), p.end_threads(), p.fetch();
       }
     }},
    {"sampling on the host between the replays of a graph", "idle-gaps",
     [](Planted& p, bool planted) {
       for (int i = 0; i < 60; ++i) p.replay(kCall, 40, 8 * kUs), p.fetch(), p.sleep(planted ? 60 * kUs : 0);
     }},
    {"a wait for the stream in each step", "needless-synchronization",
     [](Planted& p, bool planted) {
       for (int i = 0; i < 60; ++i) {
         p.run(kCall, 80 * kUs), p.run(kCall, 80 * kUs);
         if (planted) p.wait();
         p.sleep(40 * kUs);
       }
     }},
    {"a wait for all after each kernel", "needless-synchronization",
     [](Planted& p, bool planted) {
       for (int i = 0; i < 60; ++i) {
         p.run(kCall, 60 * kUs);
         if (planted) p.wait_for_all();
       }
     }},
    {"a wait for the newest event", "needless-synchronization",
     [](Planted& p, bool planted) {
       for (int i = 0; i < 60; ++i) {
         p.run(kCall, 60 * kUs), p.record(0xe1);
         if (planted) p.wait_for_event(0xe1);
         p.sleep(10 * kUs);
       }
     }},
    {"a result of four bytes, read in each step", "result-waits",
     [](Planted& p, bool planted) {
       for (int i = 0; i < 60; ++i) {
         p.run(kCall, 150 * kUs), p.copy_to_host(4, MemoryKind::Pinned, true);
         if (planted) p.wait();
         p.sleep(90 * kUs);
       }
     }},
    {"a batch of scores, read in each step", "result-waits",
     [](Planted& p, bool planted) {
       for (int i = 0; i < 60; ++i) {
         p.run(kCall, 150 * kUs), p.copy_to_host(64 << 10, MemoryKind::Pinned, true);
         if (planted) p.wait();
         p.sleep(90 * kUs);
       }
     }},
    {"a result that a synchronous copy reads in each step", "result-waits",
     [](Planted& p, bool planted) {
       for (int i = 0; i < 60; ++i) {
         p.run(kCall, 150 * kUs), p.copy_to_host(8, MemoryKind::Pinned, !planted);
         p.sleep(90 * kUs);
       }
     }},
    {"an event that is asked once in a while", "polling",
     [](Planted& p, bool planted) {
       for (int i = 0; i < 40; ++i) {
         p.run(kCall, 210 * kUs), p.copy_to_host(100'000, MemoryKind::Pinned, true), p.record(0xe1);
         if (planted)
           p.poll(0xe1, 100 * kUs);
         else
           p.wait_for_event(0xe1);
       }
     }},
    {"synchronous copies to the device", "synchronous-copies",
     [](Planted& p, bool planted) {
       for (int i = 0; i < 40; ++i)
         p.run(kCall, 100 * kUs), p.copy_to_device(kMegabyte / 2, MemoryKind::Pinned, !planted);
     }},
    {"pageable copies to the device", "pageable-async-copies",
     [](Planted& p, bool planted) {
       p.copy_to_device(kMegabyte, MemoryKind::Pinned, true);
       for (int i = 0; i < 40; ++i)
         p.run(kCall, 100 * kUs),
             p.copy_to_device(kMegabyte, planted ? MemoryKind::Pageable : MemoryKind::Pinned, true), p.sleep(60 * kUs);
     }},
    {"results that are fetched to pageable memory", "pageable-async-copies",
     [](Planted& p, bool planted) {
       p.copy_to_host(kMegabyte, MemoryKind::Pinned, true);
       for (int i = 0; i < 40; ++i) {
         p.run(kCall, 100 * kUs);
         p.copy_to_host(kMegabyte, planted ? MemoryKind::Pageable : MemoryKind::Pinned, true);
         if (!planted) p.wait();
       }
     }},
    {"memsets that the host waits for", "synchronous-memsets",
     [](Planted& p, bool planted) {
       for (int i = 0; i < 60; ++i) p.run(kCall, 40 * kUs), p.set(20 * kUs, !planted);
     }},
    {"copies to the device on the kernels' stream", "exposed-copies",
     [](Planted& p, bool planted) {
       const u64 stream = planted ? Planted::kStream : Planted::kStream + 1;
       for (int i = 0; i < 40; ++i) {
         p.copy_to_device(kMegabyte, MemoryKind::Pinned, true, stream);
         p.record(0xe1, stream), p.await(0xe1, Planted::kStream);
         p.run(kCall, 150 * kUs);
       }
     }},
    {"snapshots to the host on the kernels' stream", "exposed-copies",
     [](Planted& p, bool planted) {
       const u64 stream = planted ? Planted::kStream : Planted::kStream + 1;
       for (int i = 0; i < 40; ++i) {
         p.run(kCall, 150 * kUs), p.record(0xe1), p.await(0xe1, stream);
         p.copy_to_host(kMegabyte, MemoryKind::Pinned, true, stream);
       }
     }},
    {"allocations in the loop", "allocation-in-loop",
     [](Planted& p, bool planted) {
       for (int i = 0; i < 40; ++i) p.run(kCall, 50 * kUs), p.allocate(planted ? 80 * kUs : kUs);
     }},
    {"allocating and freeing in the loop", "allocation-in-loop",
     [](Planted& p, bool planted) {
       for (int i = 0; i < 40; ++i) {
         if (planted) p.allocate(20 * kUs);
         p.run(kCall, 100 * kUs);
         if (planted) p.free(10 * kUs);
       }
     }},
    {"modules that are loaded between kernels", "code-loading",
     [](Planted& p, bool planted) {
       for (int i = 0; i < 20; ++i) p.run(kCall, 100 * kUs), p.load_module(planted ? 300 * kUs : 0);
     }},
    {"functions of the host in the stream", "host-functions",
     [](Planted& p, bool planted) {
       for (int i = 0; i < 40; ++i) p.run(kCall, 100 * kUs), p.host_function(planted ? 60 * kUs : 0);
       p.run(kCall, 100 * kUs);
     }},
    {"a last wave of one block", "wave-quantization",
     [](Planted& p, bool with) {
       p.blocks(with ? 265 : 264);  // of 264 in a wave
       for (int i = 0; i < 60; ++i) p.run(kCall, (with ? 528 : 265) * kUs);
     }},
    {"tensors that are moved to another layout before each product and back", "layout-conversions",
     [](Planted& p, bool with) {
       for (int i = 0; i < 60; ++i) {
         p.run(kCall, with ? 40 * kUs : 0, 2);
         p.run(kCall, 200 * kUs, 1);
         p.run(kCall, with ? 30 * kUs : 0, 2);
       }
     }},
    {"short kernels, one launch each", "launch-bound",
     [](Planted& p, bool planted) {
       for (int i = 0; i < 30; ++i) {
         if (planted) {
           for (int k = 0; k < 20; ++k) p.run(10 * kUs, 5 * kUs, k % 2);
         } else {
           p.replay(10 * kUs, 20, 5 * kUs);
         }
         p.fetch();
       }
     }},
    {"the same launches with a slow host between them", "graph-candidates",
     [](Planted& p, bool planted) {
       for (int i = 0; i < 30; ++i) {
         if (planted) {
           for (int k = 0; k < 10; ++k) p.run(6 * kUs, 12 * kUs, k % 2), p.sleep(20 * kUs);
         } else {
           p.replay(6 * kUs, 10, 12 * kUs);
         }
         p.fetch();
       }
     }},
    {"an optimizer one tensor at a time, and a framework's way from each launch to the next", "launch-bound",
     [](Planted& p, bool planted) {
       for (int i = 0; i < 30; ++i) {
         p.run(6 * kUs, 400 * kUs);
         if (planted) {
           for (int k = 0; k < 40; ++k) p.sleep(40 * kUs), p.run(6 * kUs, 5 * kUs);
         } else {
           p.replay(6 * kUs, 40, 5 * kUs);
         }
         p.fetch();
       }
     }},
    {"a framework on a slow machine, which takes four times as long from its backward pass to its optimizer",
     "launch-bound",
     [](Planted& p, bool planted) {
       for (int i = 0; i < 30; ++i) {
         if (planted) {
           for (int k = 0; k < 20; ++k) p.sleep((k == 14 ? 220 : 55) * kUs), p.run(6 * kUs, 5 * kUs);
         } else {
           p.sleep(55 * kUs), p.replay(6 * kUs, 20, 5 * kUs);
         }
         p.fetch();
       }
     }},
    {"products that a library looks up before it launches them, each with its sum behind it", "launch-bound",
     [](Planted& p, bool planted) {
       for (int i = 0; i < 30; ++i) {
         if (planted) {
           for (int k = 0; k < 10; ++k)
             p.sleep((k == 7 ? 220 : 55) * kUs), p.look_up(2 * kUs), p.run(6 * kUs, 5 * kUs), p.sleep(kUs),
                 p.run(6 * kUs, 5 * kUs);
         } else {
           p.sleep(57 * kUs), p.replay(6 * kUs, 20, 5 * kUs);
         }
         p.fetch();
       }
     }},
    {"the same launches close together, and as much of the program's own work among them", "launch-bound",
     [](Planted& p, bool planted) {
       for (int i = 0; i < 30; ++i) {
         if (planted) {
           for (int k = 0; k < 40; ++k) p.sleep((k == 20 ? 220 : 15) * kUs), p.run(6 * kUs, 5 * kUs);
         } else {
           p.sleep(15 * kUs), p.replay(6 * kUs, 20, 5 * kUs), p.sleep(220 * kUs), p.replay(0, 20, 5 * kUs);
         }
         p.fetch();
       }
     }},
    {"short kernels, and a buffer that is cleared among them", "launch-bound",
     [](Planted& p, bool planted) {
       for (int i = 0; i < 30; ++i) {
         if (planted) {
           for (int k = 0; k < 20; ++k) {
             if (k % 4 == 3)
               p.set(5 * kUs, true);
             else
               p.run(10 * kUs, 5 * kUs, k % 2);
           }
         } else {
           p.replay(10 * kUs, 20, 5 * kUs);
         }
         p.fetch();
       }
     }},
    {"short kernels, and every fourth a copy on the device", "launch-bound",
     [](Planted& p, bool planted) {
       p.copy_calls_take(10 * kUs);
       for (int i = 0; i < 30; ++i) {
         if (planted) {
           for (int k = 0; k < 20; ++k) {
             if (k % 4 == 3)
               p.copy_on_device(5 * kUs);
             else
               p.run(10 * kUs, 5 * kUs, k % 2);
           }
         } else {
           p.replay(10 * kUs, 20, 5 * kUs);
         }
         p.fetch();
       }
     }},
    {"short kernels, and batches that the host makes between them", "short-kernels",
     [](Planted& p, bool planted) {
       for (int i = 0; i < 40; ++i) {
         if (planted) {
           for (int k = 0; k < 12; ++k) p.run(12 * kUs, 10 * kUs, k % 2);
         } else {
           p.replay(12 * kUs, 12, 10 * kUs);
         }
         p.sleep(300 * kUs);
       }
     }},
    {"short kernels, then a copy whose call is slow and does not wait", "graph-candidates",
     [](Planted& p, bool planted) {
       p.copy_calls_take(100 * kUs);
       for (int i = 0; i < 30; ++i) {
         if (planted) {
           for (int k = 0; k < 12; ++k) p.run(100 * kUs, 15 * kUs, k % 2);
         } else {
           p.replay(100 * kUs, 12, 15 * kUs);
         }
         p.copy_to_host(64, MemoryKind::Pinned, true);
         p.wait();
       }
     }},
};

u64 promised(const ProcessTrace& process, const Finding& finding) {
  EXPECT_TRUE(process.gains.replayed()) << process.gains.why_not;
  return finding.gain_ns;
}

TEST(Gains, AreWhatTheProgramWithoutTheCauseTakesLess) {
  for (const Pair& pair : kPairs) {
    Planted with, without;
    pair.program(with, true);
    pair.program(without, false);
    const double real = static_cast<double>(with.span() - without.span());
    ASSERT_GE(real, 0.05 * static_cast<double>(with.span())) << pair.name << ": too little to see";
    const LoadedRun run = with.load();
    const ProcessTrace& process = run.processes.at(0);
    EXPECT_EQ(process.gains.measured_ns, static_cast<u64>(with.span())) << pair.name;
    EXPECT_EQ(process.gains.replayed_ns, process.gains.measured_ns) << pair.name;
    const auto findings = find_findings(run);
    const Finding* finding = find(findings, pair.finding);
    ASSERT_NE(finding, nullptr) << pair.name;
    const double gain = static_cast<double>(promised(process, *finding));
    EXPECT_NEAR(gain, real, 0.1 * real) << pair.name;
    RecordProperty(pair.name, fmt::format("{:.1f} us of {:.1f} us, real {:.1f} us", gain / 1e3,
                                          static_cast<double>(with.span()) / 1e3, real / 1e3));
    const LoadedRun clean = without.load();
    EXPECT_EQ(clean.processes.at(0).gains.replayed_ns, static_cast<u64>(without.span())) << pair.name;
  }
}

// Traces of pairs that `./dev bench gains` ran (bench/gain_programs.py): their times are those of a quiet machine, whatever this one does.
TEST(Gains, OfKeptPairsAreWhatTheProgramWithoutTheCauseTakesLess) {
  const char* corpus = std::getenv("GT_CORPUS");
  ASSERT_NE(corpus, nullptr);
  int pairs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(corpus) + "/gains")) {
    const auto load = [&](const char* which) {
      LoadRequest request;
      request.files = {(entry.path() / which).string()};
      return load_run(request).value();
    };
    const LoadedRun with = load("with.gtrace"), without = load("without.gtrace");
    const auto replayed = [](const LoadedRun& run) {
      return static_cast<double>(run.processes.at(0).gains.replayed_ns);
    };
    const double real = replayed(with) - replayed(without);
    ASSERT_GE(real, 0.05 * replayed(with)) << entry.path();
    std::string id;
    std::getline(std::ifstream(entry.path() / "finding"), id);
    const auto findings = find_findings(with);
    const Finding* finding = find(findings, id);
    ASSERT_NE(finding, nullptr) << entry.path();
    EXPECT_NEAR(static_cast<double>(finding->gain_ns), real, 0.1 * real) << entry.path();
    ++pairs;
  }
  EXPECT_GE(pairs, 25);
}

// What looks like a cause and is none.
const Pair kInnocent[] = {
    {"a copy of the result, a wait, and it is read", "needless-synchronization",
     [](Planted& p, bool) {
       for (int i = 0; i < 60; ++i) p.run(kCall, 80 * kUs), p.fetch();
     }},
    {"two steps ahead by events", "needless-synchronization",
     [](Planted& p, bool) {
       for (u64 i = 0; i < 60; ++i) {
         p.run(kCall, 80 * kUs), p.record(0xe0 + i % 2);
         if (i > 0) p.wait_for_event(0xe0 + (i + 1) % 2);
       }
     }},
    {"a double buffer", "needless-synchronization",
     [](Planted& p, bool) {
       for (u64 i = 0; i < 60; ++i) {
         p.copy_to_device(kMegabyte, MemoryKind::Pinned, true, Planted::kStream + 1);
         p.record(0xe1, Planted::kStream + 1), p.await(0xe1, Planted::kStream);
         p.run(kCall, 150 * kUs);
         p.wait(Planted::kStream + 1);
       }
     }},
    {"memory of the host that the device writes", "needless-synchronization",
     [](Planted& p, bool) {
       p.ask_device_pointer();
       for (int i = 0; i < 60; ++i) p.run(kCall, 80 * kUs), p.wait(), p.sleep(40 * kUs);
     }},
    {"a result that is read while the device has more to do", "result-waits",
     [](Planted& p, bool) {
       for (int i = 0; i < 60; ++i) {
         p.run(kCall, 150 * kUs, 0, Planted::kStream + 1), p.run(kCall, 200 * kUs);
         p.copy_to_host(4, MemoryKind::Pinned, true, Planted::kStream + 1);
         p.wait(Planted::kStream + 1);
       }
     }},
    {"large results, which somebody must look at", "result-waits",
     [](Planted& p, bool) {
       for (int i = 0; i < 60; ++i) p.run(kCall, 150 * kUs), p.fetch(), p.sleep(90 * kUs);
     }},
    {"managed memory", "needless-synchronization",
     [](Planted& p, bool) {
       p.allocate(10 * kUs, AllocKind::Managed);
       for (int i = 0; i < 60; ++i) p.run(kCall, 80 * kUs), p.wait(), p.sleep(40 * kUs);
     }},
    {"a wait before memory is freed", "needless-synchronization",
     [](Planted& p, bool) {
       for (int i = 0; i < 60; ++i) p.allocate(kUs), p.run(kCall, 80 * kUs), p.wait(), p.free(2 * kUs);
     }},
    {"allocations at the start", "allocation-in-loop",
     [](Planted& p, bool) {
       for (int i = 0; i < 20; ++i) p.allocate(100 * kUs);
       for (int i = 0; i < 60; ++i) p.run(kCall, 300 * kUs);
     }},
    {"allocations beside a device that is busy", "allocation-in-loop",
     [](Planted& p, bool) {
       for (int i = 0; i < 60; ++i) p.run(kCall, 300 * kUs), p.allocate(100 * kUs);
     }},
    {"allocations from a pool", "allocation-in-loop",
     [](Planted& p, bool) {
       for (int i = 0; i < 60; ++i) p.run(kCall, 20 * kUs), p.allocate(80 * kUs, AllocKind::Pool);
     }},
    {"repeated launches that never let the device idle", "graph-candidates",
     [](Planted& p, bool) {
       for (int i = 0; i < 40; ++i) {
         for (int k = 0; k < 10; ++k) p.run(kCall, 40 * kUs, k % 2);
         p.record(0xe0 + static_cast<u64>(i % 2));
         if (i > 0) p.wait_for_event(0xe0 + static_cast<u64>((i + 1) % 2));
       }
     }},
    {"launches slower than kernels, but long ahead", "short-kernels",
     [](Planted& p, bool) {
       p.run(kCall, 20 * kMs);
       for (int i = 0; i < 500; ++i) p.run(8 * kUs, 7 * kUs);
     }},
    {"pageable copies that cost nothing", "pageable-async-copies",
     [](Planted& p, bool) {
       for (int i = 0; i < 20; ++i)
         p.copy_to_device(65'536, MemoryKind::Pageable, true), p.run(kCall, 5 * kMs), p.run(kCall, 5 * kMs);
     }},
    {"copies on a stream of their own", "exposed-copies",
     [](Planted& p, bool) {
       for (int i = 0; i < 60; ++i) {
         p.copy_to_device(kMegabyte, MemoryKind::Pinned, true, Planted::kStream + 1);
         p.run(kCall, 150 * kUs);
       }
     }},
    {"a device that is always busy", "idle-gaps",
     [](Planted& p, bool) {
       for (int i = 0; i < 60; ++i) p.run(kCall, 300 * kUs), p.sleep(200 * kUs);
     }},
    {"queries that are answered at once", "polling",
     [](Planted& p, bool) {
       for (int i = 0; i < 60; ++i) p.run(kCall, 30 * kUs), p.fetch(), p.record(0xe1), p.poll(0xe1, kUs);
     }},
    {"modules at the start, and some while the device has work", "code-loading",
     [](Planted& p, bool) {
       for (int i = 0; i < 20; ++i) p.load_module(100 * kUs);
       for (int i = 0; i < 60; ++i) p.run(kCall, 300 * kUs), p.load_module(100 * kUs);
     }},
    {"synchronous copies at the start", "synchronous-copies",
     [](Planted& p, bool) {
       for (int i = 0; i < 20; ++i) p.copy_to_device(4 * kMegabyte, MemoryKind::Pinned, false);
       for (int i = 0; i < 200; ++i) p.run(kCall, 300 * kUs);
     }},
    {"memsets that nobody waits for", "synchronous-memsets",
     [](Planted& p, bool) {
       for (int i = 0; i < 60; ++i) p.run(kCall, 100 * kUs), p.set(20 * kUs, true);
     }},
    {"a last wave of one block, for which nobody waits", "wave-quantization",
     [](Planted& p, bool) {
       p.blocks(265);
       for (int i = 0; i < 60; ++i) p.run(kCall, 5 * kUs), p.sleep(500 * kUs);
     }},
    {"conversions of layouts for which nobody waits", "layout-conversions",
     [](Planted& p, bool) {
       for (int i = 0; i < 60; ++i) p.run(kCall, 5 * kUs, 2), p.sleep(500 * kUs);
     }},
    {"a device that is busy, launch by launch", "launch-bound",
     [](Planted& p, bool) {
       for (int i = 0; i < 300; ++i) p.run(10 * kUs, 40 * kUs);
     }},
    {"functions of the host at the end of streams", "host-functions",
     [](Planted& p, bool) {
       for (int i = 0; i < 60; ++i)
         p.run(kCall, 100 * kUs), p.record(0xe1), p.await(0xe1, Planted::kStream + 1),
             p.host_function(50 * kUs, Planted::kStream + 1);
     }},
};

// Of an H200 1.1 % were not known of a loop in which it was idle for 97 %, and nothing at all was told.
TEST(Gains, ALittleThatIsNotKnownHidesNothing) {
  DeviceTimes device;
  device.first = 0, device.last = 1000;
  device.busy_ns = 50, device.unknown_ns = 20, device.idle_ns = 930;
  EXPECT_FALSE(is_unsure(device));
  device.busy_ns = 800, device.idle_ns = 180;
  EXPECT_TRUE(is_unsure(device));
  device.unknown_ns = 5, device.idle_ns = 20;
  EXPECT_FALSE(is_unsure(device));
}

TEST(Gains, NothingIsPromisedForWhatCostsNothing) {
  for (const Pair& pair : kInnocent) {
    Planted program;
    pair.program(program, true);
    const LoadedRun run = program.load();
    const auto findings = find_findings(run);
    const Finding* finding = find(findings, pair.finding);
    EXPECT_EQ(finding, nullptr) << pair.name << ": " << (finding ? finding->text : "");
    EXPECT_EQ(run.processes.at(0).gains.replayed_ns, static_cast<u64>(program.span())) << pair.name;
  }
}

TEST(Gains, EachCauseHasALookAlike) {
  for (const Pair& pair : kPairs) {
    const bool has = std::any_of(std::begin(kInnocent), std::end(kInnocent),
                                 [&](const Pair& each) { return std::string_view(each.finding) == pair.finding; });
    EXPECT_TRUE(has) << pair.finding;
  }
}

}  // namespace
}  // namespace gputrace::test
