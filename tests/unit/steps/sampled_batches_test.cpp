// Loops whose loader sets no mark: that they wait for batches, and for whose, is found by looks at their threads.
#include <gtest/gtest.h>

#include "analysis/lines/loaders.h"
#include "analysis/report.h"
#include "analysis/run/input_ops.h"
#include "analysis/steps/find_steps.h"
#include "tests/unit/finding_lookup.h"
#include "tests/unit/planted.h"

namespace gputrace {
namespace {

using namespace test;

constexpr u32 kFrames = 1u << 31, kOwn = kFrames, kAsks = kFrames + 2, kElsewhere = kFrames + 3, kGraph = kFrames + 4,
              kSlow = kFrames + 6, kAlone = kFrames + 7, kMapped = kFrames + 8, kUdf = kFrames + 10,
              kUnasked = kFrames + 11, kPackage = kFrames + 12, kPool = kFrames + 14, kFeeder = kFrames + 16,
              kItem = kFrames + 18, kEnqueued = kFrames + 21;
constexpr Nanos kBatch = 3 * kMs;
constexpr u64 kTurns = 40;

// Each turn: a batch, to the device, two kernels, the result.
class Turns : public Planted {
 public:
  Turns() {
    trace().frame(kOwn, 0, "<module>", "/home/me/train.py", 14);
    trace().frame(kFrames + 1, kOwn, "OwnedIterator.__next__",
                  "/x/site-packages/tensorflow/python/data/ops/iterator_ops.py", 830);
    trace().frame(kAsks, kFrames + 1, "iterator_get_next", "/x/site-packages/tensorflow/python/ops/gen_dataset_ops.py",
                  3000);
    trace().frame(kElsewhere, kOwn, "augment", "/home/me/train.py", 4);
    trace().frame(kGraph, kOwn, "quick_execute", "/x/site-packages/tensorflow/python/eager/execute.py", 53);
    trace().frame(kFrames + 5, 0, "FuncRegistry.__call__", "/x/site-packages/tensorflow/python/ops/script_ops.py", 269);
    trace().frame(kSlow, kFrames + 5, "slow", "/home/me/data.py", 3);
    trace().frame(kAlone, 0, "beat", "/home/me/monitor.py", 3);
    trace().frame(kMapped, kOwn, "_SingleThreadedMapper.__next__", "/x/site-packages/torchdata/nodes/map.py", 553);
    trace().frame(kFrames + 9, 0, "_apply_udf", "/x/site-packages/torchdata/nodes/_apply_udf.py", 47);
    trace().frame(kUdf, kFrames + 9, "slow", "/home/me/data.py", 3);
    trace().frame(kPackage, kOwn, "collect", "/deps/frames/engine.py", 410);
    const char* const adapter = "/x/site-packages/keras/src/trainers/data_adapters/py_dataset_adapter.py";
    trace().frame(kFrames + 19, kOwn, "get_jax_iterator",
                  "/x/site-packages/keras/src/trainers/data_adapters/data_adapter_utils.py", 152);
    trace().frame(kFrames + 13, kFrames + 19, "PyDatasetAdapter._finite_enqueuer_generator", adapter, 271);
    trace().frame(kPool, kFrames + 13, "OrderedEnqueuer.get", adapter, 664);
    trace().frame(kFrames + 15, 0, "OrderedEnqueuer._run", adapter, 634);
    trace().frame(kFeeder, kFrames + 15, "Queue.put", "/usr/lib/python3.11/queue.py", 140);
    trace().frame(kFrames + 17, 0, "get_index", adapter, 404);
    trace().frame(kItem, kFrames + 17, "Pictures.__getitem__", "/home/me/data.py", 12);
    trace().frame(kFrames + 20, kFrames + 5, "PyDatasetAdapter._finite_enqueuer_generator", adapter, 271);
    trace().frame(kEnqueued, kFrames + 20, "OrderedEnqueuer.get", adapter, 664);
    trace().frame(kUnasked, kFrames + 9, "Queue.get", "/usr/lib/python3.11/queue.py", 180);
  }
  void turn(bool another_copies = false) {
    batches_.push_back(now());
    sleep(kBatch);
    if (another_copies) hand_over();
    copy_to_device(4096, MemoryKind::Pageable, false);
    if (another_copies) hand_over();
    run(4 * kUs, 100 * kUs), run(4 * kUs, 50 * kUs, 1);
    fetch();
  }
  void look(u32 frame, Nanos at, WaitFor waits = WaitFor::Lock, i32 tid = 0, i32 process = 0) {
    look_at(main(), frame, at, waits, tid, process);
  }
  Nanos begin_of_batch(u64 turn) const { return batches_[turn]; }

 private:
  std::vector<Nanos> batches_;
};

// `look`: what is found in a turn's pause, which begins at that time.
template <typename Look>
LoadedRun looked_at(Look&& look) {
  Turns turns;
  for (u64 i = 0; i < kTurns; ++i) turns.turn();
  for (u64 i = 1; i < kTurns; ++i) look(turns, i, turns.begin_of_batch(i));
  return turns.load();
}

std::string input_note(const LoadedRun& run) {
  const Report report = make_report(run, {});
  for (const Row& row : report.table("overview")->rows) {
    if (row[0] == Value(std::string("step_input_ratio"))) return std::get<std::string>(row[3]);
  }
  return "";
}

TEST(SampledBatches, OfAnIteratorThatIsAskedAreInEachTurn) {
  const LoadedRun run = looked_at([](Turns& turns, u64 i, Nanos begin) {
    if (i % 3 == 0) turns.look(kAsks, begin + kMs);  // there are fewer looks than turns
  });
  const StepFacts& facts = run.processes[0].steps;
  EXPECT_EQ(facts.loader, "tf.data");
  EXPECT_TRUE(facts.loader_sampled);
  u64 waited = 0;
  for (std::size_t i = 1; i < facts.steps.size(); ++i) {  // nothing is known of what came before the first call
    const Step& step = facts.steps[i];
    EXPECT_TRUE(step.counted && step.divided);
    EXPECT_NEAR(static_cast<double>(step.waited_for_batches_ns), static_cast<double>(kBatch), 0.05 * kBatch);
    ++waited;
  }
  EXPECT_GE(waited, kTurns - 2);
  EXPECT_EQ(facts.batches, waited);
  const auto findings = find_findings(run);
  const Finding* const finding = find(findings, "input-bound");
  ASSERT_NE(finding, nullptr);
  EXPECT_NE(finding->text.find("for the next batch of tf.data, as looks at its threads found"), std::string::npos)
      << finding->text;
  EXPECT_NE(finding->fix.find("Dataset.prefetch(tf.data.AUTOTUNE)"), std::string::npos) << finding->fix;
  EXPECT_NEAR(static_cast<double>(finding->gain_ns), static_cast<double>(waited) * kBatch,
              0.05 * static_cast<double>(waited) * kBatch);
}

// Half of the pause is the program's own work: what belongs to the loader is not known turn by turn.
TEST(SampledBatches, AreNotToldWhereLooksFindOtherWorkAsOften) {
  const LoadedRun run = looked_at([](Turns& turns, u64 i, Nanos begin) {
    turns.look(i % 2 ? kAsks : kElsewhere, begin + kMs, i % 2 ? WaitFor::Lock : WaitFor{});
  });
  EXPECT_EQ(run.processes[0].steps.loader, "");
  EXPECT_EQ(run.processes[0].steps.batches, 0u);
  EXPECT_NE(input_note(run).find("whether it waits for batches is not known"), std::string::npos) << input_note(run);
  const auto findings = find_findings(run);
  EXPECT_EQ(find(findings, "input-bound"), nullptr);
}

// Another thread that launches, too, is at work meanwhile: whose the pause is, is not known.
TEST(SampledBatches, AreNotToldWhereAnotherCallerWorks) {
  Turns turns;
  for (u64 i = 0; i < kTurns; ++i) {
    turns.turn(true);
    turns.hand_over(), turns.run(4 * kUs, 50 * kUs, 2), turns.hand_over();
  }
  for (u64 i = 1; i < kTurns; ++i) {
    turns.look(kAsks, turns.begin_of_batch(i) + kMs);
    turns.look_at(turns.other(), kAlone, turns.begin_of_batch(i) + kMs, WaitFor{});
  }
  EXPECT_EQ(turns.load().processes[0].steps.loader, "");
}

// Keras' fit asks for its batch within a graph: the loop waits for that, while a thread of tf.data's runs what the program gave it.
TEST(SampledBatches, AskedWithinAGraphAreFoundByTheThreadsThatMakeThem) {
  const auto run_of = [](u32 beside) {
    return looked_at([beside](Turns& turns, u64 i, Nanos begin) {
      turns.look(kGraph, begin + kMs);
      if (i % 4) turns.look(beside, begin + 2 * kMs, WaitFor::Sleep, 311);
    });
  };
  const LoadedRun run = run_of(kSlow), other = run_of(kAlone);
  EXPECT_EQ(run.processes[0].steps.loader, "tf.data");
  const auto findings = find_findings(run);
  const Finding* const finding = find(findings, "input-bound");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->site, "data.py:3 slow");
  EXPECT_NE(finding->text.find(
                "100 % of what tf.data's threads do meanwhile is data.py:3 slow; they sleep 100 % of the time"),
            std::string::npos)
      << finding->text;
  EXPECT_EQ(other.processes[0].steps.loader, "") << "a thread of the program's own says nothing of batches";
}

// torchdata's threads run what the program gave to its ParallelMapper: the line is of that, not of where the loop waits for them.
TEST(SampledBatches, OfTorchdataAreMadeByItsThreads) {
  const auto run_of = [](WaitFor waits) {
    return looked_at([waits](Turns& turns, u64 i, Nanos begin) {
      turns.look(kMapped, begin + kMs);
      turns.look(kUdf, begin + 2 * kMs, waits, 311);
      if (i % 2) turns.look(kUnasked, begin + 2 * kMs, WaitFor::Lock, 312);
    });
  };
  const LoadedRun sleeps = run_of(WaitFor::Sleep), computes = run_of(WaitFor{});
  EXPECT_EQ(sleeps.processes[0].steps.loader, "torchdata");
  const auto of_sleeps = find_findings(sleeps), of_computes = find_findings(computes);
  const Finding *const finding = find(of_sleeps, "input-bound"), *const busy = find(of_computes, "input-bound");
  ASSERT_NE(finding, nullptr);
  ASSERT_NE(busy, nullptr);
  EXPECT_EQ(finding->site, "data.py:3 slow");
  EXPECT_NE(finding->text.find("100 % of what torchdata's threads do meanwhile is data.py:3 slow; they sleep 100 %"),
            std::string::npos)
      << finding->text;
  EXPECT_NE(finding->fix.find("workers need no processor while they sleep"), std::string::npos) << finding->fix;
  EXPECT_EQ(busy->text.find("sleep"), std::string::npos) << busy->text;
  EXPECT_NE(busy->fix.find("num_workers of ParallelMapper"), std::string::npos) << busy->fix;
  EXPECT_NE(busy->fix.find("cheaper transforms"), std::string::npos) << busy->fix;
  const InputOps ops = input_ops_of(sleeps);
  ASSERT_EQ(ops.ops.size(), 1u);
  EXPECT_EQ(ops.ops[0].op, "data.py slow");
  EXPECT_EQ(ops.samples, kTurns - 1);
  EXPECT_EQ(ops.waiting, kTurns / 2);
}

// Keras' PyDataset with workers: the loop waits for an enqueuer, which waits for a pool of threads, and these run the program's own class.
TEST(SampledBatches, OfAPyDatasetAreMadeByItsPool) {
  const LoadedRun run = looked_at([](Turns& turns, u64 i, Nanos begin) {
    turns.look(kPool, begin + kMs);
    turns.look(kFeeder, begin + kMs, WaitFor::Lock, 310);
    if (i % 2) turns.look(kItem, begin + 2 * kMs, WaitFor::Sleep, 311);
  });
  EXPECT_EQ(run.processes[0].steps.loader, "Keras' PyDataset");
  const auto findings = find_findings(run);
  const Finding* const finding = find(findings, "input-bound");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->site, "data.py:12 Pictures.__getitem__");
  EXPECT_NE(finding->text.find("100 % of what Keras' PyDataset's threads do meanwhile is data.py:12"),
            std::string::npos)
      << finding->text;
  EXPECT_NE(finding->text.find("they sleep 100 % of the time that batches take (sleep)"), std::string::npos)
      << finding->text;
  EXPECT_NE(finding->fix.find("more of PyDataset(workers=), a larger max_queue_size"), std::string::npos)
      << finding->fix;
  const InputOps ops = input_ops_of(run);
  ASSERT_EQ(ops.ops.size(), 1u);
  EXPECT_EQ(ops.ops[0].op, "data.py Pictures.__getitem__");
  EXPECT_TRUE(ops.ops[0].ahead);
  EXPECT_EQ(ops.samples, kTurns / 2);
}

TEST(SampledBatches, LoadersRunWhatTheProgramGaveThem) {
  const auto runs = [](const char* function, const char* file) {
    SourceFrame frame;
    frame.function = function, frame.file = file;
    return loader_that_runs(frame);
  };
  const std::string packages = "/x/site-packages";
  EXPECT_EQ(runs("_getitem", (packages + "/grain/_src/python/dataset/transformations/prefetch.py").c_str()), kGrain);
  EXPECT_EQ(runs("FuncRegistry.__call__", (packages + "/tensorflow/python/ops/script_ops.py").c_str()), kTfData);
  EXPECT_EQ(runs("<module>", (packages + "/tensorflow/python/ops/script_ops.py").c_str()), "");
  EXPECT_EQ(runs("_getitem", "/home/me/prefetch.py"), "");
}

// The same under TensorFlow, whose graph asks for the batch: one other thread is looked at at a time, most of them only wait for each other.
TEST(SampledBatches, OfAPyDatasetWithinAGraphAreMadeByItsPool) {
  const auto run_of = [](u32 mostly, WaitFor waits) {
    return looked_at([=](Turns& turns, u64 i, Nanos begin) {
      turns.look(kGraph, begin + kMs);
      if (i % 8 == 0) turns.look(kEnqueued, begin + 2 * kMs, WaitFor::Lock, 311);
      if (i % 8 == 4) turns.look(kItem, begin + 2 * kMs, WaitFor::Sleep, 312);
      if (i % 4) turns.look(mostly, begin + 2 * kMs, waits, 313);
    });
  };
  const LoadedRun run = run_of(kFeeder, WaitFor::Lock);
  EXPECT_EQ(run.processes[0].steps.loader, "Keras' PyDataset");
  const auto findings = find_findings(run);
  const Finding* const finding = find(findings, "input-bound");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->site, "data.py:12 Pictures.__getitem__");
  EXPECT_NE(finding->fix.find("more of PyDataset(workers=)"), std::string::npos) << finding->fix;
  EXPECT_EQ(run_of(kFeeder, WaitFor{}).processes[0].steps.loader, "") << "threads that work at something else";
  EXPECT_EQ(run_of(kAlone, WaitFor::Sleep).processes[0].steps.loader, "") << "lines of the program's own";
}

// PyTorch's DataLoader, and torchdata's StatefulDataLoader, which has files of its own, as CPython names their functions before 3.11 and since.
struct TorchLoader {
  const char *file, *next_without_workers, *next_with_workers, *worker;
};
constexpr const char* kTorchFile = "/x/site-packages/torch/utils/data/dataloader.py";
constexpr const char* kStatefulFile = "/x/site-packages/torchdata/stateful_dataloader/stateful_dataloader.py";
constexpr const char* kTorchWorker = "/x/site-packages/torch/utils/data/_utils/worker.py";
constexpr const char* kStatefulWorker = "/x/site-packages/torchdata/stateful_dataloader/worker.py";
constexpr TorchLoader kTorchLoaders[] = {
    {kTorchFile, "_SingleProcessDataLoaderIter._next_data", "_MultiProcessingDataLoaderIter._next_data", kTorchWorker},
    {kTorchFile, "_next_data", "_next_data", kTorchWorker},
    {kStatefulFile, "_StatefulSingleProcessDataLoaderIter._next_data",
     "_StatefulMultiProcessingDataLoaderIter._next_data", kStatefulWorker},
    {kStatefulFile, "_next_data", "_next_data", kStatefulWorker},
};
constexpr u32 kNext = kFrames + 40, kFetch = kFrames + 41, kTorchItem = kFrames + 42, kQueue = kFrames + 43,
              kWorkerFetch = kFrames + 45, kWorkerItem = kFrames + 46;

void name_frames(Turns& turns, const TorchLoader& loader, bool has_workers) {
  const auto fetches = [&](u32 frame, u32 caller) {
    turns.trace().frame(frame, caller, "fetch", "/x/site-packages/torch/utils/data/_utils/fetch.py", 54);
    turns.trace().frame(frame + 1, frame, "Pictures.__getitem__", "/home/me/data.py", 12);
  };
  turns.trace().frame(kNext, kOwn, has_workers ? loader.next_with_workers : loader.next_without_workers, loader.file,
                      490);
  if (!has_workers) return fetches(kFetch, kNext);
  turns.trace().frame(kQueue, kNext, "Queue.get", "/usr/lib/python3.11/multiprocessing/queues.py", 113);
  turns.trace().frame(kFrames + 44, 0, "_worker_loop", loader.worker, 310);
  fetches(kWorkerFetch, kFrames + 44);
}

LoadedRun looked_at_loader(const TorchLoader& loader, bool has_workers) {
  Turns turns;
  name_frames(turns, loader, has_workers);
  for (u64 i = 0; i < kTurns; ++i) turns.turn();
  for (u64 i = 1; i < kTurns; ++i) {
    const Nanos at = turns.begin_of_batch(i) + kMs;
    turns.look(has_workers ? kQueue : kTorchItem, at, has_workers ? WaitFor::Pipe : WaitFor::Sleep);
    if (has_workers) turns.look(kWorkerItem, at, WaitFor::Sleep, 0, 501);
  }
  return turns.load();
}

TEST(SampledBatches, OfPyTorchsLoadersAreMadeInTheLoopWhereTheyHaveNoWorkers) {
  for (const TorchLoader& loader : kTorchLoaders) {
    SCOPED_TRACE(std::string(loader.file) + " " + loader.next_without_workers);
    const LoadedRun run = looked_at_loader(loader, false);
    EXPECT_EQ(run.processes[0].steps.loader, "PyTorch's DataLoader");
    const auto findings = find_findings(run);
    const Finding* const finding = find(findings, "input-bound");
    ASSERT_NE(finding, nullptr);
    EXPECT_EQ(finding->site, "data.py:12 Pictures.__getitem__");
    EXPECT_NE(finding->text.find("the loader sleeps 100 % of the time that batches take"), std::string::npos)
        << finding->text;
    EXPECT_NE(finding->fix.find("DataLoader(num_workers=4 or more"), std::string::npos) << finding->fix;
    const InputOps ops = input_ops_of(run);
    ASSERT_EQ(ops.ops.size(), 2u);  // and what fetches
    EXPECT_EQ(ops.ops[0].op, "data.py Pictures.__getitem__");
    EXPECT_FALSE(ops.ops[0].ahead);
    EXPECT_EQ(ops.samples, kTurns - 1);
  }
}

// What a thread beside it loads, for itself, makes none of the loop's batches.
TEST(SampledBatches, OfALoopThatLoadsItselfAreNotMadeByAThreadThatLoadsToo) {
  Turns turns;
  name_frames(turns, kTorchLoaders[0], false);
  turns.trace().frame(kFrames + 70, 0, "validate", "/home/me/validate.py", 5);
  turns.trace().frame(kFrames + 71, kFrames + 70, "_SingleProcessDataLoaderIter._next_data", kTorchFile, 790);
  turns.trace().frame(kFrames + 72, kFrames + 71, "Held.__getitem__", "/home/me/validate.py", 2);
  for (u64 i = 0; i < kTurns; ++i) turns.turn();
  for (u64 i = 1; i < kTurns; ++i) {
    turns.look(kTorchItem, turns.begin_of_batch(i) + kMs, WaitFor::Sleep);
    turns.look(kFrames + 72, turns.begin_of_batch(i) + kMs, WaitFor::Sleep, 311);
  }
  const LoadedRun run = turns.load();
  const auto findings = find_findings(run);
  const Finding* const finding = find(findings, "input-bound");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->site, "data.py:12 Pictures.__getitem__");
}

TEST(SampledBatches, OfPyTorchsLoadersAreMadeByTheirWorkers) {
  for (const TorchLoader& loader : kTorchLoaders) {
    SCOPED_TRACE(std::string(loader.file) + " " + loader.next_with_workers);
    const LoadedRun run = looked_at_loader(loader, true);
    const auto findings = find_findings(run);
    const Finding* const finding = find(findings, "input-bound");
    ASSERT_NE(finding, nullptr);
    EXPECT_EQ(finding->site, "data.py:12 Pictures.__getitem__");
    EXPECT_NE(finding->text.find("100 % of what its workers do meanwhile is data.py:12"), std::string::npos)
        << finding->text;
    EXPECT_NE(finding->fix.find("more workers or a larger prefetch_factor"), std::string::npos) << finding->fix;
    const InputOps ops = input_ops_of(run);
    ASSERT_EQ(ops.ops.size(), 2u);
    EXPECT_TRUE(ops.ops[0].ahead && ops.ops[1].ahead);
  }
}

// A data set of a package's, with a package's transforms, has no line of the program's own: that the workers sleep is known all the same.
TEST(SampledBatches, OfAPackagesDataSetAreMadeByWorkersThatSleep) {
  Turns turns;
  name_frames(turns, kTorchLoaders[0], true);
  turns.trace().frame(kFrames + 60, kWorkerFetch, "ImageFolder.__getitem__", "/x/site-packages/torchvision/folder.py",
                      9);
  for (u64 i = 0; i < kTurns; ++i) turns.turn();
  for (u64 i = 1; i < kTurns; ++i) {
    turns.look(kQueue, turns.begin_of_batch(i) + kMs, WaitFor::Pipe);
    turns.look(kFrames + 60, turns.begin_of_batch(i) + kMs, WaitFor::File, 0, 501);
  }
  const LoadedRun run = turns.load();
  const auto findings = find_findings(run);
  const Finding* const finding = find(findings, "input-bound");
  ASSERT_NE(finding, nullptr);
  EXPECT_NE(finding->text.find("they sleep 100 % of the time that batches take"), std::string::npos) << finding->text;
}

// Ray's tasks run what the program gave to Dataset.map, in processes that Ray starts; the loop waits for a thread that has batches made of blocks.
TEST(SampledBatches, OfRayDataAreMadeByItsTasks) {
  Turns turns;
  const std::string ray = "/x/site-packages/ray/data/";
  turns.trace().frame(kFrames + 50, kOwn, "DataIterator.iter_batches.<locals>._create_iterator",
                      (ray + "iterator.py").c_str(), 130);
  turns.trace().frame(kFrames + 51, kFrames + 50, "Queue.get", "/usr/lib/python3.11/queue.py", 180);
  turns.trace().frame(kFrames + 52, 0, "_map_task", (ray + "_internal/execution/operators/map_operator.py").c_str(),
                      900);
  turns.trace().frame(kFrames + 53, kFrames + 52, "decode", "/home/me/data.py", 3);
  for (u64 i = 0; i < kTurns; ++i) turns.turn(true);
  for (u64 i = 1; i < kTurns; ++i) {
    turns.look(kFrames + 51, turns.begin_of_batch(i) + kMs);
    turns.look_at(turns.other(), kFeeder, turns.begin_of_batch(i) + kMs, WaitFor::Lock);
    turns.look(kFrames + 53, turns.begin_of_batch(i) + kMs, WaitFor::Sleep, 0, 501);
  }
  const LoadedRun run = turns.load();
  EXPECT_EQ(run.processes[0].steps.loader, "Ray Data");
  const auto findings = find_findings(run);
  const Finding* const finding = find(findings, "input-bound");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->site, "data.py:3 decode");
  EXPECT_NE(finding->text.find("for the next batch of Ray Data, as looks at its threads found"), std::string::npos)
      << finding->text;
  EXPECT_NE(finding->text.find("100 % of what its workers do meanwhile is data.py:3 decode"), std::string::npos)
      << finding->text;
  EXPECT_NE(finding->fix.find("concurrency= of Dataset.map"), std::string::npos) << finding->fix;
}

// A loop is read again where start-up took long: what looks found in it is in packages as what they found in the whole run.
TEST(SampledLoop, IsOfTheProgramsOwnLineWithinAPackage) {
  Turns turns;
  turns.trace().info("python_packages", "/deps");
  turns.run(4 * kUs, 100 * kUs), turns.fetch();
  turns.sleep(800 * kMs);
  for (u64 i = 0; i < kTurns; ++i) turns.turn();
  for (u64 i = 1; i < kTurns; ++i) turns.look(kPackage, turns.begin_of_batch(i) + kMs, WaitFor{});
  const LoadedRun run = turns.load();
  ASSERT_NE(run.processes[0].loop, nullptr);
  const auto findings = find_findings(run);
  const Finding* const gaps = find(findings, "idle-gaps");
  ASSERT_NE(gaps, nullptr);
  EXPECT_EQ(gaps->site, "train.py:14 <module>");
  EXPECT_EQ(gaps->text.find("engine.py:410"), std::string::npos) << gaps->text;
}

}  // namespace
}  // namespace gputrace
