// Each cause of idle time: a gap that has it, and the same gap a little otherwise that has another.
#include "analysis/timeline/gap_cause.h"

#include <gtest/gtest.h>

namespace gputrace {
namespace {

constexpr u32 kThread = 3;
constexpr u16 kLaunchCall = 7, kSyncCall = 8, kFreeCall = 9, kCopyCall = 10, kLoadCall = 11;
using Kind = HostLog::Kind;

// A gap from 100 us to 200 us; the launch of what ends it is called at 192 us unless said otherwise.
struct Scene {
  HostLog log{8};
  OverheadLog overhead;
  HostOperation previous, next;
  DeviceOperation before, after;
  Nanos waited_for = 0;
  u32 depth = 0;
  bool joined = true;

  Scene() { next.begin = 192'000, next.end = 196'000, next.thread = kThread, next.call = kLaunchCall; }
  void held(Nanos begin, Nanos end, IdleCause cause = IdleCause::Collection, u32 thread = kThread) {
    overhead.add({begin, end, thread, cause});
  }
  void did(Nanos begin, Nanos end, Kind kind, u16 call) { log.add(kThread, begin, end, call, kind); }
  IdleVerdict judge() {
    IdleGap gap;
    gap.begin = 100'000, gap.end = 200'000;
    return judge_gap({gap, before, &previous, after, joined ? &next : nullptr, waited_for, depth, 100, &overhead}, log);
  }
};

TEST(GapCause, HostLateWhenTheThreadWasInNoCall) {
  Scene scene;
  scene.did(80'000, 84'000, Kind::Launch, kLaunchCall);
  EXPECT_EQ(scene.judge().cause, IdleCause::HostLate);
  EXPECT_EQ(scene.judge().call, 0);
}

TEST(GapCause, LaunchWhenTheCallItselfTookTheTime) {
  Scene scene;
  scene.next.begin = 110'000, scene.next.end = 195'000;
  EXPECT_EQ(scene.judge().cause, IdleCause::Launch);
  EXPECT_EQ(scene.judge().call, kLaunchCall);
}

TEST(GapCause, LaunchWhenTheThreadLaunchedOtherWorkMeanwhile) {
  Scene scene;
  for (Nanos at = 100'000; at < 190'000; at += 10'000) scene.did(at, at + 9'000, Kind::Launch, kLaunchCall);
  EXPECT_EQ(scene.judge().cause, IdleCause::Launch);
}

TEST(GapCause, SynchronizationCountsAsLongAsItHeldTheThread) {
  Scene scene;  // waited 300 us for the kernel, then worked for 88 us: without the wait there were no gap
  scene.did(-196'000, 104'000, Kind::Synchronization, kSyncCall);
  EXPECT_EQ(scene.judge().cause, IdleCause::Synchronization);
  EXPECT_EQ(scene.judge().call, kSyncCall);
  Scene brief;  // waited 40 us: the host would have been late all the same
  brief.did(64'000, 104'000, Kind::Synchronization, kSyncCall);
  EXPECT_EQ(brief.judge().cause, IdleCause::HostLate);
}

TEST(GapCause, ACallIsToldItsOwnPartOfTheGap) {
  Scene scene;  // two waits of one kind, and another between them
  scene.did(100'000, 130'000, Kind::Synchronization, kSyncCall);
  scene.did(130'000, 150'000, Kind::Synchronization, kCopyCall);
  scene.did(150'000, 175'000, Kind::Synchronization, kSyncCall);
  const IdleVerdict verdict = scene.judge();
  EXPECT_EQ(verdict.call, kSyncCall);
  EXPECT_EQ(verdict.caused, 75'000);
  EXPECT_EQ(verdict.by_call, 55'000);
}

TEST(GapCause, AWaitThatWasOverBeforeTheGapIsNoCause) {
  Scene scene;
  scene.did(-200'000, 99'000, Kind::Synchronization, kSyncCall);  // the clocks agree within 100 ns
  EXPECT_EQ(scene.judge().cause, IdleCause::HostLate);
}

TEST(GapCause, AllocationModulesAndCopiesByTheLongest) {
  for (const auto& [kind, cause, call] : {std::tuple{Kind::Allocation, IdleCause::Allocation, kFreeCall},
                                          {Kind::Module, IdleCause::ModuleLoad, kLoadCall},
                                          {Kind::Copy, IdleCause::Copy, kCopyCall}}) {
    Scene scene;
    scene.did(110'000, 180'000, kind, call);
    EXPECT_EQ(scene.judge().cause, cause);
    EXPECT_EQ(scene.judge().call, call);
    Scene shorter;
    shorter.did(110'000, 130'000, kind, call);
    EXPECT_EQ(shorter.judge().cause, IdleCause::HostLate);
  }
}

TEST(GapCause, TheCallAroundTheLaunchIsNoCauseByWhatItDoesLater) {
  Scene scene;  // a synchronous copy's own call: only what it did before the copy began
  scene.next.kind = OperationKind::Copy;
  scene.did(190'000, 900'000, Kind::Copy, kCopyCall);
  EXPECT_EQ(scene.judge().cause, IdleCause::HostLate);
}

TEST(GapCause, TheWayOfACopyIsItsOwn) {
  Scene scene;
  scene.next.begin = 105'000, scene.next.end = 400'000;
  scene.next.kind = OperationKind::Copy, scene.next.call = kCopyCall;
  EXPECT_EQ(scene.judge().cause, IdleCause::Copy);
  EXPECT_EQ(scene.judge().call, kCopyCall);
}

TEST(GapCause, AnotherStreamWhenTheEventCameLate) {
  Scene scene;  // launched long ago; what it waited for, on another device, ended at 197 us
  scene.next.begin = 10'000, scene.next.end = 14'000;
  scene.waited_for = 197'000;
  EXPECT_EQ(scene.judge().cause, IdleCause::OtherStream);
  scene.waited_for = 100'000;  // its own predecessor: ready when the gap began, and started 100 us later
  EXPECT_EQ(scene.judge().cause, IdleCause::Unknown);
}

TEST(GapCause, DispatchBetweenOperationsThatWereQueued) {
  Scene scene;
  scene.next.begin = 10'000, scene.next.end = 14'000;
  scene.waited_for = 100'000;
  IdleGap gap;
  gap.begin = 100'000, gap.end = 101'500;
  const auto judge = [&] {
    return judge_gap({gap, scene.before, nullptr, scene.after, &scene.next, scene.waited_for, 9, 100}, scene.log);
  };
  EXPECT_EQ(judge().cause, IdleCause::Dispatch);
  scene.next.begin = 96'500, scene.next.end = 98'500;  // launched 5 us before it started: as fast as a launch can be
  EXPECT_EQ(judge().cause, IdleCause::Launch);
}

TEST(GapCause, QueueFullWhenTheStreamHeldTooMuch) {
  Scene scene;
  scene.next.begin = 50'000, scene.next.end = 190'000;
  scene.depth = LaunchTimes::kFullQueue;
  EXPECT_EQ(scene.judge().cause, IdleCause::QueueFull);
  scene.depth = LaunchTimes::kFullQueue - 1;
  EXPECT_EQ(scene.judge().cause, IdleCause::Launch);
}

TEST(GapCause, TracingWhereItHeldTheLaunchingThreadLongest) {
  Scene scene;  // the host came late because CUPTI emptied a buffer in its thread
  scene.held(110'000, 170'000);
  EXPECT_EQ(scene.judge().cause, IdleCause::Collection);
  EXPECT_EQ(scene.judge().call, 0);
  Scene less;
  less.held(110'000, 150'000);  // 40 of the 92 us before the launch
  EXPECT_EQ(less.judge().cause, IdleCause::HostLate);
  Scene twice;  // one lies in the other: 60 us, not 90
  twice.held(110'000, 150'000), twice.held(120'000, 150'000);
  EXPECT_EQ(twice.judge().cause, IdleCause::HostLate);
  Scene another;
  another.held(110'000, 190'000, IdleCause::Collection, kThread + 1);
  EXPECT_EQ(another.judge().cause, IdleCause::HostLate);
  Scene before;
  before.held(10'000, 99'000);
  EXPECT_EQ(before.judge().cause, IdleCause::HostLate);
}

TEST(GapCause, TracingInsideACallIsTakenFromThatCall) {
  Scene launch;
  launch.next.begin = 110'000, launch.next.end = 195'000;
  launch.held(115'000, 180'000);
  EXPECT_EQ(launch.judge().cause, IdleCause::Collection);
  Scene mostly;
  mostly.next.begin = 110'000, mostly.next.end = 195'000;
  mostly.held(115'000, 150'000);
  EXPECT_EQ(mostly.judge().cause, IdleCause::Launch);
  Scene wait;  // 104 us in the wait, 60 of them for a buffer
  wait.did(60'000, 164'000, Kind::Synchronization, kSyncCall);
  wait.held(80'000, 140'000);
  EXPECT_EQ(wait.judge().cause, IdleCause::Collection);
}

TEST(GapCause, OverheadOfAnUntoldThreadCountsWithinCallsOnly) {
  Scene host;
  host.held(110'000, 170'000, IdleCause::Collection, OverheadLog::kAnyThread);
  EXPECT_EQ(host.judge().cause, IdleCause::HostLate);
  Scene launch;
  launch.next.begin = 110'000, launch.next.end = 195'000;
  launch.held(115'000, 180'000, IdleCause::Collection, OverheadLog::kAnyThread);
  EXPECT_EQ(launch.judge().cause, IdleCause::Collection);
}

TEST(GapCause, TheDriversOwnOverheadIsWhatItSaysItIs) {
  for (const IdleCause cause : {IdleCause::ModuleLoad, IdleCause::QueueFull}) {
    Scene scene;
    scene.next.begin = 110'000, scene.next.end = 195'000;
    scene.held(112'000, 190'000, cause);
    EXPECT_EQ(scene.judge().cause, cause);
    EXPECT_EQ(scene.judge().call, kLaunchCall);
  }
}

TEST(GapCause, InsideOneReplayOfAGraph) {
  Scene scene;
  scene.next.kind = OperationKind::Graph;
  IdleGap gap;
  gap.begin = 300'000, gap.end = 301'000;
  EXPECT_EQ(judge_gap({gap, scene.before, &scene.next, scene.after, &scene.next, 0, 0, 100}, scene.log).cause,
            IdleCause::GraphInternal);
  scene.joined = false;
  EXPECT_EQ(scene.judge().cause, IdleCause::Unknown);
}

TEST(GapCause, NestedCallsGiveTheOuterOneItsMeaning) {
  Scene scene;
  scene.did(120'000, 170'000, Kind::Synchronization, kSyncCall);  // cuStreamSynchronize …
  scene.did(110'000, 180'000, Kind::Other, 99);                   // … within cudaMemcpy2D's like
  EXPECT_EQ(scene.judge().cause, IdleCause::Synchronization);
  EXPECT_EQ(scene.judge().call, kSyncCall);
}

}  // namespace
}  // namespace gputrace
