// Library calls: operations, types, bus factors, peaks; which call owns a launch; groups; collectives over ranks.
#include <gtest/gtest.h>

#include "analysis/facts/library_rows.h"
#include "analysis/kernels/peaks.h"
#include "analysis/run/collective_match.h"
#include "analysis/timeline/library_calls.h"

namespace gputrace {
namespace {

LibraryShape product(u64 m, u64 n, u64 k, u64 batch, i32 type, i32 compute = -1, i32 math = 0) {
  LibraryShape shape;
  shape.kind = LibraryKind::Matmul;
  shape.m = m, shape.n = n, shape.k = k, shape.batch = batch;
  shape.type_a = shape.type_b = shape.type_c = type;
  shape.compute = compute, shape.math_mode = math;
  return shape;
}
LibraryShape transform(u64 x, u64 y, u64 z, u64 batch, i32 type) {
  LibraryShape shape;
  shape.kind = LibraryKind::Fft;
  shape.m = x, shape.n = y, shape.k = z, shape.batch = batch, shape.type_a = type;
  return shape;
}
LibraryShape collective(CollectiveKind what, u64 count, i32 type) {
  LibraryShape shape;
  shape.kind = LibraryKind::Collective;
  shape.what = static_cast<u32>(what), shape.m = count, shape.type_a = type;
  return shape;
}

TEST(LibraryFacts, Flops) {
  EXPECT_EQ(flops_of(product(4096, 2048, 1024, 3, 2)), 2ull * 4096 * 2048 * 1024 * 3);
  LibraryShape complex = product(10, 20, 30, 1, 4);
  complex.flags = kComplex;
  EXPECT_EQ(flops_of(complex), 8u * 10 * 20 * 30);
  LibraryShape sparse = product(1000, 16, 500, 1, 0);
  sparse.flags = kSparse, sparse.nonzeros = 3000;
  EXPECT_EQ(flops_of(sparse), 2u * 3000 * 16);
  EXPECT_EQ(flops_of(transform(1024, 1, 1, 16, 0x29)), 5u * 1024 * 10 * 16);
  EXPECT_EQ(flops_of(transform(1024, 1, 1, 16, 0x2a)), 5u * 1024 * 10 * 16 / 2);
  EXPECT_EQ(flops_of(transform(64, 64, 64, 2, 0x69)), 5u * 64 * 64 * 64 * 18 * 2);
  EXPECT_EQ(flops_of(transform(0, 0, 0, 0, 0x29)), 0u) << "a plan that was not seen";
}

TEST(LibraryFacts, Arithmetic) {
  EXPECT_EQ(arithmetic_of(product(1, 1, 1, 1, 0, -1, 0)), "fp32");
  EXPECT_EQ(arithmetic_of(product(1, 1, 1, 1, 0, -1, 3)), "tf32") << "CUBLAS_TF32_TENSOR_OP_MATH";
  EXPECT_EQ(arithmetic_of(product(1, 1, 1, 1, 31)), "fp6") << "CUDA_R_6F_E2M3";
  EXPECT_EQ(arithmetic_of(product(1, 1, 1, 1, 33)), "fp4") << "CUDA_R_4F_E2M1";
  EXPECT_EQ(arithmetic_of(product(1, 1, 1, 1, 0, 77)), "tf32") << "CUBLAS_COMPUTE_32F_FAST_TF32";
  EXPECT_EQ(arithmetic_of(product(1, 1, 1, 1, 0, 69, 3)), "fp32") << "pedantic";
  EXPECT_EQ(arithmetic_of(product(1, 1, 1, 1, 0, -1, -1)), "") << "the mode is not known";
  EXPECT_EQ(arithmetic_of(product(1, 1, 1, 1, 14, 68)), "bf16");
  LibraryShape fp8 = product(1, 1, 1, 1, 28, 68);
  fp8.type_b = 29, fp8.type_c = 14;
  EXPECT_EQ(arithmetic_of(fp8), "fp8");
  EXPECT_EQ(dtype_text(fp8), "fp8e4m3,fp8e5m2→bf16");
}

TEST(LibraryFacts, BytesAndBusFactors) {
  const auto of = [](CollectiveKind what) { return static_cast<u32>(what); };
  EXPECT_EQ(collective_bytes(collective(CollectiveKind::AllReduce, 1000, 7), 8), 4000u);
  EXPECT_EQ(collective_bytes(collective(CollectiveKind::AllGather, 1000, 6), 8), 16000u);
  EXPECT_EQ(collective_bytes(collective(CollectiveKind::ReduceScatter, 1000, 8), 4), 32000u);
  EXPECT_EQ(collective_bytes(collective(CollectiveKind::AllGather, 1000, 6), -1), 0u) << "size not known";
  EXPECT_DOUBLE_EQ(bus_factor(of(CollectiveKind::AllReduce), 8), 1.75);
  EXPECT_DOUBLE_EQ(bus_factor(of(CollectiveKind::AllGather), 8), 0.875);
  EXPECT_DOUBLE_EQ(bus_factor(of(CollectiveKind::ReduceScatter), 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor(of(CollectiveKind::AllToAll), 2), 0.5);
  EXPECT_DOUBLE_EQ(bus_factor(of(CollectiveKind::Broadcast), 8), 1);
  EXPECT_DOUBLE_EQ(bus_factor(of(CollectiveKind::AllReduce), -1), 0);
}

TEST(Peaks, PublishedDenseRates) {
  Device h100;
  h100.sms = 132, h100.clock_khz = 1'830'000, h100.capability_major = 9;
  EXPECT_NEAR(peak_flops(h100, "fp16"), 989.4e12, 0.5e12);
  EXPECT_NEAR(peak_flops(h100, "fp8"), 1978.9e12, 1e12);
  EXPECT_EQ(peak_flops(h100, "fp4"), 0) << "it has none";
  Device a100;
  a100.sms = 108, a100.clock_khz = 1'410'000, a100.capability_major = 8;
  EXPECT_NEAR(peak_flops(a100, "tf32"), 156e12, 0.3e12);
  EXPECT_NEAR(peak_flops(a100, "fp64"), 19.5e12, 0.1e12);
  EXPECT_EQ(peak_per_cycle(6, 0, "fp32"), 0u) << "not in the table";
  Device orin;  // 85 dense int8 TOPS, 5.3 fp32 TFLOPS
  orin.sms = 16, orin.clock_khz = 1'300'000, orin.capability_major = 8, orin.capability_minor = 7;
  EXPECT_NEAR(peak_flops(orin, "int8"), 85e12, 0.3e12);
  EXPECT_NEAR(peak_flops(orin, "fp32"), 5.3e12, 0.1e12);
}

// ------------------------------------------------------------------ owners

struct Scene {
  LibraryFacts facts;
  LibraryCalls calls{2, facts};
  Scene() { facts.collected = true; }

  template <typename Record>
  void end(std::string_view name, u16 id, Nanos begin, Nanos at, Record record, bool first = true, u32 thread = 0,
           u16 result = 0, u32 origin = 0) {
    record.header.type = static_cast<u16>(Record::kType);
    record.header.size = sizeof record;
    record.header.call = id;
    record.header.result = result;
    calls.ended({thread, id, name, result, begin, at, true, first, origin}, record.header);
  }
  const LibraryRow& row(u16 id) const {
    for (const LibraryRow& candidate : facts.rows) {
      if (candidate.call == id) return candidate;
    }
    static const LibraryRow none;
    return none;
  }
};
Matmul gemm(u64 m, u64 n, u64 k) {
  Matmul record{};
  record.m = m, record.n = n, record.k = k, record.batch = 1;
  return record;
}
Collective reduce(u64 comm, u64 count) {
  Collective record{};
  record.communicator = comm, record.count = count, record.type = 7, record.what = 1;
  return record;
}

TEST(LibraryCalls, InnermostCallOfTheThreadOwnsALaunch) {
  Scene scene;
  scene.calls.launched({5, 0, 0, false, true});    // before any library call
  scene.calls.launched({110, 1, 1, false, true});  // another thread's, within the time of the calls below
  scene.calls.launched({120, 0, 2, false, true});  // in the inner one
  scene.end("cublasLtMatmul", 7, 115, 130, gemm(2, 3, 4));
  scene.calls.launched({140, 0, 3, false, true});  // in the outer one alone
  scene.end("cudnnBackendExecute", 8, 100, 150, Convolution{});
  scene.calls.executed(0, 120, 1000);
  scene.calls.executed(0, 140, 50);
  scene.calls.executed(0, 5, 9999);
  scene.calls.finish();
  EXPECT_EQ(scene.row(7).kernels, 1u);
  EXPECT_EQ(scene.row(7).device_ns, 1000u);
  EXPECT_EQ(scene.row(8).kernels, 1u);
  EXPECT_EQ(scene.row(8).device_ns, 50u);
  EXPECT_EQ(scene.facts.launches, 2u);
  ASSERT_EQ(scene.facts.uses.size(), 2u);
  EXPECT_EQ(scene.facts.uses[0].kernel, 2u);
  EXPECT_EQ(scene.facts.uses[1].kernel, 3u);
}

TEST(LibraryCalls, TimesMayComeBeforeTheCallEnds) {
  Scene scene;
  scene.calls.launched({10, 0, 0, false, true});
  scene.calls.launched({20, 0, 0, false, true});
  scene.calls.executed(0, 10, 300);
  scene.end("cublasSgemm", 7, 5, 30, gemm(1, 1, 1));
  u64 nanos = 0;
  EXPECT_FALSE(device_time_of(scene.row(7), nanos)) << "one of two is not known";
  scene.calls.executed(0, 20, 400);
  ASSERT_TRUE(device_time_of(scene.row(7), nanos));
  EXPECT_EQ(nanos, 700u);
}

TEST(LibraryCalls, FailedAndCapturedCalls) {
  Scene scene;
  scene.end("cublasSgemm", 7, 1, 2, gemm(1, 1, 1), true, 0, 13);
  EXPECT_EQ(scene.row(7).calls, 0u);
  scene.calls.launched({11, 0, 0, true, true});
  scene.end("cublasSgemm", 9, 10, 12, gemm(1, 1, 1));
  EXPECT_EQ(scene.row(9).captured_calls, 1u);
  EXPECT_EQ(scene.row(9).kernels, 0u);
  EXPECT_EQ(scene.row(9).captured_kernels, 1u);
}

TEST(LibraryCalls, AGroupSharesItsKernelByBytes) {
  Scene scene;
  Call plain{};
  Communicator made{};
  made.communicator = 77, made.id_hash = 5, made.ranks = 2;
  scene.calls.communicator(made);
  scene.end("ncclGroupStart", 1, 10, 11, plain);
  scene.end("ncclGroupStart", 1, 12, 13, plain);  // nested: the inner end launches nothing
  scene.end("ncclAllReduce", 3, 14, 15, reduce(77, 100));
  scene.end("ncclGroupEnd", 2, 16, 17, plain);
  scene.end("ncclAllReduce", 3, 18, 19, reduce(77, 300));
  scene.calls.launched({25, 0, 4, false, true});
  scene.end("ncclGroupEnd", 2, 20, 30, plain);
  scene.calls.executed(0, 25, 1001);
  scene.calls.launched({41, 0, 4, false, true});
  scene.end("ncclAllReduce", 3, 40, 45, reduce(77, 100));
  scene.calls.executed(0, 41, 7);
  scene.calls.finish();
  ASSERT_EQ(scene.facts.collectives.size(), 3u);
  EXPECT_EQ(scene.facts.collectives[0].device_ns, 250u);
  EXPECT_EQ(scene.facts.collectives[1].device_ns, 751u) << "the last takes what rounding left";
  EXPECT_EQ(scene.facts.collectives[2].device_ns, 7u);
  EXPECT_EQ(scene.facts.collectives[2].number, 2u);
  u64 total = 0;
  for (const LibraryRow& row : scene.facts.rows) total += row.device_ns;
  EXPECT_EQ(total, 1008u) << "nothing is lost in sharing";
}

// By the line that made the call; under capture nothing ran, and of grouped products it is not known in time.
TEST(LibraryCalls, FlopsOfEachOrigin) {
  Scene scene;
  const auto product = [&](Nanos begin, u32 origin, const char* name, u16 call, bool captured) {
    scene.calls.launched({begin + 1, 0, 0, captured, true});
    scene.end(name, call, begin, begin + 5, gemm(10, 10, 10), true, 0, 0, origin);
  };
  product(10, 3, "cublasSgemm", 8, false);
  product(20, 3, "cublasSgemm", 8, false);
  product(30, 3, "cublasSgemm", 8, true);
  product(40, 5, "cublasSgemmGroupedBatched", 7, false);
  scene.calls.finish();
  ASSERT_EQ(scene.facts.flops.size(), 6u);
  EXPECT_EQ(scene.facts.flops[3].flops, 2 * 2'000u);
  EXPECT_EQ(scene.facts.flops[3].calls, 2u);
  EXPECT_EQ(scene.facts.flops[3].untold, 0u);
  EXPECT_EQ(scene.facts.flops[5].flops, 0u);
  EXPECT_EQ(scene.facts.flops[5].untold, 1u);
}

TEST(LibraryCalls, AGroupedProductSharesByFlops) {
  Scene scene;
  scene.calls.launched({11, 0, 0, false, true});
  scene.end("cublasSgemmGroupedBatched", 7, 10, 20, gemm(10, 10, 10), true);
  scene.end("cublasSgemmGroupedBatched", 7, 10, 20, gemm(10, 10, 30), false);
  scene.end("cublasSgemm", 8, 30, 40, gemm(1, 1, 1));
  scene.calls.executed(0, 11, 400);
  scene.calls.finish();
  ASSERT_GE(scene.facts.rows.size(), 2u);
  EXPECT_EQ(scene.facts.rows[0].device_ns, 100u);
  EXPECT_EQ(scene.facts.rows[1].device_ns, 300u);
}

// ------------------------------------------------------------------ ranks

LoadedRun two_ranks(std::vector<u64> first, std::vector<u64> second) {
  LoadedRun run;
  for (i32 rank = 0; rank < 2; ++rank) {
    ProcessTrace& process = run.processes.emplace_back();
    process.library.communicators.push_back({1, 42, rank, 2, 0});
    LibraryRow row;
    row.shape = collective(CollectiveKind::AllReduce, 10, 7);
    row.communicator = 0;
    process.library.rows.push_back(row);
    u32 number = 0;
    for (const u64 nanos : rank ? second : first) process.library.collectives.push_back({0, 0, number++, nanos, true});
  }
  return run;
}

TEST(CollectiveMatch, TransferIsTheShortestAndWaitTheRest) {
  const CollectiveTimes times = match_collectives(two_ranks({100, 30}, {40, 90}));
  EXPECT_EQ(times.of(0, 0).matched, 2u);
  EXPECT_EQ(times.of(0, 0).transfer_ns, 70u);
  EXPECT_EQ(times.of(0, 0).wait_ns, 60u);
  EXPECT_EQ(times.of(1, 0).transfer_ns, 70u);
  EXPECT_EQ(times.of(1, 0).wait_ns, 60u);
}

TEST(CollectiveMatch, NothingIsMatchedWhereOneIsMissing) {
  EXPECT_EQ(match_collectives(two_ranks({100, 30}, {40})).of(0, 0).matched, 0u);
  LoadedRun same_rank = two_ranks({100}, {40});
  same_rank.processes[1].library.communicators[0].rank = 0;
  EXPECT_EQ(match_collectives(same_rank).of(0, 0).matched, 0u);
  LoadedRun other_size = two_ranks({100}, {40});
  other_size.processes[1].library.rows[0].shape.m = 11;
  EXPECT_EQ(match_collectives(other_size).of(1, 0).matched, 0u);
}

}  // namespace
}  // namespace gputrace
